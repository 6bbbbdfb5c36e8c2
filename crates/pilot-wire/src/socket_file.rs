//! The file of a Unix socket: made without a moment in which it is open to more users than it should be, never in place of
//! something that is in use, and removed by the one who made it.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, FlockOperation, Gid, Mode, OFlags, Uid, chownat, fchmod, flock, fstat, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixSocket};

/// How long a path may be: the kernel has 108 bytes for it, and the last one is zero.
pub const PATH_BYTES_MAX: usize = 107;
/// What the file has until its owner and group are right.
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
const OTHERS_MAY_WRITE: u32 = 0o022;

/// How the file should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub path: PathBuf,
    /// Without them, those of the process.
    pub owner: Option<u32>,
    pub group: Option<u32>,
    pub mode: u32,
}

#[derive(Debug, thiserror::Error)]
pub enum SocketFileError {
    #[error("{}: is not a socket, so it is not replaced; move it away, or listen elsewhere", path.display())]
    NotASocket { path: PathBuf },
    #[error("{}: another service answers on this socket; stop it, or listen elsewhere", path.display())]
    InUse { path: PathBuf },
    #[error("{}: another service listens on this socket, or is about to; stop it, or listen elsewhere", path.display())]
    Locked { path: PathBuf },
    #[error(
        "{}: someone other than root and the service can write to this directory, and could put another socket in place of the service's; use a directory of its own",
        path.display()
    )]
    OpenDirectory { path: PathBuf },
    #[error("{}: the directory cannot be used; create it, or let systemd do it with RuntimeDirectory=", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "{}: the socket cannot be given to {to}; a service that is not root can choose only a group that it is a member of, and its unit must permit @chown",
        path.display()
    )]
    Owner { path: PathBuf, to: String, source: io::Error },
    #[error("{}: cannot listen on this socket", path.display())]
    Other { path: PathBuf, source: io::Error },
}

/// A socket's file, removed when this is dropped: unless another one is in its place by then.
#[derive(Debug)]
pub struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
    /// Released after the file is removed.
    _lock: File,
}

impl SocketFile {
    pub(crate) fn bind(wanted: &Wanted, waiting_max: u32) -> Result<(UnixListener, SocketFile), SocketFileError> {
        let path = &wanted.path;
        let other = |source: io::Error| SocketFileError::Other { path: path.clone(), source };
        check_directory(path)?;
        let lock = lock(path)?;
        if let Left::Behind = look(path)? {
            fs::remove_file(path).map_err(other)?;
        }
        let socket = UnixSocket::new_stream().map_err(other)?;
        // The file gets this mode, less what the process's mask takes away. A mask of our own would be every thread's.
        fchmod(&socket, PRIVATE).map_err(|error| other(error.into()))?;
        socket.bind(path).map_err(other)?;
        let file = SocketFile::of(path, lock).map_err(other)?;
        hand_over(wanted)?;
        let listener = socket.listen(waiting_max).map_err(other)?;
        Ok((listener, file))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    fn of(path: &Path, lock: File) -> io::Result<SocketFile> {
        Ok(SocketFile { path: path.to_owned(), identity: identity(&fs::symlink_metadata(path)?), _lock: lock })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|found| identity(&found) == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// What is in the way of a new socket.
#[derive(Debug, PartialEq, Eq)]
enum Left {
    Nothing,
    /// The socket of a service that ended without removing it.
    Behind,
}

/// Whether a socket can be made here, without making it. A service that answers here is not a reason against it: it may
/// be the one that is asked about.
pub fn check(path: &Path) -> Result<(), SocketFileError> {
    check_directory(path)?;
    match look(path) {
        Ok(_) | Err(SocketFileError::InUse { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

fn check_directory(path: &Path) -> Result<(), SocketFileError> {
    let path = path.parent().unwrap_or(Path::new("/"));
    let found = fs::metadata(path).map_err(|source| SocketFileError::Directory { path: path.to_owned(), source })?;
    let is_ours = found.uid() == 0 || found.uid() == geteuid().as_raw();
    if !is_ours || found.permissions().mode() & OTHERS_MAY_WRITE != 0 {
        return Err(SocketFileError::OpenDirectory { path: path.to_owned() });
    }
    Ok(())
}

/// Until a socket listens, it looks like one that was left behind, and two starts at the same time would both find one. The
/// lock is a file that nobody else can open: anyone who can read a directory can lock it.
fn lock(path: &Path) -> Result<File, SocketFileError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let other = |source: io::Error| SocketFileError::Other { path: PathBuf::from(&name), source };
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(Path::new(&name), flags, PRIVATE).map_err(|error| other(error.into()))?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(SocketFileError::Locked { path: path.to_owned() }),
        locked => locked.map(|()| file.into()).map_err(|error| other(error.into())),
    }
}

fn look(path: &Path) -> Result<Left, SocketFileError> {
    let other = |source| SocketFileError::Other { path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Left::Nothing),
        Err(error) => return Err(other(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(SocketFileError::NotASocket { path: path.to_owned() });
        }
        Ok(_) => {}
    }
    match try_to_connect(path) {
        // The queue of a service that is alive can be full.
        Ok(()) | Err(Errno::AGAIN) => Err(SocketFileError::InUse { path: path.to_owned() }),
        Err(Errno::CONNREFUSED) => Ok(Left::Behind),
        Err(Errno::NOENT) => Ok(Left::Nothing),
        Err(error) => Err(other(error.into())),
    }
}

fn try_to_connect(path: &Path) -> Result<(), Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &SocketAddrUnix::new(path)?)
}

/// Gives the file its owner and group, and only then its mode. Through a descriptor: a name could have been exchanged.
fn hand_over(wanted: &Wanted) -> Result<(), SocketFileError> {
    let Wanted { path, owner, group, mode } = wanted;
    let other = |source: io::Error| SocketFileError::Other { path: path.clone(), source };
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = open(path, flags, Mode::empty()).map_err(|error| other(error.into()))?;
    let found = fstat(&file).map_err(|error| other(error.into()))?;
    if !FileType::from_raw_mode(found.st_mode).is_socket() {
        return Err(SocketFileError::NotASocket { path: path.clone() });
    }
    if owner.is_some() || group.is_some() {
        let (user, members) = (owner.map(Uid::from_raw), group.map(Gid::from_raw));
        chownat(&file, "", user, members, AtFlags::EMPTY_PATH).map_err(|error| {
            let to = [owner.map(|id| format!("user {id}")), group.map(|id| format!("group {id}"))];
            let to = to.into_iter().flatten().collect::<Vec<_>>().join(" and ");
            SocketFileError::Owner { path: path.clone(), to, source: error.into() }
        })?;
    }
    let opened = format!("/proc/self/fd/{}", file.as_raw_fd());
    fs::set_permissions(opened, fs::Permissions::from_mode(*mode)).map_err(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(directory: &tempfile::TempDir) -> Wanted {
        Wanted { path: directory.path().join("s"), owner: None, group: None, mode: 0o660 }
    }

    fn bind(wanted: &Wanted) -> Result<(UnixListener, SocketFile), SocketFileError> {
        SocketFile::bind(wanted, 8)
    }

    #[tokio::test]
    async fn a_socket_has_its_mode_whatever_the_mask_is_and_is_gone_when_it_is_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        let bound = bind(&wanted).unwrap();
        assert_eq!(fs::metadata(&wanted.path).unwrap().mode() & 0o7777, 0o660);
        drop(bound);
        assert!(!wanted.path.exists());
    }

    #[tokio::test]
    async fn a_socket_that_was_left_behind_is_replaced_and_one_that_answers_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        drop(std::os::unix::net::UnixListener::bind(&wanted.path).unwrap());
        let bound = bind(&wanted).unwrap();
        assert!(matches!(bind(&wanted), Err(SocketFileError::Locked { .. })));
        assert!(check(&wanted.path).is_ok());
        assert!(wanted.path.exists());
        drop(bound);
        let foreign = std::os::unix::net::UnixListener::bind(&wanted.path).unwrap();
        assert!(matches!(bind(&wanted), Err(SocketFileError::InUse { .. })));
        drop(foreign);
    }

    #[tokio::test]
    async fn whatever_is_not_a_socket_stays() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        let target = directory.path().join("target");
        let real = std::os::unix::net::UnixListener::bind(&target).unwrap();
        drop(real);
        std::os::unix::fs::symlink(&target, &wanted.path).unwrap();
        assert!(matches!(bind(&wanted), Err(SocketFileError::NotASocket { .. })), "a link to a socket is not one");
        fs::remove_file(&wanted.path).unwrap();
        fs::write(&wanted.path, "text").unwrap();
        assert!(matches!(bind(&wanted), Err(SocketFileError::NotASocket { .. })));
        assert!(matches!(check(&wanted.path), Err(SocketFileError::NotASocket { .. })));
        assert_eq!(fs::read_to_string(&wanted.path).unwrap(), "text");
    }

    #[tokio::test]
    async fn what_took_the_place_of_the_socket_is_not_removed() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        let bound = bind(&wanted).unwrap();
        let was = directory.path().join("was");
        fs::rename(&wanted.path, &was).unwrap();
        let other = std::os::unix::net::UnixListener::bind(&wanted.path).unwrap();
        drop(bound);
        assert!(wanted.path.exists());
        drop(other);
    }

    #[tokio::test]
    async fn in_a_directory_where_others_can_write_there_is_no_socket() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        for (mode, is_refused) in [(0o777, true), (0o1777, true), (0o2775, true), (0o755, false), (0o711, false)] {
            fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode)).unwrap();
            let refused = matches!(bind(&wanted), Err(SocketFileError::OpenDirectory { .. }));
            assert_eq!(refused, is_refused, "{mode:o}");
            assert_eq!(check(&wanted.path).is_err(), is_refused, "{mode:o}");
        }
    }

    #[tokio::test]
    async fn while_one_starts_another_does_not_take_its_socket_for_one_that_was_left_behind() {
        let directory = tempfile::tempdir().unwrap();
        let wanted = wanted(&directory);
        let held = lock(&wanted.path).unwrap();
        assert!(matches!(bind(&wanted), Err(SocketFileError::Locked { .. })));
        drop(held);
        assert!(bind(&wanted).is_ok());
        // Nobody else can open it, and so nobody else can hold it.
        assert_eq!(fs::metadata(directory.path().join("s.lock")).unwrap().mode() & 0o7777, 0o600);
    }
}
