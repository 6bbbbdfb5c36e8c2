//! Text as a person must see it before deciding on it: nothing in it can hide, or move the text around it.
//!
//! Some characters are invisible, look like a space, or change the order in which their neighbours are shown, so that a
//! reader approves a text other than the one that is carried out. Wherever text is shown, each of them is written as
//! its code point, `⟨U+202E⟩`. What is stored, hashed and exported stays as it is.
//!
//! Text that spells out such a mark itself looks the same. That can only raise suspicion, never lower it. And because
//! marks are left alone, a second pass changes nothing.

use std::borrow::Cow;
use std::fmt::Write as _;

/// First and last code point, and what they are.
type Row = (u32, u32, &'static str);

/// Characters that are hidden wherever they are, in order. The console has the same table: `console/src/hidden.json`.
#[rustfmt::skip]
const HIDDEN: &[Row] = &[
    (0x0000, 0x0008, "control character"),
    // Not the tab and the line feed: they are part of ordinary text, and their effect is visible.
    (0x000B, 0x000C, "control character"),
    (0x000D, 0x000D, "carriage return"),
    (0x000E, 0x001A, "control character"),
    (0x001B, 0x001B, "escape"),
    (0x001C, 0x001F, "control character"),
    (0x007F, 0x009F, "control character"),
    (0x00A0, 0x00A0, "no-break space"),
    (0x00AD, 0x00AD, "soft hyphen"),
    (0x034F, 0x034F, "combining grapheme joiner"),
    (0x061C, 0x061C, "Arabic letter mark"),
    (0x115F, 0x1160, "Hangul filler"),
    (0x1680, 0x1680, "Ogham space mark"),
    (0x17B4, 0x17B5, "Khmer inherent vowel"),
    (0x180E, 0x180E, "Mongolian vowel separator"),
    (0x2000, 0x200A, "space of another width"),
    (0x200B, 0x200B, "zero width space"),
    (0x200C, 0x200C, "zero width non-joiner"),
    (0x200D, 0x200D, "zero width joiner"),
    (0x200E, 0x200E, "left-to-right mark"),
    (0x200F, 0x200F, "right-to-left mark"),
    (0x2028, 0x2028, "line separator"),
    (0x2029, 0x2029, "paragraph separator"),
    (0x202A, 0x202A, "left-to-right embedding"),
    (0x202B, 0x202B, "right-to-left embedding"),
    (0x202C, 0x202C, "pop directional formatting"),
    (0x202D, 0x202D, "left-to-right override"),
    (0x202E, 0x202E, "right-to-left override"),
    (0x202F, 0x202F, "narrow no-break space"),
    (0x205F, 0x205F, "medium mathematical space"),
    (0x2060, 0x2060, "word joiner"),
    (0x2061, 0x2064, "invisible operator"),
    (0x2065, 0x2065, "invisible, not assigned"),
    (0x2066, 0x2066, "left-to-right isolate"),
    (0x2067, 0x2067, "right-to-left isolate"),
    (0x2068, 0x2068, "first strong isolate"),
    (0x2069, 0x2069, "pop directional isolate"),
    (0x206A, 0x206F, "deprecated format character"),
    (0x2800, 0x2800, "blank Braille pattern"),
    (0x3000, 0x3000, "ideographic space"),
    (0x3164, 0x3164, "Hangul filler"),
    // No `char` is one of these, but a string in the console can contain one.
    (0xD800, 0xDFFF, "half of a surrogate pair"),
    (0xE000, 0xF8FF, "private use"),
    (0xFDD0, 0xFDEF, "noncharacter"),
    (0xFEFF, 0xFEFF, "zero width no-break space"),
    (0xFFA0, 0xFFA0, "Hangul filler"),
    (0xFFF0, 0xFFF8, "invisible, not assigned"),
    (0xFFF9, 0xFFFB, "interlinear annotation"),
    (0xFFFC, 0xFFFC, "object replacement character"),
    (0xFFFE, 0xFFFF, "noncharacter"),
    (0x1BCA0, 0x1BCA3, "shorthand format control"),
    (0x1D159, 0x1D159, "musical null notehead"),
    (0x1D173, 0x1D17A, "musical format control"),
    (0x1FFFE, 0x1FFFF, "noncharacter"),
    (0x2FFFE, 0x2FFFF, "noncharacter"),
    (0x3FFFE, 0x3FFFF, "noncharacter"),
    (0x4FFFE, 0x4FFFF, "noncharacter"),
    (0x5FFFE, 0x5FFFF, "noncharacter"),
    (0x6FFFE, 0x6FFFF, "noncharacter"),
    (0x7FFFE, 0x7FFFF, "noncharacter"),
    (0x8FFFE, 0x8FFFF, "noncharacter"),
    (0x9FFFE, 0x9FFFF, "noncharacter"),
    (0xAFFFE, 0xAFFFF, "noncharacter"),
    (0xBFFFE, 0xBFFFF, "noncharacter"),
    (0xCFFFE, 0xCFFFF, "noncharacter"),
    (0xDFFFE, 0xDFFFF, "noncharacter"),
    (0xE0000, 0xE007F, "tag character"),
    (0xE0080, 0xE00FF, "invisible, not assigned"),
    (0xE01F0, 0xE0FFF, "invisible, not assigned"),
    (0xEFFFE, 0xEFFFF, "noncharacter"),
    (0xF0000, 0x0010_FFFF, "private use"),
];

/// These choose between two shapes of the character before them, and are hidden if that has only one.
const SELECTORS: &[Row] = &[
    (0x180B, 0x180D, "variation selector"),
    (0x180F, 0x180F, "variation selector"),
    (0xFE00, 0xFE0F, "variation selector"),
    (0xE0100, 0xE01EF, "variation selector"),
];

/// Characters with such shapes: pictures, symbols, ideographs and a few scripts. No Latin, Greek or Cyrillic letter has
/// any, so `operation` with a selector in it cannot pass for `operation`.
#[rustfmt::skip]
const BASES: &[Row] = &[
    (0x00A9, 0x00A9, "copyright sign"),
    (0x00AE, 0x00AE, "registered sign"),
    (0x1000, 0x109F, "Myanmar"),
    (0x1820, 0x18AA, "Mongolian"),
    (0x203C, 0x203C, "double exclamation mark"),
    (0x2049, 0x2049, "exclamation question mark"),
    (0x2122, 0x2122, "trade mark sign"),
    (0x2139, 0x2139, "information source"),
    (0x2190, 0x2BFF, "arrows, operators, symbols"),
    (0x3001, 0x3002, "ideographic punctuation"),
    (0x3030, 0x3030, "wavy dash"),
    (0x303D, 0x303D, "part alternation mark"),
    (0x3297, 0x3297, "circled congratulation"),
    (0x3299, 0x3299, "circled secret"),
    (0x3400, 0x9FFF, "ideographs"),
    (0xA840, 0xA877, "Phags-pa"),
    (0xF900, 0xFAFF, "ideographs"),
    (0x1F000, 0x1FAFF, "pictures"),
    (0x20000, 0x3FFFD, "ideographs"),
];

fn is_in(table: &[Row], character: char) -> bool {
    let code = u32::from(character);
    let from = table.partition_point(|(_, last, _)| *last < code);
    table.get(from).is_some_and(|(first, ..)| *first <= code)
}

/// Whether this character is invisible wherever it is.
pub fn is_hidden(character: char) -> bool {
    is_in(HIDDEN, character)
}

/// Each character, and whether it is hidden at its place.
fn looked_at(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut base = false;
    text.chars().map(move |character| {
        let hidden = if is_in(SELECTORS, character) { !base } else { is_hidden(character) };
        base = !hidden && is_in(BASES, character);
        (character, hidden)
    })
}

/// How many characters of a text are hidden.
pub fn hidden(text: &str) -> usize {
    if is_plain(text) { 0 } else { looked_at(text).filter(|(_, hidden)| *hidden).count() }
}

/// The text with every hidden character written as its code point.
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false, mark)
}

/// The same for text that has to stay on one line: a title in a list, a table cell.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    replaced(text, |character| matches!(character, '\n' | '\t'), mark)
}

/// Equivalent JSON with every hidden character as an escape: in JSON it can only be inside a string.
pub fn visible_json(json: &str) -> Cow<'_, str> {
    replaced(
        json,
        |_| false,
        |character, text| {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(text, "\\u{unit:04x}");
            }
        },
    )
}

fn mark(character: char, text: &mut String) {
    let _ = write!(text, "⟨U+{:04X}⟩", u32::from(character));
}

fn replaced(text: &str, also: impl Fn(char) -> bool, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if is_plain(text) && !text.chars().any(&also) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for (character, hidden) in looked_at(text) {
        if hidden || also(character) { write(character, &mut shown) } else { shown.push(character) }
    }
    Cow::Owned(shown)
}

/// True for most text, which needs no closer look.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t'))
}

#[cfg(test)]
mod tests {
    use expect_test::{expect, expect_file};
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &expect_test::Expect) {
        expected.assert_eq(&visible(text));
    }

    #[test]
    fn a_command_that_reads_backwards_is_shown_as_it_is() {
        check(
            "rm -rf /srv/data/\u{202e}pmt/ylno\u{202c}  # safe",
            &expect!["rm -rf /srv/data/⟨U+202E⟩pmt/ylno⟨U+202C⟩  # safe"],
        );
        check("pay\u{200b}load \u{2066}a\u{2069} b\u{a0}c", &expect!["pay⟨U+200B⟩load ⟨U+2066⟩a⟨U+2069⟩ b⟨U+00A0⟩c"]);
        check("\u{e0061}\u{10ffff}\u{f8ff}\u{feff}", &expect!["⟨U+E0061⟩⟨U+10FFFF⟩⟨U+F8FF⟩⟨U+FEFF⟩"]);
    }

    #[test]
    fn a_terminal_sequence_is_shown_and_not_sent() {
        check("\u{1b}[2J\u{9b}31m\r\u{7f}\u{8}", &expect!["⟨U+001B⟩[2J⟨U+009B⟩31m⟨U+000D⟩⟨U+007F⟩⟨U+0008⟩"]);
    }

    #[test]
    fn ordinary_text_of_any_language_stays_as_it_is() {
        for text in ["a\tb\n  c", "Ärger, naïve, Łódź", "Привет", "שלום עולם", "日本語。", "नमस्ते", "한국어", "👍🏽 ☕ ©"]
        {
            assert_eq!(visible(text), text);
            assert_eq!(hidden(text), 0, "{text}");
        }
    }

    #[test]
    fn a_variation_selector_is_hidden_unless_it_follows_what_has_variations() {
        check("❤\u{fe0f} 葛\u{e0100} \u{1820}\u{180b}", &expect!["❤\u{fe0f} 葛\u{e0100} \u{1820}\u{180b}"]);
        check("operation\u{fe00}", &expect!["operation⟨U+FE00⟩"]);
        check("\u{fe0f} \u{fe0f}", &expect!["⟨U+FE0F⟩ ⟨U+FE0F⟩"]);
        // One selector chooses a shape; further ones are a place to hide data.
        check("❤\u{fe0f}\u{e0101}\u{e0102}", &expect!["❤\u{fe0f}⟨U+E0101⟩⟨U+E0102⟩"]);
        check("\u{2800}\u{fe0f}", &expect!["⟨U+2800⟩⟨U+FE0F⟩"]);
    }

    #[test]
    fn on_one_line_a_line_end_and_a_tab_are_marks_too() {
        assert_eq!(visible_line("Rotate\nstate: approved\tx"), "Rotate⟨U+000A⟩state: approved⟨U+0009⟩x");
        assert_eq!(visible_line("a b"), "a b");
    }

    #[test]
    fn json_with_hidden_characters_escaped_says_the_same() {
        let value = serde_json::json!({ "a\u{202e}": ["\u{e0061}\u{9b}\u{1b}\n", "ok"] });
        let text = value.to_string();
        let shown = visible_json(&text);
        assert_eq!(shown, r#"{"a\u202e":["\udb40\udc61\u009b\u001b\n","ok"]}"#);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }

    #[test]
    fn the_tables_are_in_order_and_do_not_overlap() {
        for table in [HIDDEN, SELECTORS, BASES] {
            assert!(table.iter().all(|(first, last, _)| first <= last));
            assert!(table.is_sorted_by(|(_, last, _), (first, ..)| last < first));
        }
    }

    #[test]
    fn the_console_has_the_same_tables() {
        let table = |rows: &[Row]| {
            let rows = rows.iter().map(|(first, last, what)| format!("    [{first}, {last}, \"{what}\"]"));
            rows.collect::<Vec<_>>().join(",\n")
        };
        let tables = [("hidden", HIDDEN), ("selectors", SELECTORS), ("bases", BASES)];
        let members = tables.map(|(name, rows)| format!("  \"{name}\": [\n{}\n  ]", table(rows)));
        expect_file!["../../../console/src/hidden.json"].assert_eq(&format!("{{\n{}\n}}\n", members.join(",\n")));
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left_and_a_second_pass_changes_nothing(text in any::<String>()) {
            let shown = visible(&text);
            prop_assert_eq!(hidden(&shown), 0);
            prop_assert!(!shown.chars().any(is_hidden));
            prop_assert_eq!(visible(&shown), shown.as_ref());
            prop_assert_eq!(shown.matches("⟨U+").count(), hidden(&text) + text.matches("⟨U+").count());
        }
    }
}
