//! The access review: who had which role and which credential, and when.

use std::time::Duration;

use expect_test::{Expect, expect};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ChangedCredentials, Changes, Details, Named, OneCredential, RevokedCredential};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::audit::{Tables, tables};
use pilot_evidence::sample::cases::Case;
use pilot_evidence::sample::{CAST, Ledger, actor, as_role, payload, role_map, small_ledger};
use pilot_evidence::verify::{Fault, Pins, Trust, predecessor};
use pilot_testing::Dice;

use crate::bundle::tables::{rows, table};
use crate::bundle::verdicts::trust;

/// Who, what they had, from when until when, how it ended, and how much they did; without the dates.
fn listed(made: &Tables, who: &str) -> String {
    let shown = |row: &Vec<String>| {
        let name = if row[0] == "role_map" { row[14][..15].to_owned() } else { format!("{} {}", row[4], row[5]) };
        let entry = |index: usize| if row[index].is_empty() { "-".to_owned() } else { row[index].clone() };
        let [from, until, last] = [7, 9, 13].map(entry);
        let until_at = row[8].get(..10).unwrap_or("-");
        format!(
            "{} {} {name}: {from} to {until} {until_at}, {}; {} moves, last {last}\n",
            row[2], row[3], row[10], row[11]
        )
    };
    rows(&table(made, "access.csv")).iter().filter(|row| row[1] == who).map(shown).collect()
}

fn notices(made: &Tables) -> Vec<String> {
    let rows = rows(&table(made, "access.csv"));
    let count = rows.iter().filter(|row| row[0] == "not_known").count();
    let first = rows.into_iter().take(count);
    first.inspect(|row| assert_eq!(row[0], "not_known", "they come first")).map(|row| row[16].clone()).collect()
}

fn named(who: &str, number: u64, expires_at: Option<Time>) -> Named {
    Named {
        actor_id: Some(who.parse().unwrap()),
        role: Some(actor(who).role),
        credential_id: Some(format!("{who}-{number}").parse().unwrap()),
        fingerprint: Some(format!("{number:016x}").parse().unwrap()),
        expires_at,
    }
}

fn tell(ledger: &mut Ledger, details: &Details) {
    ledger.append(&Entry::of_service(ledger.size(), ledger.now, None, details));
}

fn change(ledger: &mut Ledger, added: Vec<Named>, removed: Vec<Named>) {
    let credentials = Changes { added, removed, count: None };
    tell(ledger, &Details::CredentialsChanged(ChangedCredentials { credentials }));
}

/// ben's credentials are changed, removed, listed again, revoked and expire.
fn eventful() -> Ledger {
    let mut ledger = Ledger::default();
    let own = CAST.iter().position(|(name, _)| *name == "ben").unwrap() as u64 + 1;
    let ben = |number, expires_at| Named {
        credential_id: Some("ben-1".parse().unwrap()),
        ..named("ben", number, expires_at)
    };
    let soon = ledger.now.plus(Duration::from_secs(30));
    let later = ledger.now.plus(Duration::from_hours(400 * 24));
    change(&mut ledger, vec![ben(own, Some(later))], vec![ben(own, None)]);
    change(&mut ledger, Vec::new(), vec![ben(own, Some(later))]);
    change(&mut ledger, vec![ben(own, Some(later))], Vec::new());
    change(
        &mut ledger,
        vec![named("ben", 20, Some(soon)), named("ben", 21, Some(soon)), named("ben", 22, Some(later))],
        Vec::new(),
    );
    ledger.whole_operation("Rotate", "low");
    let revoked = RevokedCredential { cause: "asked".into(), credential: ben(own, None) };
    tell(&mut ledger, &Details::CredentialRevoked(revoked));
    change(&mut ledger, vec![ben(own, Some(later))], Vec::new());
    ledger.pass(60);
    tell(&mut ledger, &Details::CredentialExpired(OneCredential { credential: named("ben", 20, Some(soon)) }));
    ledger
}

#[track_caller]
fn check(made: &Tables, who: &str, expected: &Expect) {
    expected.assert_eq(&listed(made, who));
}

#[test]
fn each_life_of_a_credential_is_a_row_from_the_entry_that_listed_it_to_the_one_that_ended_it() {
    let ledger = eventful();
    let made = tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap();
    assert!(made.verdict.holds, "{}", made.verdict.sentence());
    assert_eq!(notices(&made), Vec::<String>::new());
    check(
        &made,
        "ben",
        &expect![[r#"
        approver human sha256:c3ceaf05: 0 to - -, in force; 1 moves, last 7
        approver human ben-1 0000000000000003: 0 to 1 2026-11-15, changed; 1 moves, last 7
        approver human ben-1 0000000000000003: 1 to 2 2026-11-15, removed; 1 moves, last 7
        approver human ben-1 0000000000000003: 3 to 13 2026-11-15, revoked; 1 moves, last 7
        approver human ben-21 0000000000000015: 4 to - 2026-11-15, expired; 1 moves, last 7
        approver human ben-20 0000000000000014: 4 to 15 2026-11-15, expired; 1 moves, last 7
        approver human ben-22 0000000000000016: 4 to - 2027-12-20, in force; 1 moves, last 7
    "#]],
    );
    check(
        &made,
        "ada",
        &expect![[r#"
        auditor human sha256:c3ceaf05: 0 to - -, in force; 0 moves, last -
        auditor human ada-1 0000000000000007: 0 to - -, in force; 0 moves, last -
    "#]],
    );
}

#[test]
fn credentials_from_earlier_periods_are_known_if_those_periods_are_given() {
    let ledger = eventful();
    let (middle, size) = (4, ledger.size());
    let after = predecessor(&ledger.period_bundle(0, middle).into(), &trust(), &mut |_, _, _| {}).unwrap().unwrap();
    let pins = Pins { after: Some(after), ..Pins::default() };
    let second = tables(&ledger.period_bundle(middle, size), &Trust { pins, ..trust() }, None).unwrap();
    assert_eq!(notices(&second), Vec::<String>::new());
    check(
        &second,
        "ben",
        &expect![[r#"
        approver human sha256:c3ceaf05: 0 to - -, in force; 1 moves, last 7
        approver human ben-1 0000000000000003: 3 to 13 2026-11-15, revoked; 1 moves, last 7
        approver human ben-21 0000000000000015: 4 to - 2026-11-15, expired; 1 moves, last 7
        approver human ben-20 0000000000000014: 4 to 15 2026-11-15, expired; 1 moves, last 7
        approver human ben-22 0000000000000016: 4 to - 2027-12-20, in force; 1 moves, last 7
    "#]],
    );
}

#[test]
fn a_role_is_a_row_for_each_role_map_that_approved_it() {
    let mut ledger = Ledger::default();
    ledger.start(Some(&role_map(&CAST)));
    ledger.start(Some(&role_map(&[("ana", Role::Approver)])));
    ledger.start(None);
    ledger.start(Some(&role_map(&CAST)));
    let made = tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap();
    check(
        &made,
        "ana",
        &expect![[r#"
        initiator human sha256:c3ceaf05: 0 to 2 2026-11-15, another role map; 0 moves, last -
        approver human sha256:f967144c: 2 to 3 2026-11-15, no role map; 0 moves, last -
        initiator human sha256:c3ceaf05: 4 to - -, in force; 0 moves, last -
        initiator human ana-1 0000000000000001: 0 to - -, in force; 0 moves, last -
    "#]],
    );
    let approved: Vec<_> =
        rows(&table(&made, "access.csv")).into_iter().map(|row| (row[0].clone(), row[15].clone())).collect();
    assert!(approved.contains(&("role_map".into(), "chief; second chief".into())), "{approved:?}");
}

#[test]
fn someone_who_acts_without_a_role_or_a_credential_is_listed_all_the_same() {
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &as_role("mal", Role::Initiator), "Mine", payload("low")).unwrap();
    ledger.remark(&id, &actor("ada"), "Who is this?");
    let made = tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap();
    check(
        &made,
        "mal",
        &expect![[r#"
        initiator   : - to - -, not known; 1 moves, last 1
    "#]],
    );
    assert!(!made.verdict.holds);
}

#[test]
fn what_is_not_known_is_said_at_the_top() {
    let ledger = small_ledger();
    let id = ledger.items.keys().next().unwrap();
    let item = tables(&ledger.item_bundle(id), &trust(), None).unwrap();
    let part = tables(&ledger.period_bundle(8, ledger.size()), &trust(), None).unwrap();
    expect![[r#"
        This bundle is about one item. It has only those starts of the service that were in force when something happened to the item. Who else had a role, who had a credential, and until when, is not known. The bundle of a period from the ledger's first entry shows it.
        This period begins at entry 8, and the periods before it were not given with --after. Credentials that were listed earlier are not known, except where an entry of this period names them. Roles may have been approved earlier than shown."#]].assert_eq(&[notices(&item), notices(&part)].concat().join("\n"));
    let all = rows(&table(&item, "access.csv"));
    assert!(all.iter().all(|row| row[10] != "in force"), "an item's bundle does not know that");
    let mut elsewhere = Ledger::default();
    let mut start = elsewhere.read(0);
    start.details.as_mut().unwrap()["credentials"] = serde_json::json!({"added": [], "removed": [], "count": 0});
    elsewhere.entries[0] = start.to_bytes().unwrap();
    let made = tables(&elsewhere.period_bundle(0, 1), &trust(), None).unwrap();
    expect!["At the start at entry 0 the service read no credentials from a file: people signed in with an identity provider or with certificates, whose credentials the ledger does not list."].assert_eq(&notices(&made).join("\n"));
}

#[test]
fn the_rows_of_credentials_in_force_are_those_the_verdict_relies_on() {
    let mut ledger = eventful();
    ledger.whole_operation("Again", "high");
    let made = tables(&ledger.period_bundle(0, ledger.size()), &trust(), None).unwrap();
    let all = rows(&table(&made, "access.csv"));
    for moved in rows(&table(&made, "moves.csv")) {
        assert!(all.iter().any(|row| covers(row, &moved)), "entry {} by {}", moved[0], moved[7]);
    }
    assert!(made.verdict.holds);
}

/// Whether a row says that its credential could be used at this entry.
fn covers(row: &[String], moved: &[String]) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let (entry, at) = (number(&moved[0]).unwrap(), &moved[1]);
    let is_theirs = row[0] == "credential" && row[1] == moved[7] && row[2] == moved[8];
    let is_listed = number(&row[7]).is_some_and(|from| from <= entry);
    let is_over = number(&row[9]).is_some_and(|until| until <= entry) || !row[8].is_empty() && row[8] <= *at;
    is_theirs && is_listed && !is_over
}

#[test]
fn no_row_says_that_someone_had_a_credential_where_the_verdict_says_that_they_had_none() {
    let first = u64::from(std::process::id()) << 16;
    println!("seeds {first} to {}", first + 149);
    let mut objections = 0;
    for seed in first..first + 150 {
        let mut dice = Dice::new(seed);
        let case = Case::make(&mut |end| dice.below(end));
        let Ok(made) = tables(&case.bundle, &trust(), None) else { continue };
        let all = rows(&table(&made, "access.csv"));
        for moved in rows(&table(&made, "moves.csv")) {
            let is_it = |fault: &&Fault| fault.rule == "credential" && fault.entry == moved[0].parse().ok();
            let objection = made.verdict.faults.iter().find(is_it);
            objections += usize::from(objection.is_some());
            let row = all.iter().find(|row| covers(row, &moved)).filter(|_| objection.is_some());
            assert_eq!(row, None, "seed {seed}, {}, entry {}", case.name, moved[0]);
        }
    }
    assert!(objections > 0, "the verdict never objected");
}
