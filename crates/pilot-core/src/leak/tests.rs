use super::*;
use crate::{actor::Actor, credentials::Schema, role::Role, token::Token};

const HANDMADE: &str = "correct/horse\"battery\\staple=2026!";

fn guard(live: &[&str], used: &[&str]) -> LeakGuard {
    let actor = Actor::new("ana".parse().unwrap(), Role::Auditor);
    let entry = |token: &&str| Credential::plain(actor.clone(), Digest::of(token.as_bytes()));
    let guard = LeakGuard::new(Credentials::new(Schema::One, live.iter().map(entry).collect()), 0x9E37_79B9_7F4A_7C15);
    for token in used {
        guard.remember(token.as_bytes(), Digest::of(token.as_bytes()));
    }
    guard
}

fn check(guard: &LeakGuard, text: &str, expected: &str) {
    assert_eq!(guard.redact(text), expected, "{text}");
}

#[test]
fn a_generated_token_is_found_anywhere_even_when_it_is_not_live() {
    let token = Token::generate(&[3; 32]).hand_over();
    let token = token.as_str();
    let guard = LeakGuard::for_generated_tokens();
    check(&guard, &format!("{{\"token\":\"{token}\"}}"), "{\"token\":\"[token withheld]\"}");
    check(&guard, &format!("x{token}x {token}"), "x[token withheld]x [token withheld]");
    check(&guard, "pilot_notatoken and a plain sentence", "pilot_notatoken and a plain sentence");
}

#[test]
fn a_used_token_is_found_inside_of_any_text() {
    let token = "abcdefghijklmnopqrstuvwxyz0123456789";
    let guard = guard(&[token], &[token]);
    check(&guard, &format!("before{token}after"), "before[token withheld]after");
    check(&guard, &format!("?t={token}&u={token}"), "?t=[token withheld]&u=[token withheld]");
    check(&guard, &token[..35], &token[..35]);
}

#[test]
fn a_live_token_that_was_never_used_is_found_as_a_word() {
    let token = "abcdefghijklmnopqrstuvwxyz0123456789";
    let guard = guard(&[token, HANDMADE], &[]);
    check(&guard, &format!("Bearer {token}"), "Bearer [token withheld]");
    check(&guard, &format!("{{\"token\":\"{token}\"}}"), "{\"token\":\"[token withheld]\"}");
    check(&guard, &format!("/v1/session?t={token}"), "/v1/session?t=[token withheld]");
    check(&guard, HANDMADE, "[token withheld]");
}

#[test]
fn once_every_live_token_was_used_each_is_still_found_and_until_then_the_unused_ones_are() {
    let [first, second] = ["abcdefghijklmnopqrstuvwxyz0123456789", HANDMADE];
    let encoded: String = HANDMADE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for used in [&[first][..], &[second], &[first, first], &[first, second]] {
        let guard = guard(&[first, second], used);
        for token in [first, second] {
            check(&guard, &format!("see {token} there"), "see [token withheld] there");
        }
        for token in [first, &encoded] {
            assert!(guard.find_live_in_url(&format!("/v1/session?t={token}")).is_some(), "{used:?} {token}");
        }
    }
}

#[test]
fn a_token_behind_escapes_withholds_the_whole_text() {
    let guard = guard(&[HANDMADE], &[HANDMADE]);
    let once = serde_json::to_string(HANDMADE).unwrap();
    let twice = serde_json::to_string(&once).unwrap();
    check(&guard, &format!("{{\"a\": {once}}}"), WITHHELD);
    check(&guard, &format!("{{\"a\": {twice}}}"), WITHHELD);
}

#[test]
fn a_live_token_in_a_url_is_found_also_percent_encoded_and_a_dead_one_is_not() {
    let token = "abcdefghijklmnopqrstuvwxyz0123456789";
    let guard = guard(&[token, HANDMADE], &[]);
    let encoded: String = HANDMADE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for target in [format!("/v1/session?access_token={token}"), format!("/{token}"), format!("/x?y={encoded}")] {
        assert!(guard.find_live_in_url(&target).is_some(), "{target}");
    }
    let dead = Token::generate(&[1; 32]).hand_over();
    for target in [format!("/v1/session?t={}", *dead), "/v1/session?q=an+ordinary+search+of+some+length".to_owned()] {
        assert!(guard.find_live_in_url(&target).is_none(), "{target}");
    }
    assert!(guard.find_live_in_url(&format!("/?a={}&b={token}", *dead)).is_some());
}

#[test]
fn a_token_in_json_is_reported_by_its_place_never_by_its_value() {
    let token = "abcdefghijklmnopqrstuvwxyz0123456789";
    let guard = guard(&[token], &[]);
    let value = serde_json::json!({"a": [{"b": format!("see {token}")}], (token): {"c": token}});
    let places = guard.find_in_json(&value);
    assert_eq!(places, ["/a/0/b", "", "/[token withheld]/c"]);
}

#[test]
fn a_signed_token_is_found_only_when_an_identity_provider_signs_them() {
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl";
    let text = format!("see \"{token}\" and {token}.");
    check(&guard(&[], &[]), &text, &text);
    let guard = guard(&[], &[]).with_signed_tokens();
    check(&guard, &text, "see \"[token withheld]\" and [token withheld].");
    assert_eq!(guard.find_in_json(&serde_json::json!({"a": text, "b": "ordinary"})), ["/a"]);
    let encoded = token.replace('.', "%2e");
    for target in [format!("/v1/session?access_token={token}"), format!("/{encoded}/x"), format!("//{token}@host/")] {
        assert_eq!(guard.find_signed_in_url(&target), [token.as_bytes()], "{target}");
    }
    assert_eq!(guard.find_signed_in_url("/v1/items?q=nothing.of.that.kind.is.in.here"), [b""; 0]);
}

#[test]
fn a_url_full_of_signed_tokens_gives_no_more_than_two_of_them_to_check() {
    let token = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhbmEifQ.c2lnbmF0dXJl";
    let guard = guard(&[], &[]).with_signed_tokens();
    for (count, found) in [(1, 1), (2, 2), (3, 2), (100, 2)] {
        let target = format!("/{}", vec![token; count].join("/"));
        assert_eq!(guard.find_signed_in_url(&target).len(), found, "{count}");
    }
}

#[test]
fn every_position_and_length_of_a_used_token_is_found() {
    for length in [32, 33, 64, 255, 256] {
        let token: String = ('!'..='~').cycle().step_by(7).take(length).collect();
        let guard = guard(&[], &[&token]);
        for lead in [0, 1, 31, 32, 33] {
            let text = format!("{}{token}{}", "x".repeat(lead), "y".repeat(lead));
            assert_eq!(guard.find(text.as_bytes()), Some(lead..lead + length), "{length} {lead}");
        }
    }
}

/// Live, made by hand and never used: plain letters, one with punctuation inside, and one with it at both ends.
const UNUSED: [&str; 4] = [
    "tka4d61fc2b09e8374c5d6e7f8091a2b3c4d",
    "my-own_token.of/2026+with=punctuation-in-it",
    "-_dashes.at.both.ends.of.the.token_-",
    "8c1b0f4e-3d52-4c6a-9b1e-7f2a5d0c9e34",
];

#[test]
fn an_unused_token_is_found_in_content_whatever_stands_around_it() {
    let guard = guard(&UNUSED, &[]);
    for token in UNUSED {
        for (before, after) in [
            ("Use ", ". Thanks"),
            ("(", ")."),
            ("see:", "-"),
            ("_", "_"),
            ("token", "please"),
            ("https://x.example/a-b/c_d?t=", "&u=1#e.f"),
            ("a.b.c.d.e.f.g.h.i.j.k.l=", ".m.n.o.p"),
            ("{\"a\":\"b\",\"c\":{\"d\":\"", "\"}}"),
        ] {
            let text = format!("{before}{token}{after}");
            check(&guard, &text, &format!("{before}[token withheld]{after}"));
            assert_eq!(guard.find_in_json(&serde_json::json!({"text": text})), ["/text"], "{text}");
        }
    }
}

#[test]
fn an_unused_token_is_found_as_words_in_a_run_too_long_to_be_tried_everywhere() {
    let guard = guard(&UNUSED, &[]);
    let long = "https://x.example/some/path/".repeat(5);
    for token in UNUSED {
        for text in [format!("{long}{token}"), format!("{long}{token}/{long}"), format!("{long}?t={token}&{long}")] {
            assert!(guard.is_in(&text), "{text}");
            assert!(guard.find_live_in_url(&text).is_some(), "{text}");
        }
    }
}

#[test]
fn an_unused_token_that_looks_like_a_digest_or_an_id_is_found() {
    let hex = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let id = "0199f3a1-7c1e-7d43-8f25-0123456789ab";
    let cursor = "MDE5OWYzYTEtN2MxZS03ZDQzLThmMjUtMDEyMzQ1Njc4OWFi";
    let guard = guard(&[hex, id, cursor], &[]);
    assert!(guard.find_live_in_url(&format!("/v1/items?cursor={cursor}")).is_some());
    for text in [format!("{hex}."), format!("sha256:{hex}"), format!("x{hex}"), format!("{id},"), format!("x{id}y")] {
        assert!(guard.is_in(&text), "{text}");
    }
    assert!(guard.find_live_in_url(&format!("/v1/items/{id}/transitions")).is_some());
}

#[test]
fn a_token_is_found_behind_percent_encoding_once_and_twice_in_content_and_in_urls() {
    let encoded = |token: &str| token.bytes().map(|byte| format!("%{byte:02x}")).collect::<String>();
    for used in [&[][..], &UNUSED] {
        let guard = guard(&UNUSED, used);
        for token in UNUSED {
            let one = token.replacen(&token[5..6], &encoded(&token[5..6]), 1);
            for hidden in [one.clone(), one.replace('%', "%25"), encoded(token), encoded(&encoded(token))] {
                check(&guard, &format!("see https://x/?t={hidden}&u=v"), WITHHELD);
                let target = format!("/v1/session?t={hidden}&u=v");
                assert!(guard.find_live_in_url(&target).is_some(), "{target}");
            }
        }
    }
}

#[test]
fn an_unused_token_in_a_url_is_found_next_to_anything() {
    let guard = guard(&UNUSED, &[]);
    for token in UNUSED {
        for (before, after) in
            [("/v1/session?t=", "."), ("/", "-"), ("/v1/items?q=x", "y"), ("/v1/items#", ""), ("/v1/x?a=b&", "=_")]
        {
            let target = format!("{before}{token}{after}");
            assert!(guard.find_live_in_url(&target).is_some(), "{target}");
        }
    }
}

#[test]
fn hostile_text_is_never_let_through_unread_and_ends_in_a_bounded_number_of_hashes() {
    let guard = guard(&UNUSED, &[]);
    // More encoded runs than accepted content can contain: what is not searched is withheld.
    let encoded = format!("%2541{} ", "a".repeat(33));
    assert_eq!(guard.redact(&encoded.repeat(1_500)), encoded.repeat(1_500));
    assert_eq!(guard.redact(&encoded.repeat(25_000)), WITHHELD);
    // The budget is spent, but words are still found.
    let long = format!("{} ", "a".repeat(127)).repeat(100);
    let [token, ..] = UNUSED;
    check(&guard, &format!("{long}see {token}. Bye"), &format!("{long}see [token withheld]. Bye"));
}

#[test]
fn of_tokens_side_by_side_each_is_replaced_whichever_net_finds_it() {
    let generated = Token::generate(&[9; 32]).hand_over();
    let [unused, used, ..] = UNUSED;
    let guard = guard(&UNUSED, &[used]);
    let row = format!("{unused}{used}{}{used}{}{unused}", *generated, *generated);
    check(&guard, &format!("see {row} there"), &format!("see {} there", WITHHELD.repeat(6)));
}

#[test]
fn of_very_many_places_the_first_are_reported_and_a_very_long_one_is_withheld() {
    let [token, ..] = UNUSED;
    let guard = guard(&UNUSED, &[token]);
    assert_eq!(guard.find_in_json(&serde_json::json!(vec![token; 5_000])).len(), FAULTS_MAX);
    let name = token.repeat(20_000);
    assert_eq!(guard.find_in_json(&serde_json::json!({(name): {"a": token}})), ["", WITHHELD]);
}

#[test]
fn a_sweep_over_stored_texts_finds_every_kind_of_token_wherever_it_stands_in_a_string() {
    let [word, generated] = ["abcdefghijklmnopqrstuvwxyz0123456789", &Token::generate(&[4; 32]).hand_over()];
    for used in [&[][..], &[word], &[word, HANDMADE]] {
        let guard = guard(&[word, HANDMADE], used);
        let mut sweep = guard.sweep();
        for token in [word, HANDMADE, generated] {
            for json in [
                serde_json::json!({"comment": token, "nonce": "0".repeat(32)}),
                serde_json::json!({"comment": format!("my token is {token} and yours?")}),
                serde_json::json!({"payload": {"targets": ["a", token]}, "title": "é"}),
                serde_json::json!({token: 1}),
                serde_json::json!({"a": format!("a \"quoted\" {token}\n")}),
            ] {
                let clean = json.to_string().replace(&serde_json::to_string(token).unwrap()[1..9], "!");
                assert!(!sweep.finds_token(clean.as_bytes()), "{used:?} {clean}");
                assert!(sweep.finds_token(json.to_string().as_bytes()), "{used:?} {json}");
                // What was clean once is skipped the second time; what was not is found again.
                assert!(!sweep.finds_token(clean.as_bytes()), "{used:?} {clean}");
                assert!(sweep.finds_token(json.to_string().as_bytes()), "{used:?} {json}");
            }
        }
    }
}

#[test]
fn a_sweep_remembers_runs_by_all_their_bytes_and_takes_what_is_no_json_for_one_string() {
    let token = "abcdefghijklmnopqrstuvwxyz0123456789";
    let guard = guard(&[token], &[]);
    let mut sweep = guard.sweep();
    let mut dice = 7_u64;
    for _ in 0..20_000 {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        assert!(!sweep.finds_token(format!("[\"{dice:016x}{dice:020}\"]").as_bytes()));
    }
    assert!(sweep.finds_token(format!("[\"{token}\"]").as_bytes()), "whatever was remembered before");
    assert!(sweep.finds_token(format!("[\"{token}").as_bytes()), "a string without an end");
    assert!(!sweep.finds_token(b"\"\\") && !sweep.finds_token(b"") && !sweep.finds_token(b"\""));
}

#[test]
fn what_was_searched_before_hides_no_token_that_comes_later() {
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    let digest = format!("sha256:{}", "0123456789abcdef".repeat(4));
    let target = format!("/v1/items/{id}/transitions");
    // Live tokens that nobody has used. The last two are also words that every request has.
    for (live, is_live) in [("another token, of a person who has yet to come", false), (id, true), (&digest[7..], true)]
    {
        let guard = guard(&[live, HANDMADE], &[]);
        for _ in 0..3 {
            assert_eq!(guard.find_live_in_url(&target).is_some(), live == id, "{live}");
            assert_eq!(guard.is_in(&digest), live == &digest[7..], "{live}");
            assert_eq!(guard.is_in(&digest) || guard.is_in(id), is_live, "{live}");
            check(&guard, &format!("see {HANDMADE}"), "see [token withheld]");
        }
    }
}

#[test]
fn a_token_may_be_one_of_our_digests_or_ids_with_what_stands_beside_it() {
    let (id, hex) = ("01890a5d-ac96-774b-bcce-b302099a8057", "0123456789abcdef".repeat(4));
    for token in [id, &format!("{id},"), &format!("({id}"), &hex, &format!("sha256:{hex}"), &format!("sha256:{hex})")] {
        let guard = guard(&[token], &[]);
        for text in [format!("see {token} there"), format!("({token})"), format!("\"{token}\",")] {
            assert!(guard.find(text.as_bytes()).is_some(), "{token} in {text}");
        }
    }
}
