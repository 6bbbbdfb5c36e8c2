//! The credential file as it was fetched, and what its keeper said.

use zeroize::Zeroizing;

use crate::private_file::FileError;

/// A word this long in what others print may be a secret of theirs; a word of a sentence never is.
const WORD_CHARS_MAX: usize = 20;

pub struct Fetched {
    pub bytes: Zeroizing<Vec<u8>>,
    /// Set when others may read a file though they should not.
    pub exposed: Option<FileError>,
    /// What a helper had to say, without words that could be a secret.
    pub remarks: Vec<String>,
}

impl Fetched {
    pub fn new(bytes: Vec<u8>, exposed: Option<FileError>) -> Fetched {
        Fetched { bytes: Zeroizing::new(bytes), exposed, remarks: Vec::new() }
    }
}

/// Someone else's text for our log: one line, no long word.
pub(super) fn plain_words(text: &str) -> String {
    let word = |word: &str| {
        if word.chars().count() < WORD_CHARS_MAX { word.replace(char::is_control, "") } else { "(withheld)".to_owned() }
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_print_loses_every_word_that_could_be_a_secret() {
        let token = "s.abcdefghijklmnopqrst";
        assert_eq!(plain_words(&format!("denied:\n\t* no  {token}, \"a\"")), "denied: * no (withheld) \"a\"");
        assert_eq!(plain_words("bell\u{7}s \u{1b}[31mred"), "bells [31mred");
    }
}
