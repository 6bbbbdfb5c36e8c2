//! What was checked, and first of all what was not.

use crate::verify::{Gap, Outcome, Verdict};

pub(crate) struct CheckRow {
    /// `check`, `control`, `gap`, `question` or `left_out`.
    pub kind: &'static str,
    pub name: String,
    pub outcome: Outcome,
    pub detail: String,
}

/// The kind of rows that name a file the bundle lacks: there may be very many.
pub(crate) const LEFT_OUT: &str = "left_out";

/// Every check and control. What was not checked comes first, then what failed.
pub(crate) fn checks(verdict: &Verdict) -> Vec<CheckRow> {
    let row = |kind, name: &str, outcome, detail: &str| CheckRow {
        kind,
        name: name.to_owned(),
        outcome,
        detail: detail.to_owned(),
    };
    let checks = verdict.checks.iter().map(|one| row("check", one.name.title(), one.outcome, &one.detail));
    let controls = verdict.controls.iter().map(|one| row("control", one.name.title(), one.outcome, &one.detail));
    let gaps = verdict.gaps.iter().map(|gap| row("gap", gap_name(*gap), Outcome::NotChecked, gap.words()));
    let questions = verdict.questions();
    let questions = questions.iter().map(|one| row("question", "open question", Outcome::NotChecked, one));
    let absent = verdict.about.iter().flat_map(|about| &about.left_out);
    let why = "the manifest lists this file, and the bundle lacks it";
    let absent = absent.map(|path| row(LEFT_OUT, path, Outcome::NotChecked, why));
    let mut rows: Vec<_> = checks.chain(controls).chain(gaps).chain(questions).chain(absent).collect();
    rows.sort_by_key(|row| match row.outcome {
        Outcome::NotChecked => 0,
        Outcome::Fails => 1,
        Outcome::Holds => 2,
    });
    rows
}

const fn gap_name(gap: Gap) -> &'static str {
    match gap {
        Gap::LeftOut => "left out",
        Gap::EndOfPeriod => "end of the period",
        Gap::Strict => "strict",
    }
}
