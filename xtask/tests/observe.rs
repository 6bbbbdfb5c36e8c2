//! Rules, dashboard, runbook and list of metrics agree with each other and with the program. `cargo xtask observe` runs
//! the rules.
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const RULES: &str = "deploy/observe/pilot.rules.yml";
const RULE_TESTS: &str = "deploy/observe/pilot.rules.test.yml";
const DASHBOARD: &str = "deploy/observe/grafana-dashboard.json";
const RUNBOOK: &str = "docs/operate/alerts.md";
const METRICS: &str = "docs/reference/metrics.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Whether this can be the name of a metric of ours, or of one that every process has.
fn is_metric(word: &str) -> bool {
    let rest = word.strip_prefix("pilot_").or_else(|| word.strip_prefix("process_"));
    let is_sign = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '_';
    rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(is_sign))
}

/// The metrics that a text names. A series that a rule records has colons in its name and is left out.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_' && sign != ':');
    words.filter(|word| is_metric(word)).map(str::to_owned).collect()
}

/// The names in the first column of the page's tables.
fn listed() -> BTreeSet<String> {
    let page = read(METRICS);
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split('|').next());
    let listed: BTreeSet<_> =
        rows.flat_map(|cell| cell.split('`')).filter(|word| is_metric(word)).map(str::to_owned).collect();
    assert!(listed.len() > 60, "the tables of {METRICS} have another shape now");
    listed
}

/// A histogram is listed by the name that its three kinds of samples share.
fn is_listed(name: &str, listed: &BTreeSet<String>) -> bool {
    let shared = ["_bucket", "_sum", "_count"].iter().find_map(|ending| name.strip_suffix(ending));
    listed.contains(name) || shared.is_some_and(|shared| listed.contains(shared))
}

/// The lines of each file of the program, without its tests.
fn sources() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for package in fs::read_dir(root().join("crates")).unwrap().map(Result::unwrap) {
        collect(&package.path().join("src"), &mut found);
    }
    assert!(found.len() > 100, "the walk over the sources lost its way");
    found
}

fn collect(directory: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            let program = text.split("#[cfg(test)]").next().unwrap();
            found.push((path, program.to_owned()));
        }
    }
}

/// The names in quotes in files that write metrics.
fn exported() -> BTreeMap<String, PathBuf> {
    let writes_metrics = |text: &str| text.contains("exposition::") || text.contains("# TYPE");
    let mut exported = BTreeMap::new();
    for (path, text) in sources().into_iter().filter(|(_, text)| writes_metrics(text)) {
        for name in text.split('"').filter(|name| is_metric(name)) {
            exported.insert(name.to_owned(), path.clone());
        }
    }
    assert!(exported.len() > 45, "metrics are written in another way now");
    exported
}

#[test]
fn every_metric_of_the_program_is_listed() {
    let listed = listed();
    let missing: Vec<_> = exported().into_iter().filter(|(name, _)| !is_listed(name, &listed)).collect();
    assert!(missing.is_empty(), "{METRICS} does not list {missing:#?}");
}

#[test]
fn every_listed_metric_is_one_of_the_program() {
    let exported = exported();
    let invented: Vec<_> = listed().into_iter().filter(|name| !exported.contains_key(name)).collect();
    assert!(invented.is_empty(), "{METRICS} lists what no file writes: {invented:#?}");
}

#[test]
fn rules_dashboard_and_runbook_use_only_listed_metrics() {
    let listed = listed();
    for path in [RULES, RULE_TESTS, DASHBOARD, RUNBOOK] {
        let unknown: Vec<_> = named(&read(path)).into_iter().filter(|name| !is_listed(name, &listed)).collect();
        assert!(unknown.is_empty(), "{path} names {unknown:?}, which {METRICS} does not list");
    }
}

/// The lines of each alert, up to the next rule.
fn alerts() -> BTreeMap<String, String> {
    let rules = read(RULES);
    let mut alerts = BTreeMap::new();
    for part in rules.split("      - ").skip(1) {
        if let Some(rest) = part.strip_prefix("alert: ") {
            let (name, body) = rest.split_once('\n').unwrap();
            assert!(alerts.insert(name.to_owned(), body.to_owned()).is_none(), "two alerts are called {name}");
        }
    }
    assert!(alerts.len() > 40, "the rules have another shape now");
    alerts
}

/// The sections about alerts: name, and the text below it.
fn sections() -> BTreeMap<String, String> {
    let page = read(RUNBOOK);
    let parts = page.split("\n### ").skip(1).map(|part| part.split_once('\n').unwrap());
    parts.map(|(name, text)| (name.to_owned(), text.trim_start().to_owned())).collect()
}

#[test]
fn every_alert_has_a_section_in_the_runbook_and_every_section_an_alert() {
    let (alerts, sections) = (alerts(), sections());
    let names = |map: &BTreeMap<String, String>| map.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&alerts), names(&sections));
    for (name, text) in &sections {
        let severity = alerts[name].lines().find_map(|line| line.trim().strip_prefix("severity: ")).unwrap();
        assert!(["page", "ticket"].contains(&severity), "{name}: {severity}");
        assert!(text.starts_with(&format!("*{severity}.* ")), "{name} begins with its severity, {severity}");
        for part in ["**Users notice:**", "**Look", "**Wake someone"] {
            assert!(text.contains(part), "{name} lacks {part}");
        }
    }
}

#[test]
fn every_alert_says_what_is_wrong_and_where_to_read_on() {
    for (name, body) in alerts() {
        let annotation = |key: &str| body.lines().find_map(|line| line.trim().strip_prefix(key));
        for key in ["summary: ", "description: "] {
            assert!(annotation(key).is_some_and(|text| text.len() > 20), "{name} has no {key}");
        }
        let expected = format!("https://docs.example/operate/alerts.md#{}", name.to_lowercase());
        assert_eq!(annotation("runbook_url: "), Some(expected.as_str()), "{name}");
    }
}

#[test]
fn every_alert_fires_in_a_unit_test() {
    let tests = read(RULE_TESTS);
    let never: Vec<_> = alerts().into_keys().filter(|name| !tests.contains(&format!("alertname=\"{name}\""))).collect();
    assert!(never.is_empty(), "{RULE_TESTS} lets these never fire: {never:?}");
}

#[test]
fn links_within_the_runbook_lead_to_a_section() {
    let (page, sections) = (read(RUNBOOK), sections());
    let known: BTreeSet<_> = sections.keys().map(|name| name.to_lowercase()).collect();
    for link in page.split("](#").skip(1).map(|rest| rest.split(')').next().unwrap()) {
        assert!(known.contains(link), "#{link} is not a section");
    }
}

#[test]
fn the_dashboard_asks_the_data_source_that_was_chosen() {
    let dashboard = read(DASHBOARD);
    let uids: BTreeSet<_> = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"uid\": ")).collect();
    let uids: BTreeSet<_> = uids.into_iter().map(|uid| uid.trim_end_matches(',')).collect();
    assert_eq!(uids, BTreeSet::from(["\"${datasource}\"", "\"pilot-overview\""]));
}
