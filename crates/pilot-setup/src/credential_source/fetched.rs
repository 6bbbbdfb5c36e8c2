//! The credential file as fetched, and what its source printed.

use zeroize::Zeroizing;

use crate::child;
use crate::private_file::FileError;

/// In the output of others, a word this long may be one of their secrets; an ordinary word is never this long.
const WORD_CHARS_MAX: usize = 20;

pub struct Fetched {
    pub bytes: Zeroizing<Vec<u8>>,
    /// Set if others can read the file although they should not.
    pub exposed: Option<FileError>,
    /// What a helper printed, without words that could be a secret.
    pub remarks: Vec<String>,
}

impl Fetched {
    pub fn new(bytes: Vec<u8>, exposed: Option<FileError>) -> Fetched {
        Fetched { bytes: Zeroizing::new(bytes), exposed, remarks: Vec::new() }
    }
}

/// Someone else's text made safe for our log.
pub(super) fn plain_words(text: &str) -> String {
    child::plain_words(text, WORD_CHARS_MAX)
}
