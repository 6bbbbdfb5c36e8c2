//! Rows as RFC 4180 has them, safe to open in a spreadsheet.

use pilot_core::visible::visible_line;

/// Spreadsheets run a cell that begins with one of these as a formula, also in their full-width forms.
const FORMULA: [char; 8] = ['=', '+', '-', '@', '＝', '＋', '－', '＠'];

/// One row, with its line break.
pub(super) fn line<C: AsRef<str>>(cells: impl IntoIterator<Item = C>) -> String {
    let cells: Vec<_> = cells.into_iter().map(|text| cell(text.as_ref())).collect();
    cells.join(",") + "\r\n"
}

/// Hidden characters are shown, line breaks among them; then formulas are defused, then quotes are added if the format
/// needs them.
fn cell(text: &str) -> String {
    let defused = defused(&visible_line(text));
    if defused.contains(['"', ',']) { format!("\"{}\"", defused.replace('"', "\"\"")) } else { defused }
}

/// Where a comma is part of numbers, spreadsheets take semicolons to separate cells, and quotes do not protect from that.
fn defused(text: &str) -> String {
    let mut defused = String::with_capacity(text.len() + 1);
    let mut is_start = true;
    for character in text.chars() {
        if is_start && FORMULA.contains(&character) {
            defused.push('\'');
        }
        is_start = character == ';';
        defused.push(character);
    }
    defused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_commas_are_quoted_and_nothing_else_is() {
        assert_eq!(line(["plain", "", "a \"b\"", "a,b", "a;b"]), "plain,,\"a \"\"b\"\"\",\"a,b\",a;b\r\n");
    }

    #[test]
    fn a_cell_that_a_spreadsheet_would_run_is_defused() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("fine;=1", "fine;'=1"),
            ("fine;@a;-b", "fine;'@a;'-b"),
            ("＝1", "'＝1"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("1=1", "1=1"),
            ("'=1", "'=1"),
        ] {
            assert_eq!(cell(text), expected, "{text}");
        }
    }

    #[test]
    fn hidden_characters_are_shown_before_anything_else() {
        assert_eq!(cell("\r=1"), "⟨U+000D⟩=1");
        assert_eq!(cell("user \u{202e}gnp.exe"), "user ⟨U+202E⟩gnp.exe");
        assert_eq!(cell("\u{feff}=1"), "⟨U+FEFF⟩=1");
    }
}
