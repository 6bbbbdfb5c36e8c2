//! Texts that look like those of people to a search: a few words are in most items, most words in a few. The same number
//! always gives the same text.

/// In every tenth item, and in every hundred thousandth.
const FREQUENT: (u64, &str) = (10, "region");
const RARE: (u64, &str) = (100_000, "quagga");
const SYLLABLES: [&str; 16] =
    ["ba", "den", "ko", "lim", "mo", "nar", "pe", "ros", "sa", "tel", "tu", "ven", "wi", "xa", "yor", "zen"];
/// Of three syllables each.
const VOCABULARY: u64 = 4_096;

/// The texts of one item.
pub(crate) struct Words {
    number: u64,
    state: u64,
}

impl Words {
    pub(crate) fn of(number: u64) -> Words {
        Words { number, state: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D }
    }

    pub(crate) fn title(&mut self) -> String {
        format!("{}, {}", self.some(5), self.number)
    }

    /// Why it is done: here are the words that a benchmark searches for.
    pub(crate) fn purpose(&mut self) -> String {
        let mut text = self.some(12);
        for (every, word) in [FREQUENT, RARE] {
            if self.number % every == 7 {
                text.push(' ');
                text.push_str(word);
            }
        }
        text
    }

    pub(crate) fn some(&mut self, count: usize) -> String {
        (0..count).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    /// The product of three draws: low numbers are much more frequent than high ones.
    fn word(&mut self) -> String {
        let drawn = (0..3).fold(VOCABULARY, |range, _| self.draw(range) + 1) - 1;
        [drawn % 16, drawn / 16 % 16, drawn / 256].map(syllable).concat()
    }

    /// A number below `range`, by xorshift.
    fn draw(&mut self, range: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % range.max(1)
    }
}

fn syllable(number: u64) -> &'static str {
    usize::try_from(number).ok().and_then(|number| SYLLABLES.get(number)).copied().unwrap_or_default()
}
