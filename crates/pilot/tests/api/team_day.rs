//! A team's days: every action of the built-in workflows, by those who may and those who may not.

use expect_test::expect;

use crate::api::story::check;

#[test]
fn a_risky_operation_takes_two_approvers_security_and_an_executor_and_is_closed_by_a_reviewer() {
    check(
        "
        ana create controlled-operation high
        ana submit
        ana approve
        ben approve
        ben approve
        sol clear not_after=in_an_hour
        bob approve
        bea approve
        eli start
        sol clear not_after=in_31_days
        sol clear not_after=in_an_hour
        ana start
        eli start
        eva succeed
        eva start
        eli heartbeat
        eli succeed result=done
        eli accept
        bea accept
        ben dispute: too late
        ",
        &expect![[r#"
            ana create controlled-operation high
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 2 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ana approve
              403 role_forbidden
            ben approve
              201
              submitted v3, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              409 already_decided
            sol clear not_after=in_an_hour
              409 state_conflict
            bob approve
              201
              approved v4, 2 of 2 to approve [ben bob], waits for [security_admin]
                ana: withdraw
                ben bob: return revoke_approval hold
                bea: return hold
                sol sia: return clear refuse hold
            bea approve
              409 state_conflict
            eli start
              409 state_conflict
            sol clear not_after=in_31_days
              422 invalid_request
            sol clear not_after=in_an_hour
              201
              cleared v5, 2 of 2 to approve [ben bob], window, waits for [executor]
                ana: withdraw
                ben bob: revoke_approval hold
                bea: hold
                sol sia: revoke hold
                eli eva: start
            ana start
              403 role_forbidden
            eli start
              201
              executing v6, 2 of 2 to approve [ben bob], window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eva succeed
              403 not_owner
            eva start
              409 state_conflict
            eli heartbeat
              201
              executing v7, 2 of 2 to approve [ben bob], window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed result=done
              201
              succeeded v8, 2 of 2 to approve [ben bob], window, attempt 1, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
                eli eva: roll_back
            eli accept
              403 role_forbidden
            bea accept
              201
              closed v9, 2 of 2 to approve [ben bob], window, attempt 1, waits for []
            ben dispute: too late
              409 state_conflict
        "#]],
    );
}

#[test]
fn a_returned_item_is_edited_and_submitted_again_and_every_vote_is_void() {
    check(
        "
        ana create controlled-operation high
        ana submit
        ben approve
        ana edit purpose=other
        sol return
        sol return: say more
        ben approve
        amy edit purpose=hers
        ana edit purpose=more
        ana submit
        ben approve
        bob approve
        ben return: on second thoughts
        amy withdraw
        ana withdraw
        ana submit
        ",
        &expect![[r#"
            ana create controlled-operation high
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 2 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              submitted v3, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            ana edit purpose=other
              409 state_conflict
            sol return
              422 invalid_request
            sol return: say more
              201
              returned v4, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ben approve
              409 state_conflict
            amy edit purpose=hers
              403 not_owner
            ana edit purpose=more
              200
              returned v5, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v6, 0 of 2 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              submitted v7, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            bob approve
              201
              approved v8, 2 of 2 to approve [ben bob], waits for [security_admin]
                ana: withdraw
                ben bob: return revoke_approval hold
                bea: return hold
                sol sia: return clear refuse hold
            ben return: on second thoughts
              201
              returned v9, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            amy withdraw
              403 not_owner
            ana withdraw
              201
              withdrawn v10, waits for []
            ana submit
              409 state_conflict
        "#]],
    );
}

#[test]
fn an_unfinished_draft_cannot_be_submitted() {
    check(
        "
        ana create controlled-operation
        ana submit
        ana edit risk=low
        ana edit risk=extreme
        ana edit purpose=because
        ana edit operation=rotate
        ana edit rollback_plan=back
        ana submit
        ",
        &expect![[r#"
            ana create controlled-operation
              201
              draft v1, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana submit
              422 invalid_request
            ana edit risk=low
              200
              draft v2, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana edit risk=extreme
              200
              draft v3, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana edit purpose=because
              200
              draft v4, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana edit operation=rotate
              200
              draft v5, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana edit rollback_plan=back
              200
              draft v6, waits for [initiator]
                ana: edit withdraw
                ben bob bea sol sia: hold
            ana submit
              422 invalid_request
        "#]],
    );
}

#[test]
fn one_veto_ends_it_also_after_ones_own_approval() {
    check(
        "
        ana create controlled-operation high
        ana submit
        ben approve
        sol reject: not mine to say
        ben reject
        ben reject: I was wrong
        bob approve
        ",
        &expect![[r#"
            ana create controlled-operation high
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 2 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              submitted v3, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            sol reject: not mine to say
              403 role_forbidden
            ben reject
              422 invalid_request
            ben reject: I was wrong
              201
              rejected v4, 1 of 2 to approve [ben], waits for []
            bob approve
              409 state_conflict
        "#]],
    );
}

#[test]
fn an_approver_takes_back_the_own_vote_alone_and_the_window_goes_with_it() {
    check(
        "
        ana create controlled-operation high
        ana submit
        ben approve
        bob approve
        bea revoke_approval: not mine
        ben revoke_approval
        ben revoke_approval: wait
        ben approve
        sol clear not_after=in_an_hour
        bob revoke_approval: the plan is stale
        bea approve
        sol refuse
        sol refuse: not this week
        ",
        &expect![[r#"
            ana create controlled-operation high
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 2 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              submitted v3, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            bob approve
              201
              approved v4, 2 of 2 to approve [ben bob], waits for [security_admin]
                ana: withdraw
                ben bob: return revoke_approval hold
                bea: return hold
                sol sia: return clear refuse hold
            bea revoke_approval: not mine
              403 not_owner
            ben revoke_approval
              422 invalid_request
            ben revoke_approval: wait
              201
              submitted v5, 1 of 2 to approve [bob], waits for [approver]
                ana: withdraw
                ben bea: approve reject return hold
                bob: reject return hold
                sol sia: return hold
            ben approve
              201
              approved v6, 2 of 2 to approve [bob ben], waits for [security_admin]
                ana: withdraw
                ben bob: return revoke_approval hold
                bea: return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_an_hour
              201
              cleared v7, 2 of 2 to approve [bob ben], window, waits for [executor]
                ana: withdraw
                ben bob: revoke_approval hold
                bea: hold
                sol sia: revoke hold
                eli eva: start
            bob revoke_approval: the plan is stale
              201
              submitted v8, 1 of 2 to approve [ben], waits for [approver]
                ana: withdraw
                ben: reject return hold
                bob bea: approve reject return hold
                sol sia: return hold
            bea approve
              201
              approved v9, 2 of 2 to approve [ben bea], waits for [security_admin]
                ana: withdraw
                ben bea: return revoke_approval hold
                bob: return hold
                sol sia: return clear refuse hold
            sol refuse
              422 invalid_request
            sol refuse: not this week
              201
              rejected v10, 2 of 2 to approve [ben bea], waits for []
        "#]],
    );
}

#[test]
fn a_hold_blocks_what_leads_on_and_nothing_else() {
    check(
        "
        ana create controlled-operation low
        ana hold: not mine
        ben hold
        ben hold: stop
        sol hold: stop too
        ana submit
        ana edit purpose=x
        ben release: never mind
        sol release: go on
        sol release: again
        ana submit
        sol hold: wait
        ben approve
        ben return: meanwhile
        sol release: go on
        ana submit
        ben approve
        ben hold: wait
        sol clear not_after=in_an_hour
        sol release: go on
        sol clear not_after=in_an_hour
        sol hold: wait
        eli start
        sol release: go on
        eli start
        ben hold: wait
        eli heartbeat
        eli fail
        eli retry
        eli roll_back
        sol release: go on
        eli retry
        eli succeed
        ben hold: wait
        bob accept
        bob dispute: in spite of the hold
        bob reconcile outcome=succeeded: seen
        ",
        &expect![[r#"
            ana create controlled-operation low
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana hold: not mine
              403 role_forbidden
            ben hold
              422 invalid_request
            ben hold: stop
              201
              draft v2, held, waits for [security_admin]
                ana: withdraw
                sol sia: release
            sol hold: stop too
              409 state_conflict
            ana submit
              409 item_held
            ana edit purpose=x
              409 item_held
            ben release: never mind
              403 role_forbidden
            sol release: go on
              201
              draft v3, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            sol release: again
              409 state_conflict
            ana submit
              201
              submitted v4, 0 of 1 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            sol hold: wait
              201
              submitted v5, held, 0 of 1 to approve [], waits for [security_admin]
                ana: withdraw
                ben bob bea: reject return
                sol sia: return release
            ben approve
              409 item_held
            ben return: meanwhile
              201
              returned v6, held, waits for [security_admin]
                ana: withdraw
                sol sia: release
            sol release: go on
              201
              returned v7, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v8, 0 of 1 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              approved v9, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval hold
                bob bea: return hold
                sol sia: return clear refuse hold
            ben hold: wait
              201
              approved v10, held, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval
                bob bea: return
                sol sia: return refuse release
            sol clear not_after=in_an_hour
              409 item_held
            sol release: go on
              201
              approved v11, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval hold
                bob bea: return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_an_hour
              201
              cleared v12, 1 of 1 to approve [ben], window, waits for [executor]
                ana: withdraw
                ben: revoke_approval hold
                bob bea: hold
                sol sia: revoke hold
                eli eva: start
            sol hold: wait
              201
              cleared v13, held, 1 of 1 to approve [ben], window, waits for [security_admin]
                ana: withdraw
                ben: revoke_approval
                sol sia: revoke release
            eli start
              409 item_held
            sol release: go on
              201
              cleared v14, 1 of 1 to approve [ben], window, waits for [executor]
                ana: withdraw
                ben: revoke_approval hold
                bob bea: hold
                sol sia: revoke hold
                eli eva: start
            eli start
              201
              executing v15, 1 of 1 to approve [ben], window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            ben hold: wait
              201
              executing v16, held, 1 of 1 to approve [ben], window, lease of eli, attempt 1, waits for [security_admin]
                sol sia: release
                eli: heartbeat succeed fail unknown
            eli heartbeat
              201
              executing v17, held, 1 of 1 to approve [ben], window, lease of eli, attempt 1, waits for [security_admin]
                sol sia: release
                eli: heartbeat succeed fail unknown
            eli fail
              201
              failed v18, held, 1 of 1 to approve [ben], window, attempt 1, waits for [security_admin]
                sol sia: release
            eli retry
              409 item_held
            eli roll_back
              409 item_held
            sol release: go on
              201
              failed v19, 1 of 1 to approve [ben], window, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: retry roll_back
            eli retry
              201
              executing v20, 1 of 1 to approve [ben], window, lease of eli, attempt 2, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed
              201
              succeeded v21, 1 of 1 to approve [ben], window, attempt 2, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
                eli eva: roll_back
            ben hold: wait
              201
              succeeded v22, held, 1 of 1 to approve [ben], window, attempt 2, waits for [security_admin]
                ben bob bea: dispute
                sol sia: release
            bob accept
              409 item_held
            bob dispute: in spite of the hold
              201
              indeterminate v23, held, 1 of 1 to approve [ben], window, attempt 2, waits for [security_admin]
                ben bob bea: reconcile
                sol sia: reconcile release
            bob reconcile outcome=succeeded: seen
              201
              succeeded v24, held, 1 of 1 to approve [ben], window, attempt 2, waits for [security_admin]
                ben bob bea: dispute
                sol sia: release
        "#]],
    );
}

#[test]
fn there_are_three_attempts_and_roll_backs_do_not_count() {
    check(
        "
        ana create controlled-operation low
        ana submit
        ben approve
        sol clear not_after=in_an_hour
        eli start
        eli fail result=once
        eva retry
        eva fail
        eva roll_back
        eli succeed
        eva fail
        eli retry
        eli fail
        eli retry
        eli roll_back
        eli succeed
        eli roll_back
        bea accept
        ",
        &expect![[r#"
            ana create controlled-operation low
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 1 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              approved v3, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval hold
                bob bea: return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_an_hour
              201
              cleared v4, 1 of 1 to approve [ben], window, waits for [executor]
                ana: withdraw
                ben: revoke_approval hold
                bob bea: hold
                sol sia: revoke hold
                eli eva: start
            eli start
              201
              executing v5, 1 of 1 to approve [ben], window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli fail result=once
              201
              failed v6, 1 of 1 to approve [ben], window, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: retry roll_back
            eva retry
              201
              executing v7, 1 of 1 to approve [ben], window, lease of eva, attempt 2, waits for [executor]
                ben bob bea sol sia: hold
                eva: heartbeat succeed fail unknown
            eva fail
              201
              failed v8, 1 of 1 to approve [ben], window, attempt 2, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: retry roll_back
            eva roll_back
              201
              rolling_back v9, 1 of 1 to approve [ben], window, lease of eva, attempt 2, waits for [executor]
                ben bob bea sol sia: hold
                eva: heartbeat succeed fail unknown
            eli succeed
              403 not_owner
            eva fail
              201
              failed v10, 1 of 1 to approve [ben], window, attempt 2, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: retry roll_back
            eli retry
              201
              executing v11, 1 of 1 to approve [ben], window, lease of eli, attempt 3, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli fail
              201
              failed v12, 1 of 1 to approve [ben], window, attempt 3, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: roll_back
            eli retry
              409 state_conflict
            eli roll_back
              201
              rolling_back v13, 1 of 1 to approve [ben], window, lease of eli, attempt 3, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed
              201
              rolled_back v14, 1 of 1 to approve [ben], window, attempt 3, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
            eli roll_back
              409 state_conflict
            bea accept
              201
              closed v15, 1 of 1 to approve [ben], window, attempt 3, waits for []
        "#]],
    );
}

#[test]
fn a_disputed_outcome_is_reconciled_by_people_who_did_not_execute() {
    check(
        "
        ana create controlled-operation low
        ana submit
        ben approve
        sol clear not_after=in_an_hour
        eli start
        eli succeed
        ben dispute
        ben dispute: it is down
        eli reconcile outcome=succeeded: I say so
        sia reconcile: without an outcome
        sia reconcile outcome=perhaps: who knows
        sia reconcile outcome=failed: it is down
        eva roll_back
        eva succeed
        ben dispute: still down
        bob reconcile outcome=succeeded: up again
        ben accept
        ",
        &expect![[r#"
            ana create controlled-operation low
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 1 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              approved v3, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval hold
                bob bea: return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_an_hour
              201
              cleared v4, 1 of 1 to approve [ben], window, waits for [executor]
                ana: withdraw
                ben: revoke_approval hold
                bob bea: hold
                sol sia: revoke hold
                eli eva: start
            eli start
              201
              executing v5, 1 of 1 to approve [ben], window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed
              201
              succeeded v6, 1 of 1 to approve [ben], window, attempt 1, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
                eli eva: roll_back
            ben dispute
              422 invalid_request
            ben dispute: it is down
              201
              indeterminate v7, 1 of 1 to approve [ben], window, attempt 1, waits for [approver security_admin]
                ben bob bea sol sia: reconcile hold
            eli reconcile outcome=succeeded: I say so
              403 role_forbidden
            sia reconcile: without an outcome
              422 invalid_request
            sia reconcile outcome=perhaps: who knows
              422 invalid_request
            sia reconcile outcome=failed: it is down
              201
              failed v8, 1 of 1 to approve [ben], window, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli eva: retry roll_back
            eva roll_back
              201
              rolling_back v9, 1 of 1 to approve [ben], window, lease of eva, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eva: heartbeat succeed fail unknown
            eva succeed
              201
              rolled_back v10, 1 of 1 to approve [ben], window, attempt 1, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
            ben dispute: still down
              201
              indeterminate v11, 1 of 1 to approve [ben], window, attempt 1, waits for [approver security_admin]
                ben bob bea sol sia: reconcile hold
            bob reconcile outcome=succeeded: up again
              201
              succeeded v12, 1 of 1 to approve [ben], window, attempt 1, waits for [approver]
                ben bob bea: accept dispute hold
                sol sia: hold
                eli eva: roll_back
            ben accept
              201
              closed v13, 1 of 1 to approve [ben], window, attempt 1, waits for []
        "#]],
    );
}

#[test]
fn a_clearance_is_revoked_and_a_window_is_bounded_and_not_yet_open() {
    check(
        "
        ana create controlled-operation low
        ana submit
        ben approve
        sol clear
        sol clear not_after=yesterday
        sol clear not_after=in_an_hour not_before=in_two_hours
        sol clear not_after=in_two_hours not_before=in_an_hour
        eli start
        sol revoke
        sol revoke: incident
        ana withdraw
        ",
        &expect![[r#"
            ana create controlled-operation low
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, 0 of 1 to approve [], waits for [approver]
                ana: withdraw
                ben bob bea: approve reject return hold
                sol sia: return hold
            ben approve
              201
              approved v3, 1 of 1 to approve [ben], waits for [security_admin]
                ana: withdraw
                ben: return revoke_approval hold
                bob bea: return hold
                sol sia: return clear refuse hold
            sol clear
              422 invalid_request
            sol clear not_after=yesterday
              422 invalid_request
            sol clear not_after=in_an_hour not_before=in_two_hours
              422 invalid_request
            sol clear not_after=in_two_hours not_before=in_an_hour
              201
              cleared v4, 1 of 1 to approve [ben], window, waits for [executor]
                ana: withdraw
                ben: revoke_approval hold
                bob bea: hold
                sol sia: revoke hold
            eli start
              409 outside_window
            sol revoke
              422 invalid_request
            sol revoke: incident
              201
              revoked v5, 1 of 1 to approve [ben], window, waits for []
            ana withdraw
              409 state_conflict
        "#]],
    );
}

#[test]
fn an_emergency_skips_the_quorum_and_ends_when_two_ratify() {
    check(
        "
        ana create emergency-operation
        ana create emergency-operation
        ana submit
        sol clear not_after=in_5_hours
        sol clear not_after=in_an_hour
        eli start
        eli succeed
        ana create emergency-operation
        ben ratify
        ben ratify
        bob condemn
        bob ratify
        ana create emergency-operation
        ",
        &expect![[r#"
            ana create emergency-operation
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana create emergency-operation
              409 state_conflict
            ana submit
              201
              submitted v2, waits for [security_admin]
                ana: withdraw
                ben bob bea: reject return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_5_hours
              422 invalid_request
            sol clear not_after=in_an_hour
              201
              cleared v3, window, waits for [executor]
                ana: withdraw
                ben bob bea: hold
                sol sia: revoke hold
                eli eva: start
            eli start
              201
              executing v4, window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed
              201
              succeeded v5, 0 of 2 to ratify [], window, attempt 1, waits for [approver]
                ben bob bea: ratify condemn dispute hold
                sol sia: hold
                eli eva: roll_back
            ana create emergency-operation
              409 state_conflict
            ben ratify
              201
              succeeded v6, 1 of 2 to ratify [ben], window, attempt 1, waits for [approver]
                ben: condemn dispute hold
                bob bea: ratify condemn dispute hold
                sol sia: hold
                eli eva: roll_back
            ben ratify
              409 already_decided
            bob condemn
              422 invalid_request
            bob ratify
              201
              ratified v7, 2 of 2 to ratify [ben bob], window, attempt 1, waits for []
            ana create emergency-operation
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
        "#]],
    );
}

#[test]
fn an_emergency_is_condemned_by_two_and_who_ratified_may_change_sides() {
    check(
        "
        ana create emergency-operation
        ana submit
        sol clear not_after=in_an_hour
        eli start
        eli fail
        ben ratify
        ben condemn: I have seen the logs
        ben ratify
        eli roll_back
        eli succeed
        ben condemn: still
        bob condemn: indeed
        ",
        &expect![[r#"
            ana create emergency-operation
              201
              draft v1, waits for [initiator]
                ana: edit submit withdraw
                ben bob bea sol sia: hold
            ana submit
              201
              submitted v2, waits for [security_admin]
                ana: withdraw
                ben bob bea: reject return hold
                sol sia: return clear refuse hold
            sol clear not_after=in_an_hour
              201
              cleared v3, window, waits for [executor]
                ana: withdraw
                ben bob bea: hold
                sol sia: revoke hold
                eli eva: start
            eli start
              201
              executing v4, window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli fail
              201
              failed v5, 0 of 2 to ratify [], window, attempt 1, waits for [approver executor]
                ben bob bea: ratify condemn hold
                sol sia: hold
                eli eva: retry roll_back
            ben ratify
              201
              failed v6, 1 of 2 to ratify [ben], window, attempt 1, waits for [approver executor]
                ben: condemn hold
                bob bea: ratify condemn hold
                sol sia: hold
                eli eva: retry roll_back
            ben condemn: I have seen the logs
              201
              failed v7, 1 of 2 to condemn [ben], window, attempt 1, waits for [approver executor]
                ben sol sia: hold
                bob bea: ratify condemn hold
                eli eva: retry roll_back
            ben ratify
              409 already_decided
            eli roll_back
              201
              rolling_back v8, window, lease of eli, attempt 1, waits for [executor]
                ben bob bea sol sia: hold
                eli: heartbeat succeed fail unknown
            eli succeed
              201
              rolled_back v9, 0 of 2 to ratify [], window, attempt 1, waits for [approver]
                ben bob bea: ratify condemn dispute hold
                sol sia: hold
            ben condemn: still
              201
              rolled_back v10, 1 of 2 to condemn [ben], window, attempt 1, waits for [approver]
                ben: dispute hold
                bob bea: ratify condemn dispute hold
                sol sia: hold
            bob condemn: indeed
              201
              condemned v11, 2 of 2 to condemn [ben bob], window, attempt 1, waits for []
        "#]],
    );
}
