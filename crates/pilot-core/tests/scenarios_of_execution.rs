//! The rules as stories: what happens once an item is cleared, and what time does to it.

use crate::stage::Stage;
use expect_test::{Expect, expect};

#[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
fn check(script: &str, expected: Expect) {
    expected.assert_eq(&Stage::play(script));
}

const CLEARED: &str = "ana proposes; ana submits; ben approves; sam clears";

fn cleared(then: &str, expected: Expect) {
    check(&format!("{CLEARED}; {then}"), expected);
}

fn executing(then: &str, expected: Expect) {
    check(&format!("{CLEARED}; eve starts; {then}"), expected);
}

const RAN: &str = "ana proposes emergency; ana submits; sam clears; eve starts; eve succeeds";

fn ran(then: &str, expected: Expect) {
    check(&format!("{RAN}; {then}"), expected);
}

// ---------------------------------------------------------------------------------------------------------- window

#[test]
fn a_window_lies_ahead_and_within_thirty_days() {
    let approved = "ana proposes; ana submits; ben approves";
    check(
        &format!("{approved}; sam clears for 0s"),
        expect!["refused invalid_request: the request is not valid: /inputs/not_after: must be in the future"],
    );
    check(&format!("{approved}; sam clears for 30d"), expect!["approved → cleared"]);
    check(
        &format!("{approved}; sam clears for 31d"),
        expect!["refused invalid_request: the request is not valid: /inputs/not_after: must be within 30d from now"],
    );
    check(
        &format!("{approved}; sam clears from 2h to 1h"),
        expect!["refused invalid_request: the request is not valid: /inputs/not_before: must be before not_after"],
    );
    check(
        &format!("{approved}; sam clears with {{\"not_after\":\"tomorrow\"}}"),
        expect![
            "refused invalid_request: the request is not valid: /inputs/not_after: must be a time such as 2026-11-15T09:30:00Z"
        ],
    );
}

#[test]
fn execution_starts_only_inside_the_window() {
    let approved = "ana proposes; ana submits; ben approves; sam clears from 1h to 2h";
    check(
        &format!("{approved}; eve starts"),
        expect![
            "refused outside_window: start is possible only inside the window from 2026-11-15T10:00:00.000000Z to 2026-11-15T11:00:00.000000Z"
        ],
    );
    check(&format!("{approved}; eve may"), expect!["nothing"]);
    check(&format!("{approved}; wait 1h; eve starts"), expect!["cleared → executing"]);
    check(
        &format!("{approved}; wait 2h; eve starts"),
        expect!["refused state_conflict: the deadline of cleared passed at 2026-11-15T11:00:00.000000Z"],
    );
    check(&format!("{approved}; wait 2h; time acts"), expect!["cleared → expired"]);
}

#[test]
fn a_retry_after_the_window_is_refused_and_a_roll_back_is_not() {
    executing(
        "eve fails; wait 1h; eve retries",
        expect![
            "refused outside_window: retry is possible only inside the window from 2026-11-15T09:00:00.000000Z to 2026-11-15T10:00:00.000000Z"
        ],
    );
    executing("eve fails; wait 1h; eve rolls back", expect!["failed → rolling_back"]);
}

// -------------------------------------------------------------------------------------------------- lease, attempts

#[test]
fn a_lost_lease_leaves_the_outcome_open() {
    executing("wait 14m; eve heartbeats; wait 14m; eve succeeds", expect!["executing → succeeded"]);
    executing(
        "wait 15m; eve heartbeats",
        expect!["refused state_conflict: the deadline of executing passed at 2026-11-15T09:15:00.000000Z"],
    );
    executing("wait 15m; time acts", expect!["executing → indeterminate"]);
    executing(
        "wait 15m; time acts; the item",
        expect![
            "indeterminate v6, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for [approver security_admin]"
        ],
    );
    executing("eve fails; eli rolls back; wait 15m; time acts", expect!["rolling_back → indeterminate"]);
}

#[test]
fn reconciling_says_how_it_ended() {
    executing(
        "wait 15m; time acts; ben reconciles with {\"outcome\":\"succeeded\"}",
        expect!["indeterminate → succeeded"],
    );
    executing("wait 15m; time acts; sam reconciles with {\"outcome\":\"failed\"}", expect!["indeterminate → failed"]);
}

#[test]
fn there_are_three_attempts_and_roll_backs_do_not_count() {
    executing(
        "eve fails; eli rolls back; eli fails; eve retries; eve fails; eve retries; the item",
        expect![
            "executing v11, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease eve, attempts 3, waits for [executor]"
        ],
    );
    executing(
        "eve fails; eve retries; eve fails; eve retries; eve fails; eve retries",
        expect!["refused state_conflict: all 3 attempts have been used"],
    );
    executing("eve fails; eve retries; eve fails; eve retries; eve fails; eve may", expect!["roll_back"]);
}

// ------------------------------------------------------------------------------------------------------------ hold

#[test]
fn a_hold_blocks_what_brings_the_item_nearer_and_nothing_else() {
    check(
        "ana proposes; sam holds; ana edits purpose=q",
        expect!["refused item_held: the item is held, and a hold blocks edit"],
    );
    check(
        "ana proposes; ana submits; ben holds; bea approves",
        expect!["refused item_held: the item is held, and a hold blocks approve"],
    );
    check("ana proposes; ana submits; ben holds; bea rejects", expect!["submitted → rejected"]);
    check(
        "ana proposes; ana submits; ben holds; the item",
        expect![
            "submitted v3 held, approve 0/1 by [], window none, lease none, attempts 0, waits for [security_admin]"
        ],
    );
    cleared("ben holds; eve starts", expect!["refused item_held: the item is held, and a hold blocks start"]);
    cleared("ben holds; ana may", expect!["withdraw"]);
    executing(
        "sam holds; eve succeeds; ben accepts",
        expect!["refused item_held: the item is held, and a hold blocks accept"],
    );
    executing("sam holds; eve succeeds; sue releases; ben accepts", expect!["succeeded → closed"]);
}

#[test]
fn only_security_releases_and_only_what_is_held() {
    cleared(
        "ben holds; ben releases",
        expect!["refused role_forbidden: release requires the role security_admin; ben acts as approver"],
    );
    cleared("sam releases", expect!["refused state_conflict: the item is not held"]);
    cleared("ben holds; sam holds", expect!["refused state_conflict: the item is already held"]);
    cleared(
        "ben holds without comment",
        expect!["refused invalid_request: the request is not valid: /comment: is required: say why (hold)"],
    );
}

#[test]
fn a_timer_runs_on_while_the_item_is_held() {
    cleared("sam holds; wait 1h; time acts", expect!["cleared → expired"]);
}

#[test]
fn who_holds_an_item_while_it_runs_has_not_executed_it() {
    executing(
        "sam holds; wait 15m; time acts; sam reconciles with {\"outcome\":\"failed\"}",
        expect!["indeterminate → failed"],
    );
    executing(
        "sam holds; eve heartbeats; the item",
        expect![
            "executing v7 held, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease eve, attempts 1, waits for [security_admin]"
        ],
    );
}

// ---------------------------------------------------------------------------------------------------------- timers

#[test]
fn every_deadline_is_as_the_contract_says() {
    check("ana proposes; the deadline", expect!["2026-12-15T09:00:00.000000Z → expired"]);
    check("ana proposes; ana submits; the deadline", expect!["2026-11-18T09:00:00.000000Z → expired"]);
    check("ana proposes; ana submits; ben returns; the deadline", expect!["2026-11-22T09:00:00.000000Z → expired"]);
    check("ana proposes; ana submits; ben approves; the deadline", expect!["2026-11-16T09:00:00.000000Z → expired"]);
    cleared("the deadline", expect!["2026-11-15T10:00:00.000000Z → expired"]);
    executing("the deadline", expect!["2026-11-15T09:15:00.000000Z → indeterminate"]);
    executing("eve succeeds; the deadline", expect!["no deadline"]);
}

#[test]
fn a_due_timer_beats_a_person() {
    check(
        "ana proposes; ana submits; wait 72h; ben approves",
        expect!["refused state_conflict: the deadline of submitted passed at 2026-11-18T09:00:00.000000Z"],
    );
    check("ana proposes; ana submits; wait 72h; ben may", expect!["nothing"]);
    check("ana proposes; ana submits; wait 71h; ben approves", expect!["submitted → approved"]);
}

#[test]
fn time_does_nothing_before_it_is_due() {
    check("ana proposes; ana submits; wait 71h; time acts", expect!["refused state_conflict: no deadline has passed"]);
}

#[test]
fn a_vote_or_an_edit_does_not_prolong_a_deadline() {
    check(
        "ana proposes high; ana submits; wait 71h; ben approves; wait 1h; bea approves",
        expect!["refused state_conflict: the deadline of submitted passed at 2026-11-18T09:00:00.000000Z"],
    );
    check(
        "ana proposes; wait 29d; ana edits purpose=q; wait 1d; ana submits",
        expect!["refused state_conflict: the deadline of draft passed at 2026-12-15T09:00:00.000000Z"],
    );
}

#[test]
fn a_clock_set_back_does_not_make_time_run_backwards() {
    executing(
        "the clock goes back 24h; eve heartbeats; the item",
        expect![
            "executing v6, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease eve, attempts 1, waits for [executor]"
        ],
    );
    executing("the clock goes back 24h; time acts", expect!["refused state_conflict: no deadline has passed"]);
}

// ------------------------------------------------------------------------------------------------------- emergency

#[test]
fn an_emergency_takes_three_people_before_and_two_after() {
    ran(
        "ben ratifies; the item",
        expect![
            "succeeded v6, ratify 1/2 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for [approver]"
        ],
    );
    ran("ben ratifies; bea ratifies", expect!["succeeded → ratified"]);
    ran("ben condemns; bea condemns", expect!["succeeded → condemned"]);
    ran(
        "ben condemns without comment",
        expect!["refused invalid_request: the request is not valid: /comment: is required: say why (condemn)"],
    );
}

#[test]
fn who_ratified_may_still_condemn_but_not_the_other_way_round() {
    ran(
        "ben ratifies; ben condemns; the item",
        expect![
            "succeeded v7, condemn 1/2 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for [approver]"
        ],
    );
    ran("ben ratifies; ben condemns; bea condemns", expect!["succeeded → condemned"]);
    ran(
        "ben condemns; ben ratifies",
        expect!["refused already_decided: ben already decided: condemn at 2026-11-15T09:00:00.000000Z"],
    );
    ran(
        "ben ratifies; ben ratifies",
        expect!["refused already_decided: ben already decided: ratify at 2026-11-15T09:00:00.000000Z"],
    );
    ran(
        "ben ratifies; bea condemns; the item",
        expect![
            "succeeded v7, ratify 1/2 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for [approver]"
        ],
    );
}

#[test]
fn a_new_run_voids_the_judgement_of_the_old_one() {
    ran(
        "ben ratifies; eve rolls back; eve succeeds; bea ratifies; the item",
        expect![
            "rolled_back v9, ratify 1/2 by [bea], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for [approver]"
        ],
    );
}

#[test]
fn an_emergency_window_is_four_hours_at_most() {
    check("ana proposes emergency; ana submits; sam clears for 4h", expect!["submitted → cleared"]);
    check(
        "ana proposes emergency; ana submits; sam clears for 5h",
        expect!["refused invalid_request: the request is not valid: /inputs/not_after: must be within 4h from now"],
    );
}

#[test]
fn an_emergency_names_its_incident() {
    check(
        "ana proposes emergency; ana edits incident=null; ana submits",
        expect!["refused invalid_request: the request is not valid: /payload/incident: is required"],
    );
}

#[test]
fn nobody_opens_a_second_emergency_while_the_first_is_unratified() {
    check(
        "ana proposes emergency; ana proposes emergency again",
        expect!["refused state_conflict: ana has another emergency-operation that is still open; it must end first"],
    );
    ran(
        "ben ratifies; ana proposes emergency again",
        expect!["refused state_conflict: ana has another emergency-operation that is still open; it must end first"],
    );
    ran("ben ratifies; bea ratifies; ana proposes emergency again", expect!["→ draft"]);
}

#[test]
fn after_running_an_emergency_ends_only_by_two_approvers() {
    ran("ana may", expect!["nothing"]);
    ran("ben may", expect!["ratify, condemn, dispute, hold"]);
    ran("sam may", expect!["hold"]);
    ran("eve may", expect!["roll_back"]);
    ran(
        "ana withdraws",
        expect![
            "refused state_conflict: withdraw is possible only in draft, returned, submitted and cleared; this item is succeeded"
        ],
    );
}
