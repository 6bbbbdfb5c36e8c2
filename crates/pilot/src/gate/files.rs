//! Takes the bytes of approved files out of reach of everyone else, and hashes what it took.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, OwnedFd};

use pilot_core::limits::GATE_BYTES_MAX;
use rustix::fs::{CWD, MemfdFlags, Mode, OFlags, ResolveFlags, SealFlags, fcntl_add_seals, memfd_create, openat2};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::operation::ApprovedFile;
use crate::exit::Failure;

const PIECE_BYTES: usize = 64 * 1024;

/// A sealed copy in memory: nobody can change it any more, this process included. It stays open across `exec`.
pub(super) struct Copy {
    memory: OwnedFd,
    /// The kernel can run it. Anything else the C library would hand to a shell, which nobody approved.
    pub(super) is_program: bool,
}

impl Copy {
    /// The path under which the command finds it.
    pub(super) fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.memory.as_raw_fd())
    }

    /// Opens the file once, copies it, and compares the copy with what was approved. `left` is how many bytes may still
    /// be copied for this command line.
    pub(super) fn take(approved: &ApprovedFile, left: &mut u64) -> Result<Copy, Failure> {
        let ApprovedFile { path, sha256 } = approved;
        let mut source = open(path)?;
        let failed = |error: &dyn std::fmt::Display| Failure::environment(path, error);
        let (copy, mut hash) = (memory().map_err(|error| failed(&error))?, Sha256::new());
        let mut copy: File = copy.into();
        let (mut piece, mut is_program) = (vec![0; PIECE_BYTES], None);
        loop {
            let read = source.read(&mut piece).map_err(|error| failed(&error))?;
            let bytes = piece.get(..read).unwrap_or_default();
            if bytes.is_empty() {
                break;
            }
            // Counted as it is read: the file may grow, and its length may lie.
            *left = left.checked_sub(read as u64).ok_or_else(|| too_large(path))?;
            // A first read so short that it cannot tell is not a program either.
            is_program.get_or_insert(bytes.starts_with(b"#!") || bytes.starts_with(b"\x7fELF"));
            hash.update(bytes);
            copy.write_all(bytes).map_err(|error| failed(&error))?;
        }
        let found: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        if found != *sha256 {
            return Err(Failure::Refused(format!(
                "{path}: its bytes are not those that were approved: their sha256 is {found}, and {sha256} was \
                 approved; restore the approved file, or propose a new item"
            )));
        }
        let seals = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
        fcntl_add_seals(&copy, seals).map_err(|error| failed(&error))?;
        Ok(Copy { memory: copy.into(), is_program: is_program == Some(true) })
    }
}

fn too_large(path: &str) -> Failure {
    let mib = GATE_BYTES_MAX / 1024 / 1024;
    Failure::Refused(format!(
        "{path}: the approved files have more than {mib} MiB, which is the most that is copied into memory; have a \
         smaller file approved, for example a script that checks the large one"
    ))
}

fn open(path: &str) -> Result<File, Failure> {
    // O_NONBLOCK: opening a pipe would otherwise wait for someone to write to it.
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS);
    let refused = |what: &str| Failure::Refused(format!("{path}: {what}"));
    let file: File = match opened {
        Ok(file) => file.into(),
        Err(Errno::LOOP) => {
            return Err(refused(
                "a part of the path is a symbolic link, which could be changed to lead elsewhere; have the real path approved",
            ));
        }
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(refused("does not exist; put the approved file there")),
        Err(Errno::NXIO) => return Err(refused("is not a regular file")),
        Err(error) => return Err(Failure::environment(path, error)),
    };
    let found = file.metadata().map_err(|error| Failure::environment(path, error))?;
    if !found.is_file() {
        return Err(refused("is not a regular file; only the bytes of a regular file can be approved"));
    }
    if found.len() > GATE_BYTES_MAX {
        return Err(too_large(path));
    }
    Ok(file)
}

/// Without `CLOEXEC`, because the command has to find it. Kernels before 6.3 do not know `EXEC`, and need it less.
fn memory() -> rustix::io::Result<OwnedFd> {
    let flags = MemfdFlags::ALLOW_SEALING;
    match memfd_create("approved", flags | MemfdFlags::EXEC) {
        Err(Errno::INVAL) => memfd_create("approved", flags),
        made => made,
    }
}
