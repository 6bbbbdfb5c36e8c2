//! Reads checkpoints that this log has signed.

use pilot_evidence::checkpoint::{Checkpoint, CheckpointError};
use pilot_evidence::note::{NoteError, VerifierKey};

/// The checkpoint, or why it is not one of this log's, as text.
pub fn read_checkpoint(note: &str, key: &VerifierKey) -> Result<Checkpoint, String> {
    Checkpoint::open(note, key).map_err(|error| match &error {
        CheckpointError::Note(NoteError::Unsigned) => "it was signed by another key".to_owned(),
        other => other.to_string(),
    })
}
