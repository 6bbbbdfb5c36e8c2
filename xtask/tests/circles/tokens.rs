//! The words and signs of a Rust file.

/// Leaves out whatever stands behind `#[cfg(test)]`.
pub fn without_tests(tokens: &[String]) -> Vec<String> {
    const MARK: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if MARK.iter().zip(&tokens[at..]).filter(|(mark, token)| *mark == token).count() == MARK.len() {
            at = end_of_item(tokens, at + MARK.len());
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Behind the `;` or the braces that end the item.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    let mut depth = 0_usize;
    while at < tokens.len() {
        match tokens[at].as_str() {
            "{" | "(" | "[" => depth += 1,
            ")" | "]" => depth -= 1,
            "}" => {
                depth -= 1;
                let goes_on = tokens.get(at + 1).is_some_and(|next| next == ";");
                if depth == 0 && !goes_on {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// Names, `::` and single signs; no comments, no literals.
pub fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |at| at + 2),
            '"' => length_of_string(rest),
            '\'' => length_of_quote(rest),
            ':' if rest.starts_with("::") => push(&mut found, rest, 2),
            first if first.is_alphabetic() || first == '_' => {
                length_of_raw_string(rest).unwrap_or_else(|| push(&mut found, rest, length_of_name(rest)))
            }
            first if first.is_ascii_digit() => length_of_name(rest),
            first if first.is_whitespace() => first.len_utf8(),
            first => push(&mut found, rest, first.len_utf8()),
        };
        rest = &rest[length..];
    }
    found
}

fn push(found: &mut Vec<String>, rest: &str, length: usize) -> usize {
    found.push(rest[..length].to_owned());
    length
}

fn length_of_name(rest: &str) -> usize {
    rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len())
}

fn length_of_string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, sign) in rest.char_indices().skip(1) {
        match sign {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// A character, or the mark of a lifetime.
fn length_of_quote(rest: &str) -> usize {
    let mut signs = rest.char_indices().skip(1);
    match (signs.next(), signs.next()) {
        (Some((_, '\\')), Some(_)) => signs.find(|(_, sign)| *sign == '\'').map_or(rest.len(), |(at, _)| at + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// `r"…"`, `br#"…"#`, `b"…"` and their like.
fn length_of_raw_string(rest: &str) -> Option<usize> {
    let prefix = ["br", "cr", "r", "b", "c"]
        .into_iter()
        .find(|prefix| rest.strip_prefix(prefix).is_some_and(|after| after.trim_start_matches('#').starts_with('"')))?;
    let after = &rest[prefix.len()..];
    if !prefix.ends_with('r') {
        return Some(prefix.len() + length_of_string(after));
    }
    let hashes = after.find('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let body = &after[hashes + 1..];
    Some(prefix.len() + hashes + 1 + body.find(&end).map_or(body.len(), |at| at + end.len()))
}
