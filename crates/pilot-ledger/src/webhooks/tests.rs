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
use pilot_core::item::Item;
use pilot_core::leak::LeakGuard;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use pilot_setup::config::{Config, Signing, Webhook, WebhookFrom};
use pilot_setup::webhook_key::WebhookKey;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Fact, NoRecord, Outcome, Record, Situation, Store, Subject, Write};
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{OutgoingError, Receipt};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::{Notify, watch};

use super::cursor::{Cursor, Pause};
use super::message::{About, Origin, is_of_wanted_turn};
use super::place::{self, ReplayError};
use super::sender::{Deliver, Delivery, Next, Sender, Sources};
use super::tally::{self, Tally};
use crate::clock::{Clock, Elapsed, LedgerClock};
use crate::last_step::until_stopped;
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
    /// Says that a delivery has come, and answers a little later.
    is_late: bool,
    /// From this delivery on, nothing is answered.
    hangs_from: Option<usize>,
    hangs: Notify,
}

impl Deliver for Receiver {
    fn deliver(&self, headers: Vec<(HeaderName, HeaderValue)>, body: Bytes) -> Delivery<'_> {
        let mut got = self.got.lock().unwrap();
        if self.hangs_from.is_some_and(|from| got.len() >= from) {
            self.hangs.notify_one();
            return Box::pin(std::future::pending());
        }
        got.push((headers, body));
        let answer = self.script.lock().unwrap().pop_front();
        let is_late = self.is_late;
        if is_late {
            self.hangs.notify_one();
        }
        Box::pin(async move {
            if is_late {
                tokio::task::yield_now().await;
            }
            answer.unwrap_or(Ok(Receipt { status: 204, retry_after: None }))
        })
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

    /// An entry that names a definition nobody has.
    async fn remark_of_unknown_workflow(&self) {
        let decide = |situation: &Situation<'_>| {
            let entry = Entry::of_service(situation.index, situation.now, None, &details(situation.now));
            Ok(Record::of(Entry { definition: Some("sha256:unknown".into()), ..entry }))
        };
        self.store.settle(Write::new(Subject::Ledger, None, decide)).await.unwrap();
    }

    async fn replay(&self, from: u64) -> Result<Cursor, ReplayError> {
        super::replay(&*self.store, "chat", WebhookFrom::Index(0), from).await
    }

    async fn saved(&self) -> Cursor {
        place::read(&*self.store, "chat").await.unwrap().unwrap()
    }
}

impl Stage {
    fn oldest_seconds(&self, tally: &Tally) -> u64 {
        let mut text = Exposition::default();
        let size = self.store.head().borrow().size();
        tally::metrics(&[tally], size, self.clock.now(), &mut text);
        let text = text.into_text();
        let sample =
            text.lines().find_map(|line| line.strip_prefix("pilot_webhook_oldest_seconds{endpoint=\"chat\"} "));
        sample.unwrap().parse().unwrap()
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
    assert!(stage.replay(1).await.is_err());
    stage.replay(0).await.unwrap();
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [0, 0, 1]);

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
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    stage.remark(5).await;
    run(&mut sender).await;
    assert_eq!(receiver.indices(), (0..15).collect::<Vec<_>>());
    assert_eq!(stage.replay(4).await.unwrap().next, 4);
    // It has not saved the last five yet, and now wants to.
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    assert_eq!(receiver.indices()[15..], (4..15).collect::<Vec<_>>());
    // And when it has nothing to do.
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    stage.replay(14).await.unwrap();
    run(&mut sender).await;
    assert_eq!(receiver.indices()[26..], [14]);
}

#[tokio::test]
async fn a_replay_goes_back_or_stays_and_leaves_nothing_out() {
    let stage = Stage::new().await;
    stage.remark(10).await;
    // One that has not begun is where its configuration says that it begins.
    assert!(matches!(stage.replay(1).await, Err(ReplayError::Ahead { next: 0 })));
    let receiver = Arc::new(Receiver { hangs_from: Some(4), ..Receiver::default() });
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    stop_at_a_delivery(&mut sender, &receiver).await;
    let saved = stage.saved().await;
    for from in [5, 10, 11, u64::MAX] {
        let refused = stage.replay(from).await;
        assert!(matches!(refused, Err(ReplayError::Ahead { next: 4 })), "{from}: {refused:?}");
        assert_eq!(stage.saved().await, saved, "and nothing is changed");
    }
    assert_eq!(stage.replay(4).await.unwrap().next, 4);
    assert_eq!(stage.replay(2).await.unwrap().next, 2);
    assert!(matches!(stage.replay(3).await, Err(ReplayError::Ahead { next: 2 })));
}

/// Until a receiver does not answer; then the service stops.
async fn stop_at_a_delivery(sender: &mut Sender, receiver: &Receiver) {
    tokio::select! {
        rests = run(sender) => panic!("{rests:?}"),
        () = receiver.hangs.notified() => {}
    }
    sender.finish().await;
}

#[tokio::test]
async fn a_stop_in_the_middle_of_a_delivery_saves_the_place() {
    let stage = Stage::new().await;
    stage.remark(10).await;
    let receiver = Arc::new(Receiver { hangs_from: Some(7), ..Receiver::default() });
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    stop_at_a_delivery(&mut sender, &receiver).await;
    assert_eq!(receiver.indices(), (0..7).collect::<Vec<_>>());
    assert_eq!(stage.saved().await.next, 7);
}

#[tokio::test]
async fn a_stop_waits_for_the_answer_to_a_delivery_under_way_but_not_for_long() {
    let stage = Stage::new().await;
    stage.remark(3).await;
    for (hangs_from, patience, saved) in [(None, MINUTE, 1), (Some(0), Duration::ZERO, 1)] {
        let receiver = Arc::new(Receiver { is_late: true, hangs_from, ..Receiver::default() });
        let (mut sender, _) = stage.sender("restricted = true", &receiver);
        let at_the_delivery = receiver.hangs.notified();
        assert_eq!(until_stopped(sender.step(), at_the_delivery, patience).await, None, "it was told to stop");
        sender.finish().await;
        assert_eq!(stage.saved().await.next, saved, "{hangs_from:?}");
    }
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("restricted = true", &receiver);
    assert_eq!(until_stopped(sender.step(), std::future::pending(), MINUTE).await, Some(Next::AtOnce));
    assert_eq!(receiver.indices(), [1], "what was answered is not delivered again");
}

#[tokio::test]
async fn entries_that_are_passed_over_cost_one_save_a_second() {
    let stage = Stage::new().await;
    stage.remark(100).await;
    let receiver = Arc::new(Receiver::default());
    let (mut sender, _) = stage.sender("", &receiver);
    assert_eq!(run(&mut sender).await, Next::Growth);
    assert_eq!((receiver.indices().len(), stage.saved().await.next), (0, 0));
    stage.advance(Duration::from_secs(1));
    run(&mut sender).await;
    assert_eq!(stage.saved().await.next, 100);
}

#[tokio::test]
async fn what_is_not_wanted_is_passed_over_even_if_its_definition_is_not_here() {
    let stage = Stage::new().await;
    stage.remark_of_unknown_workflow().await;
    let item = stage.create_item("Restart the gateway").await;
    for more in ["", "types = ['item.created']\nrestricted = true"] {
        let receiver = Arc::new(Receiver::default());
        let (mut sender, tally) = stage.sender(more, &receiver);
        let _ = stage.replay(0).await;
        assert_eq!(run(&mut sender).await, Next::Growth);
        assert_eq!(receiver.indices(), [item.index], "{more}");
        assert_eq!(stage.oldest_seconds(&tally), 0, "nothing is left");
        stage.advance(MINUTE);
        run(&mut sender).await;
        assert_eq!(stage.oldest_seconds(&tally), 0);
    }
    let receiver = Arc::new(Receiver::default());
    let (mut sender, tally) = stage.sender("restricted = true", &receiver);
    let _ = stage.replay(0).await;
    stage.advance(MINUTE * 70);
    assert_eq!(run(&mut sender).await, Next::After(Duration::from_secs(1)));
    assert_eq!(receiver.indices(), [] as [u64; 0], "it waits for the definition");
    assert_eq!(stage.oldest_seconds(&tally), 72 * 60, "and the age of the entry says so");
}

#[tokio::test]
async fn a_place_that_cannot_be_read_hides_no_other() {
    let stage = Stage::new().await;
    place::begin(&*stage.store, "chat", WebhookFrom::Now).await.unwrap();
    let broken = |_: &Situation<'_>| {
        Err(NoRecord::Note(vec![Fact { name: "webhook/broken".into(), value: Some(b"?".to_vec()) }]))
    };
    stage.store.settle(Write::new(Subject::Ledger, None, broken)).await.unwrap();
    let all = place::read_all(&*stage.store).await.unwrap();
    let read: Vec<_> = all.iter().map(|(name, cursor)| (name.as_str(), cursor.is_ok())).collect();
    assert_eq!(read, [("broken", false), ("chat", true)]);
    // And what cannot be read is not overwritten.
    assert!(place::begin(&*stage.store, "broken", WebhookFrom::Now).await.is_err());
}

#[tokio::test]
async fn a_new_endpoint_begins_when_the_first_node_that_knows_it_starts() {
    let stage = Stage::new().await;
    stage.remark(5).await;
    place::begin(&*stage.store, "chat", WebhookFrom::Now).await.unwrap();
    assert_eq!(stage.saved().await.next, 5);
    stage.remark(5).await;
    // Another node starts, and then sends.
    place::begin(&*stage.store, "chat", WebhookFrom::Now).await.unwrap();
    assert_eq!(stage.saved().await, Cursor::at(5), "one that has begun is left alone");
    assert_eq!(place::take_over(&*stage.store, "chat", WebhookFrom::Now).await.unwrap().next, 5);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_has_stopped_is_not_asked_without_pause() {
    let (sender, mut head) = watch::channel(0);
    drop(sender);
    let begun = tokio::time::Instant::now();
    super::team::until_growth(&mut head).await;
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}

#[tokio::test]
async fn whose_turn_it_is_after_an_entry_knows_about_holds_while_the_item_has_not_moved_on() {
    let stage = Stage::new().await;
    let created = stage.create_item("Restart the gateway").await;
    let item = stage.store.item(created.item.clone().unwrap()).await.unwrap().unwrap();
    let definition = &**stage.workflows.named("controlled-operation").unwrap();
    let held = Item { held: true, ..Item::clone(&item) };
    let turn = |item: &Item, entry: &Entry| {
        let about = About { definition: Some(definition), item: Some(item) };
        about.waits_for(entry).iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
    };
    let releasing: Vec<_> = held.waits_for(definition).iter().map(ToString::to_string).collect();
    assert!(!releasing.is_empty() && releasing != ["initiator"], "{releasing:?}");
    assert_eq!(turn(&item, &created), "initiator");
    assert_eq!(turn(&held, &created), releasing.join(" "));
    let moved_on = Item { version: item.version + 1, ..held.clone() };
    assert_eq!(turn(&moved_on, &created), "initiator", "what the definition says");
    let comment = Entry { from: None, to: None, ..created };
    assert_eq!(turn(&held, &comment), "");
}

#[tokio::test]
async fn only_an_entry_that_changes_whose_turn_it_is_matches_a_role() {
    let stage = Stage::new().await;
    let created = stage.create_item("Restart the gateway").await;
    let about = About { definition: Some(&**stage.workflows.named("controlled-operation").unwrap()), item: None };
    let webhook = webhook("waits_for = ['approver']");
    for (from, to, action, is_wanted) in [
        (Some("draft"), "submitted", "submit", true),
        (Some("submitted"), "submitted", "approve", false),
        (Some("submitted"), "submitted", "edit", false),
        (Some("submitted"), "submitted", "heartbeat", false),
        (Some("submitted"), "submitted", "release", true),
        (None, "submitted", "create", true),
        (Some("submitted"), "draft", "send_back", false),
    ] {
        let (from, to, action) = (from.map(Name::from), Some(Name::from(to)), Some(Name::from(action)));
        let entry = Entry { from, to, action, ..created.clone() };
        assert_eq!(is_of_wanted_turn(&webhook, &entry, &about), is_wanted, "{entry:?}");
        assert!(is_of_wanted_turn(&self::webhook(""), &entry, &about), "without roles, everything is wanted");
    }
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
    sender.webhook_mut().from = WebhookFrom::Now;
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [] as [u64; 0]);
    stage.remark(1).await;
    run(&mut sender).await;
    assert_eq!(receiver.indices(), [5]);
    let beyond = place::take_over(&*stage.store, "other", WebhookFrom::Index(99)).await.unwrap();
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
        let _ = stage.replay(0).await;
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
        let _ = stage.replay(0).await;
        run(&mut sender).await;
        let event = receiver.events().remove(0);
        assert_eq!(
            (event["specversion"].as_str(), event["id"].as_str(), event["type"].as_str(), event["subject"].as_str()),
            (Some("1.0"), Some("0"), Some("item.created"), Some(item.as_str()))
        );
        assert_eq!((&event["source"], &event["time"]), (&json!("pilot.example/log"), &json!(entry.at)));
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
    let body = super::message::event(&origin, &entry, &About::default(), None, &LeakGuard::for_generated_tokens());
    let event: Value = serde_json::from_slice(&body).unwrap();
    assert!(body.len() < 20_000 && event["data"]["details"].is_null());
    assert_eq!((&event["data"]["details_left_out"], &event["source"]), (&json!(true), &json!("pilot.example/log")));
}
