//! Each kind of attack: what it costs is bounded, those who mean harm are told which bound they met, and Ana is answered.
//!
//! A service in peace takes about 10 MiB for itself. What an attack may add, in MiB, is stated in each test and follows from
//! the limits: what one actor may hold (16), one long computation (20), and what each connection, feed and stream takes.

use std::net::Ipv4Addr;

use crate::hostile::stage::Stage;
use crate::support::team::token;

/// What one actor's bytes and one long computation of theirs take at most, and what the allocator keeps besides.
const ONE_ACTOR: u64 = 48;
/// The same with large lists, of which one is being written while others wait to be sent.
const LISTS: u64 = 64;
/// One long computation after the other.
const ONE_TASK: u64 = 24;
/// Nothing but connections, or answers of a few hundred bytes.
const LITTLE: u64 = 12;

#[test]
fn faults_cost_no_more_than_the_body_they_stand_in() {
    let stage = Stage::open();
    stage.attack("many faults with long pointers").was_told_only(&["422 invalid_request"]).costs_at_most(ONE_ACTOR);
}

#[test]
fn values_are_counted_before_they_are_kept() {
    let stage = Stage::open();
    stage.attack("bodies of very many values").was_told_only(&["422 invalid_request"]).costs_at_most(ONE_TASK);
}

#[test]
fn nesting_is_refused_where_it_gets_too_deep() {
    Stage::open().attack("deep nesting").was_told_only(&["422 invalid_request"]).costs_at_most(ONE_TASK);
}

#[test]
fn lists_of_the_largest_drafts_cost_what_one_actor_may_hold() {
    let stage = Stage::open();
    stage.attack("large drafts, and lists of them").was_told("201").was_told("200").costs_at_most(LISTS);
}

#[test]
fn refused_writes_are_refused_before_they_cost_others_their_turn() {
    let outcome = Stage::open().attack("refused large writes");
    outcome.was_told_only(&["413 body_too_large", "422 invalid_request", "422 unknown_action"]);
    outcome.was_told("413 body_too_large").was_told("422 invalid_request").costs_at_most(ONE_TASK);
}

#[test]
fn text_that_could_be_tokens_everywhere_is_looked_through_at_a_bounded_cost() {
    Stage::open().attack("text like tokens").costs_at_most(ONE_TASK);
}

#[test]
fn long_urls_of_nobody_wait_for_each_other_and_for_nobody_else() {
    let outcome = Stage::open().attack("long URLs of nobody");
    outcome.was_told_only(&["401 credential_required", "429 rate_limited"]).costs_at_most(LITTLE);
}

#[test]
fn feeds_that_are_not_read_are_few_and_readiness_says_so() {
    let stage = Stage::open();
    let outcome = stage.attack("feeds that are not read");
    outcome.was_told("200").was_told("429").costs_at_most(LITTLE);
    assert_eq!(outcome.told["200"], 64);
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["feeds_of_an_actor"]));
}

#[test]
fn one_address_cannot_hold_the_connections_of_others() {
    let stage = Stage::with_connections(400);
    stage.attack("hoarded connections").was_told("200").costs_at_most(LITTLE);
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["connections_of_an_address"]));
    stage.server.wait_for_log("a limit was reached: connections_of_an_address");
}

#[test]
fn silent_connections_make_room_for_those_who_speak() {
    let stage = Stage::with_connections(400);
    stage.attack("silent connections").costs_at_most(LITTLE);
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["connections_of_an_address"]));
}

#[test]
fn bodies_under_way_hold_no_more_than_their_actor_may() {
    Stage::open().attack("bodies that drip").costs_at_most(ONE_ACTOR);
}

#[test]
fn answers_that_are_read_slowly_hold_no_more_than_their_actor_may() {
    Stage::open().attack("lists read slowly").was_told("200").costs_at_most(LISTS);
}

#[test]
fn searches_whose_askers_are_gone_hold_up_nobody() {
    Stage::open().attack("abandoned searches").costs_at_most(LISTS);
}

#[test]
fn an_item_with_many_comments_costs_its_readers_a_bounded_time() {
    Stage::open().attack("an item with many comments").was_told("201").was_told("200").costs_at_most(ONE_ACTOR);
}

#[test]
fn exports_leave_room_for_everyone_else() {
    Stage::open().attack("several exports at once").was_told("200").costs_at_most(ONE_ACTOR);
}

#[test]
fn a_warning_is_not_crowded_out_by_health_checks_and_wrong_tokens() {
    let stage = Stage::open();
    let attacked = stage.attack("health checks and documents");
    attacked.was_told("200").was_told("404 not_found").costs_at_most(LITTLE);
    stage.attack("wrong tokens").was_told_only(&["401 credential_required"]).costs_at_most(LITTLE);
    assert_eq!(stage.server.get(&format!("/healthz?{}", token("sol")), &[]).status, 400);
    stage.server.wait_for_log("a live token of `sol` was sent in a URL");
    let asked: u64 = attacked.told.values().sum();
    let lines = stage.server.stop().expect(0).stderr.lines().filter(|line| line.contains("get_health")).count();
    assert_eq!(lines, 0, "of {asked} answers");
}

#[test]
fn http_2_bodies_without_an_end_hold_no_more_than_their_actor_may() {
    Stage::open().attack("HTTP/2: bodies without an end").costs_at_most(ONE_ACTOR);
}

#[test]
fn http_2_bodies_in_frames_of_a_byte_cost_a_bounded_part_of_memory() {
    Stage::open().attack("HTTP/2: bodies in frames of a byte").costs_at_most(LITTLE);
}

#[test]
fn http_2_answers_that_are_not_read_hold_no_more_than_their_actor_may() {
    Stage::open().attack("HTTP/2: answers that are not read").costs_at_most(LISTS);
}

#[test]
fn http_2_answers_to_nobody_that_are_not_read_are_counted() {
    let stage = Stage::open();
    stage.attack("HTTP/2: small answers, not read").was_told("200").costs_at_most(ONE_ACTOR);
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["http2_requests"]));
}

#[test]
fn http_2_requests_that_wait_for_their_turn_are_counted() {
    let stage = Stage::open();
    let outcome = stage.attack("HTTP/2: long URLs on every stream");
    outcome.was_told("401").costs_at_most(ONE_TASK);
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["long_tasks_of_a_caller"]));
}

#[test]
fn http_2_streams_that_are_reset_at_once_end_their_connection() {
    Stage::open().attack("HTTP/2: streams reset at once").was_told("goaway 11").costs_at_most(LITTLE);
}

#[test]
fn http_2_pings_and_settings_cost_those_beside_nothing_but_time() {
    Stage::open().attack("HTTP/2: pings and settings").costs_at_most(LITTLE);
}

/// Among what Ana asks for is a list whose URL is long enough to be looked at in turn.
#[test]
fn a_caller_with_a_credential_is_served_at_an_address_that_has_used_up_its_turns() {
    let stage = Stage::open();
    stage.attack_beside("HTTP/2: long URLs on every stream", Ipv4Addr::LOCALHOST).was_told("401");
    assert_eq!(stage.readiness()["limits_reached"], serde_json::json!(["long_tasks_of_a_caller"]));
}
