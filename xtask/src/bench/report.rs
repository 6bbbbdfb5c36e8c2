//! What a benchmark found: each figure next to its target, with tables and plots for the page.

/// One benchmark's part of `docs/reference/performance.md`.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub title: &'static str,
    /// What was run, against what, and how: enough to judge the figures by.
    pub about: String,
    pub figures: Vec<Figure>,
    pub tables: Vec<Table>,
    pub plots: Vec<Plot>,
}

/// A figure that has a target: the median of all rounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Figure {
    pub what: String,
    pub value: f64,
    /// Empty for a ratio.
    pub unit: &'static str,
    pub target: Target,
    /// The largest round minus the smallest, divided by the median.
    pub spread: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub columns: Vec<&'static str>,
    pub rows: Vec<Vec<String>>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plot {
    /// The name of the file, without its ending.
    pub file: &'static str,
    pub title: String,
    pub drawing: Drawing,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Drawing {
    /// One bar each, in this order, from zero.
    Bars { unit: &'static str, bars: Vec<(String, f64)> },
    /// One curve each, over sizes of the ledger on a logarithmic axis; values from zero.
    Curves { unit: &'static str, along: &'static str, curves: Vec<(String, Vec<(f64, f64)>)> },
}
