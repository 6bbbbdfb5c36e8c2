//! What a monitor keeps: the newest checkpoint, the first of each day, and both sides of a contradiction.

use std::path::{Path, PathBuf};

use pilot_core::time::Time;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::VerifierKey;
use pilot_setup::private_file;

use crate::exit::Failure;

pub(super) struct State {
    directory: PathBuf,
    newest: Option<(Checkpoint, String)>,
}

const NEWEST: &str = "checkpoint";

impl State {
    pub(super) fn open(directory: &Path, key: &VerifierKey) -> Result<State, Failure> {
        let failed = |path: &Path, error| Failure::environment(path.display(), error);
        private_file::make_directory(directory).map_err(|error| failed(directory, error))?;
        let path = directory.join(NEWEST);
        let newest = match std::fs::read_to_string(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(&path, error)),
            Ok(note) => {
                let checkpoint = Checkpoint::open(&note, key).map_err(|error| {
                    let remedy = "name the key of the log it belongs to, or another directory";
                    Failure::Usage(format!("{}: {error}; {remedy}", path.display()))
                })?;
                Some((checkpoint, note))
            }
        };
        Ok(State { directory: directory.to_owned(), newest })
    }

    pub(super) fn newest(&self) -> Option<&Checkpoint> {
        self.newest.as_ref().map(|(checkpoint, _)| checkpoint)
    }

    pub(super) fn size(&self) -> Option<u64> {
        self.newest().map(|checkpoint| checkpoint.size)
    }

    /// The first of a day is never replaced: that is what evidence can be compared with later.
    pub(super) fn keep(&mut self, checkpoint: &Checkpoint, note: &str, now: Time) -> Result<(), Failure> {
        let failed = |path: &Path, error| Failure::environment(path.display(), error);
        let day: String = now.to_string().chars().take("2026-11-17".len()).collect();
        let of_day = self.directory.join(format!("checkpoint-{day}"));
        if !of_day.exists() {
            private_file::write_new(&of_day, note.as_bytes()).map_err(|error| failed(&of_day, error))?;
        }
        if self.newest.as_ref().is_none_or(|(_, kept)| kept != note) {
            let path = self.directory.join(NEWEST);
            private_file::replace(&path, note.as_bytes()).map_err(|error| failed(&path, error))?;
            self.newest = Some((checkpoint.clone(), note.to_owned()));
        }
        Ok(())
    }

    /// Keeps both sides. The first contradiction is not replaced by later ones.
    pub(super) fn keep_conflict(&self, note: &str) -> std::io::Result<PathBuf> {
        let kept = self.newest.as_ref().map_or("", |(_, note)| note.as_str());
        let both = format!("shown now:\n\n{note}\nkept before:\n\n{kept}");
        let (first, last) = (self.directory.join("conflict-first"), self.directory.join("conflict-last"));
        if first.exists() {
            private_file::replace(&last, both.as_bytes())?;
            return Ok(last);
        }
        private_file::write_new(&first, both.as_bytes())?;
        Ok(first)
    }
}
