//! Access control lists of files. For a file that has one, the group bits of the mode show the most that anyone on the
//! list may have. systemd passes credentials to a service this way: owner root, readable for root and the service's
//! user, and a mode of 0440 that looks as if the group could read.

use std::fs::File;

const NAME: &str = "system.posix_acl_access";
/// Far more than any list we would accept.
const BYTES_MAX: usize = 1024;
const VERSION: u32 = 2;
const READ: u16 = 4;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OF_FILE: u16 = 0x04;
const GROUP: u16 = 0x08;
const MOST: u16 = 0x10;
const OTHERS: u16 = 0x20;

pub(super) struct Acl(Vec<Entry>);

struct Entry {
    tag: u16,
    rights: u16,
    id: u32,
}

/// `None` if there is no list, or none that can be read: then the mode is all there is to go by.
pub(super) fn of(file: &File) -> Option<Acl> {
    let mut bytes = [0; BYTES_MAX];
    let length = rustix::fs::fgetxattr(file, NAME, &mut bytes).ok()?;
    Acl::parse(bytes.get(..length)?)
}

impl Acl {
    /// As the kernel returns it: a version, then eight bytes for each entry, all little endian.
    fn parse(bytes: &[u8]) -> Option<Acl> {
        let (version, entries) = bytes.split_first_chunk()?;
        let (entries, rest) = entries.as_chunks::<8>();
        if u32::from_le_bytes(*version) != VERSION || !rest.is_empty() {
            return None;
        }
        let entry = |[a, b, c, d, id @ ..]: &[u8; 8]| Entry {
            tag: u16::from_le_bytes([*a, *b]),
            rights: u16::from_le_bytes([*c, *d]),
            id: u32::from_le_bytes(*id),
        };
        Some(Acl(entries.iter().map(entry).collect()))
    }

    /// The bits of the mode that look like rights of the group but are rights of only root or the user `own_id`. Zero
    /// if anyone else on the list has any right at all, or if a listed user has more than read access.
    pub(super) fn withheld_from_group(&self, own_id: u32) -> u32 {
        let is_ours = |entry: &Entry| match entry.tag {
            OWNER | MOST => true,
            USER => entry.rights & !READ == 0 && (entry.id == own_id || entry.id == 0),
            GROUP_OF_FILE | GROUP | OTHERS => entry.rights == 0,
            _ => false,
        };
        if self.0.iter().all(is_ours) { 0o040 } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use pilot_testing::Scratch;

    use super::*;
    use crate::private_file::{self, Others};

    const NOBODY: u32 = u32::MAX;
    const OURS: u32 = 61_234;

    /// A list in the kernel's format, always with an owner who may read.
    fn list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for (tag, rights, id) in [&[(OWNER, READ, NOBODY)], entries].concat() {
            bytes.extend(tag.to_le_bytes().iter().chain(&rights.to_le_bytes()).chain(&id.to_le_bytes()));
        }
        bytes
    }

    fn withheld(entries: &[(u16, u16, u32)]) -> u32 {
        Acl::parse(&list(entries)).unwrap().withheld_from_group(OURS)
    }

    #[test]
    fn a_list_for_root_and_ourselves_gives_the_group_nothing() {
        let systemd = [(USER, READ, OURS), (GROUP_OF_FILE, 0, NOBODY), (MOST, READ, NOBODY), (OTHERS, 0, NOBODY)];
        assert_eq!(withheld(&systemd), 0o040);
        assert_eq!(withheld(&[(USER, READ, 0)]), 0o040);
    }

    #[test]
    fn anyone_else_on_the_list_or_more_than_reading_leaves_the_mode_as_it_is() {
        for entry in [
            (USER, READ, OURS + 1),
            (USER, 0o6, OURS),
            (GROUP_OF_FILE, READ, NOBODY),
            (GROUP, READ, OURS),
            (OTHERS, READ, NOBODY),
            (0x40, 0, NOBODY),
        ] {
            assert_eq!(withheld(&[(USER, READ, OURS), entry]), 0, "{entry:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_list_are_none() {
        let whole = list(&[]);
        for length in (0..whole.len()).filter(|length| *length != 4) {
            assert!(Acl::parse(&whole[..length]).is_none(), "{length}");
        }
        assert!(Acl::parse(&[&1_u32.to_le_bytes(), &whole[4..]].concat()).is_none());
    }

    #[test]
    fn a_file_as_systemd_hands_it_over_is_private() {
        let scratch = Scratch::new();
        let path = scratch.file("secret");
        let own_id = rustix::process::geteuid().as_raw();
        private_file::write_new(&path, b"secret").unwrap();
        let give = |entries: &[(u16, u16, u32)]| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
            rustix::fs::setxattr(&path, NAME, &list(entries), rustix::fs::XattrFlags::empty()).unwrap();
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            (mode, private_file::read(&path, Others::MayNothing).map(|file| file.bytes).ok())
        };
        let rest = [(GROUP_OF_FILE, 0, NOBODY), (MOST, READ, NOBODY), (OTHERS, 0, NOBODY)];
        let ours = give(&[&[(USER, READ, own_id)], &rest[..]].concat());
        let anothers = give(&[&[(USER, READ, own_id + 1)], &rest[..]].concat());
        assert_eq!((ours, anothers), ((0o440, Some(b"secret".to_vec())), (0o440, None)));
    }
}
