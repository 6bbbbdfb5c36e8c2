//! Machines in the stories: what a machine does, the person who operates it does.

use crate::stage::Stage;
use expect_test::{Expect, expect};

fn check(script: &str, expected: &Expect) {
    expected.assert_eq(&Stage::play(script));
}

const MACHINE_PROPOSES: &str = "bot becomes initiator; bot is operated by ben; bot proposes; bot submits";

#[test]
fn the_operator_of_a_machine_cannot_approve_what_it_proposed() {
    check(
        &format!("{MACHINE_PROPOSES}; ben approves"),
        &expect![
            "refused separation_of_duties: ben took part in this item as initiator through bot, so ben cannot act on it as approver"
        ],
    );
    check(&format!("{MACHINE_PROPOSES}; ben may"), &expect!["nothing"]);
    check(&format!("{MACHINE_PROPOSES}; bea approves"), &expect!["submitted → approved"]);
}

#[test]
fn a_machine_cannot_carry_out_what_its_operator_approved() {
    check(
        "ana proposes; ana submits; ben approves; sam clears; bot becomes executor; bot is operated by ben; bot starts",
        &expect![
            "refused separation_of_duties: ben, who operates bot, took part in this item as approver, so bot cannot act on it as executor"
        ],
    );
}

#[test]
fn two_machines_of_one_person_are_one_person() {
    check(
        &format!(
            "{MACHINE_PROPOSES}; bea approves; sam clears; run becomes executor; run is operated by ben; run starts"
        ),
        &expect![
            "refused separation_of_duties: ben, who operates run, took part in this item as initiator through bot, so run cannot act on it as executor"
        ],
    );
}

#[test]
fn who_operated_a_machine_when_it_acted_counts_and_not_who_operates_it_now() {
    check(
        &format!("{MACHINE_PROPOSES}; bot is operated by bea; ben approves"),
        &expect![
            "refused separation_of_duties: ben took part in this item as initiator through bot, so ben cannot act on it as approver"
        ],
    );
    check(
        &format!("{MACHINE_PROPOSES}; bea approves; bot is operated by bea; bot withdraws"),
        &expect![
            "refused separation_of_duties: bea, who operates bot, took part in this item as approver, so bot cannot act on it as initiator"
        ],
    );
}

#[test]
fn a_machine_that_changes_its_role_keeps_the_first_one_on_an_item() {
    check(
        &format!("{MACHINE_PROPOSES}; bot becomes approver; bot is operated by bea; bot approves"),
        &expect![
            "refused separation_of_duties: bot took part in this item as initiator, so bot cannot act on it as approver"
        ],
    );
}

#[test]
fn a_person_and_their_machine_have_one_vote() {
    let high = "ana proposes high; ana submits; bot becomes approver; bot is operated by ben";
    check(
        &format!("{high}; bot approves; ben approves"),
        &expect!["refused already_decided: bot already decided: approve at 2026-11-15T09:00:00.000000Z"],
    );
    check(
        &format!("{high}; ben approves; bot approves"),
        &expect!["refused already_decided: ben already decided: approve at 2026-11-15T09:00:00.000000Z"],
    );
    check(
        &format!("{high}; bot approves; bea approves; the item"),
        &expect![
            "approved v4, approve 2/2 by [bot bea], window none, lease none, attempts 0, waits for [security_admin]"
        ],
    );
}

#[test]
fn a_machine_with_too_many_open_items_proposes_no_more() {
    check("bot becomes initiator; bot is operated by ben; bot has 4 of 5; bot proposes", &expect!["→ draft"]);
    check(
        "bot becomes initiator; bot is operated by ben; bot has 5 of 5; bot proposes",
        &expect![
            "refused too_many_open: bot is a machine and has 5 items that have not ended; one of them must end first"
        ],
    );
}

#[test]
fn the_operator_of_the_machine_that_executed_cannot_say_how_it_ended() {
    let lost = "ana proposes; ana submits; ben approves; sam clears; run becomes executor; run is operated by eve; \
                run starts; wait 15m; time acts; eve becomes approver";
    check(
        &format!("{lost}; eve reconciles with {{\"outcome\":\"succeeded\"}}"),
        &expect![
            "refused separation_of_duties: eve took part in this item as executor through run, so eve cannot act on it as approver"
        ],
    );
    check(&format!("{lost}; ben reconciles with {{\"outcome\":\"succeeded\"}}"), &expect!["indeterminate → succeeded"]);
}
