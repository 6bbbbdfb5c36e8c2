//! How long, how many and how large: what an agent can cost.

use std::time::Duration;

use pilot_core::role::Role;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{Client, words};
use crate::fake::{Cut, Fake};

async fn proposed(fake: &Fake, client: &mut Client) -> Value {
    let proposal = json!({"workflow": "w", "title": "Restart", "payload": {"what": "restart web"}});
    let status = client.must("propose", &proposal).await;
    assert_eq!(fake.items(), 1);
    status["status"]["item"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_after_45_seconds_whatever_was_asked_for() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let item = proposed(&fake, &mut client).await;
    for (asked, waited) in [(Some(3600), 45), (None, 45), (Some(7), 7), (Some(0), 0)] {
        let began = Instant::now();
        let answer = client.must("wait", &json!({"item": item, "timeout_seconds": asked})).await;
        assert_eq!(began.elapsed().as_secs(), waited, "{asked:?}");
        assert_eq!((&answer["changed"], &answer["ask_again_in_seconds"]), (&json!(false), &json!(60)));
        assert_eq!(answer["status"]["waiting_for"][0]["who"], json!(["ben", "bea"]));
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_when_the_item_moves() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let item = proposed(&fake, &mut client).await;
    let began = Instant::now();
    let waiting = client.begin("wait", &json!({"item": item})).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    fake.moved(0, "returned");
    let answer = client.answer(waiting).await["result"]["structuredContent"].clone();
    assert_eq!((&answer["changed"], &answer["your_turn"]), (&json!(true), &json!(true)));
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_left_before_the_call_is_not_waited_for() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let item = proposed(&fake, &mut client).await;
    let began = Instant::now();
    let answer = client.must("wait", &json!({"item": item, "while_state": "draft"})).await;
    assert_eq!((&answer["changed"], began.elapsed().as_secs()), (&json!(true), 0));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_ends_the_server_though_a_call_waits() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let item = proposed(&fake, &mut client).await;
    let before = fake.requests().len();
    client.begin("wait", &json!({"item": item})).await;
    while fake.requests().len() == before {
        tokio::task::yield_now().await;
    }
    let began = Instant::now();
    client.leave().await.unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
}

#[tokio::test]
async fn a_client_that_leaves_at_once_is_not_an_error() {
    let fake = Fake::new();
    let client = Client::new(&fake, Role::Auditor).await;
    client.leave().await.unwrap();
}

#[tokio::test]
async fn eight_calls_run_at_once_sixty_four_are_admitted_and_the_rest_is_refused() {
    let fake = Fake::silent();
    let mut client = Client::new(&fake, Role::Initiator).await;
    for _ in 0..80 {
        client.begin("whoami", &json!({})).await;
    }
    for _ in 0..16 {
        let answer = client.next_answer().await;
        assert!(words(&answer["result"]).contains("Too many calls"), "{answer}");
    }
    fake.let_answer(64);
    for _ in 0..64 {
        assert_eq!(client.next_answer().await["result"]["isError"], false);
    }
    client.leave().await.unwrap();
}

#[tokio::test]
async fn a_cancelled_call_gives_its_place_back_and_is_not_answered() {
    let fake = Fake::silent();
    let mut client = Client::new(&fake, Role::Initiator).await;
    for _ in 0..8 {
        let id = client.begin("whoami", &json!({})).await;
        client.cancel(id).await;
    }
    let last = client.begin("whoami", &json!({})).await;
    fake.let_answer(9);
    assert_eq!(client.answer(last).await["result"]["isError"], false);
}

#[tokio::test]
async fn a_service_that_cannot_be_reached_is_a_tool_error_and_the_server_stays() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    fake.cut("/session", Cut::Before);
    let refused = client.call("whoami", &json!({})).await;
    assert!(words(&refused).starts_with("The service cannot be reached: cut off."), "{refused}");
    client.must("whoami", &json!({})).await;
}

#[tokio::test]
async fn a_payload_too_long_to_show_is_left_out_and_the_result_says_so() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let proposal = json!({"workflow": "w", "title": "Restart", "payload": {"what": "\u{202e}".repeat(15_000)}});
    let answer = client.must("propose", &proposal).await;
    assert_eq!(answer["status"]["payload"], json!({"written_by": "ana", "json": null, "cut": true}));
    assert!(answer.to_string().len() < 32 * 1024);
}

#[tokio::test]
async fn no_role_has_the_tools_of_another_and_none_has_one_that_decides() {
    for (role, tools) in [
        (Role::Approver, &["approve", "reject", "return", "propose", "start"][..]),
        (Role::SecurityAdmin, &["clear", "refuse", "revoke", "release", "comment"]),
        (Role::Executor, &["propose", "withdraw", "approve", "retry", "roll_back"]),
        (Role::Initiator, &["start", "report", "heartbeat", "cleared", "submit", "approve"]),
        (Role::Auditor, &["comment", "wait", "evidence"]),
    ] {
        let fake = Fake::new();
        let mut client = Client::new(&fake, role).await;
        for tool in tools {
            let id = client.begin(tool, &json!({})).await;
            let error = client.answer(id).await["error"].clone();
            assert_eq!(error["code"], -32602, "{tool}");
            let said = error["message"].as_str().unwrap();
            assert!(said.starts_with(&format!("unknown tool \"{tool}\"; as {role} you have: whoami")), "{said}");
        }
        assert_eq!(fake.requests(), [""; 0], "the service was not asked");
    }
}
