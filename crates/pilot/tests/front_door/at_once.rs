//! An answer that is given at once is the answer that would have been waited for: a longer target takes the other way.

use crate::support::harness::{Installation, Server, TOKEN, bearer};
use crate::support::wire::Response;

const APPROVER: &str = "ben-has-a-token-of-32-characters-or-more";
const AUDITOR: &str = "ada-has-a-token-of-32-characters-or-more";
/// Long enough that it has to be searched for tokens.
const LONG: &str = "?seen=a-parameter-that-nobody-reads-and-that-is-long";

/// Everything but what differs between any two answers.
fn essence(answer: &Response) -> String {
    let differs = |name: &str| ["date", "x-request-id"].contains(&name.to_ascii_lowercase().as_str());
    let mut headers: Vec<_> = answer
        .headers
        .iter()
        .filter(|(name, _)| !differs(name))
        .map(|(name, value)| format!("{}: {value}", name.to_ascii_lowercase()))
        .collect();
    headers.sort_unstable();
    let id = answer.header("x-request-id").unwrap().to_owned();
    // Ids of later requests are longer now and then, and so are problems that name them.
    headers.retain(|line| !line.starts_with("content-length: "));
    format!("{}\n{}\n{}", answer.status, headers.join("\n"), String::from_utf8_lossy(&answer.body).replace(&id, "ID"))
}

#[track_caller]
fn check(server: &Server, method: &str, path: &str, headers: &[&str], status: u16) {
    let at_once = server.request(&format!("{method} {path} HTTP/1.1"), headers);
    let in_time = server.request(&format!("{method} {path}{LONG} HTTP/1.1"), headers);
    assert_eq!(at_once.status, status, "{method} {path} {headers:?}");
    assert_eq!(essence(&at_once), essence(&in_time), "{method} {path} {headers:?}");
}

#[test]
fn what_is_answered_at_once_passes_the_same_checks_and_is_the_same_answer() {
    let entries = [("ana", "initiator", TOKEN), ("ben", "approver", APPROVER), ("ada", "auditor", AUDITOR)];
    let server = Installation::with(&entries).serve();
    let (ana, ada, stranger) = (bearer(TOKEN), bearer(AUDITOR), bearer(&"z".repeat(40)));
    for path in ["/v1/session", "/v1/workflows", "/v1/actors", "/v1/nodes", "/v1/credentials"] {
        check(&server, "GET", path, &[], 401);
        check(&server, "GET", path, &[&stranger], 401);
        check(&server, "GET", path, &[&ana, &ana], 401);
        check(&server, "GET", path, &["Authorization: Basic abc"], 401);
        check(&server, "GET", path, &[&ada, "Host: b"], 400);
        check(&server, "POST", path, &[&ada, "Content-Length: 0"], 405);
    }
    // The others say when someone was last seen, which differs from moment to moment.
    for path in ["/v1/session", "/v1/workflows"] {
        check(&server, "GET", path, &[&ada, "Accept-Encoding: gzip"], 200);
        check(&server, "HEAD", path, &[&ada], 200);
    }
    for path in ["/v1/actors", "/v1/nodes", "/v1/credentials"] {
        check(&server, "GET", path, &[&ana], 403);
    }
    check(&server, "GET", "/v1/session", &[&ana], 200);
    check(&server, "GET", "/v1/session", &[&ana, "X-Forwarded-For: 6.6.6.6", "Forwarded: for=6.6.6.6"], 200);
}
