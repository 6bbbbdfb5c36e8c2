//! Formats beside those of the oracle: by example, and by examples that dice have damaged.

use serde_json::{Value, json};

use super::Both;
use super::dice::Dice;

#[rustfmt::skip]
const EXAMPLES: [(&str, &[&str]); 14] = [
    ("date", &[
        "2026-11-16", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "2026-13-01",
        "2026-04-31", "2026-1-01", "+026-01-01", "２026-1-1",
    ]),
    ("time", &[
        "10:00:00Z", "23:59:60Z", "22:59:60-01:00", "00:59:60+01:00", "08:30:06.283185z", "24:00:00Z", "10:00:00",
        "10:00Z", "10:00:00.Z", "10:00:00+24:00", "10:00:00+0100", "23:59:60+00:01", "00:00:60+00:01",
        "10:00:00−01:00",
    ]),
    ("date-time", &[
        "2026-11-16T10:00:00Z", "2026-11-16t10:00:00.5+02:00", "2026-11-16 10:00:00Z", "2026-11-16T10:00:00",
        "1998-12-31T15:59:60.123-08:00", "TT", "2026-11-16TT10:00:00Z",
    ]),
    ("duration", &[
        "P4DT12H30M5S", "P1Y", "P1Y2M3D", "P1M2D", "PT36H", "P2W", "P1W1D", "P1Y1D", "PT1H1S", "P", "PT", "P1", "1D",
        "P1D2H", "P1S", "P0Y", "P1DT", "P1M1Y", "PT1M1S", "P1WT1H", "pT1H", "P1.5D", "P12345678901234567890D",
    ]),
    ("email", &[
        "joe@example.org", "te.s~t+x@example.org", "\"joe bloggs\"@example.org", "\"\"@example.org", "\"a\\\"b\"@x",
        "joe@[127.0.0.1]", "joe@[IPv6:::1]", "joe@[ipv6:::1]", "joe@[::1]", "Joe <joe@example.org>",
        " <joe@example.org>", "joe", "@x", "joe@", ".joe@x", "joe.@x", "j..e@x", "joe@-x", "joe@x_y", "joe@x.",
        "jöe@x", "\"j@e\"@x", "a@b@c", "a b@x", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@x",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa@x",
    ]),
    ("hostname", &[
        "example.org", "a", "a-b.c", "0a", "-a", "a-", "a..b", "a.", ".a", "", "a_b", "ab--c", "ex--ample.org",
        "XN--aa", "ä.de", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.b",
    ]),
    ("ipv4", &[
        "127.0.0.1", "255.255.255.255", "256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5", " 1.2.3.4", "1.2.3.0x4",
        "١.2.3.4",
    ]),
    ("ipv6", &[
        "::", "::1", "1:2:3:4:5:6:7:8", "1::8", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7", ":::",
        "1::2::3", "12345::", "fe80::1%eth0", "[::1]", "1:2:3:4::5:6:7:8", "1:2:3:4:5:6:7::",
    ]),
    ("json-pointer", &[
        "", "/", "/a/b", "/a~0b~1c", "/~", "/~2", "a", "#/a", "/ä//", "/a~",
    ]),
    ("relative-json-pointer", &[
        "0", "1/a", "10#", "0#", "0/", "01", "-1", "1a", "1#a", "", "/a", "1/~", "1/~01",
    ]),
    ("regex", &[
        "^a+(b|c)*$", "[a-z]", "(?<n>a)\\k<n>", "(?=a)b", "a{2,3}?", "\\u{1F600}", "\\uD83D\\uDE00", "\\p{L}",
        "(?i-m:a)", "(a)\\1", "(?<a>x)|(?<a>y)", "(?:(?<a>x)|(?<a>y))(?<b>z)", "(?<a>x)(?<a>y)",
        "(?<a>x)(?:y|(?<a>z))", "a**", "(a", "[z-a]", "\\a", "{", "\\1", "\\c1", "\\x4", "[\\d-a]", "\\k<n>",
        "(?P<n>a)", "a{2,1}", "a{010,10}", "^*", "(?<\\u0061>x)\\k<a>", "[\\b-\\x0a]", "\\u{0000000041}", "\\00",
        "(?i-i:a)", "(?ii:a)", "(?-:a)",
    ]),
    ("uri", &[
        "https://example.org", "http://a@b:80/c?d#e", "mailto:a@b", "urn:isbn:1", "a:", "//x", "a", "",
        "http://[::1]:80/", "http://[v1.a:b]/", "http://[::1", "http://[1::2::3]", "http://a b", "http://a/%zz",
        "http://a/%41", "1a:b", "http://a:b@c:d", "http://a:80:80", "http://a@b@c", "http://ä", "http://a\\b",
        "http://a/?#?#", "a:b#c#d", "http://[::1]a", "http://[V9.x]", "http://[::ffff:1.2.3.4]",
    ]),
    ("uri-reference", &[
        "", "#", "?", "/a", "a/b", "//x/y", "a:b", "1a:b", "a/b:c", "./a:b", ":a", "?a:b", "#a:b", "%", "a%20b",
        "//", "//@", "//:", "//:80", "//a:b", "///", "ä",
    ]),
    ("uuid", &[
        "01890a5d-ac96-774b-bcce-b302099a8057", "01890A5D-AC96-774B-BCCE-B302099A8057",
        "01890a5dac96774bbcceb302099a8057", "{01890a5d-ac96-774b-bcce-b302099a8057}",
        "01890a5d-ac96-774b-bcce-b302099a805", "01890a5d-ac96-774b-bcce-b302099a805g", "----",
        "01890a5d-ac96-774b-bcceb302099a80570",
    ]),
];

/// What formats are made of.
#[rustfmt::skip]
const SIGNS: [&str; 44] = [
    "0", "1", "2", "9", "a", "b", "f", "Z", "T", "P", "W", "D", "M", "S", "H", "-", "-", ":", ":", ".", ".", "/",
    "#", "?", "@", "[", "]", "%", "%41", "~", "~0", "+", "\"", "\\", "<", ">", " ", "ä", "(", ")", "{", "}", "=",
    "u",
];

fn damaged(dice: &mut Dice, text: &str) -> String {
    let mut signs: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=dice.below(3) {
        let at = dice.below(signs.len() + 1);
        match dice.below(4) {
            0 if at < signs.len() => drop(signs.remove(at)),
            1 if at < signs.len() => dice.pick(&SIGNS).clone_into(&mut signs[at]),
            2 if at + 1 < signs.len() => signs.swap(at, at + 1),
            _ => signs.insert(at, dice.pick(&SIGNS).to_owned()),
        }
    }
    signs.concat()
}

/// The oracle takes some signs for digits: `202--11-16` is a date to it. We accept nothing that has not this shape.
const SHAPES: [(&str, &str); 3] = [
    ("date", r"^\d{4}-\d\d-\d\d$"),
    ("time", r"^\d\d:\d\d:\d\d(\.\d+)?([zZ]|[+-]\d\d:\d\d)$"),
    ("date-time", r"^\d{4}-\d\d-\d\d[tT]\d\d:\d\d:\d\d(\.\d+)?([zZ]|[+-]\d\d:\d\d)$"),
];

#[test]
fn a_format_accepts_what_the_oracle_accepts() {
    let mut dice = Dice::new(20_261_116);
    for (name, examples) in EXAMPLES {
        let both = Both::of(json!({ "format": name }));
        let shape = SHAPES.iter().find(|(known, _)| *known == name).map(|(_, shape)| json!({ "pattern": shape }));
        let shape = Both::of(shape.unwrap_or(json!({})));
        let (mut judged, mut valid) = (0, 0);
        let mut judge = |text: &str| {
            let text = Value::from(text);
            let is_valid = if shape.agree(&text) { both.agree(&text) } else { both.ours.faults(&text).is_empty() };
            (judged, valid) = (judged + 1, valid + usize::from(is_valid));
        };
        for example in examples {
            judge(example);
            (0..400).for_each(|_| judge(&damaged(&mut dice, example)));
        }
        println!("{name}: {valid} of {judged} valid");
        assert!((judged / 100..judged * 9 / 10).contains(&valid), "one verdict would do for almost all");
        assert!(both.agree(&json!(1)) && both.agree(&json!(null)));
    }
}

/// The oracle decodes such labels and looks the characters up in the tables of IDNA. We accept what it accepts, and some
/// that decode to nothing.
#[test]
fn a_label_in_punycode_is_a_label() {
    let both = Both::of(json!({"format": "hostname"}));
    for name in ["xn--bcher-kva.example", "xn--4gbwdl.xn--wgbh1c"] {
        assert!(both.agree(&json!(name)));
    }
    for name in ["xn--x", "xn--99999999"] {
        assert!(both.ours.faults(&json!(name)).is_empty() && !both.oracle.is_valid(&json!(name)));
    }
}
