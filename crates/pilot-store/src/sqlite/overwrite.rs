//! Removes files that hold what people wrote: their bytes are overwritten, not just unlinked.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use super::beside::directory_of;

const PIECE: usize = 1 << 20;

/// Overwrites a file and removes it, if it exists. A file with a second hard link is someone's copy: it only loses this
/// name.
pub(super) fn destroy(path: &Path) -> io::Result<()> {
    let file = match File::options().write(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    if file.metadata()?.nlink() == 1 {
        match overwrite(&file) {
            // On a file system that writes elsewhere, zeros need space too. Only removing the file makes some.
            Err(error) if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) => {
                tracing::warn!(cause = %error, "{} is removed, but its bytes could not be overwritten", path.display());
            }
            overwritten => overwritten?,
        }
    }
    std::fs::remove_file(path)?;
    File::open(directory_of(path))?.sync_all()
}

fn overwrite(file: &File) -> io::Result<()> {
    let (zeros, len) = (vec![0; PIECE], file.metadata()?.len());
    for at in (0..len).step_by(PIECE) {
        let count = usize::try_from(len - at).map_or(zeros.len(), |left| left.min(zeros.len()));
        file.write_all_at(zeros.get(..count).unwrap_or_default(), at)?;
    }
    file.sync_all()
}
