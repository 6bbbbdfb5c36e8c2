//! Rate limits, counted and not timed: budgets are so small that nothing comes back while a test runs.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::support::authority::{OTHER, installation};
use crate::support::harness::{PATIENCE, Server, TOKEN, bearer, now};
use crate::support::wire::Response;

const LIMITS: &str =
    "[rate_limits]\nreads_per_minute = 3\nwrites_per_minute = 2\nanonymous_per_minute = 2\nfailed_per_minute = 1\n";

fn write(server: &Server, token: &str) -> Response {
    server.request("POST /v1/items HTTP/1.1", &[&bearer(token), "Content-Type: application/json", "Content-Length: 0"])
}

#[test]
fn reads_and_writes_of_an_actor_have_budgets_of_their_own() {
    let (installation, _) = installation("pilot", &[LIMITS]);
    let server = installation.serve();
    let reads: Vec<_> = (0..5).map(|_| server.session(TOKEN).status).collect();
    assert_eq!(reads, [200, 200, 200, 429, 429]);
    let writes: Vec<_> = (0..3).map(|_| write(&server, TOKEN).verdict()).collect();
    assert_eq!(writes, ["422 invalid_request", "422 invalid_request", "429 rate_limited"]);
}

#[test]
fn an_actor_who_floods_does_not_touch_another() {
    let (installation, _) = installation("pilot", &["[rate_limits]\nreads_per_minute = 20\nwrites_per_minute = 1\n"]);
    let server = installation.serve();
    let began = now();
    let (mut answered, mut limited) = (0, 0);
    for round in 0..20 {
        for _ in 0..20 {
            match server.session(TOKEN).status {
                200 => answered += 1,
                429 => limited += 1,
                other => panic!("{other}"),
            }
        }
        assert_eq!(server.session(OTHER).status, 200, "ben was refused in round {round}");
    }
    // One read comes back every 3 s.
    let earned = 20 + began.elapsed().as_secs() / 3 + 1;
    assert!((20..=earned).contains(&answered) && answered + limited == 400, "{answered} answered, {limited} limited");
}

#[test]
fn a_limited_answer_says_how_long_to_wait_and_every_answer_what_is_left() {
    let (installation, _) = installation("pilot", &[LIMITS]);
    let server = installation.serve();
    let first = server.session(TOKEN);
    assert_eq!(first.header("ratelimit-policy"), Some("\"reads\";q=3;w=60"));
    assert_eq!(first.header("ratelimit"), Some("\"reads\";r=2;t=20"));
    server.session(TOKEN);
    server.session(TOKEN);
    let limited = server.session(TOKEN);
    assert_eq!(limited.verdict(), "429 rate_limited");
    assert_eq!(limited.header("content-type"), Some("application/problem+json"));
    assert_eq!(limited.header("ratelimit-policy"), Some("\"reads\";q=3;w=60"));
    assert!(limited.header("ratelimit").unwrap().starts_with("\"reads\";r=0;t="), "{limited:?}");
    let seconds: u64 = limited.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=20).contains(&seconds), "{seconds}");
    // Not even the body is read: nothing but the head was sent.
    write(&server, TOKEN);
    write(&server, TOKEN);
    let unread = server.request("POST /v1/items HTTP/1.1", &[&bearer(TOKEN), "Content-Length: 1000"]);
    assert_eq!(unread.verdict(), "429 rate_limited");
}

#[test]
fn whoever_waits_is_served_again() {
    let (installation, _) = installation("pilot", &["[rate_limits]\nreads_per_minute = 60\nburst_seconds = 1\n"]);
    let server = installation.serve();
    assert_eq!(server.session(TOKEN).status, 200);
    let began = now();
    while server.session(TOKEN).status != 200 {
        assert!(began.elapsed() < PATIENCE);
    }
}

#[test]
fn an_address_without_a_valid_credential_is_limited_and_a_valid_one_from_there_is_not() {
    let (installation, _) = installation("pilot", &[LIMITS]);
    let server = installation.serve();
    let anonymous: Vec<_> = (0..3).map(|_| server.get("/v1/session", &[]).verdict()).collect();
    assert_eq!(anonymous, ["401 credential_required", "401 credential_required", "429 rate_limited"]);
    let wrong = "w".repeat(32);
    let failed: Vec<_> = (0..2).map(|_| server.session(&wrong).verdict()).collect();
    assert_eq!(failed, ["401 credential_required", "429 rate_limited"]);
    let limited = server.get("/v1/nowhere", &[]);
    assert_eq!(limited.header("ratelimit-policy"), Some("\"anonymous\";q=2;w=60"));
    assert_eq!(server.session(TOKEN).status, 200);
}

#[test]
fn a_live_feed_costs_one_read_however_much_it_carries() {
    let (installation, _) = installation("pilot", &[LIMITS]);
    let server = installation.serve();
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head = ["GET /v1/events HTTP/1.1", "Host: a", "Accept: text/event-stream", &bearer(OTHER), "", ""].join("\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let (mut lines, mut seen) = (BufReader::new(stream).lines(), Vec::new());
    // The item is made once the feed is open, so that it is carried live.
    while !seen.iter().any(|line: &String| line.starts_with("data:") && line.contains("item.created")) {
        seen.push(lines.next().unwrap().unwrap());
        if seen.last().unwrap().starts_with(": connected") {
            create(&server);
        }
    }
    assert!(seen.contains(&"ratelimit: \"reads\";r=2;t=20".to_owned()), "{seen:#?}");
    let next = server.session(OTHER);
    assert!(next.header("ratelimit").unwrap().starts_with("\"reads\";r=1;"), "{next:?}");
}

fn create(server: &Server) {
    let item = r#"{"workflow":"controlled-operation","title":"A title","payload":{}}"#;
    let length = format!("Content-Length: {}", item.len());
    let mut wire = server.wire();
    let lines =
        ["POST /v1/items HTTP/1.1", "Host: a", &bearer(TOKEN), "Content-Type: application/json", &length, "", item];
    wire.send(lines.join("\r\n").as_bytes());
    assert_eq!(wire.response().unwrap().status, 201);
}

#[test]
fn what_is_open_to_anyone_is_not_limited() {
    let (installation, _) = installation("pilot", &[LIMITS]);
    let server = installation.serve();
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/"] {
        for _ in 0..10 {
            assert_eq!(server.get(path, &[]).status, 200, "{path}");
        }
    }
    assert_eq!(server.get("/healthz", &[]).header("ratelimit"), None);
}

#[test]
fn without_the_section_nothing_is_limited_and_nothing_is_said_of_limits() {
    let (installation, _) = installation("pilot", &[]);
    let server = installation.serve();
    for _ in 0..50 {
        let response = server.session(TOKEN);
        assert_eq!((response.status, response.header("ratelimit-policy")), (200, None));
    }
}

#[test]
fn refusals_are_counted_by_budget() {
    let (installation, _) = installation("pilot", &[LIMITS, "[ops]\nlisten = '127.0.0.1:0'\n"]);
    let port = crate::support::harness::Port::reserve();
    let ops = port.address();
    let server = installation.serve_with(&[], &[("PILOT_OPS__LISTEN", &ops.to_string())]);
    for _ in 0..5 {
        server.session(TOKEN);
    }
    let text = port.metrics();
    assert!(text.contains("pilot_rate_limited_total{budget=\"reads\"} 2"), "{text}");
}
