//! Bodies that cost more to read than to send.

use super::exchange::{Exchange, get, post, repeat};
use super::{Run, Target};

const CONNECTIONS: usize = 4;
/// The largest body of an action and of a draft.
const ACTION_BYTES: usize = 256 * 1024;
const DRAFT_BYTES: usize = 128 * 1024;

/// Thousands of faults, each at a place whose name is as long as half the body: told one by one they are gigabytes.
pub(super) fn many_faults(target: &Target, run: &Run) {
    let (begin, end) = ("{\"action\":\"submit\",\"inputs\":{\"", "]}}");
    let name = "n".repeat(ACTION_BYTES / 2);
    let fault = "9007199254740993,";
    let room = ACTION_BYTES - begin.len() - name.len() - end.len() - 8;
    let body = format!("{begin}{name}\":[{}0{end}", fault.repeat(room / fault.len()));
    let path = format!("/v1/items/{}/transitions", target.item);
    repeat(target, run, CONNECTIONS, &[post(&path, &target.initiator, body.as_bytes())]);
}

/// Values of a few bytes that take a hundred times as many in memory.
pub(super) fn many_values(target: &Target, run: &Run) {
    let bodies = ["{\"\":0},", "[[]],", "0,"].map(|value| {
        let body = draft(&value.repeat((DRAFT_BYTES - 128) / value.len()));
        post("/v1/items", &target.initiator, body.as_bytes())
    });
    repeat(target, run, CONNECTIONS, &bodies);
}

/// Brackets that are only ever opened, and brackets that are closed again.
pub(super) fn deep_nesting(target: &Target, run: &Run) {
    let open = "[".repeat(DRAFT_BYTES - 1);
    let closed = format!("{}{}", "[".repeat(DRAFT_BYTES / 2 - 1), "]".repeat(DRAFT_BYTES / 2 - 1));
    let bodies = [open, closed].map(|body| post("/v1/items", &target.initiator, body.as_bytes()));
    repeat(target, run, CONNECTIONS, &bodies);
}

/// The largest drafts there can be, of the smallest values there can be; then lists of as many as a page holds.
pub(super) fn large_drafts(target: &Target, run: &Run) {
    write_drafts(target, run, run.of(30, 200));
    run.is_prepared();
    repeat(target, run, CONNECTIONS, &[get("/v1/items?limit=200", &target.initiator)]);
}

pub(super) fn write_drafts(target: &Target, run: &Run, count: usize) {
    let Ok(mut exchange) = Exchange::open(target.address) else { return };
    // As dense as it gets, and where that is refused, as dense as it may be.
    let dense = draft(&"{\"\":0},".repeat(9_000));
    let sparse = draft(&format!("\"{}\",{}", "x".repeat(48 * 1024), "{\"\":0},".repeat(1_990)));
    let mut bodies = [dense, sparse].into_iter().map(|body| post("/v1/items", &target.initiator, body.as_bytes()));
    let mut body = bodies.next();
    for _ in 0..count {
        let Some(request) = body.as_ref().filter(|_| !run.is_over()) else { return };
        let Ok(answer) = exchange.ask(request) else { return };
        run.note(answer.verdict());
        if answer.status != 201 {
            body = bodies.next();
        }
    }
}

fn draft(values: &str) -> String {
    let values = values.trim_end_matches(',');
    format!(
        "{{\"workflow\":\"controlled-operation\",\"title\":\"t\",\"payload\":{{\"operation\":{{\"a\":[{values}]}}}}}}"
    )
}

/// Writes that are refused, as large as they may be and larger: whoever reads them first pays first.
pub(super) fn refused_writes(target: &Target, run: &Run) {
    let text = |bytes: usize| draft(&format!("\"{}\"", "x".repeat(bytes)));
    let item = format!("/v1/items/{}", target.item);
    let too_large = post("/v1/items", &target.initiator, text(1_000_000).as_bytes());
    let payload = post("/v1/items", &target.initiator, text(120 * 1024).as_bytes());
    let comment = format!("{{\"text\":\"{}\"}}", "x".repeat(30 * 1024));
    let comment = post(&format!("{item}/comments"), &target.initiator, comment.as_bytes());
    let action = format!("{{\"action\":\"none\",\"comment\":\"{}\"}}", "x".repeat(250 * 1024));
    let action = post(&format!("{item}/transitions"), &target.initiator, action.as_bytes());
    repeat(target, run, CONNECTIONS, &[too_large, payload, comment, action]);
}

/// Text in which every few bytes could begin a token.
pub(super) fn text_like_tokens(target: &Target, run: &Run) {
    let path = format!("/v1/items/{}/transitions", target.item);
    let bodies = ["pilot_", "pilot_0123456789 ", "%70ilot_", "a.b-c_d~"].map(|word| {
        let text = word.repeat((ACTION_BYTES - 64) / word.len());
        post(&path, &target.initiator, format!("{{\"action\":\"submit\",\"comment\":\"{text}\"}}").as_bytes())
    });
    repeat(target, run, CONNECTIONS, &bodies);
}
