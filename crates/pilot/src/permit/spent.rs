//! Which attempts were already used here: one file each, so that a permit opens a target once.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use pilot_evidence::permit::Permit;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::exit::Failure;

/// A directory that only root and the user who runs this can change.
pub(crate) struct Spent {
    directory: File,
    path: PathBuf,
}

impl Spent {
    pub(crate) fn open(path: &Path) -> Result<Spent, Failure> {
        let named = |what: &str| Failure::Usage(format!("--spent: {}: {what}", path.display()));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
        let directory: File = match opened {
            Ok(directory) => directory.into(),
            Err(Errno::LOOP) => return Err(named("a part of it is a symbolic link; give the directory's real path")),
            Err(Errno::NOTDIR) => return Err(named("is not a directory")),
            Err(Errno::NOENT) => return Err(named("does not exist; create it with `install -d -m 700`")),
            Err(error) => return Err(Failure::environment(format!("--spent: {}", path.display()), error)),
        };
        let found = directory.metadata().map_err(|error| Failure::environment(path.display(), error))?;
        if found.uid() != 0 && found.uid() != rustix::process::geteuid().as_raw() {
            return Err(named("belongs to another user, who could remove what is recorded in it; change its owner"));
        }
        if found.mode() & 0o022 != 0 {
            return Err(named("others can write to it and remove what is recorded; run `chmod go-w` on it"));
        }
        Ok(Spent { directory, path: path.to_owned() })
    }

    /// Marks the attempt as used, durably, before anything is done on the strength of it. Refused if it already is, or
    /// if a later attempt of the same item is.
    pub(crate) fn mark(&self, permit: &Permit) -> Result<(), Failure> {
        self.refuse_earlier(permit)?;
        let name = name(permit, permit.begun.entry);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut file: File = match openat(&self.directory, &*name, flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => file.into(),
            Err(Errno::EXIST) => return Err(used(permit, "was already used here")),
            Err(error) => return Err(self.failed(error)),
        };
        let record = json!({
            "log": permit.log.to_string(), "item": permit.item.id, "entry": permit.begun.entry,
            "action": permit.begun.action, "executor": permit.begun.actor.actor_id,
        });
        let written =
            writeln!(file, "{record}").and_then(|()| file.sync_all()).and_then(|()| self.directory.sync_all());
        written.map_err(|error| self.failed(error))
    }

    /// Once a retry was used here, nothing of an earlier attempt may be.
    fn refuse_earlier(&self, permit: &Permit) -> Result<(), Failure> {
        let beginning = beginning(permit);
        // Through the descriptor: the path may have come to lead elsewhere since it was checked.
        let listed = rustix::fs::Dir::read_from(&self.directory).map_err(|error| self.failed(error))?;
        for entry in listed {
            let entry = entry.map_err(|error| self.failed(error))?;
            let later = entry.file_name().to_str().ok().and_then(|name| name.strip_prefix(&beginning));
            if later.and_then(|index| index.parse().ok()).is_some_and(|index: u64| index > permit.begun.entry) {
                return Err(used(permit, "is older than another attempt that was already used here"));
            }
        }
        Ok(())
    }

    fn failed(&self, error: impl std::fmt::Display) -> Failure {
        let what = format!("--spent: {}: the attempt cannot be recorded, so nothing is run", self.path.display());
        Failure::environment(what, error)
    }
}

fn used(permit: &Permit, how: &str) -> Failure {
    let (item, entry) = (&permit.item.id, permit.begun.entry);
    Failure::Refused(format!(
        "the permit is refused: this attempt (item {item}, entry {entry}) {how}; retry the item in the service and \
         download its new permit"
    ))
}

/// The log by the hash of its key, since its name may contain anything; then the item, then the attempt by the entry
/// that began it.
fn beginning(permit: &Permit) -> String {
    let log = Sha256::digest(permit.log.to_string().as_bytes());
    let log: String = log.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    format!("{log}-{}-", permit.item.id)
}

fn name(permit: &Permit, entry: u64) -> String {
    format!("{}{entry}", beginning(permit))
}
