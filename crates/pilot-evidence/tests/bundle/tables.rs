//! The tables for auditors.

use std::collections::BTreeSet;

use expect_test::expect;
use pilot_core::role::Role;
use pilot_evidence::audit::{Sampling, Table, Tables, tables};
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::report::report;
use pilot_evidence::sample::cases::Case;
use pilot_evidence::sample::forgeries::Forgery;
use pilot_evidence::sample::{Ledger, actor, key, payload, role_map, small_ledger};
use pilot_evidence::verify::{Trust, verify};
use pilot_testing::Dice;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::bundle::verdicts::trust;

pub fn table(made: &Tables, name: &str) -> Table {
    made.tables.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("{name} is missing")).clone()
}

/// The rows below the header, read as RFC 4180 says.
pub fn rows(table: &Table) -> Vec<Vec<String>> {
    let mut rows = read_csv(&table.text);
    rows.remove(0);
    assert_eq!(rows.len(), table.rows, "{}", table.name);
    rows
}

fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell, mut is_quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, is_quoted) {
            ('"', true) if signs.peek() == Some(&'"') => cell.push(signs.next().unwrap()),
            ('"', _) => is_quoted = !is_quoted,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\r', false) => {
                assert_eq!(signs.next(), Some('\n'), "a row ends with both");
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(sign),
        }
    }
    assert!(cell.is_empty() && row.is_empty() && !is_quoted, "the last row is whole");
    let widths: BTreeSet<_> = rows.iter().map(Vec::len).collect();
    assert_eq!(widths.len(), 1, "every row is as wide as the header");
    rows
}

fn all(ledger: &Ledger) -> Tables {
    tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap()
}

#[test]
fn the_population_has_every_item_and_the_moves_every_entry_about_them() {
    let ledger = small_ledger();
    let made = all(&ledger);
    let cut = |text: &str| {
        text.replace('\r', "").replace("83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7", "…")
    };
    expect![[r#"
        item,title,workflow,workflow_version,definition,state,created_at,created_by,ended_at,first_entry,last_entry,entries,people,outcome,exceptions
        01890a5d-ac96-774b-bcce-000000000001,Rotate the signing key,controlled-operation,2,sha256:…,closed,2026-11-15T08:00:01.000000Z,ana,2026-11-15T08:00:09.000000Z,1,9,9,ana (initiator); bea (approver); ben (approver); eve (executor); sam (security_admin),holds,0
        01890a5d-ac96-774b-bcce-000000000012,Open port 8443 on two hosts,controlled-operation,2,sha256:…,rejected,2026-11-15T08:00:10.000000Z,ida,2026-11-15T08:00:17.000000Z,10,17,7,bea (approver); ben (approver); ida (initiator),holds,0
        01890a5d-ac96-774b-bcce-00000000001d,Never looked at,controlled-operation,2,sha256:…,expired,2026-11-15T08:00:18.000000Z,ana,2026-11-18T09:00:20.000000Z,18,20,3,ana (initiator),holds,1
    "#]].assert_eq(&cut(&table(&made, "items.csv").text));
    expect![[r#"
        entry,at,item,type,action,from,to,actor,role,comment
        1,2026-11-15T08:00:01.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.created,create,,draft,ana,initiator,
        2,2026-11-15T08:00:02.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,submit,draft,submitted,ana,initiator,
        3,2026-11-15T08:00:03.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,approve,submitted,submitted,ben,approver,read twice
        4,2026-11-15T08:00:04.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,approve,submitted,approved,bea,approver,
        5,2026-11-15T08:00:05.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,clear,approved,cleared,sam,security_admin,
        6,2026-11-15T08:00:06.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,start,cleared,executing,eve,executor,
        7,2026-11-15T08:00:07.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,heartbeat,executing,executing,eve,executor,
        8,2026-11-15T08:00:08.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,succeed,executing,succeeded,eve,executor,
        9,2026-11-15T08:00:09.000000Z,01890a5d-ac96-774b-bcce-000000000001,item.transition,accept,succeeded,closed,bea,approver,as planned
        10,2026-11-15T08:00:10.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.created,create,,draft,ida,initiator,
        11,2026-11-15T08:00:11.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.transition,submit,draft,submitted,ida,initiator,
        12,2026-11-15T08:00:12.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.transition,return,submitted,returned,ben,approver,Which hosts? <b>Name them</b>.
        14,2026-11-15T08:00:14.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.edited,edit,returned,returned,ida,initiator,
        15,2026-11-15T08:00:15.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.comment,,,,ada,auditor,Seen by audit
        16,2026-11-15T08:00:16.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.transition,submit,returned,submitted,ida,initiator,
        17,2026-11-15T08:00:17.000000Z,01890a5d-ac96-774b-bcce-000000000012,item.transition,reject,submitted,rejected,bea,approver,Not this quarter
        18,2026-11-15T08:00:18.000000Z,01890a5d-ac96-774b-bcce-00000000001d,item.created,create,,draft,ana,initiator,
        19,2026-11-15T08:00:19.000000Z,01890a5d-ac96-774b-bcce-00000000001d,item.transition,submit,draft,submitted,ana,initiator,
        20,2026-11-18T09:00:20.000000Z,01890a5d-ac96-774b-bcce-00000000001d,item.transition,timer,submitted,expired,,,
    "#]].assert_eq(&cut(&table(&made, "moves.csv").text));
}

#[test]
fn an_item_whose_definition_is_missing_is_in_the_population_and_fails() {
    let forgery = Forgery::new("low");
    let mut parts = forgery.ledger.period_parts(0, forgery.ledger.size());
    parts.definitions.clear();
    let bundle = pilot_evidence::bundle::assemble(&parts, &key()).unwrap();
    let made = tables(&bundle, &trust(), None).unwrap();
    let items = rows(&table(&made, "items.csv"));
    assert_eq!((items.len(), &*items[0][0], &*items[0][13]), (1, forgery.id.as_str(), "fails"));
    assert!(made.verdict.items.is_empty());
}

#[test]
fn what_was_not_checked_comes_first_then_what_failed() {
    let forged = Forgery::new("high").forced(&actor("ben"), "approve", "approved");
    let checks = rows(&table(&all(&forged.ledger), "checks.csv"));
    let outcomes: Vec<_> = checks.iter().map(|row| row[2].as_str()).collect();
    let mut in_order = outcomes.clone();
    in_order.sort_by_key(|outcome| ["not checked", "fails", "holds"].iter().position(|known| known == outcome));
    assert_eq!(outcomes, in_order);
    assert!(outcomes.contains(&"fails") && outcomes[0] == "not checked");
    let ledger = small_ledger();
    let (smaller, left_out) = redact(&ledger.period_bundle(0, ledger.size()), &Redaction::All).unwrap();
    let made = tables(&smaller, &trust(), None).unwrap();
    let checks = rows(&table(&made, "checks.csv"));
    let named: Vec<_> = checks.iter().filter(|row| row[0] == "left_out").map(|row| &row[1]).collect();
    assert_eq!(named, left_out.iter().collect::<Vec<_>>());
    assert!(checks.iter().any(|row| row[0] == "gap" && row[1] == "left out"));
    assert!(checks.iter().any(|row| row[0] == "question"));
    assert!(table(&made, "moves.csv").text.contains("(left out)"));
}

#[test]
fn nothing_that_people_wrote_runs_in_a_spreadsheet_or_hides_in_it() {
    let mut ledger = Ledger::default();
    let title = "=HYPERLINK(\"https://example.org\",\"x\")";
    let id = ledger.create("controlled-operation", &actor("ana"), title, payload("low")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    for comment in ["+1", "-1", "@a", "\tx", "\r=1", "a⟨U+000A⟩=1,\"b\"", "user \u{202e}gnp.exe"] {
        ledger.remark(&id, &actor("ada"), comment);
    }
    let made = all(&ledger);
    assert_eq!(rows(&table(&made, "items.csv"))[0][1], format!("'{title}"));
    let moves = rows(&table(&made, "moves.csv"));
    let comments: Vec<_> = moves.iter().map(|row| row[9].as_str()).filter(|comment| !comment.is_empty()).collect();
    let expected = ["'+1", "'-1", "'@a", "⟨U+0009⟩x", "⟨U+000D⟩=1", "a⟨U+000A⟩=1,\"b\"", "user ⟨U+202E⟩gnp.exe"];
    assert_eq!(comments, expected);
    for table in &made.tables {
        let cells = read_csv(&table.text);
        let runs = cells.iter().flatten().find(|cell| cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']));
        assert_eq!(runs, None, "{}", table.name);
    }
}

#[test]
fn anyone_can_draw_the_same_samples_with_a_hash_function() {
    let ledger = small_ledger();
    let bundle = ledger.period_bundle(0, ledger.size());
    let draw = |count: usize, seed: Option<&str>| {
        let sampling = Sampling { count, seed: seed.map(str::to_owned) };
        tables(&bundle, &trust(), Some(&sampling)).unwrap()
    };
    let ids =
        |made: &Tables| rows(&table(made, "samples.csv")).into_iter().map(|row| row[1].clone()).collect::<Vec<_>>();
    let by_hand = |seed: &str| {
        let mut all: Vec<_> = ledger.items.keys().map(ToString::to_string).collect();
        all.sort_by_key(|id| Sha256::digest(format!("{seed}\n{id}")).to_vec());
        all
    };
    let root = verify(&bundle, &trust()).about.unwrap().root;
    let by_default = draw(2, None);
    assert_eq!(by_default.seed.as_deref(), Some(root.as_str()));
    assert_eq!(ids(&by_default), by_hand(&root)[..2]);
    for seed in ["", "dice 4 2 6", "=1", "two\nlines"] {
        let made = draw(1, Some(seed));
        assert_eq!(ids(&made), by_hand(seed)[..1], "{seed}");
        assert_eq!(made.seed.as_deref(), Some(seed));
    }
    assert_eq!(ids(&draw(1_000, Some("x"))), by_hand("x"), "no more than there are");
    let first = rows(&table(&draw(1, Some("x")), "samples.csv")).remove(0);
    let whole = rows(&table(&by_default, "items.csv")).into_iter().find(|row| row[0] == first[1]).unwrap();
    assert_eq!((&*first[0], &first[1..16], &*first[16]), ("1", &whole[..], "x"));
    assert!(all(&ledger).tables.iter().all(|table| table.name != "samples.csv"));
}

const CASES: u64 = 100;

#[test]
fn whatever_is_in_a_bundle_its_tables_can_be_read_and_have_every_fault() {
    let first = u64::from(std::process::id()) << 16;
    println!("seeds {first} to {}", first + CASES - 1);
    let mut written = 0;
    for seed in first..first + CASES {
        let mut dice = Dice::new(seed);
        let case = Case::make(&mut |end| dice.below(end));
        let trust = Trust::witnessed(key().verifier(), case.witnesses.clone(), case.needed);
        let verdict = verify(&case.bundle, &trust);
        let made = tables(&case.bundle, &trust, Some(&Sampling { count: 2, seed: None }));
        assert_eq!(made.is_ok(), verdict.about.is_some(), "seed {seed}, {}", case.name);
        let Ok(made) = made else { continue };
        written += 1;
        assert!(made.verdict == verdict, "seed {seed}, {}", case.name);
        made.tables.iter().for_each(|table| drop(rows(table)));
        let exceptions = rows(&table(&made, "exceptions.csv"));
        let found = exceptions.iter().filter(|row| row[2] == "fault").count();
        assert_eq!(found, verdict.faults.len(), "seed {seed}, {}", case.name);
        let items = rows(&table(&made, "items.csv"));
        assert!(items.len() >= verdict.items.len(), "seed {seed}, {}", case.name);
        assert_eq!(rows(&table(&made, "samples.csv")).len(), items.len().min(2), "seed {seed}, {}", case.name);
        assert!(report(&case.bundle, &trust).is_ok(), "seed {seed}, {}", case.name);
    }
    assert!(written > CASES / 2, "too few could be opened: {written}");
}

#[test]
fn a_bundle_that_cannot_be_opened_has_no_tables() {
    let ledger = small_ledger();
    let bundle = ledger.period_bundle(0, ledger.size());
    assert!(!tables(&bundle[1..], &trust(), None).unwrap_err().holds);
}

#[test]
fn the_page_names_what_was_not_checked_before_anything_else_and_exceptions_next() {
    let mut ledger = small_ledger();
    ledger.start(Some(&role_map(&[("ana", Role::Initiator)])));
    let page = report(&ledger.period_bundle(0, ledger.size()), &trust()).unwrap();
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words} is not on the page"));
    let first = page.find("<h2").unwrap();
    assert_eq!(at("<h2 id=\"not-checked\">What was not checked</h2>"), first);
    let order = [
        "class=\"verdict",
        "<h2 id=\"not-checked\">",
        "no witness key was given, so only the log itself vouches for its history",
        "no definition was given; no role map was given",
        "<h2 id=\"exceptions\">",
        "role_map_changed",
        "<h2>What was checked</h2>",
        "<h2>Access review</h2>",
    ];
    let places: Vec<_> = order.iter().map(|words| at(words)).collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_page_has_200_exceptions_at_most_and_says_how_many_more_there_are() {
    let mut ledger = Ledger::default();
    for _ in 0..203 {
        ledger.start(None);
    }
    let page = report(&ledger.period_bundle(0, ledger.size()), &trust()).unwrap();
    assert_eq!(page.matches("<td class=\"n\">no_role_map</td>").count(), 199);
    assert!(page.contains("<p>And 4 more: <code>pilot evidence report --csv</code> writes all of them.</p>"));
    assert_eq!(rows(&table(&all(&ledger), "exceptions.csv")).len(), 204);
}

#[test]
fn a_page_has_200_rows_of_the_access_review_at_most_and_says_how_many_more_there_are() {
    let names: Vec<_> = (0..250).map(|number| format!("person-{number}")).collect();
    let people: Vec<_> = names.iter().map(|name| (name.as_str(), Role::Auditor)).collect();
    let mut ledger = Ledger::default();
    ledger.start(Some(&role_map(&people)));
    let all = rows(&table(&all(&ledger), "access.csv")).len();
    assert!(all > 250, "{all}");
    let page = report(&ledger.period_bundle(0, ledger.size()), &trust()).unwrap();
    let more =
        format!("<p>And {} more rows: <code>pilot evidence report --csv</code> writes all of them.</p>", all - 200);
    assert!(page.contains(&more), "{more}");
}

#[test]
fn every_printed_page_names_the_log_and_the_scope_and_no_row_is_cut() {
    let ledger = small_ledger();
    let page = report(&ledger.period_bundle(0, ledger.size()), &trust()).unwrap();
    let heading = "@top-left{content:\"log\\00002eexample\\00002eorg\\000020\\0000b7\\000020every\\000020entry";
    assert!(page.contains(heading), "{page}");
    assert!(page.contains("tr,.verdict,.picture,.hidden,blockquote{break-inside:avoid}"));
}
