//! `cargo xtask bench compare PAGE PAGE`: whether two runs agree. Each figure may differ by no more than the larger of the
//! spreads that the two pages state for it.

use std::fs;
use std::path::Path;

use super::report::Table;
use super::shown::table_text;
use crate::step::Failure;

pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let [first, second] = arguments else {
        return Err(Failure::usage("two pages that `cargo xtask bench --into DIRECTORY` has written"));
    };
    let compared = compare(&page_at(first)?, &page_at(second)?);
    print!("{}", table_text(&compared.table()));
    compared.verdict()
}

/// A line of a page's table of targets.
#[derive(Debug, Clone, PartialEq)]
struct Figure {
    what: String,
    value: f64,
    /// As a share of the value.
    spread: f64,
}

struct Page {
    figures: Vec<Figure>,
    /// The commands that measured them: a run can be asked for more than another.
    commands: Vec<String>,
}

fn page_at(path: &str) -> Result<Page, Failure> {
    let text = fs::read_to_string(Path::new(path));
    let page = Page::read(&text.map_err(|error| Failure::usage(format!("{path}: {error}")))?);
    if page.figures.is_empty() { Err(Failure::usage(format!("{path}: has no table of targets"))) } else { Ok(page) }
}

impl Page {
    fn read(text: &str) -> Page {
        let commands = text.lines().filter(|line| line.starts_with("To repeat it: ")).map(str::to_owned);
        Page { figures: figures_in(text), commands: commands.collect() }
    }
}

fn figures_in(page: &str) -> Vec<Figure> {
    let rows = page.lines().skip_while(|line| !line.starts_with("| benchmark | figure |")).skip(2);
    rows.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |")).filter_map(figure).collect()
}

fn figure(row: &str) -> Option<Figure> {
    let cells: Vec<_> = row.split(" | ").collect();
    let [title, what, value, _, _, spread] = cells.as_slice() else { return None };
    let number = |text: &str| text.split(' ').next()?.replace(',', "").parse::<f64>().ok();
    // What could not be measured agrees with nothing.
    let [value, spread] = [value, spread].map(|text| number(text).unwrap_or(f64::NAN));
    Some(Figure { what: format!("{title}: {what}"), value, spread: spread / 100.0 })
}

struct Compared {
    pairs: Vec<(Figure, Figure)>,
    /// What only one of the pages has.
    missing: Vec<String>,
    /// Whether both runs were asked for the same.
    is_same_task: bool,
}

fn compare(first: &Page, second: &Page) -> Compared {
    let find = |figure: &Figure, page: &Page| page.figures.iter().find(|other| other.what == figure.what).cloned();
    let pairs = first.figures.iter().filter_map(|figure| Some((figure.clone(), find(figure, second)?))).collect();
    let only = |page: &Page, other: &Page| {
        let only = page.figures.iter().filter(|figure| find(figure, other).is_none());
        only.map(|figure| figure.what.clone()).collect::<Vec<_>>()
    };
    let missing = [only(first, second), only(second, first)].concat();
    Compared { pairs, missing, is_same_task: first.commands == second.commands }
}

/// Of the smaller value.
fn difference((first, second): &(Figure, Figure)) -> f64 {
    (first.value - second.value).abs() / first.value.min(second.value)
}

fn agree(pair: &(Figure, Figure)) -> bool {
    difference(pair) <= pair.0.spread.max(pair.1.spread)
}

impl Compared {
    fn table(&self) -> Table {
        let row = |pair: &(Figure, Figure)| {
            let (first, second) = pair;
            let percent = |share: f64| format!("{:.0} %", share * 100.0);
            let verdict = if agree(pair) { "agree" } else { "DIFFER" };
            vec![
                first.what.clone(),
                first.value.to_string(),
                second.value.to_string(),
                percent(difference(pair)),
                percent(first.spread.max(second.spread)),
                verdict.to_owned(),
            ]
        };
        let columns = vec!["figure", "first", "second", "difference", "spread", "verdict"];
        Table { columns, rows: self.pairs.iter().map(row).collect() }
    }

    fn verdict(&self) -> Result<(), Failure> {
        for what in &self.missing {
            println!("only one of the pages has: {what}");
        }
        let agreeing = self.pairs.iter().filter(|pair| agree(pair)).count();
        println!("{agreeing} of {} figures agree", self.pairs.len());
        let is_complete = self.missing.is_empty() || !self.is_same_task;
        if agreeing == self.pairs.len() && agreeing > 0 && is_complete {
            return Ok(());
        }
        Err(Failure::refuted("the runs differ by more than the spread they state, or in what they measured"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(rows: &str) -> String {
        format!(
            "# Performance\n\n| other | table |\n|---|---|\n| a | b |\n\n| benchmark | figure | value | target | | spread |\n\
             |---|---|--:|--:|---|--:|\n{rows}\n\n| a | later | 1 | ≥ 1 | met | 1 % |\n"
        )
    }

    #[test]
    fn figures_are_read_with_their_units_and_commas() {
        let rows = "| Evidence | export, entries per second | 89,677 | ≥ 100,000 | **missed** | 39 % |\n\
                    | Live feeds | CPU | 0.52 ms | ≤ 1.00 ms | met | 4 % |";
        let figure = |what: &str, value, spread| Figure { what: what.to_owned(), value, spread };
        let expected =
            [figure("Evidence: export, entries per second", 89_677.0, 0.39), figure("Live feeds: CPU", 0.52, 0.04)];
        assert_eq!(figures_in(&page(rows)), expected);
        assert_eq!(figures_in("# Something else\n"), []);
    }

    #[test]
    fn a_figure_may_differ_by_the_larger_of_both_spreads() {
        let at = |value: &str, spread: &str| {
            let row = format!("| Start | on a new ledger | {value} ms | ≤ 50.0 ms | met | {spread} % |");
            Page::read(&page(&row))
        };
        for (second, spread, agrees) in [("110", "10", true), ("112", "10", false), ("90.5", "10", false)] {
            let compared = compare(&at("100", "5"), &at(second, spread));
            assert_eq!(compared.verdict().is_ok(), agrees, "{second}");
        }
    }

    #[test]
    fn a_figure_that_only_one_page_has_is_named_and_counts_if_both_runs_were_asked_for_it() {
        let one = "| Start | a | 1.00 | ≤ 2.00 | met | 1 % |";
        let both = page(&format!("{one}\n{}", one.replace("| a |", "| b |")));
        let asked =
            |page: &str, what: &str| Page::read(&format!("{page}\nTo repeat it: `cargo xtask bench {what}`.\n"));
        for (second, counts) in [("start", true), ("start --more", false)] {
            let compared = compare(&asked(&both, second), &asked(&page(one), "start"));
            assert_eq!(compared.verdict().is_err(), counts, "{second}");
            assert_eq!((compared.pairs.len(), compared.missing), (1, vec!["Start: b".to_owned()]));
        }
    }

    #[test]
    fn what_could_not_be_measured_agrees_with_nothing() {
        let page = Page::read(&page("| Start | a | – | ≤ 2.00 | **missed** | – |"));
        assert_eq!(page.figures.len(), 1);
        assert!(compare(&page, &page).verdict().is_err());
    }
}
