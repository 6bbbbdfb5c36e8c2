//! A verdict for people: short tables, with words in addition to colours and symbols.

use std::fmt::Write as _;

use pilot_core::decide::Unasked;
use pilot_core::item::WorkflowRef;

use super::verdict::{Finding, Outcome, Verdict, counted};
use crate::bundle::Scope;

/// How many items are shown one by one if nothing is wrong with them.
const ITEMS_SHOWN: usize = 20;
/// How many entries are listed for each question that could not be checked.
const PLACES_SHOWN: usize = 5;

impl Outcome {
    pub const fn words(self) -> &'static str {
        match self {
            Outcome::Holds => "✓ holds",
            Outcome::Fails => "✗ FAILS",
            Outcome::NotChecked => "– not checked",
        }
    }
}

impl Verdict {
    /// What a terminal shows.
    pub fn to_text(&self) -> String {
        let mut text = self.heading();
        let checks = self.checks.iter().map(|check| row(check.name.title(), check));
        text += &table(["CHECK", "RESULT", "DETAIL"], checks);
        if !self.items.is_empty() {
            let controls = self.controls.iter().map(|control| row(control.name.title(), control));
            text += &table(["CONTROL", "RESULT", "DETAIL"], controls);
            text += &self.item_table();
        }
        for question in self.questions() {
            let _ = writeln!(text, "not checked: {question}");
        }
        if !self.unasked.is_empty() {
            text.push('\n');
        }
        for (number, fault) in (1..).zip(&self.faults) {
            let _ = writeln!(text, "fault {number}: {fault}");
        }
        if !self.faults.is_empty() {
            text.push('\n');
        }
        text + &self.sentence() + "\n"
    }

    /// What could not be checked: each kind of question once, with the first places.
    pub(crate) fn questions(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for question in Unasked::ALL {
            let here = self.unasked.iter().filter(|open| open.question == question);
            let entries: Vec<_> = here.map(|open| open.entry.to_string()).collect();
            if let Some(shown) = entries.get(..entries.len().min(PLACES_SHOWN)).filter(|shown| !shown.is_empty()) {
                let more = entries.len() - shown.len();
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                lines.push(format!("{question} (entry {}{more})", shown.join(", ")));
            }
        }
        lines
    }

    fn heading(&self) -> String {
        let Some(about) = &self.about else { return String::new() };
        let scope = match &about.scope {
            Scope::Item(id) => format!("item {id}"),
            Scope::Period { from, to, first, end } => {
                format!("the period {from} to {to}, entries {first} to {}", end.saturating_sub(1))
            }
        };
        let left_out = match about.left_out.len() {
            0 => String::new(),
            count => format!(", {} left out", counted(count, "file")),
        };
        let mut text = format!(
            "Evidence of {} about {scope}\nmade {}, {} entries, {} documents{left_out}\nroot {} of {} entries\n",
            about.origin, about.made, about.entries, about.documents, about.root, about.size
        );
        // To be compared with what the reader knows from elsewhere.
        let _ = writeln!(text, "checkpoint {}", about.checkpoint);
        for WorkflowRef { name, version, digest } in &about.definitions {
            let _ = writeln!(text, "definition {digest}, {name} v{version}");
        }
        for digest in &about.role_maps {
            let _ = writeln!(text, "role map   {digest}");
        }
        text + "\n"
    }

    fn item_table(&self) -> String {
        let mut shown: Vec<_> = self.items.iter().collect();
        shown.sort_by_key(|item| match item.outcome {
            Outcome::Fails => 0,
            Outcome::NotChecked => 1,
            Outcome::Holds => 2,
        });
        let failing = shown.iter().filter(|item| item.outcome == Outcome::Fails).count();
        let rest = shown.len().saturating_sub(ITEMS_SHOWN.max(failing));
        shown.truncate(ITEMS_SHOWN.max(failing));
        let rows = shown.into_iter().map(|item| {
            let broken = item.controls.iter().find(|control| control.outcome == item.outcome);
            let why = broken.filter(|_| item.outcome != Outcome::Holds);
            let why = why.map_or(String::new(), |control| format!(": {}", control.name.title()));
            [
                item.id.to_string(),
                format!("{}{why}", item.outcome.words()),
                format!(
                    "{} v{}, {}",
                    item.state,
                    item.version,
                    counted(item.people.len(), "person").replace("persons", "people")
                ),
            ]
        });
        let mut text = table(["ITEM", "RESULT", "DETAIL"], rows);
        if rest > 0 {
            text.truncate(text.trim_end().len());
            let _ = write!(text, "\nand {} more; --output json has them all\n\n", counted(rest, "item"));
        }
        text
    }
}

fn row<K>(title: &str, finding: &Finding<K>) -> [String; 3] {
    [title.to_owned(), finding.outcome.words().to_owned(), finding.detail.clone()]
}

/// Columns as wide as their widest cell, two spaces apart, followed by an empty line.
fn table(header: [&str; 3], rows: impl Iterator<Item = [String; 3]>) -> String {
    let mut lines = vec![header.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| {
        lines.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (first, second) = (width(0), width(1));
    let line = |[one, two, three]: &[String; 3]| {
        format!("{one:<first$}  {two:<second$}  {three}").trim_end().to_owned() + "\n"
    };
    lines.iter().map(line).collect::<String>() + "\n"
}
