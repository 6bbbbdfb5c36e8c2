//! The rules as stories: what people do, and what comes of it.

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

// ------------------------------------------------------------------------------------------------ from end to end

#[test]
fn four_people_carry_an_operation_to_its_end() {
    executing(
        "eve succeeds; ben accepts; the item",
        expect![
            "closed v7, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for []"
        ],
    );
}

#[test]
fn a_failed_operation_is_rolled_back_and_accepted() {
    executing(
        "eve fails; eli rolls back; eli succeeds; bea accepts; the item",
        expect![
            "closed v9, approve 1/1 by [ben], window 2026-11-15T10:00:00.000000Z, lease none, attempts 1, waits for []"
        ],
    );
}

#[test]
fn a_roll_back_can_fail_and_be_tried_again() {
    executing(
        "eve succeeds; eve rolls back; eve fails; eve rolls back; eve succeeds",
        expect!["rolling_back → rolled_back"],
    );
}

// ----------------------------------------------------------------------------------------------------- separation

#[test]
fn initiator_cannot_approve_own_item_even_after_becoming_approver() {
    check(
        "ana proposes; ana submits; ana becomes approver; ana approves",
        expect![
            "refused separation_of_duties: ana took part in this item as initiator, so ana cannot act on it as approver"
        ],
    );
}

#[test]
fn approver_cannot_clear_after_becoming_security_admin() {
    check(
        "ana proposes; ana submits; ben approves; ben becomes security_admin; ben clears",
        expect![
            "refused separation_of_duties: ben took part in this item as approver, so ben cannot act on it as security_admin"
        ],
    );
}

#[test]
fn who_only_held_an_item_has_taken_part_too() {
    check(
        "ana proposes; ana submits; ben approves; bea holds; sam releases; bea becomes security_admin; bea clears",
        expect![
            "refused separation_of_duties: bea took part in this item as approver, so bea cannot act on it as security_admin"
        ],
    );
}

#[test]
fn executor_cannot_accept_what_they_executed_after_becoming_approver() {
    executing(
        "eve succeeds; eve becomes approver; eve accepts",
        expect![
            "refused separation_of_duties: eve took part in this item as executor, so eve cannot act on it as approver"
        ],
    );
}

#[test]
fn executor_cannot_reconcile_what_they_executed_after_becoming_approver() {
    executing(
        "wait 15m; time acts; eve becomes approver; eve reconciles with {\"outcome\":\"succeeded\"}",
        expect![
            "refused separation_of_duties: eve took part in this item as executor, so eve cannot act on it as approver"
        ],
    );
}

#[test]
fn separation_is_refused_before_anything_is_said_about_the_state() {
    cleared(
        "ben becomes security_admin; ben approves",
        expect!["refused role_forbidden: approve requires the role approver; ben acts as security_admin"],
    );
    cleared(
        "ben becomes executor; ben heartbeats",
        expect![
            "refused separation_of_duties: ben took part in this item as approver, so ben cannot act on it as executor"
        ],
    );
}

#[test]
fn a_role_change_and_back_again_changes_nothing() {
    check("ana proposes; ana becomes approver; ana becomes initiator; ana submits", expect!["draft → submitted"]);
}

#[test]
fn an_auditor_can_do_nothing() {
    check(
        "ana proposes; ana submits; uma approves",
        expect!["refused role_forbidden: approve requires the role approver; uma acts as auditor"],
    );
    cleared("uma may", expect!["nothing"]);
}

// ----------------------------------------------------------------------------------------------------------- votes

#[test]
fn high_risk_takes_two_different_approvers() {
    check(
        "ana proposes high; ana submits; ben approves; the item",
        expect!["submitted v3, approve 1/2 by [ben], window none, lease none, attempts 0, waits for [approver]"],
    );
    check(
        "ana proposes high; ana submits; ben approves; ben approves",
        expect!["refused already_decided: ben already decided: approve at 2026-11-15T09:00:00.000000Z"],
    );
    check("ana proposes high; ana submits; ben approves; bea approves", expect!["submitted → approved"]);
}

#[test]
fn a_second_vote_is_already_decided_also_where_the_votes_have_led_and_no_further() {
    check(
        "ana proposes; ana submits; ben approves; ben approves",
        expect!["refused already_decided: ben already decided: approve at 2026-11-15T09:00:00.000000Z"],
    );
    check(
        "ana proposes; ana submits; ben approves; bea approves",
        expect!["refused state_conflict: approve is possible only in submitted; this item is approved"],
    );
    check(
        "ana proposes; ana submits; ben approves; sam clears; ben approves",
        expect!["refused state_conflict: approve is possible only in submitted; this item is cleared"],
    );
}

#[test]
fn a_return_voids_every_vote_and_all_may_vote_again() {
    check(
        "ana proposes high; ana submits; ben approves; bea returns; the item",
        expect!["returned v4, no vote, window none, lease none, attempts 0, waits for [initiator]"],
    );
    check(
        "ana proposes high; ana submits; ben approves; bea returns; ana submits; bea approves",
        expect!["submitted → submitted"],
    );
    check(
        "ana proposes high; ana submits; ben approves; bea returns; ana submits; bea approves; ben approves",
        expect!["submitted → approved"],
    );
}

#[test]
fn an_approval_does_not_outlive_the_content_it_was_given_for() {
    let edited = "ana proposes; ana submits; ben returns; ana edits purpose=q; ana submits";
    check(
        &format!("{edited}; ben approves with old digest"),
        expect![
            "refused content_changed: the request was made for different content; the item's content is now sha256:ab172d51e79fc8a2af34b2f537fe0989ea469bf5d8a76749d35c20fd5744469a"
        ],
    );
    check(&format!("{edited}; ben approves"), expect!["submitted → approved"]);
    check(
        &format!("{edited}; ben approves; sam clears with old digest"),
        expect![
            "refused content_changed: the request was made for different content; the item's content is now sha256:ab172d51e79fc8a2af34b2f537fe0989ea469bf5d8a76749d35c20fd5744469a"
        ],
    );
}

#[test]
fn who_revokes_their_approval_takes_back_only_their_own_and_may_vote_again() {
    let approved = "ana proposes high; ana submits; ben approves; bea approves";
    check(
        &format!("{approved}; ben revokes approval; the item"),
        expect!["submitted v5, approve 1/2 by [bea], window none, lease none, attempts 0, waits for [approver]"],
    );
    check(
        &format!("{approved}; ben revokes approval; bea approves"),
        expect!["refused already_decided: bea already decided: approve at 2026-11-15T09:00:00.000000Z"],
    );
    check(&format!("{approved}; ben revokes approval; ben approves"), expect!["submitted → approved"]);
    check(
        &format!("{approved}; ben revokes approval; bob approves; the item"),
        expect![
            "approved v6, approve 2/2 by [bea bob], window none, lease none, attempts 0, waits for [security_admin]"
        ],
    );
    check(
        &format!("{approved}; bob revokes approval"),
        expect!["refused not_owner: only an actor whose vote stands may use revoke_approval; bob may not"],
    );
}

#[test]
fn revoking_an_approval_takes_the_clearance_along() {
    cleared(
        "ben revokes approval; the item",
        expect!["submitted v5, approve 0/1 by [], window none, lease none, attempts 0, waits for [approver]"],
    );
    cleared(
        "ben revokes approval; bea approves; eve starts",
        expect!["refused state_conflict: start is possible only in cleared; this item is approved"],
    );
}

#[test]
fn nobody_can_revoke_an_approval_that_was_not_given() {
    check(
        "ana proposes; ana submits; ben revokes approval",
        expect![
            "refused state_conflict: revoke_approval is possible only in approved and cleared; this item is submitted"
        ],
    );
}

#[test]
fn reject_after_ones_own_approve_is_allowed() {
    check("ana proposes high; ana submits; ben approves; ben rejects", expect!["submitted → rejected"]);
    check(
        "ana proposes high; ana submits; ben approves; ben rejects; ben approves",
        expect!["refused state_conflict: approve is possible only in submitted; this item is rejected"],
    );
}

// ------------------------------------------------------------------------------------------------------- ownership

#[test]
fn only_the_creator_edits_submits_and_withdraws() {
    check(
        "ana proposes; ada edits purpose=q",
        expect!["refused not_owner: only the creator of the item may use edit; ada may not"],
    );
    check(
        "ana proposes; ada submits",
        expect!["refused not_owner: only the creator of the item may use submit; ada may not"],
    );
    check(
        "ana proposes; ada withdraws",
        expect!["refused not_owner: only the creator of the item may use withdraw; ada may not"],
    );
    check(
        "ana proposes; ben edits purpose=q",
        expect!["refused role_forbidden: edit requires the role initiator; ben acts as approver"],
    );
}

#[test]
fn only_the_lease_holder_reports_the_outcome() {
    executing("eli succeeds", expect!["refused not_owner: only the holder of the lease may use succeed; eli may not"]);
    executing(
        "eli heartbeats",
        expect!["refused not_owner: only the holder of the lease may use heartbeat; eli may not"],
    );
    cleared(
        "eli succeeds",
        expect!["refused state_conflict: succeed is possible only in executing and rolling_back; this item is cleared"],
    );
}

// ----------------------------------------------------------------------------------------------------------- needs

#[test]
fn what_an_action_needs_is_said_with_its_place_and_before_the_state() {
    check(
        "ana proposes; ana submits; ben rejects without comment",
        expect!["refused invalid_request: the request is not valid: /comment: is required: say why (reject)"],
    );
    check(
        "ana proposes; ben rejects without comment",
        expect!["refused invalid_request: the request is not valid: /comment: is required: say why (reject)"],
    );
    check(
        "ana proposes; ana submits; ben approves without digest",
        expect![
            "refused invalid_request: the request is not valid: /content_digest: is required: the digest of the content decided on"
        ],
    );
    check(
        "ana proposes; ana submits; ben approves with digest sha256:0",
        expect![
            "refused invalid_request: the request is not valid: /content_digest: must be sha256: followed by 64 lowercase hexadecimal characters"
        ],
    );
    check(
        "ana proposes; ana submits; ben approves; sam clears without inputs",
        expect![
            "refused invalid_request: the request is not valid: /inputs/not_after: is required: until when the item may be executed"
        ],
    );
    check(
        "ana proposes; ana submits; ben approves with {\"actor\":\"bea\"}",
        expect!["refused invalid_request: the request is not valid: /inputs/actor: is not an input of approve"],
    );
    executing(
        "eve succeeds with {\"result\":7,\"artifacts\":[{\"name\":\"log\",\"sha256\":\"AB\",\"bytes\":-1}]}",
        expect![
            "refused invalid_request: the request is not valid: /inputs/artifacts/0/sha256: must be 64 lowercase hexadecimal characters; /inputs/artifacts/0/bytes: must be a number of bytes; /inputs/artifacts/0/uri: must be a string of 1 to 1,000 characters; /inputs/result: must be a string of at most 4000 characters"
        ],
    );
    executing(
        "wait 15m; time acts; ben reconciles with {\"outcome\":\"fine\"}",
        expect!["refused invalid_request: the request is not valid: /inputs/outcome: must be succeeded or failed"],
    );
    executing(
        "wait 15m; time acts; ben reconciles",
        expect!["refused invalid_request: the request is not valid: /inputs/outcome: must be succeeded or failed"],
    );
}

#[test]
fn an_outcome_carries_a_result_and_artifacts() {
    let digest = "0".repeat(64);
    let inputs =
        format!(r#"{{"result":"done","artifacts":[{{"name":"log","sha256":"{digest}","bytes":3,"uri":"s3://x"}}]}}"#);
    executing(&format!("eve succeeds with {inputs}"), expect!["executing → succeeded"]);
}

#[test]
fn types_are_checked_in_a_draft_and_the_whole_at_submit() {
    check("ana proposes unfinished", expect!["→ draft"]);
    check(
        "ana proposes malformed",
        expect![[
            r#"refused invalid_request: the request is not valid: /payload/links: this is not of type "array"; /payload/purpose: this is not of type "string""#
        ]],
    );
    check(
        "ana proposes unfinished; ana submits",
        expect![
            "refused invalid_request: the request is not valid: /payload/operation: is required; /payload/risk: is required; /payload/rollback_plan: is required"
        ],
    );
    check("ana proposes unfinished; ana may", expect!["edit, withdraw"]);
    check("ana proposes unfinished; ana withdraws", expect!["draft → withdrawn"]);
    check(
        "ana proposes; ana edits risk=7",
        expect![[r#"refused invalid_request: the request is not valid: /payload/risk: this is not of type "string""#]],
    );
    check("ana proposes; ana edits risk=extreme", expect!["draft → draft"]);
    check(
        "ana proposes; ana edits risk=extreme; ana submits",
        expect![[
            r#"refused invalid_request: the request is not valid: /payload/risk: this is not one of "low", "medium" or "high""#
        ]],
    );
    check(
        "ana proposes; ana edits links=[\"no-uri\"]; ana submits",
        expect![[r#"refused invalid_request: the request is not valid: /payload/links/0: this is not a "uri""#]],
    );
    check(
        "ana proposes; ana edits title=\"\"",
        expect!["refused invalid_request: the request is not valid: /title: must have 1 to 200 characters"],
    );
}

// ---------------------------------------------------------------------------------------------------------- states

#[test]
fn content_is_frozen_once_submitted() {
    check(
        "ana proposes; ana submits; ana edits purpose=q",
        expect!["refused state_conflict: the item can be edited only in draft and returned; it is submitted"],
    );
    check("ana proposes; ana submits; ben returns; ana edits purpose=q", expect!["returned → returned"]);
}

#[test]
fn an_item_that_ended_stays_ended() {
    check(
        "ana proposes; ana submits; ben rejects; ana submits",
        expect!["refused state_conflict: submit is possible only in draft and returned; this item is rejected"],
    );
    check(
        "ana proposes; ana withdraws; sam holds",
        expect![
            "refused state_conflict: hold is possible only in draft, submitted, returned, approved, cleared, executing, succeeded, failed, rolling_back, rolled_back and indeterminate; this item is withdrawn"
        ],
    );
    check(
        "ana proposes; ana withdraws; ana edits purpose=q",
        expect!["refused state_conflict: the item can be edited only in draft and returned; it is withdrawn"],
    );
}

#[test]
fn an_unknown_action_is_not_repeated() {
    check(
        "ana proposes; ana launches",
        expect![
            "refused unknown_action: this workflow has no such action; its actions are submit, approve, reject, return, withdraw, revoke_approval, clear, refuse, revoke, start, heartbeat, succeed, fail, retry, roll_back, unknown, reconcile, accept, dispute, hold, release"
        ],
    );
}

#[test]
fn a_request_for_an_older_version_is_refused() {
    check("ana proposes; ana submits at version 1", expect!["draft → submitted"]);
    check(
        "ana proposes; ana edits purpose=q; ana submits at version 1",
        expect![
            "refused version_mismatch: the item is at version 2, which is not the version the request was made for"
        ],
    );
    check(
        "ana proposes; ana edits purpose=q at version 2",
        expect![
            "refused version_mismatch: the item is at version 1, which is not the version the request was made for"
        ],
    );
}

// ---------------------------------------------------------------------------------------------------- what one may

#[test]
fn what_one_may_do_follows_the_item() {
    check("ana proposes; ana may", expect!["edit, submit, withdraw"]);
    check("ana proposes; ben may", expect!["hold"]);
    check("ana proposes; ana submits; ben may", expect!["approve, reject, return, hold"]);
    check("ana proposes; ana submits; sam may", expect!["return, hold"]);
    check("ana proposes; ana submits; ben approves; ben may", expect!["return, revoke_approval, hold"]);
    cleared("eve may", expect!["start"]);
    executing("eve may", expect!["heartbeat, succeed, fail, unknown"]);
    executing("eli may", expect!["nothing"]);
    executing("eve fails; eve may", expect!["retry, roll_back"]);
    executing("wait 15m; time acts; sam may", expect!["reconcile, hold"]);
}
