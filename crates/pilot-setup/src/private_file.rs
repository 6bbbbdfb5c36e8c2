//! Reads files that decide who gets access. The checks apply to the file that was opened, so it cannot be swapped
//! between checking and reading.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pilot_core::limits::PRIVATE_FILE_BYTES_MAX;

mod acl;
mod group;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0}: cannot be opened; check that it exists and that the service's user may read it", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{0}: cannot be read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{0}: is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    #[error("{0}: is larger than {1} MiB", path.display(), PRIVATE_FILE_BYTES_MAX / 1024 / 1024)]
    TooLarge { path: PathBuf },
    #[error("{0}: is owned by neither root nor the user who runs this; change its owner with `chown`", path.display())]
    Owner { path: PathBuf },
    #[error("{0}: others can write to it (mode {mode:04o}); run `chmod 600 {0}`", path.display())]
    Writable { path: PathBuf, mode: u32 },
    #[error("{0}: others can write to it (mode {mode:04o}); run `chmod go-w {0}`", path.display())]
    OpenToWrite { path: PathBuf, mode: u32 },
    #[error("{0}: others can read it (mode {mode:04o}); run `chmod 600 {0}`", path.display())]
    Readable { path: PathBuf, mode: u32 },
}

/// How much access the group and the rest of the world may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// Reading is tolerated and reported; writing never is.
    MayRead,
    MayNothing,
    /// The group may read a file that belongs to root: this is how systemd gives the service's user access.
    GroupMayReadOfRoot,
}

pub struct PrivateFile {
    pub bytes: Vec<u8>,
    /// Set if others can read the file although they should not.
    pub exposed: Option<FileError>,
}

pub fn read(path: &Path, others: Others) -> Result<PrivateFile, FileError> {
    let file = open(path)?;
    let exposed = check(&file, path, others)?;
    let mut bytes = Vec::new();
    let read = |source| FileError::Read { path: path.to_owned(), source };
    file.take(PRIVATE_FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(read)?;
    if bytes.len() as u64 > PRIVATE_FILE_BYTES_MAX {
        return Err(FileError::TooLarge { path: path.to_owned() });
    }
    Ok(PrivateFile { bytes, exposed })
}

/// A file that anyone may read, and a warning if someone other than root and ourselves can write to it: they
/// decide what the service does.
pub fn read_public(path: &Path) -> io::Result<(String, Option<FileError>)> {
    let mut file = File::open(path)?;
    let metadata = file.metadata()?;
    let mut text = String::new();
    Read::by_ref(&mut file).take(PRIVATE_FILE_BYTES_MAX).read_to_string(&mut text)?;
    let (path, mode) = (path.to_owned(), metadata.mode() & 0o7777);
    let own_id = rustix::process::geteuid().as_raw();
    let foreign_hand = match () {
        () if metadata.uid() != 0 && metadata.uid() != own_id => Some(FileError::Owner { path }),
        () if mode & 0o022 != 0 => Some(FileError::OpenToWrite { path, mode }),
        () => None,
    };
    Ok((text, foreign_hand))
}

fn open(path: &Path) -> Result<File, FileError> {
    // Without O_NONBLOCK, a pipe in place of the file would block the start forever.
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    opened.map_err(|source| FileError::Open { path: path.to_owned(), source })
}

fn check(file: &File, path: &Path, others: Others) -> Result<Option<FileError>, FileError> {
    let path = path.to_owned();
    let metadata = match file.metadata() {
        Ok(metadata) => metadata,
        Err(source) => return Err(FileError::Read { path, source }),
    };
    if !metadata.is_file() {
        return Err(FileError::NotAFile { path });
    }
    if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(FileError::Owner { path });
    }
    let mut mode = metadata.mode() & 0o7777;
    if mode & 0o070 != 0 {
        let own_id = rustix::process::geteuid().as_raw();
        mode &= !acl::of(file).map_or(0, |list| list.withheld_from_group(own_id));
    }
    if is_for_own_group(&metadata, mode) {
        return Ok(None);
    }
    match others {
        _ if mode & 0o022 != 0 => Err(FileError::Writable { path, mode }),
        Others::MayNothing if mode & 0o077 != 0 => Err(FileError::Readable { path, mode }),
        Others::GroupMayReadOfRoot if mode & 0o007 != 0 || (mode & 0o070 != 0 && metadata.uid() != 0) => {
            Err(FileError::Readable { path, mode })
        }
        Others::MayRead if mode & 0o077 != 0 => Ok(Some(FileError::Readable { path, mode })),
        _ => Ok(None),
    }
}

/// Root passes a file to a single service by giving it to that service's group: a Kubernetes Secret volume does this,
/// and so does the package. Nobody else can write to the file, and nobody else is in the group.
fn is_for_own_group(metadata: &std::fs::Metadata, mode: u32) -> bool {
    mode & 0o077 == 0o040 && metadata.uid() == 0 && group::is_ours_alone(metadata.gid())
}

/// A program that supplies the credential file decides who gets access, as the file does: a person who can write to it
/// could let anyone in.
pub fn check_program(path: &Path) -> Result<(), FileError> {
    let path = path.to_owned();
    let metadata = match std::fs::metadata(&path) {
        Ok(metadata) => metadata,
        Err(source) => return Err(FileError::Open { path, source }),
    };
    let mode = metadata.mode() & 0o7777;
    match () {
        () if !metadata.is_file() => Err(FileError::NotAFile { path }),
        () if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() => {
            Err(FileError::Owner { path })
        }
        () if mode & 0o022 != 0 => Err(FileError::OpenToWrite { path, mode }),
        () => Ok(()),
    }
}

/// Creates a file that only its owner can read, and fails if it already exists. It gets its name only when it is
/// complete: a full disk or a crash halfway leaves nothing in its place.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    let temporary = write_temporary(path, bytes)?;
    // Unlike a rename, a link never replaces what someone else put there in the meantime.
    let linked = std::fs::hard_link(&temporary, path);
    let removed = std::fs::remove_file(&temporary);
    linked.and(removed)?;
    sync_directory(path)
}

/// In a directory that root keeps for a service's group (setgid, closed to others), a file that root creates is meant
/// for that group: otherwise the service could not read it.
fn is_for_a_group(path: &Path) -> bool {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    rustix::process::geteuid().is_root()
        && std::fs::metadata(directory)
            .is_ok_and(|found| found.uid() == 0 && found.gid() != 0 && found.mode() & 0o2027 == 0o2000)
}

/// Whose directory this is, if it is not root's and root is at work in it. Its owner may plant links there, and root must
/// not follow them.
fn foreign_owner(path: &Path) -> io::Result<Option<(u32, u32)>> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let found = std::fs::metadata(directory)?;
    Ok(Some((found.uid(), found.gid())).filter(|(owner, _)| *owner != 0))
}

/// Opens a file to append to it, and creates it if need be; never through a link. What root creates in someone's directory
/// belongs to that directory's owner.
pub fn append(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW.bits();
    let flags = i32::try_from(flags).map_err(|_| io::ErrorKind::InvalidInput)?;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    if let Some((owner, group)) = foreign_owner(path)?
        && file.metadata()?.uid() == 0
    {
        std::os::unix::fs::fchown(&file, Some(owner), Some(group))?;
    }
    Ok(file)
}

/// Writes the bytes to disk next to their destination, under a name that nobody reads.
fn write_temporary(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    use std::io::Write;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(name);
    hidden.push(".new");
    let temporary = path.with_file_name(hidden);
    // Left over from a crash during an earlier change; it was never in use.
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(temporary)
}

/// Replaces a file atomically: a reader sees the old one or the new one, even after a crash. Owner and group stay the
/// same, and a file that root gave to the service's group stays readable for it.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some((owner, group)) = foreign_owner(path)? {
        let temporary = write_temporary(path, bytes)?;
        std::os::unix::fs::lchown(&temporary, Some(owner), Some(group))?;
        std::fs::rename(&temporary, path)?;
        return sync_directory(path);
    }
    // If it is a link, its target is meant: replacing the link would leave the target unchanged.
    let path = &match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        found => found?,
    };
    let temporary = write_temporary(path, bytes)?;
    let owner = |found: &std::fs::Metadata| (found.uid(), found.gid());
    let old = std::fs::metadata(path).ok();
    if let Some(old) = &old {
        // The service may run as a different user from the one who edits the file. For its own files it skips the call,
        // which a supervisor may forbid.
        if owner(&std::fs::metadata(&temporary)?) != owner(old) {
            std::os::unix::fs::chown(&temporary, Some(old.uid()), Some(old.gid()))?;
        }
    }
    if old.map_or_else(|| is_for_a_group(path), |old| old.uid() == 0 && old.mode() & 0o077 == 0o040) {
        // Not through the mode at creation, which depends on the caller's umask.
        std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o640))?;
    }
    std::fs::rename(&temporary, path)?;
    sync_directory(path)
}

/// Replaces a file that anyone may read: it holds nothing secret, and someone else's program collects it.
pub fn replace_public(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = write_temporary(path, bytes)?;
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o644))?;
    std::fs::rename(&temporary, path)?;
    sync_directory(path)
}

/// Creates a directory that only its owner can enter, and its missing parents. It survives a power cut.
pub fn make_directory(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut missing = path;
    let mut new = Vec::new();
    while !missing.as_os_str().is_empty() && !missing.is_dir() {
        new.push(missing);
        let Some(above) = missing.parent() else { break };
        missing = above;
    }
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    // What the service stores in it later is only as durable as the name that leads to it.
    new.into_iter().rev().try_for_each(sync_directory)
}

/// Makes the names in the directory of `path` durable.
pub fn sync_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(parent)?.sync_all()
}
