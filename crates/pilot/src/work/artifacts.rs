//! The files that a command leaves for those who review it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use pilot_core::limits::ARTIFACTS_MAX;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// Deeper directories are left out.
const DEPTH_MAX: usize = 8;
/// How much is hashed in all. A lease is not forever, and a file may claim to be as large as it likes.
const BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
const FAULTS_MAX: usize = 10;

/// As the service takes it.
pub(crate) fn artifact(name: &str, sha256: &str, bytes: u64, path: &Path) -> Value {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let uri = format!("file://{host}{}", path.display());
    json!({"name": name, "sha256": sha256, "bytes": bytes, "uri": uri})
}

/// Every regular file below `directory`, by name, and what could not be taken. One place is left for the output.
pub(crate) fn collect(directory: &Path) -> (Vec<Value>, Vec<String>) {
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    walk(directory, 0, &mut found, &mut faults);
    found.sort();
    let room = ARTIFACTS_MAX - 1;
    if found.len() > room {
        faults.push(format!("{} files were left, and {room} are listed", found.len()));
    }
    let (mut artifacts, mut bytes_left) = (Vec::new(), BYTES_MAX);
    for path in found.iter().take(room) {
        let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
        match digest(path, &mut bytes_left) {
            Ok((sha256, bytes)) => artifacts.push(artifact(&name, &sha256, bytes, path)),
            Err(error) => faults.push(format!("{name}: {error}")),
        }
    }
    faults.truncate(FAULTS_MAX);
    (artifacts, faults)
}

/// Links are not followed: they could lead to what the command may not read.
fn walk(directory: &Path, depth: usize, found: &mut Vec<PathBuf>, faults: &mut Vec<String>) {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) => return faults.push(format!("{}: {error}", directory.display())),
    };
    for entry in entries.flatten() {
        if faults.len() > FAULTS_MAX {
            return;
        }
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_file() && found.len() <= 10 * ARTIFACTS_MAX => found.push(path),
            Ok(kind) if kind.is_dir() && depth < DEPTH_MAX => walk(&path, depth + 1, found, faults),
            Ok(kind) if kind.is_file() => {}
            _ => faults.push(format!("{} is not a regular file", path.display())),
        }
    }
}

fn digest(path: &Path, bytes_left: &mut u64) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    *bytes_left = bytes_left
        .checked_sub(size)
        .ok_or_else(|| io::Error::other(format!("has {size} bytes, and {BYTES_MAX} are hashed in all")))?;
    let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            return Ok((data_encoding::HEXLOWER.encode(&hash.finalize()), bytes));
        }
        hash.update(piece.get(..read).unwrap_or_default());
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_become_artifacts_and_links_do_not() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("sub")).unwrap();
        fs::write(directory.path().join("sub/plan"), "abc").unwrap();
        std::os::unix::fs::symlink("/etc/shadow", directory.path().join("link")).unwrap();
        let (artifacts, faults) = collect(directory.path());
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0]["name"], "sub/plan");
        assert_eq!(artifacts[0]["sha256"], "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(faults.len(), 1, "{faults:?}");
    }
}
