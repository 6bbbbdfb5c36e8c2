//! Senders over a real store, with a network, a clock and dice that the test moves.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue};
use pilot_core::actor::Actor;
use pilot_core::decide::{Content, NewItem};
use pilot_core::document::Document;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ClockAccepted, Details};
use pilot_core::leak::LeakGuard;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_setup::config::{Config, Signing, Webhook};
use pilot_setup::webhook_key::WebhookKey;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Outcome, Record, Situation, Store, Subject, Write};
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{OutgoingError, Receipt};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cursor::{Cursor, Pause};
use super::message::Origin;
use super::place;
use super::sender::{Deliver, Delivery, Next, Sender, Sources};
use super::tally::{self, Tally};
use crate::clock::{Clock, Elapsed, LedgerClock};
use crate::moves;
use crate::workflows::Workflows;

const NOW: i64 = 1_800_000_000_000_000;
const MINUTE: Duration = Duration::from_mins(1);

type Headers = Vec<(HeaderName, HeaderValue)>;

/// What a receiver does with the next deliveries; after the last one it accepts everything.
#[derive(Default)]
struct Receiver {
    script: Mutex<VecDeque<Result<Receipt, OutgoingError>>>,
    got: Mutex<Vec<(Headers, Bytes)>>,
}

impl Deliver for Receiver {
    fn deliver(&self, headers: Vec<(HeaderName, HeaderValue)>, body: Bytes) -> Delivery<'_> {
        self.got.lock().unwrap().push((headers, body));
        let answer = self.script.lock().unwrap().pop_front();
        Box::pin(async move { answer.unwrap_or(Ok(Receipt { status: 204, retry_after: None })) })
    }
}

impl Receiver {
    fn will_answer(&self, statuses: &[u16]) {
        let answer = |status: &u16| Ok(Receipt { status: *status, retry_after: None });
        self.script.lock().unwrap().extend(statuses.iter().map(answer));
    }

    fn will_be_silent(&self) {
        self.script.lock().unwrap().push_back(Err(OutgoingError::TooSlow(Duration::from_secs(15))));
    }

    fn events(&self) -> Vec<Value> {
        self.got.lock().unwrap().iter().map(|(_, body)| serde_json::from_slice(body).unwrap()).collect()
    }

    /// The indices that arrived, in order.
    fn indices(&self) -> Vec<u64> {
        self.events().iter().map(|event| event["id"].as_str().unwrap().parse().unwrap()).collect()
    }
}

struct Stage {
    _directory: TempDir,
    store: Arc<dyn Store>,
    workflows: Arc<Workflows>,
    machine: Arc<AtomicI64>,
    elapsed: Arc<AtomicU64>,
    clock: LedgerClock,
}

impl Stage {
    async fn new() -> Stage {
        let directory = TempDir::new().unwrap();
        let (machine, elapsed) = (Arc::new(AtomicI64::new(NOW)), Arc::new(AtomicU64::new(0)));
        let clock = LedgerClock::new(Clock::Manual(Arc::clone(&machine)), Elapsed::Manual(Arc::clone(&elapsed)));
        let of_store = clock.clone();
        let store = Sqlite::open(&directory.path().join("pilot.db"), Arc::new(move || of_store.now())).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let workflows = Arc::new(Workflows::load(None, &*store).await.unwrap());
        Stage { _directory: directory, store, workflows, machine, elapsed, clock }
    }

    fn advance(&self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap();
        self.elapsed.fetch_add(micros, Ordering::SeqCst);
        self.machine.fetch_add(i64::try_from(micros).unwrap(), Ordering::SeqCst);
    }

    /// An entry about an item, as `decide` makes it.
    async fn create_item(&self, title: &str) -> Entry {
        let definition = Arc::clone(self.workflows.named("controlled-operation").unwrap());
        let payload = json!({ "purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r" });
        let content = Document::content(title, &payload, "00000000000000000000000000000000");
        let judged = Content::judge(&definition, title, &payload, content.digest.clone());
        let id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        let new = NewItem { id, content: judged };
        let ana = Actor::new("ana".parse().unwrap(), Role::Initiator);
        let decide = moves::create(definition, ana, new, content);
        match self.store.settle(Write::new(Subject::NewItem { count_open: None }, None, decide)).await.unwrap() {
            Outcome::Recorded { entry, .. } => entry,
            other => panic!("{other:?}"),
        }
    }

    /// Entries about the service.
    async fn remark(&self, count: usize) {
        for _ in 0..count {
            let decide = |situation: &Situation<'_>| {
                Ok(Record::of(Entry::of_service(situation.index, situation.now, None, &details(situation.now))))
            };
            self.store.settle(Write::new(Subject::Ledger, None, decide)).await.unwrap();
        }
    }

    fn sender(&self, more: &str, receiver: &Arc<Receiver>) -> (Sender, Arc<Tally>) {
        let tally = Arc::new(Tally::new("chat", "chat.example"));
        let key = WebhookKey::generate(Signing::Ed25519).unwrap();
        let keys: Arc<[WebhookKey]> = Arc::new([WebhookKey::parse(Signing::Ed25519, &key).unwrap()]);
        let sources = Sources {
            store: Arc::clone(&self.store),
            workflows: Arc::clone(&self.workflows),
            guard: Arc::new(LeakGuard::for_generated_tokens()),
            clock: self.clock.clone(),
            machine: Clock::Manual(Arc::clone(&self.machine)),
            // In the middle of what chance may do.
            dice: Arc::new(|| 200),
        };
        let origin = Origin::new("pilot.example/log", Some("https://pilot.example"));
        let network: Arc<dyn Deliver> = Arc::clone(receiver) as Arc<dyn Deliver>;
        (Sender::new(webhook(more), keys, network, (sources, origin), Arc::clone(&tally)), tally)
    }

    async fn saved(&self) -> Cursor {
        place::read(&*self.store, "chat").await.unwrap().unwrap()
    }
}

fn details(machine: Time) -> Details {
    Details::ClockAccepted(ClockAccepted { machine, operator: None })
}

fn webhook(more: &str) -> Webhook {
    let text =
        format!("[[webhooks]]\nname = 'chat'\nurl = 'https://chat.example/x'\nsecret_files = ['k']\nfrom = 0\n{more}");
    let config: Config = toml::from_str(&text).unwrap();
    config.webhooks.into_iter().next().unwrap()
}

/// Steps until there is nothing to do now.
async fn run(sender: &mut Sender) -> Next {
    for _ in 0..100_000 {
        match sender.step().await {
            Next::AtOnce => {}
            waits => return waits,
        }
    }
    panic!("it never rests");
}

#[tokio::test]
async fn every_entry_arrives_in_order_and_the_cursor_is_saved_every_32() {
    let stage = Stage::new().await;
    stage.remark(100).await;
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    for _ in 0..80 {
        sender.step().await;
        let unsaved = receiver.indices().len() as u64 - stage.saved().await.next;
        assert!(unsaved <= 32, "{unsaved} could come again");
    }
    assert_eq!(run(&mut sender).await, Next::Growth);
    assert_eq!(receiver.indices(), (0..100).collect::<Vec<_>>());
    assert!(stage.saved().await.next < 100);
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    assert_eq!(stage.saved().await.next, 100, "after a second it is saved whatever it is");
}

#[tokio::test]
async fn a_new_sender_continues_where_the_last_one_saved_and_leaves_nothing_out() {
    let stage = Stage::new().await;
    stage.remark(50).await;
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    for _ in 0..41 {
        sender.step().await;
    }
    drop(sender);
    let (first, saved) = (receiver.indices(), stage.saved().await.next);
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    run(&mut sender).await;
    let all = receiver.indices();
    assert_eq!(all[first.len()..], (saved..50).collect::<Vec<_>>(), "from what was saved on");
    assert!(saved <= first.len() as u64 && first == (0..first.len() as u64).collect::<Vec<_>>());
    stage.advance(Duration::from_secs(2));
    sender.finish().await;
    assert_eq!(stage.saved().await.next, 50, "one that is told to stop saves");
}

#[tokio::test]
async fn one_that_fails_is_tried_again_later_and_everything_after_it_waits() {
    let stage = Stage::new().await;
    stage.remark(3).await;
    let receiver = Arc::new(Receiver::default());
    receiver.will_answer(&[204, 500, 302, 404]);
    receiver.will_be_silent();
    let (mut sender, tally) = stage.sender("restricted = true", &receiver);
    assert_eq!(run(&mut sender).await, Next::After(Duration::from_secs(1)));
    assert_eq!(receiver.indices(), [0, 1]);
    assert_eq!(stage.saved().await.last_answer.as_deref(), Some("answered 500"));
    for (wait, arrived, said) in [
        (Duration::from_secs(5), 3, "answered 302"),
        (Duration::from_secs(30), 4, "answered 404"),
        (MINUTE * 2, 5, "no answer within 15 s"),
    ] {
        stage.advance(wait.saturating_sub(Duration::from_millis(1)));
        run(&mut sender).await;
        assert_eq!(receiver.indices().len(), arrived - 1, "not before {wait:?}");
        stage.advance(Duration::from_millis(1));
        run(&mut sender).await;
        assert_eq!((receiver.indices().len(), receiver.indices()[arrived - 1]), (arrived, 1));
        assert_eq!(stage.saved().await.last_answer.as_deref(), Some(said));
    }
    let mut text = Exposition::default();
    tally::metrics(&[&tally], 3, stage.clock.now(), &mut text);
    let text = text.into_text();
    for sample in [
        "pilot_webhook_deliveries_total{endpoint=\"chat\",outcome=\"delivered\"} 1",
        "pilot_webhook_deliveries_total{endpoint=\"chat\",outcome=\"failed\"} 4",
        "pilot_webhook_lag_entries{endpoint=\"chat\"} 2",
        "pilot_webhook_oldest_seconds{endpoint=\"chat\"} 155",
        "pilot_webhook_failing_seconds{endpoint=\"chat\"} 155",
        "pilot_webhook_paused{endpoint=\"chat\"} 0",
    ] {
        assert!(text.contains(sample), "{sample}: {text}");
    }
    stage.advance(MINUTE * 10);
    run(&mut sender).await;
    assert_eq!(receiver.indices()[5..], [1, 2]);
    let ids: Vec<_> = receiver.got.lock().unwrap().iter().map(|(headers, _)| headers[1].1.clone()).collect();
    assert!(ids[1..6].iter().all(|id| *id == ids[1]) && ids[6] != ids[1], "each attempt has the same id: {ids:?}");
    stage.advance(MINUTE);
    run(&mut sender).await;
    assert_eq!((stage.saved().await.failing_since, stage.saved().await.attempts), (None, 0));
}

#[tokio::test]
async fn a_receiver_that_is_gone_or_fails_for_five_days_is_paused_until_someone_replays() {
    let stage = Stage::new().await;
    stage.remark(2).await;
    let receiver = Arc::new(Receiver::default());
    receiver.will_answer(&[410]);
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    run(&mut sender).await;
    assert_eq!(stage.saved().await.paused, Some(Pause::Gone));
    stage.advance(MINUTE * 60 * 24 * 30);
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [0], "nothing is sent");
    super::replay(&*stage.store, "chat", 1).await.unwrap();
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [0, 1]);

    stage.remark(1).await;
    receiver.will_answer(&[500; 200]);
    for _ in 0..5 * 24 {
        run(&mut sender).await;
        assert_eq!(stage.saved().await.paused, None);
        stage.advance(MINUTE * 60);
    }
    run(&mut sender).await;
    let paused = stage.saved().await;
    assert_eq!((paused.paused, paused.next), (Some(Pause::Failing), 2));
}

#[tokio::test]
async fn a_replay_is_not_undone_by_a_sender_that_saves_later() {
    let stage = Stage::new().await;
    stage.remark(10).await;
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    run(&mut sender).await;
    assert_eq!(receiver.indices(), (0..10).collect::<Vec<_>>());
    super::replay(&*stage.store, "chat", 4).await.unwrap();
    // It has not saved yet, and now wants to.
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    assert_eq!(receiver.indices()[10..], (4..10).collect::<Vec<_>>());
    // And when it has nothing to do.
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    super::replay(&*stage.store, "chat", 9).await.unwrap();
    run(&mut sender).await;
    assert_eq!(receiver.indices()[16..], [9]);
    assert!(matches!(super::replay(&*stage.store, "chat", 11).await, Err(super::ReplayError::BeyondTheEnd(10))));
}

#[tokio::test]
async fn of_two_senders_the_earlier_one_cannot_save_any_more() {
    let stage = Stage::new().await;
    stage.remark(5).await;
    let (old_receiver, new_receiver) = (Arc::new(Receiver::default()), Arc::new(Receiver::default()));
    let (mut old, _) = stage.sender("restricted = true", &old_receiver);
    old.step().await;
    let (mut new, _) = stage.sender("restricted = true", &new_receiver);
    run(&mut new).await;
    stage.advance(Duration::from_secs(1));
    run(&mut new).await;
    let saved = stage.saved().await;
    // As a node that was cut off and does not know yet that it lost the duty.
    old.finish().await;
    assert_eq!(stage.saved().await, saved);
    assert_eq!(new_receiver.indices(), (0..5).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_new_endpoint_begins_now_unless_it_is_told_otherwise() {
    let stage = Stage::new().await;
    stage.remark(5).await;
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    sender.webhook_mut().from = pilot_setup::config::WebhookFrom::Now;
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [] as [u64; 0]);
    stage.remark(1).await;
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [5]);
    let beyond = place::take_over(&*stage.store, "other", pilot_setup::config::WebhookFrom::Index(99)).await.unwrap();
    assert_eq!(beyond.next, 6, "an index beyond the end is the end");
}

#[tokio::test]
async fn an_endpoint_is_told_only_what_it_asks_for() {
    let stage = Stage::new().await;
    stage.remark(1).await;
    stage.create_item("Restart the gateway").await;
    stage.remark(1).await;
    for (more, expected) in [
        ("", vec![1]),
        ("restricted = true", vec![0, 1, 2]),
        ("types = ['item.created']", vec![1]),
        ("types = ['item.transition']", vec![]),
        ("types = ['clock.accepted']\nrestricted = true", vec![0, 2]),
        ("workflows = ['controlled-operation']\nrestricted = true", vec![1]),
        ("workflows = ['another']", vec![]),
        ("waits_for = ['initiator', 'approver']", vec![1]),
        ("waits_for = ['executor']", vec![]),
    ] {
        let receiver = Arc::new(Receiver::default());
        let (mut sender, _) = stage.sender(more, &receiver);
        let _ = super::replay(&*stage.store, "chat", 0).await;
        run(&mut sender).await;
        assert_eq!(receiver.indices(), expected, "{more}");
    }
}

#[tokio::test]
async fn a_message_is_a_cloud_event_without_what_people_wrote_unless_the_title_is_asked_for() {
    let stage = Stage::new().await;
    let entry = stage.create_item("Restart the gateway").await;
    let item = entry.item.as_ref().unwrap().to_string();
    for (more, title) in [("", Value::Null), ("detail = 'full'", json!("Restart the gateway"))] {
        let receiver = Arc::new(Receiver::default());
        let (mut sender, _) = stage.sender(more, &receiver);
        let _ = super::replay(&*stage.store, "chat", 0).await;
        run(&mut sender).await;
        let event = receiver.events().remove(0);
        assert_eq!(
            (event["specversion"].as_str(), event["id"].as_str(), event["type"].as_str(), event["subject"].as_str()),
            (Some("1.0"), Some("0"), Some("item.created"), Some(item.as_str()))
        );
        assert_eq!((&event["source"], &event["time"]), (&json!("https://pilot.example"), &json!(entry.at)));
        let data = &event["data"];
        let (mut stripped, waits_for) = (data.clone(), data["waits_for"].clone());
        for extra in ["waits_for", "workflow", "link", "title"] {
            stripped.as_object_mut().unwrap().remove(extra);
        }
        assert_eq!(stripped, serde_json::to_value(&entry).unwrap(), "the rest is the entry as it is in the log");
        assert_eq!((&waits_for, &data["workflow"]), (&json!(["initiator"]), &json!("controlled-operation")));
        assert_eq!(data["link"], json!(format!("https://pilot.example/console/items/{item}")));
        assert_eq!(data.get("title").cloned().unwrap_or_default(), title);
        let (headers, _) = receiver.got.lock().unwrap().remove(0);
        let named =
            |name: &str| headers.iter().find(|(found, _)| found == name).unwrap().1.to_str().unwrap().to_owned();
        assert_eq!(named("content-type"), "application/cloudevents+json");
        assert_eq!(named("webhook-timestamp"), (NOW / 1_000_000).to_string());
        assert!(named("webhook-id").starts_with("msg_") && named("webhook-id").ends_with("_0"));
        assert!(named("webhook-signature").starts_with("v1a,"));
    }
}

#[test]
fn a_message_stays_under_its_limit_by_leaving_out_details() {
    let entry = Entry {
        details: Some(json!({ "changes": "x".repeat(60_000) })),
        ..Entry::of_service(7, Time::EPOCH, None, &details(Time::EPOCH))
    };
    let origin = Origin::new("pilot.example/log", None);
    let body = super::message::event(&origin, &entry, None, None, &LeakGuard::for_generated_tokens());
    let event: Value = serde_json::from_slice(&body).unwrap();
    assert!(body.len() < 20_000 && event["data"]["details"].is_null());
    assert_eq!((&event["data"]["details_left_out"], &event["source"]), (&json!(true), &json!("pilot.example/log")));
}
