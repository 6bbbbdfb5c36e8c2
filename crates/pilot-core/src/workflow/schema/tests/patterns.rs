//! Patterns beside those of the oracle, which translates them for the crate `regex`.

use serde_json::{Value, json};

use super::super::pattern::Pattern;
use super::super::work::Work;
use super::dice::Dice;
use super::{Both, PayloadSchema, oracle};

fn is_in(pattern: &str, text: &str) -> bool {
    let mut room = 100_000;
    let pattern = Pattern::read(pattern, &mut room).unwrap_or_else(|error| panic!("{pattern}: {error}"));
    pattern.is_in(text, &mut Work::new(1_000_000))
}

#[rustfmt::skip]
const TEXTS: [&str; 42] = [
    "", "a", "b", "ab", "abc", "aab", "abab", "-", "a-b", "0", "7a", "_", "é", "٣", "K", "ſ", "A", "\n", "a\nb",
    "\r\n", "a\r\nb", " ", "\u{a0}", "\u{85}", "\u{feff}", "\u{200b}", "😀", "a😀b", "[", "]", "&", "~", "^", "$",
    "\\", "\u{1}", "a b", "ab ab", "{2}", "éa", "[]", "a&b",
];

/// Separated by spaces.
const PATTERNS: &str = r"
    a ^a a$ ^$ ^a*$ a+b a?b (ab)+ (?:ab){2} a{2} a{1,2}b a{0,}b a{0} a|b |a ^(a|b|)$ a*?b a+? (a*)*b (a|ab)(c|bcd)? () (a|)+ (^a)|b$ x*
    [ab] [^ab] ^[a-c]+$ [a-] [-a] [a-c-] []a] [^]a] [a-z--b] [\w--z] [\d-] [a&&b] [&~] [~~] [[a] ^[[a]]$ [a\]] [\^] [[:alpha:]]
    \d \D \w \W \s \S [\s] [^\S] [\d\s] ^\S*$ \b \B \bab\b \b{start}a a\b{end} \<a \A \z (?-u:\w) (?-u:\b)a
    . ^.$ ^..$ (?s)^.$ (?m)^b (?m)a$ (?mR)^b (?mR)a$ (?i)ab (?i)k (?i)\w (?x)a#b
    \x61 \x{61} \u0061 \u{1F600} \cA [\cA-\cC] \t \n [\n\r] \/ \- \_ \. \[ \^ 😀 [😀é]
    \p{L} \P{L} \p{Greek} [\p{Lu}] (?P<n>a) (?<n>a)b [0-9A-Fa-f]{2} ^(?:[a-z]+-)*[a-z]+$
";

#[test]
fn a_pattern_is_found_where_the_oracle_finds_it() {
    for pattern in PATTERNS.split_ascii_whitespace().chain(["", " ", "(?x) a b"]) {
        let both = Both::of(json!({ "pattern": pattern }));
        for text in TEXTS {
            both.agree(&Value::from(text));
        }
    }
}

/// Separated by spaces.
const UNUSABLE: &str = r"
    (?=a) (?!a) (?<=a) (?<!a) (a)\1 \k<n> (a a) [a *a a**b{ a{2,1} a{,2} [z-a] [\w-a] [a-\w] \ \a \c \c1 \y \p{Nobody} (?u-u:\xff)
    (?-u:\xff) [] [^] \u{110000} (?z)a
";

#[test]
fn look_around_backreferences_and_invalid_patterns_are_refused() {
    for pattern in UNUSABLE.split_ascii_whitespace() {
        let schema = json!({ "pattern": pattern });
        assert!(PayloadSchema::compile(&schema).is_err(), "{pattern}");
        assert!(oracle(&schema).is_none(), "the oracle accepts {pattern}");
    }
}

/// What patterns are put together from, much of it the wrong way. Separated by spaces.
const PIECES: &str = r"
    a b a b - . * + ? {2} {1,} {0,2} ( (?: ) ) | [ [^ ] ] ^ $ \d \w \s \S \b \B \- \] && ~~ -- a-c \x41 \cA é 0 \p{L} (?i) (?i: \W \. \n
";

#[test]
fn patterns_made_by_dice_are_accepted_and_found_as_by_the_oracle() {
    let mut dice = Dice::new(20_261_116);
    let (mut usable, mut found) = (0, 0);
    let pieces: Vec<_> = PIECES.split_ascii_whitespace().chain([" "]).collect();
    for _ in 0..20_000 {
        let pattern: String = (0..=dice.below(7)).map(|_| dice.pick(&pieces)).collect();
        let schema = json!({ "pattern": pattern });
        let (ours, theirs) = (PayloadSchema::compile(&schema), oracle(&schema));
        assert_eq!(ours.is_ok(), theirs.is_some(), "{pattern}: {:?}", ours.err());
        let (Ok(ours), Some(theirs)) = (ours, theirs) else { continue };
        usable += 1;
        for _ in 0..4 {
            let text: String = (0..dice.below(6))
                .map(|_| dice.pick(&['a', 'b', 'c', 'A', '-', '0', ' ', 'é', '&', '\n', ']']))
                .collect();
            let payload = Value::from(text);
            assert_eq!(ours.faults(&payload).is_empty(), theirs.is_valid(&payload), "{pattern} in {payload}");
            found += usize::from(theirs.is_valid(&payload));
        }
    }
    println!("{usable} usable, found {found} times");
    assert!(usable > 5_000 && found > 5_000);
}

#[test]
fn classes_are_those_of_ecma_262_and_not_those_of_unicode() {
    assert!(is_in(r"^\s$", "\u{feff}") && !is_in(r"\s", "\u{85}"));
    assert!(!is_in(r"\d", "٣") && !is_in(r"\w", "é"));
    assert!(is_in(r"^\p{L}{2}$", "éß"));
}

#[test]
fn repetitions_are_as_often_as_they_say() {
    for times in 0..12 {
        let text = "ab".repeat(times);
        assert_eq!(is_in("^(ab){3,7}$", &text), (3..=7).contains(&times), "{times}");
        assert_eq!(is_in("^(ab){3,}$", &text), times >= 3, "{times}");
        assert_eq!(is_in("^(ab){4}$", &text), times == 4, "{times}");
        assert!(is_in("^(ab)?(ab)*$", &text), "{times}");
        assert_eq!(is_in("^((ab){2}|(ab){3}){2}$", &text), (4..=6).contains(&times), "{times}");
    }
}
