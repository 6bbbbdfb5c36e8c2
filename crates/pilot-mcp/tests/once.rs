//! The same proposal again is the same item, wherever the first call was cut off and whatever became of it.

use pilot_core::role::Role;
use serde_json::{Value, json};

use crate::client::{Client, words};
use crate::fake::{Cut, Fake};

fn proposal() -> Value {
    json!({"workflow": "w", "title": "Restart", "payload": {"what": "restart web"}})
}

fn attempt(number: u32) -> Value {
    let mut proposal = proposal();
    proposal["attempt"] = number.into();
    proposal
}

#[tokio::test]
async fn a_retry_attaches_wherever_the_first_call_was_cut_off() {
    for (request, cut) in [
        ("Get /v1/items", Cut::Before),
        ("Post /v1/items", Cut::Before),
        ("Post /v1/items", Cut::After),
        ("/transitions", Cut::Before),
        ("/transitions", Cut::After),
    ] {
        let fake = Fake::new();
        let mut client = Client::new(&fake, Role::Initiator).await;
        fake.cut(request, cut);
        let first = client.call("propose", &proposal()).await;
        assert!(words(&first).contains("The service cannot be reached"), "{first}");
        let second = client.must("propose", &proposal()).await;
        assert_eq!(second["status"]["state"], "submitted", "{request}");
        assert_eq!(fake.items(), 1, "{request}");
        client.leave().await.unwrap();
    }
}

#[tokio::test]
async fn a_proposal_that_is_already_there_says_so_even_after_the_service_forgot_its_key() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    assert_eq!(client.must("propose", &proposal()).await["already_proposed"], false);
    fake.forget_keys();
    let again = client.must("propose", &proposal()).await;
    assert_eq!((&again["already_proposed"], &again["next_attempt"]), (&json!(true), &Value::Null));
    assert_eq!(fake.items(), 1);
}

#[tokio::test]
async fn nobody_is_asked_once_more_before_the_first_answer() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    client.must("propose", &proposal()).await;
    let refused = client.call("propose", &attempt(2)).await;
    assert!(words(&refused).contains("is not finished; call `wait`, `revise` or `withdraw`"), "{refused}");
    assert_eq!(fake.items(), 1);
}

#[tokio::test]
async fn a_proposal_that_is_over_is_not_made_again_unless_the_attempt_is_raised() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    client.must("propose", &proposal()).await;
    fake.moved(0, "rejected");
    let over = client.must("propose", &proposal()).await;
    assert_eq!((&over["already_proposed"], &over["next_attempt"]), (&json!(true), &json!(2)));
    assert_eq!(fake.items(), 1);
    let refused = client.call("propose", &attempt(3)).await;
    assert!(words(&refused).contains("/attempt: the next attempt at this proposal is 2."), "{refused}");
    let second = client.must("propose", &attempt(2)).await;
    assert_eq!((&second["already_proposed"], &second["attempt"]), (&json!(false), &json!(2)));
    assert_eq!(client.must("propose", &attempt(2)).await["already_proposed"], true);
    assert_eq!(fake.items(), 2);
}

#[tokio::test]
async fn a_returned_item_is_for_revise_and_propose_leaves_it_alone() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    client.must("propose", &proposal()).await;
    fake.moved(0, "returned");
    let again = client.must("propose", &proposal()).await;
    assert_eq!(again["status"]["state"], "returned");
    assert!(again["next_step"].as_str().unwrap().contains("`revise`"), "{again}");
}

#[tokio::test]
async fn two_equal_proposals_at_once_are_one_item() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let ids = [client.begin("propose", &proposal()).await, client.begin("propose", &proposal()).await];
    let mut already = Vec::new();
    for _ in ids {
        let answer = client.next_answer().await;
        already.push(answer["result"]["structuredContent"]["already_proposed"].as_bool().unwrap());
    }
    already.sort_unstable();
    assert_eq!((already, fake.items()), (vec![false, true], 1));
}

#[tokio::test]
async fn a_payload_with_a_fault_creates_nothing() {
    let fake = Fake::new();
    let mut client = Client::new(&fake, Role::Initiator).await;
    let faulty = json!({"workflow": "w", "title": "Restart", "payload": {"waht": "restart web"}});
    let refused = client.call("propose", &faulty).await;
    assert!(words(&refused).contains("/payload") && words(&refused).contains("Nothing was sent."), "{refused}");
    assert_eq!(fake.items(), 0);
}
