//! What a single request costs, however it is made: no more than 20 MB of memory, up to the size it may have.

use std::net::Ipv4Addr;

use crate::hostile::beside::Process;
use crate::hostile::clients::exchange::{Exchange, get, post};
use crate::hostile::stage::{Stage, connect_from};
use crate::support::team::token;

const REQUEST_MIB_MAX: u64 = 20;
const COMMENT_BYTES: usize = 32 * 1024;
const CONTENT_BYTES: usize = 128 * 1024;
const ACTION_BYTES: usize = 256 * 1024;

/// One request on a service that has answered nothing but small ones, and the answer it has to get.
#[track_caller]
fn costs_little(stage: &Stage, what: &str, request: &[u8], verdict: &str) {
    let process = Process(stage.server.id());
    let mut exchange = Exchange::over(connect_from(Ipv4Addr::LOCALHOST, stage.server.address).unwrap()).unwrap();
    // What the first request of a connection and of each kind brings along is not this one's cost.
    let item = format!("/v1/items/{}", stage.target.item);
    for path in ["/v1/session", &item, "/v1/items", &format!("{item}/history")] {
        assert_eq!(exchange.ask(&get(path, &token("mal"))).unwrap().status, 200);
    }
    process.forget_peak().unwrap();
    let (held, cpu) = (process.held().unwrap(), process.cpu().unwrap());
    let answer = exchange.ask(request).unwrap();
    let (grown, cpu) = (process.peak().unwrap().saturating_sub(held), process.cpu().unwrap().saturating_sub(cpu));
    println!(
        "{what:<36} {:>7} bytes, {:>6} KiB at its peak, {cpu:.0?} of processor: {}",
        request.len(),
        grown,
        answer.verdict()
    );
    assert_eq!(answer.verdict(), verdict, "{what}");
    assert!(grown <= REQUEST_MIB_MAX * 1024, "{what}: {grown} KiB");
}

fn action(stage: &Stage, body: &str) -> Vec<u8> {
    post(&format!("/v1/items/{}/transitions", stage.target.item), &token("mal"), body.as_bytes())
}

fn draft(values: &str) -> Vec<u8> {
    let body = format!(
        "{{\"workflow\":\"controlled-operation\",\"title\":\"t\",\"payload\":{{\"operation\":{{\"a\":[{values}]}}}}}}"
    );
    post("/v1/items", &token("mal"), body.as_bytes())
}

/// As many of these as fit into so many bytes, separated by commas.
fn filled(piece: &str, bytes: usize) -> String {
    vec![piece; (bytes - 160) / (piece.len() + 1)].join(",")
}

#[test]
fn a_body_full_of_faults_costs_little() {
    let stage = Stage::open();
    let name = "n".repeat(ACTION_BYTES / 2);
    let faults = filled("9007199254740993", ACTION_BYTES / 2);
    let body = format!("{{\"action\":\"submit\",\"inputs\":{{\"{name}\":[{faults}]}}}}");
    costs_little(&stage, "faults behind a long name", &action(&stage, &body), "422 invalid_request");
}

#[test]
fn a_body_of_as_many_values_as_there_may_be_costs_little() {
    let stage = Stage::open();
    costs_little(&stage, "the densest draft", &draft(&vec!["{\"\":0}"; 1_998].join(",")), "201");
}

#[test]
fn a_body_of_more_values_than_there_may_be_costs_little() {
    let stage = Stage::open();
    costs_little(&stage, "more values than allowed", &draft(&filled("[]", CONTENT_BYTES)), "422 invalid_request");
}

#[test]
fn the_largest_draft_costs_little() {
    let stage = Stage::open();
    let text = format!("\"{}\"", "x".repeat(64 * 1024 - 64));
    costs_little(&stage, "the largest draft", &draft(&text), "201");
}

#[test]
fn a_body_full_of_escapes_costs_little() {
    let stage = Stage::open();
    let body = format!("{{\"action\":\"submit\",\"comment\":\"{}\"}}", "\\u0041%41".repeat((ACTION_BYTES - 64) / 9));
    costs_little(&stage, "escapes", &action(&stage, &body), "422 invalid_request");
}

#[test]
fn a_body_full_of_what_could_be_tokens_costs_little() {
    let stage = Stage::open();
    let body = format!("{{\"action\":\"submit\",\"comment\":\"{}\"}}", "pilot_".repeat((ACTION_BYTES - 64) / 6));
    costs_little(&stage, "text like tokens", &action(&stage, &body), "422 invalid_request");
}

#[test]
fn a_body_of_names_that_nobody_knows_costs_little() {
    let stage = Stage::open();
    let names: Vec<_> = (0..4_900).map(|number| format!("\"n{number}{}\":0", "x".repeat(30))).collect();
    let body = format!("{{{}}}", names.join(","));
    costs_little(&stage, "unknown names", &action(&stage, &body), "422 invalid_request");
}

#[test]
fn the_longest_url_and_the_longest_query_cost_little() {
    let stage = Stage::open();
    let parameters = filled("a=b", 8_000).replace(',', "&");
    costs_little(&stage, "parameters", &get(&format!("/v1/items?{parameters}"), &token("mal")), "422 invalid_request");
    let path = format!("/v1/items?q={}", "a-b.c_d~".repeat(1_000));
    costs_little(&stage, "the longest URL", &get(&path, ""), "401 credential_required");
}

#[test]
fn the_largest_comment_costs_little() {
    let stage = Stage::open();
    let path = format!("/v1/items/{}/comments", stage.target.item);
    // Each character is one of 4,000, and takes as many bytes as a character can.
    let body = format!("{{\"text\":\"{}\"}}", "\u{10FFFF}".repeat(4_000));
    assert!(body.len() < COMMENT_BYTES);
    costs_little(&stage, "the largest comment", &post(&path, &token("mal"), body.as_bytes()), "201");
}

#[test]
fn a_page_of_the_largest_drafts_costs_little() {
    let stage = Stage::open();
    let text = format!("\"{}\"", "x".repeat(64 * 1024 - 64));
    let mut exchange = Exchange::over(connect_from(Ipv4Addr::LOCALHOST, stage.server.address).unwrap()).unwrap();
    for _ in 0..80 {
        assert_eq!(exchange.ask(&draft(&text)).unwrap().status, 201);
    }
    costs_little(&stage, "a page of 4 MiB", &get("/v1/items?limit=200", &token("mal")), "200");
    costs_little(&stage, "an inbox of 5 MiB", &get("/v1/items?limit=200&waiting_for=me", &token("mal")), "200");
}
