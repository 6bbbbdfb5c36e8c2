//! Questions that cost more to answer than to ask.

use std::thread;

use super::exchange::{Exchange, get, post, repeat, with_headers};
use super::{Run, Target, bodies};

/// 8 KiB of URL without a credential, with punctuation at which a token could begin or end everywhere.
pub(super) fn long_urls(target: &Target, run: &Run) {
    let paths = ["a-b.c_d~", "%2e%41a", "abcdefghijklmnop", "pilot_", "x=y&"].map(long_path);
    let requests = paths.map(|path| get(&path, ""));
    repeat(target, run, 8, &requests);
}

pub(super) fn long_path(part: &str) -> String {
    format!("/v1/items?q={}", part.repeat(8_100 / part.len()))
}

/// Asks for a search of everything and hangs up before it is answered, again and again. Nothing else slows these clients
/// down, so the short form is counted: on a busy machine they would otherwise send far more than the service gets to.
pub(super) fn abandoned_searches(target: &Target, run: &Run) {
    bodies::write_drafts(target, run, run.of(10, 200));
    run.is_prepared();
    let requests = [
        get("/v1/items?limit=200&q=nothing-of-this-name", &target.executor),
        get("/v1/items?limit=200&waiting_for=me", &target.initiator),
        get("/v1/items?limit=200&created_by=nobody&state=draft", &target.executor),
    ];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for request in requests.iter().cycle().take(run.of(200, usize::MAX)) {
                    let Ok(mut exchange) = Exchange::open(target.address) else { return };
                    if run.is_over() || exchange.send(request).is_err() {
                        return;
                    }
                    run.note("hung up".into());
                }
            });
        }
    });
}

/// One item with very many comments, and then everything that has to be told of it.
pub(super) fn many_comments(target: &Target, run: &Run) {
    let item = format!("/v1/items/{}", target.item);
    let comment = format!("{{\"text\":\"{}\"}}", "why not ".repeat(490));
    let comment = post(&format!("{item}/comments"), &target.executor, comment.as_bytes());
    if let Ok(mut exchange) = Exchange::open(target.address) {
        for _ in 0..run.of(60, 4_000) {
            let Ok(answer) = exchange.ask(&comment) else { return };
            run.note(answer.verdict());
            if run.is_over() {
                break;
            }
        }
    }
    run.is_prepared();
    let requests = ["history", "proof", "transitions"].map(|what| get(&format!("{item}/{what}"), &target.executor));
    repeat(target, run, 4, &requests);
}

/// The evidence of all there is, several times at once.
pub(super) fn exports(target: &Target, run: &Run) {
    let period = "/v1/evidence?from=2000-01-01T00:00:00Z&to=2100-01-01T00:00:00Z";
    let item = format!("/v1/evidence?item={}", target.item);
    thread::scope(|scope| {
        for number in 0..6 {
            let path = if number % 2 == 0 { period } else { &item };
            let request = with_headers(&format!("GET {path}"), &target.auditor, "Connection: close\r\n");
            scope.spawn(move || {
                while !run.is_over() {
                    let Ok(mut exchange) = Exchange::open(target.address) else { return };
                    let Ok(answer) = exchange.ask(&request) else { return };
                    run.note(answer.verdict());
                    exchange.drain(run);
                }
            });
        }
    });
}

/// What is open to anyone, as fast as it comes.
pub(super) fn health_and_docs(target: &Target, run: &Run) {
    let requests = ["/healthz", "/readyz", "/docs", "/openapi.json", "/", "/nothing-here"].map(|path| get(path, ""));
    repeat(target, run, 16, &requests);
}

/// Tokens that are nobody's, each another one.
pub(super) fn wrong_tokens(target: &Target, run: &Run) {
    let requests: Vec<_> = (0..64)
        .map(|number| get("/v1/items", &format!("not-a-token-of-anyone-not-a-token-of-anyone-{number}")))
        .collect();
    repeat(target, run, 16, &requests);
}
