//! Reads the `Authorization` lines of a request, byte by byte and without guessing.

use crate::token;

#[derive(Debug, PartialEq, Eq)]
pub enum Presented<'a> {
    /// No `Authorization` line at all.
    Nothing,
    /// Something was sent that cannot be a bearer token: another scheme, two lines, a wrong length or byte.
    Malformed,
    /// The bytes of a well-formed token.
    Token(&'a [u8]),
}

/// The scheme in any letter case, one or more spaces, then exactly the token.
pub fn presented<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Presented<'a> {
    presented_if(lines, token::is_well_formed)
}

/// The same for tokens signed by an identity provider, which are longer.
pub fn presented_signed<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Presented<'a> {
    presented_if(lines, token::is_well_formed_if_signed)
}

fn presented_if<'a>(mut lines: impl Iterator<Item = &'a [u8]>, is_well_formed: fn(&[u8]) -> bool) -> Presented<'a> {
    let Some(line) = lines.next() else { return Presented::Nothing };
    // With two lines, a proxy and this server might each use a different one.
    if lines.next().is_some() {
        return Presented::Malformed;
    }
    match bearer_token(line).filter(|token| is_well_formed(token)) {
        Some(token) => Presented::Token(token),
        None => Presented::Malformed,
    }
}

fn bearer_token(line: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = line.split_at_checked(b"Bearer".len())?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let (_, token) = rest.split_at_checked(spaces)?;
    (scheme.eq_ignore_ascii_case(b"Bearer") && spaces > 0).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123456789abcdef";

    fn check(lines: &[&str], expected: &str) {
        let verdict = match presented(lines.iter().map(|line| line.as_bytes())) {
            Presented::Nothing => "nothing".to_owned(),
            Presented::Malformed => "malformed".to_owned(),
            Presented::Token(token) => String::from_utf8_lossy(token).into_owned(),
        };
        assert_eq!(verdict, expected, "{lines:?}");
    }

    #[test]
    fn the_scheme_may_have_any_letter_case_and_several_spaces() {
        for scheme in ["Bearer ", "bearer ", "BEARER ", "bEaReR   "] {
            check(&[&format!("{scheme}{TOKEN}")], TOKEN);
        }
    }

    #[test]
    fn a_signed_token_may_be_longer_and_follows_the_same_rules_otherwise() {
        let is_token = |line: &str| matches!(presented_signed([line.as_bytes()].into_iter()), Presented::Token(_));
        for (length, legal) in [(31, false), (32, true), (257, true), (8192, true), (8193, false)] {
            assert_eq!(is_token(&format!("Bearer {}", "x".repeat(length))), legal, "{length} bytes");
        }
        assert!(!is_token(&format!("Bearer {TOKEN} x")) && !is_token(TOKEN));
        assert_eq!(presented_signed([b"Bearer".as_slice(); 2].into_iter()), Presented::Malformed);
    }

    #[test]
    fn anything_but_one_line_of_scheme_spaces_and_token_is_malformed() {
        check(&[], "nothing");
        for line in [
            String::new(),
            "Bearer".to_owned(),
            "Bearer ".to_owned(),
            TOKEN.to_owned(),
            format!("Basic {TOKEN}"),
            format!("Bearer{TOKEN}"),
            format!("Bearer\t{TOKEN}"),
            format!(" Bearer {TOKEN}"),
            format!("Bearer {TOKEN} x"),
            format!("Bearer {TOKEN} "),
            format!("Bearer {TOKEN},{TOKEN} "),
            format!("Bearer \"{}", &TOKEN[..30]),
        ] {
            check(&[&line], "malformed");
        }
        let line = format!("Bearer {TOKEN}");
        check(&[&line, &line], "malformed");
        check(&[&line, ""], "malformed");
    }
}
