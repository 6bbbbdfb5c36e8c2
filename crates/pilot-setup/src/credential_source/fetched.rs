//! The credential file as fetched, and what its source printed.

use zeroize::Zeroizing;

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

/// Someone else's text made safe for our log: one line, no long words.
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
