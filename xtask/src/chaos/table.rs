//! What is printed at the end, one line for each round.

use std::fmt::Write as _;

/// Writes have to be back within this time wherever a quorum exists.
pub(crate) const BACK_SECONDS_MAX: f64 = 40.0;

#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) fault: String,
    pub(crate) fired: bool,
    pub(crate) proof: String,
    /// `db1 → db2` if another member is primary now.
    pub(crate) primary: String,
    pub(crate) acknowledged: u64,
    pub(crate) lost: u64,
    /// Answers with 503, and requests without an answer. Each of them was repeated until it was acknowledged.
    pub(crate) unavailable: u64,
    pub(crate) unknown: u64,
    /// Until every node that the fault does not concern acknowledged writes again, by the longest pause of any of them.
    pub(crate) back: Option<f64>,
    /// Counted from when the fault was mended: nothing may be acknowledged before.
    pub(crate) is_from_mending: bool,
}

impl Row {
    pub(crate) fn is_good(&self) -> bool {
        self.fired && self.lost == 0 && self.back.is_some_and(|seconds| seconds <= BACK_SECONDS_MAX)
    }

    fn cells(&self, number: usize) -> [String; 9] {
        let mark = if self.is_from_mending { " *" } else { "" };
        [
            number.to_string(),
            self.fault.clone(),
            if self.fired { self.proof.clone() } else { "NOT FIRED".to_owned() },
            self.primary.clone(),
            self.acknowledged.to_string(),
            self.lost.to_string(),
            self.unavailable.to_string(),
            self.unknown.to_string(),
            self.back.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds:.1}{mark}")),
        ]
    }
}

const TITLES: [&str; 9] = ["#", "fault", "fired", "primary", "acknowledged", "lost", "503", "unknown", "back after s"];

pub(crate) fn table(rows: &[Row]) -> String {
    let lines: Vec<[String; 9]> = std::iter::once(TITLES.map(str::to_owned))
        .chain((1..).zip(rows).map(|(number, row)| row.cells(number)))
        .collect();
    let mut text = String::new();
    for line in &lines {
        for (column, cell) in line.iter().enumerate() {
            let widths = lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count());
            let width = widths.max().unwrap_or(0);
            let is_number = column == 0 || column > 3;
            let _ = if is_number { write!(text, "{cell:>width$}  ") } else { write!(text, "{cell:<width$}  ") };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    let sum = |figure: fn(&Row) -> u64| rows.iter().map(figure).sum::<u64>();
    let fired = rows.iter().filter(|row| row.fired).count();
    let _ = writeln!(
        text,
        "\nfaults fired: {fired} of {}; acknowledged: {}; lost: {}; 503: {}; unknown: {}\n\
         * from mending: without a quorum nothing may be acknowledged",
        rows.len(),
        sum(|row| row.acknowledged),
        sum(|row| row.lost),
        sum(|row| row.unavailable),
        sum(|row| row.unknown),
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        Row { fault: "primary killed".into(), fired: true, proof: "db1".into(), back: Some(7.25), ..Row::default() }
    }

    #[test]
    fn a_round_is_good_only_if_its_fault_fired_nothing_is_lost_and_writes_came_back_in_time() {
        assert!(row().is_good());
        assert!(!Row { fired: false, ..row() }.is_good());
        assert!(!Row { lost: 1, ..row() }.is_good());
        assert!(!Row { back: Some(40.5), ..row() }.is_good());
        assert!(!Row { back: None, ..row() }.is_good());
    }

    #[test]
    fn the_table_has_a_line_for_each_round_and_says_what_did_not_happen() {
        let rows = [row(), Row { fired: false, back: None, acknowledged: 12, ..row() }];
        let text = table(&rows);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("1  primary killed  db1 ") && lines[1].ends_with(" 7.2"), "{text}");
        assert!(lines[2].contains("NOT FIRED") && lines[2].ends_with(" never"), "{text}");
        assert!(text.contains("faults fired: 1 of 2; acknowledged: 12; lost: 0"), "{text}");
    }
}
