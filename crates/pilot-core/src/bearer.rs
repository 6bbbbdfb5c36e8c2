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
pub fn presented<'a>(mut lines: impl Iterator<Item = &'a [u8]>) -> Presented<'a> {
    let Some(line) = lines.next() else { return Presented::Nothing };
    // Of two lines, a proxy and this server might each believe a different one.
    if lines.next().is_some() {
        return Presented::Malformed;
    }
    match bearer_token(line) {
        Some(token) => Presented::Token(token),
        None => Presented::Malformed,
    }
}

fn bearer_token(line: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = line.split_at_checked(b"Bearer".len())?;
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    let (_, token) = rest.split_at_checked(spaces)?;
    (scheme.eq_ignore_ascii_case(b"Bearer") && spaces > 0 && token::is_well_formed(token)).then_some(token)
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
