//! Where the deliverables are put, and how they get there.

use std::fs;
use std::path::{Path, PathBuf};

use super::architecture::Architecture;
use crate::step::{Failure, root, target_dir};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where files are put, and the time they all carry.
pub(super) struct Place {
    /// What is delivered.
    pub out: PathBuf,
    /// What it is built from.
    pub stage: PathBuf,
    /// The time of the last commit, in seconds since 1970: the same sources give the same archives.
    pub epoch: String,
}

impl Place {
    /// Both are emptied first, so that nothing of an earlier version is delivered by mistake.
    pub(super) fn make(epoch: String) -> Result<Place, Failure> {
        Place::make_as("dist", epoch)
    }

    pub(super) fn make_as(name: &str, epoch: String) -> Result<Place, Failure> {
        let (out, stage) = (target_dir().join(name), target_dir().join(format!("{name}-stage")));
        for path in [&out, &stage] {
            if path.exists() {
                fs::remove_dir_all(path).map_err(|error| at(path, &error))?;
            }
            make_directory(path)?;
        }
        Ok(Place { out, stage, epoch })
    }

    /// The files as a package installs them.
    pub(super) fn installed(&self, architecture: Architecture) -> PathBuf {
        self.stage.join("installed").join(architecture.debian())
    }

    pub(super) fn programs(&self, architecture: Architecture) -> PathBuf {
        self.stage.join("programs").join(architecture.debian())
    }
}

/// What a file about a program for this processor is called, without its ending.
pub(super) fn versioned(name: &str, architecture: Architecture) -> String {
    format!("{name}-{VERSION}-{}", architecture.name())
}

pub(super) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(super) fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.display()))
}

pub(super) fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| at(path, &error))
}

pub(super) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| at(path, &error))
}

/// Copies into a directory that may not exist yet.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_directory(to.parent().unwrap_or(root()))?;
    fs::copy(from, to).map(drop).map_err(|error| at(from, &error))
}
