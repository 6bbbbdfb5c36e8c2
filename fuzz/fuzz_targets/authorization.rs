//! The `Authorization` lines of a request: whatever is sent, only a well-formed token is ever taken for one.
#![no_main]

mod cost;

use libfuzzer_sys::fuzz_target;
use pilot_core::bearer::{Presented, presented};
use pilot_core::limits::HEADER_BLOCK_BYTES_MAX;
use pilot_core::token;

fuzz_target!(|bytes: &[u8]| {
    check(bytes);
    if let Some(bytes) = cost::grown(bytes, b"", HEADER_BLOCK_BYTES_MAX) {
        cost::bounded(bytes.len(), || check(&bytes));
    }
});

fn check(bytes: &[u8]) {
    let lines: Vec<&[u8]> = if bytes.is_empty() { Vec::new() } else { bytes.split(|byte| *byte == b'\n').collect() };
    match presented(lines.iter().copied()) {
        Presented::Nothing => assert!(lines.is_empty()),
        Presented::Malformed => assert!(!lines.is_empty()),
        Presented::Token(token) => {
            assert_eq!(lines.len(), 1, "of several lines none may be believed");
            assert!(token::is_well_formed(token));
            assert!(lines[0].ends_with(token), "nothing may follow the token");
            let scheme = &lines[0][..lines[0].len() - token.len()];
            assert!(scheme.trim_ascii_end().eq_ignore_ascii_case(b"bearer") && scheme.ends_with(b" "));
        }
    }
}
