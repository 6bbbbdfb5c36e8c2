//! Rows as RFC 4180 has them, safe to open in a spreadsheet.

use pilot_core::visible::visible;

/// Spreadsheets run a cell that begins with one of these as a formula, also in their full-width forms.
const FORMULA: [char; 11] = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠'];

/// One row, with its line break.
pub(super) fn line<C: AsRef<str>>(cells: impl IntoIterator<Item = C>) -> String {
    let cells: Vec<_> = cells.into_iter().map(|text| cell(text.as_ref())).collect();
    cells.join(",") + "\r\n"
}

/// Hidden characters are shown, then a formula is defused, then quotes are added if the format needs them.
fn cell(text: &str) -> String {
    let shown = visible(text);
    let defused = if shown.starts_with(FORMULA) { format!("'{shown}") } else { shown.into_owned() };
    if defused.contains(['"', ',', '\r', '\n']) { format!("\"{}\"", defused.replace('"', "\"\"")) } else { defused }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_commas_and_line_breaks_are_quoted_and_nothing_else_is() {
        assert_eq!(line(["plain", "", "a \"b\"", "a,b", "a\nb"]), "plain,,\"a \"\"b\"\"\",\"a,b\",\"a\nb\"\r\n");
    }

    #[test]
    fn a_cell_that_a_spreadsheet_would_run_is_defused() {
        for (text, expected) in [
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\t=1"),
            ("\n=1", "\"'\n=1\""),
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
