//! The contacts as the file has them now. It is read again when it changes; while it has a fault, what was read before holds.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use pilot_setup::contacts::{Contacts, ContactsError};
use pilot_setup::error::with_cause;
use pilot_setup::private_file::Others;

pub(crate) struct AddressBook {
    file: Option<(PathBuf, Others)>,
    read: Mutex<Read>,
}

struct Read {
    contacts: Arc<Contacts>,
    /// When the file was last changed, and its length.
    mark: Option<(SystemTime, u64)>,
}

impl AddressBook {
    /// Also what is said if others can read the file although they should not.
    pub(crate) fn open(file: Option<(PathBuf, Others)>) -> Result<(AddressBook, Option<String>), ContactsError> {
        let mut book = AddressBook { file, read: Mutex::new(Read { contacts: Arc::default(), mark: None }) };
        let mark = book.mark();
        let Some((path, others)) = &book.file else { return Ok((book, None)) };
        let (contacts, warning) = Contacts::read(path, *others)?;
        book.read = Mutex::new(Read { contacts: Arc::new(contacts), mark });
        Ok((book, warning))
    }

    fn mark(&self) -> Option<(SystemTime, u64)> {
        let (path, _) = self.file.as_ref()?;
        let found = std::fs::metadata(path).ok()?;
        Some((found.modified().ok()?, found.len()))
    }

    /// A look at the file's date costs a microsecond; the file itself is read only when it has changed.
    pub(crate) fn current(&self) -> Arc<Contacts> {
        let mark = self.mark();
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if mark != read.mark {
            read.mark = mark;
            if let Some((path, others)) = &self.file {
                match Contacts::read(path, *others) {
                    Ok((contacts, _)) => {
                        read.contacts = Arc::new(contacts);
                        tracing::info!("the contacts were read again");
                    }
                    Err(error) => tracing::warn!(
                        cause = with_cause(&error),
                        "the contacts cannot be read again, so those from before are used"
                    ),
                }
            }
        }
        Arc::clone(&read.contacts)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_faulty_one_changes_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("contacts.toml");
        let write = |text: &str| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write("[ana]\nmail = 'ana@example.com'\n");
        let (book, warning) = AddressBook::open(Some((path.clone(), Others::MayNothing))).unwrap();
        let mail = |name: &str| book.current().of(&name.parse().unwrap()).and_then(|contact| contact.mail.clone());
        assert_eq!((mail("ana").as_deref(), warning), (Some("ana@example.com"), None));
        write("[ana]\nmail = 'ana@other.example'\n");
        assert_eq!(mail("ana").as_deref(), Some("ana@other.example"));
        write("[ana]\nmail = 'nothing'\n");
        assert_eq!(mail("ana").as_deref(), Some("ana@other.example"));
        fs::remove_file(&path).unwrap();
        assert_eq!(mail("ana").as_deref(), Some("ana@other.example"));
    }
}
