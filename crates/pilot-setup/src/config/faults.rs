//! Finds all faults of a configuration file at once. The library stops at the first, so each fault that was found is
//! removed from the text, without moving any line or adding a new fault, and the rest is read again.

use pilot_core::limits::FAULTS_MAX;
use serde::de::DeserializeOwned;

pub(super) struct Found {
    pub line: usize,
    pub column: usize,
    /// The library's own: it may quote a value.
    pub message: String,
}

pub(super) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Vec<Found>> {
    let mut faults = Vec::new();
    // A file that is not TOML at all has one fault; anything after it would be a guess.
    let is_toml = toml::from_str::<toml::Table>(text).is_ok();
    let mut rest = text.to_owned();
    loop {
        let error = match toml::from_str(&rest) {
            Ok(config) if faults.is_empty() => return Ok(config),
            Ok(_) => break,
            Err(error) => error,
        };
        let (line, column) = place(&rest, error.span().map_or(0, |span| span.start));
        let message = error.message().to_owned();
        let next = without(&rest, line, message.starts_with("unknown field"));
        faults.push(Found { line, column, message });
        match next.filter(|next| is_toml && *next != rest && faults.len() < FAULTS_MAX) {
            Some(next) => rest = next,
            None => break,
        }
    }
    faults.sort_by_key(|fault| (fault.line, fault.column));
    Err(faults)
}

/// The text without what is wrong in this line. A key that nobody knows goes alone; of a section with any other fault all
/// goes, since a section without a key it needs would be a new fault. Outside of sections, no key is needed.
fn without(text: &str, line: usize, is_unknown: bool) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = line.checked_sub(1)?;
    let is_alone = toml::from_str::<toml::Table>(lines.get(at)?).is_ok_and(|table| !table.is_empty());
    let is_key = is_alone && section(lines.get(at)?).is_none();
    let of_line = lines.iter().take(line).rev().find_map(|line| section(line));
    let section_goes = of_line.filter(|_| !(is_unknown && is_key));
    if section_goes.is_none() && !is_key {
        return None;
    }
    let mut current = None;
    let kept = lines.iter().enumerate().map(|(index, line)| {
        current = section(line).or(current);
        let goes = section_goes.map_or(index == at, |name| current == Some(name));
        if goes { "" } else { *line }
    });
    Some(kept.collect::<Vec<_>>().join("\n"))
}

/// The first name of a section's head: `[identity.oauth]` is a part of `identity`.
fn section(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.trim_start_matches('[');
    name.split(['.', ']']).next().map(str::trim)
}

fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before.get(line_start..).unwrap_or("").chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(usize, &str)]) {
        let found = read::<Config>(text).map_or_else(|faults| faults, |_| Vec::new());
        let said: Vec<_> = found.iter().map(|fault| (fault.line, fault.message.as_str())).collect();
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for ((line, words), (found_line, message)) in expected.iter().zip(said) {
            assert!(found_line == *line && message.contains(words), "{line}: {words}: {found_line}: {message}");
        }
    }

    #[test]
    fn every_fault_is_found_with_its_line() {
        let text = "profile = 'prod'\nlisen = 'x'\ndata_dir = 7\n[store]\npath = 'x'\nfile = 'y'\n[ops]\n[tls]\n\
                    certificate = 'c'\n[rate_limits]\nreads_per_minute = 0\nwrites = 1\n";
        check(
            text,
            &[
                (1, "prod"),
                (2, "unknown field `lisen`"),
                (3, "invalid type"),
                (5, "unknown field `path`"),
                (6, "unknown field `file`"),
                (7, "missing field `listen`"),
                (8, "[tls] needs certificate and key"),
                (11, "must be a whole number"),
            ],
        );
    }

    #[test]
    fn a_section_that_goes_takes_its_parts_along_and_makes_no_new_fault() {
        check(
            "[identity]\nmechanism = 'x'\n[identity.oauth]\nissuer = 'https://a'\n[ops]\nlisten = 'here'\n",
            &[(2, "unknown variant"), (6, "socket address")],
        );
    }

    #[test]
    fn text_that_is_no_toml_has_one_fault() {
        check("[store\nlisen = 1\n", &[(1, "unclosed")]);
    }

    #[test]
    fn faults_without_end_are_not_all_looked_for() {
        let text: String = (0..500).map(|number| format!("key{number} = 1\n")).collect();
        assert_eq!(read::<Config>(&text).err().map(|faults| faults.len()), Some(FAULTS_MAX));
    }
}
