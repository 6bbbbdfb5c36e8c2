//! The leak guard: no text makes it panic, and none brings a token past it.
#![no_main]

mod cost;

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pilot_core::actor::Actor;
use pilot_core::credentials::{Credential, Credentials, Schema};
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::limits::{ACTION_BODY_BYTES_MAX, URL_BYTES_MAX};
use pilot_core::role::Role;
use pilot_core::token::{self, Token};
use serde_json::Value;

/// Made by a person: live and used, found by its fingerprint.
const USED: &str = "correct-horse_battery.staple~0042";

/// Live, and never used: found by its digest.
const UNUSED: &str = "my-own_token.of/2026+never=used-yet";

static GUARD: LazyLock<LeakGuard> = LazyLock::new(|| {
    let actor = Actor::new("ana".parse().expect("an actor_id"), Role::Auditor);
    let entries = [USED, UNUSED].map(|token| Credential::plain(actor.clone(), Digest::of(token.as_bytes())));
    let guard = LeakGuard::new(Credentials::new(Schema::One, entries.to_vec()), 0x9E37_79B9_7F4A_7C15);
    guard.remember(USED.as_bytes(), Digest::of(USED.as_bytes()));
    guard
});

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    check(&text);
    let generated = Token::generate(&[bytes.len() as u8; 32]).hand_over();
    // A token at any place of any text, whatever stands around it.
    let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
    for token in [generated.as_str(), USED] {
        let carrier = format!("{}{token}{}", &text[..middle], &text[middle..]);
        assert!(GUARD.is_in(&carrier), "a token goes unseen");
        check(&carrier);
    }
    // One that was never used, in a sentence.
    let carrier = format!("{} ({UNUSED}). {}", &text[..middle], &text[middle..]);
    assert!(GUARD.is_in(&carrier), "an unused token goes unseen");
    assert!(!GUARD.redact(&carrier).contains(UNUSED), "an unused token is left");
    let _ = GUARD.find_live_in_url(&text);
    check_cost(bytes);
});

/// A body and a URL as long as they may be are looked through at a bounded cost.
fn check_cost(bytes: &[u8]) {
    if let Some(text) = cost::grown(bytes, b"", ACTION_BODY_BYTES_MAX) {
        let document = Value::String(String::from_utf8_lossy(&text).into_owned());
        cost::bounded_within(4 * cost::TIME_MAX, text.len(), || {
            (GUARD.find_in_json(&document), GUARD.find_live_in_json(&document).is_some())
        });
    }
    if let Some(text) = cost::grown(bytes, b"", URL_BYTES_MAX) {
        let target = String::from_utf8_lossy(&text);
        cost::bounded(text.len(), || GUARD.find_live_in_url(&target).is_some());
    }
}

fn check(text: &str) {
    let clean = GUARD.redact(text);
    assert_eq!(token::find_generated(clean.as_bytes(), 0), None, "a generated token is left");
    assert!(!clean.contains(USED), "a used token is left");
}
