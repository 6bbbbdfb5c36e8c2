//! A live token that nobody has used yet, put where people put tokens.

use serde_json::json;

use crate::api::bad_input::draft;
use crate::support::team::{person, team, token};

/// Of the executor, who never signs in here: known by its digest alone, with punctuation of its own.
fn unused() -> String {
    token("eli")
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[test]
fn an_unused_token_gets_into_no_comment_whatever_stands_around_it() {
    let server = team().serve();
    let id = draft(&server);
    let line = format!("POST /v1/items/{id}/comments");
    let token = unused();
    for text in [
        format!("Use {token}. Thanks"),
        format!("({token})."),
        format!("it is:{token}-"),
        format!("the{token}one"),
        format!("https://x.example/a-b_c.d?t={token}&u=1"),
        format!("https://x.example/?t={}", token.replacen('h', "%68", 1)),
        format!("https://x.example/?t={}", encoded(&token)),
        format!("https://x.example/?t={}", encoded(&encoded(&token))),
    ] {
        let answer = person(&server, "ana").call(&line, &["Content-Type: application/json"], &body(&text));
        assert_eq!(answer.verdict(), "422 token_in_content", "{text}");
        assert_eq!(answer.json()["errors"][0]["pointer"], "/text", "{text}");
        assert!(!answer.text().contains(&token), "{text}");
    }
    let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    for text in [
        format!("see {id}, {digest} and https://git.example.org/ops/runbooks/-/blob/main/backup.md#restore"),
        "100%25 of https://x.example/a%20b%2Fc?d=e%3Df_and-more-of-the-same".to_owned(),
        token[..token.len() - 1].to_owned(),
    ] {
        let answer = person(&server, "ana").call(&line, &["Content-Type: application/json"], &body(&text));
        assert_eq!(answer.status, 201, "{text}: {}", answer.text());
    }
    let entries = person(&server, "ada").get("/v1/events?limit=200").text();
    assert!(!entries.contains(&token));
}

fn body(text: &str) -> Vec<u8> {
    json!({ "text": text }).to_string().into_bytes()
}

#[test]
fn an_unused_token_in_a_url_is_refused_whatever_stands_around_it() {
    let server = team().serve();
    let token = unused();
    let id = draft(&server);
    for target in [
        format!("/v1/session?t={token}."),
        format!("/v1/items/{id}/transitions?x={token}-_"),
        format!("/v1/items/x{token}y"),
        format!("/v1/items?q={}", encoded(&token)),
        format!("/v1/items?q={}", encoded(&encoded(&token))),
        format!("/{token}/"),
    ] {
        assert_eq!(person(&server, "ana").get(&target).verdict(), "400 token_in_url", "{target}");
    }
}
