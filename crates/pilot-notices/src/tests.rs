//! Senders over a real store, with a chat, mail, a clock and dice that the test moves.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::decide::{ActionRequest, Content, NewItem, due_at};
use pilot_core::document::Document;
use pilot_core::item::ItemId;
use pilot_core::leak::LeakGuard;
use pilot_core::role::Role;
use pilot_ledger::clock::{Clock, Elapsed, LedgerClock};
use pilot_ledger::last_step::until_stopped;
use pilot_ledger::moves;
use pilot_ledger::webhooks::Sources;
use pilot_ledger::witnesses::EffectGate;
use pilot_ledger::workflows::Workflows;
use pilot_setup::config::{Config, Notice};
use pilot_setup::private_file::Others;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Outcome, Store, Subject, Write};
use pilot_wire::exposition::Exposition;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::address_book::AddressBook;
use crate::message::{Message, Occasion, Why};
use crate::sender::Sender;
use crate::tally::{self, Tally};
use crate::ways::{Sending, Undelivered, Way};

/// Friday, 15 January 2027, 08:00 UTC.
const NOW: i64 = 1_800_000_000_000_000;
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

const ANA: (&str, Role) = ("ana", Role::Initiator);
const BEN: (&str, Role) = ("ben", Role::Approver);
const CAT: (&str, Role) = ("cat", Role::Approver);
const SOL: (&str, Role) = ("sol", Role::SecurityAdmin);
const EVE: (&str, Role) = ("eve", Role::Executor);

const CONTACTS: &str = "[ana]\nmail = 'ana@example.com'\n[ben]\nmail = 'ben@example.com'\nslack = 'U0BEN'\n\
                        [cat]\nmail = 'cat@example.com'\nslack = 'U0CAT'\nbackup = true\n[sol]\nmail = 'sol@example.com'\n";

/// Keeps what is sent. What it does with the next messages is scripted; after that it takes everything.
#[derive(Default)]
struct Inboxes {
    script: Mutex<VecDeque<Undelivered>>,
    got: Mutex<Vec<(Option<String>, Message)>>,
    tried: AtomicU64,
    /// A message is being taken, which takes a moment.
    is_taking: Notify,
}

impl Way for Inboxes {
    fn send<'a>(&'a self, to: Option<&'a str>, message: &'a Message, _: &'a str) -> Sending<'a> {
        self.tried.fetch_add(1, Ordering::SeqCst);
        let fault = self.script.lock().unwrap().pop_front();
        if fault.is_none() {
            self.got.lock().unwrap().push((to.map(str::to_owned), message.clone()));
        }
        self.is_taking.notify_one();
        Box::pin(async move {
            tokio::task::yield_now().await;
            fault.map_or(Ok(()), Err)
        })
    }
}

impl Inboxes {
    fn will(&self, fault: Undelivered) {
        self.script.lock().unwrap().push_back(fault);
    }

    fn take(&self) -> Vec<(Option<String>, Message)> {
        let mut got = std::mem::take(&mut *self.got.lock().unwrap());
        got.sort_by(|(one, _), (other, _)| one.cmp(other));
        got
    }

    /// To whom, and the titles with why they were told.
    fn told(&self) -> Vec<(String, Vec<String>)> {
        let why = |why: &Why| match why {
            Why::Waits => "waits".to_owned(),
            Why::Reminder { left } => format!("reminder {left}"),
            Why::Escalated { left } => format!("escalated {}", left.as_deref().unwrap_or("-")),
            Why::Ended => "ended".to_owned(),
        };
        let told = |(to, message): (Option<String>, Message)| {
            let line =
                |line: &crate::message::Line| format!("{}: {}", line.title.as_deref().unwrap_or("-"), why(&line.why));
            (to.unwrap_or_else(|| "chat".to_owned()), message.lines.iter().map(line).collect())
        };
        self.take().into_iter().map(told).collect()
    }
}

struct Team {
    directory: TempDir,
    store: Arc<dyn Store>,
    workflows: Arc<Workflows>,
    machine: Arc<AtomicI64>,
    elapsed: Arc<AtomicU64>,
    clock: LedgerClock,
    made: AtomicU64,
    tally: Arc<Tally>,
}

fn told(to: &str, lines: &[&str]) -> (String, Vec<String>) {
    (to.to_owned(), lines.iter().map(|line| (*line).to_owned()).collect())
}

impl Team {
    async fn new() -> Team {
        let directory = TempDir::new().unwrap();
        let (machine, elapsed) = (Arc::new(AtomicI64::new(NOW)), Arc::new(AtomicU64::new(0)));
        let clock = LedgerClock::new(Clock::Manual(Arc::clone(&machine)), Elapsed::Manual(Arc::clone(&elapsed)));
        let of_store = clock.clone();
        let store = Sqlite::open(&directory.path().join("pilot.db"), Arc::new(move || of_store.now())).unwrap();
        let store: Arc<dyn Store> = Arc::new(store);
        let workflows = Arc::new(Workflows::load(None, &*store).await.unwrap());
        let path = directory.path().join("contacts.toml");
        fs::write(&path, CONTACTS).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let tally = Arc::new(Tally::new("team", "example.com"));
        Team { directory, store, workflows, machine, elapsed, clock, made: AtomicU64::new(0), tally }
    }

    fn pass(&self, span: Duration) {
        let micros = u64::try_from(span.as_micros()).unwrap();
        self.elapsed.fetch_add(micros, Ordering::SeqCst);
        self.machine.fetch_add(i64::try_from(micros).unwrap(), Ordering::SeqCst);
    }

    async fn settle(&self, write: Write) {
        let outcome = self.store.settle(write).await.unwrap();
        assert!(matches!(outcome, Outcome::Recorded { .. }), "{outcome:?}");
    }

    async fn draft(&self, workflow: &str, title: &str, risk: &str) -> ItemId {
        let definition = Arc::clone(self.workflows.named(workflow).unwrap());
        let payload = json!({ "purpose": "p", "operation": "o", "risk": risk, "rollback_plan": "r", "incident": "i" });
        let content = Document::content(title, &payload, "00000000000000000000000000000000");
        let judged = Content::judge(&definition, title, &payload, content.digest.clone());
        let number = self.made.fetch_add(1, Ordering::SeqCst);
        let id: ItemId = format!("01890a5d-ac96-774b-bcce-{number:012x}").parse().unwrap();
        let new = NewItem { id: id.clone(), content: judged };
        let actor = Actor::new(ANA.0.parse().unwrap(), ANA.1);
        let decide = moves::create(definition, actor, new, content);
        self.settle(Write::new(Subject::NewItem { count_open: None }, None, decide)).await;
        id
    }

    async fn act(&self, id: &ItemId, (name, role): (&str, Role), action: &str, inputs: Option<Value>) {
        let item = self.store.item(id.clone()).await.unwrap().unwrap();
        let request = ActionRequest {
            action: action.to_owned(),
            content_digest: Some(item.content_digest.to_string()),
            comment: Some("because".to_owned()),
            inputs: inputs.clone(),
            if_match: None,
        };
        let actor = Actor::new(name.parse().unwrap(), role);
        let nonce = "00000000000000000000000000000000";
        let (comment, inputs) =
            (Document::comment("because", nonce), inputs.map(|inputs| Document::inputs(&inputs, nonce)));
        let gate = EffectGate::open();
        let decide = moves::act(Arc::clone(&self.workflows), actor, request, Some(comment), inputs, gate);
        self.settle(Write::new(Subject::Item(id.clone()), None, decide)).await;
    }

    async fn submitted(&self, title: &str, risk: &str) -> ItemId {
        let id = self.draft("controlled-operation", title, risk).await;
        self.act(&id, ANA, "submit", None).await;
        id
    }

    fn sender(&self, kind: &str, more: &str, inboxes: &Arc<Inboxes>) -> Sender {
        let people = [ANA, BEN, CAT, SOL, EVE].map(|(name, role)| Actor::new(name.parse().unwrap(), role));
        let file = self.directory.path().join("contacts.toml");
        let contacts = AddressBook::open(Some((file, Others::MayNothing))).unwrap().0;
        Sender {
            notice: notice(kind, more),
            way: Arc::clone(inboxes) as Arc<dyn Way>,
            sources: Sources {
                store: Arc::clone(&self.store),
                workflows: Arc::clone(&self.workflows),
                guard: Arc::new(LeakGuard::for_generated_tokens()),
                clock: self.clock.clone(),
                machine: Clock::Manual(Arc::clone(&self.machine)),
                dice: Arc::new(|| 200),
            },
            people: Arc::new(move || people.to_vec()),
            contacts: Arc::new(contacts),
            public_url: Some("https://pilot.example".to_owned()),
            tag: "log".to_owned(),
            tally: Arc::clone(&self.tally),
            work: None,
        }
    }

    fn metrics(&self) -> BTreeMap<String, u64> {
        let mut text = Exposition::default();
        tally::metrics(&[&self.tally], self.clock.now(), &mut text);
        let lines = text.into_text();
        let sample = |line: &str| {
            let (name, value) = line.rsplit_once(' ')?;
            Some((name.to_owned(), value.parse().ok()?))
        };
        lines.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect()
    }
}

fn notice(kind: &str, more: &str) -> Notice {
    let own = if kind == "mail" { "server = 'smtp.example'\nfrom = 'pilot@example.com'" } else { "url_file = 'url'" };
    let text = format!("contacts_file = 'c'\n[[notices]]\nname = 'team'\nkind = '{kind}'\n{own}\n{more}");
    toml::from_str::<Config>(&text).unwrap().notices.remove(0)
}

/// Rounds until there is nothing more to do at once.
async fn work(sender: &mut Sender) {
    while sender.round().await {}
}

#[tokio::test]
async fn a_chat_is_told_at_once_what_waits_for_whom_and_its_own_author_is_not() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "", &inboxes);
    work(&mut sender).await;
    let id = team.draft("controlled-operation", "Rotate the keys", "high").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "a draft waits for the one who wrote it");
    team.act(&id, ANA, "submit", None).await;
    work(&mut sender).await;
    let (to, message) = inboxes.take().remove(0);
    let line = &message.lines[0];
    assert_eq!((to, message.occasion, line.title.as_deref()), (None, Occasion::News, Some("Rotate the keys")));
    assert_eq!(line.link.as_deref(), Some(&*format!("https://pilot.example/console/items/{id}")));
    let task = &line.tasks[0];
    assert_eq!((task.action.as_str(), task.role, task.needed), ("approve", Role::Approver, 2));
    let who: Vec<_> = task.who.iter().map(|person| (person.name.as_str(), person.mention.as_deref())).collect();
    assert_eq!(who, [("ben", Some("U0BEN")), ("cat", None)], "a backup is named, but not called yet");
    assert_eq!(line.until.as_deref(), Some("18 Jan 2027, 08:00 UTC"));
    team.act(&id, BEN, "approve", None).await;
    team.pass(10 * MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "a vote that leaves the item where it is is no news");
}

#[tokio::test]
async fn messages_of_five_minutes_go_together_and_what_is_no_longer_so_is_left_out() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "", &inboxes);
    work(&mut sender).await;
    team.submitted("first", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["first: waits"])]);
    let second = team.submitted("second", "low").await;
    team.submitted("third", "low").await;
    work(&mut sender).await;
    team.pass(4 * MINUTE);
    team.act(&second, ANA, "withdraw", None).await;
    team.submitted("fourth", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["third: waits", "fourth: waits"])]);
}

#[tokio::test]
async fn quiet_hours_hold_messages_back_unless_the_risk_is_high_or_it_is_an_emergency() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    // It is nine in the morning in Berlin.
    let mut sender = team.sender("slack", "quiet_hours = '20:00-10:00'\ntime_zone = 'Europe/Berlin'", &inboxes);
    work(&mut sender).await;
    team.submitted("can wait", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["can wait: waits"])]);
    team.pass(12 * HOUR);
    work(&mut sender).await;
    team.submitted("dangerous", "high").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["dangerous: waits"])]);
    let fire = team.draft("emergency-operation", "on fire", "low").await;
    team.act(&fire, ANA, "submit", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "urgent messages are a minute apart");
    team.pass(MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["on fire: waits"])]);
}

#[tokio::test]
async fn a_reminder_is_not_lost_if_another_message_comes_between() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "", &inboxes);
    work(&mut sender).await;
    team.submitted("first", "low").await;
    work(&mut sender).await;
    inboxes.take();
    team.pass(Duration::from_secs(36 * 3600 - 10));
    work(&mut sender).await;
    // The reminder is due ten seconds from now, and looked for within a minute.
    team.pass(20 * Duration::from_secs(1));
    team.submitted("second", "high").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["second: waits"])]);
    team.pass(6 * MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["first: reminder 35 hours"])]);
}

#[tokio::test]
async fn what_is_cleared_for_a_window_to_come_is_told_at_once() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let id = team.submitted("Rotate the keys", "low").await;
    team.act(&id, BEN, "approve", None).await;
    let mut sender = team.sender("slack", "waits_for = ['executor']", &inboxes);
    work(&mut sender).await;
    let at = |span: Duration| team.clock.now().plus(span).to_string();
    team.act(&id, SOL, "clear", Some(json!({ "not_before": at(2 * HOUR), "not_after": at(3 * HOUR) }))).await;
    work(&mut sender).await;
    let (_, message) = inboxes.take().remove(0);
    let until = message.lines[0].until.as_deref();
    assert_eq!(until, Some("15 Jan 2027, 11:00 UTC, not before 15 Jan 2027, 10:00 UTC"));
}

#[tokio::test]
async fn what_was_settled_without_a_message_delays_no_later_one() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "quiet_hours = '07:00-09:00'", &inboxes);
    work(&mut sender).await;
    let id = team.submitted("first", "low").await;
    work(&mut sender).await;
    team.act(&id, ANA, "withdraw", None).await;
    team.pass(HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(MINUTE);
    team.submitted("second", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["second: waits"])]);
}

#[tokio::test]
async fn a_vote_tells_the_backups_if_nobody_else_is_left() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    let id = team.submitted("Rotate the keys", "high").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("ben@example.com", &["Rotate the keys: waits"])]);
    team.act(&id, BEN, "approve", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("cat@example.com", &["Rotate the keys: waits"])]);
}

#[tokio::test]
async fn mail_goes_to_those_who_can_act_to_backups_at_half_time_and_to_all_near_the_end() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    team.submitted("Rotate the keys", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("ben@example.com", &["Rotate the keys: waits"])]);
    team.pass(35 * HOUR + 59 * MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(MINUTE);
    work(&mut sender).await;
    let half = [
        told("ben@example.com", &["Rotate the keys: reminder 36 hours"]),
        told("cat@example.com", &["Rotate the keys: escalated 36 hours"]),
    ];
    assert_eq!(inboxes.told(), half);
    team.pass(25 * HOUR + 12 * MINUTE);
    work(&mut sender).await;
    let late = [
        told("ben@example.com", &["Rotate the keys: reminder 10 hours"]),
        told("cat@example.com", &["Rotate the keys: escalated 10 hours"]),
    ];
    assert_eq!(inboxes.told(), late);
    team.pass(5 * HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "each reminder comes once");
}

#[tokio::test]
async fn a_backup_is_told_at_once_if_nobody_else_can_act() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    let id = team.submitted("Rotate the keys", "high").await;
    work(&mut sender).await;
    inboxes.take();
    team.act(&id, BEN, "approve", None).await;
    team.act(&id, SOL, "hold", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "the one who holds it knows, and nobody else can release it");
    team.act(&id, SOL, "release", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("cat@example.com", &["Rotate the keys: waits"])], "ben has voted");
}

#[tokio::test]
async fn an_hour_before_its_window_ends_executors_are_reminded_and_the_end_is_told_to_the_author() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let path = team.directory.path().join("contacts.toml");
    fs::write(&path, format!("{CONTACTS}[eve]\nmail = 'eve@example.com'\n")).unwrap();
    let id = team.submitted("Rotate the keys", "low").await;
    team.act(&id, BEN, "approve", None).await;
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    let at = |span: Duration| team.clock.now().plus(span).to_string();
    let window = json!({ "not_before": at(Duration::ZERO), "not_after": at(3 * HOUR) });
    team.act(&id, SOL, "clear", Some(window)).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("eve@example.com", &["Rotate the keys: waits"])]);
    team.pass(2 * HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("eve@example.com", &["Rotate the keys: reminder 60 minutes"])]);
    let item = team.store.item(id.clone()).await.unwrap().unwrap();
    let definition = team.workflows.kept_by(&item).unwrap();
    team.pass(due_at(&definition, &item).unwrap().at.since(team.clock.now()));
    assert_eq!(pilot_ledger::timers::expire_due(&*team.store, &team.workflows, team.clock.now()).await, 1);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("ana@example.com", &["Rotate the keys: ended"])]);
}

#[tokio::test]
async fn what_fails_is_tried_again_later_and_what_is_refused_holds_up_nobody() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "", &inboxes);
    work(&mut sender).await;
    inboxes.will(Undelivered::Failed { said: "answered 503".to_owned(), retry_after: None });
    team.submitted("first", "high").await;
    work(&mut sender).await;
    team.pass(4 * Duration::from_secs(1));
    work(&mut sender).await;
    assert_eq!((inboxes.told(), inboxes.tried.load(Ordering::SeqCst)), (vec![], 1));
    assert_eq!(team.metrics()["pilot_notice_failing_seconds{notice=\"team\"}"], 4);
    team.pass(Duration::from_secs(1));
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["first: waits"])]);
    inboxes.will(Undelivered::Refused("no such channel".to_owned()));
    team.submitted("second", "high").await;
    team.pass(MINUTE);
    work(&mut sender).await;
    team.pass(MINUTE);
    team.submitted("third", "high").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["third: waits"])]);
    let metrics = team.metrics();
    let count =
        |outcome: &str| metrics[&format!("pilot_notice_messages_total{{notice=\"team\",outcome=\"{outcome}\"}}")];
    assert_eq!((count("delivered"), count("failed"), count("refused")), (2, 1, 1));
    assert_eq!(metrics["pilot_notice_waiting_items{notice=\"team\"}"], 0);
}

#[tokio::test]
async fn after_a_crash_nobody_is_left_out_and_nobody_is_told_twice() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    team.submitted("first", "low").await;
    team.pass(Duration::from_secs(2));
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("ben@example.com", &["first: waits"])]);
    team.submitted("second", "low").await;
    team.pass(Duration::from_secs(2));
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    // What is in memory is gone, without a farewell.
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(5 * MINUTE);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("ben@example.com", &["second: waits"])]);
    team.pass(36 * HOUR);
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    let reminded = inboxes.told();
    assert_eq!(reminded.len(), 2, "what was due meanwhile is told: {reminded:?}");
    assert_eq!(reminded[0].1.len(), 2);
}

#[tokio::test]
async fn a_stop_waits_until_a_message_under_way_is_taken_and_nobody_is_told_twice() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "", &inboxes);
    work(&mut sender).await;
    team.submitted("first", "low").await;
    team.pass(Duration::from_secs(2));
    assert_eq!(until_stopped(sender.round(), inboxes.is_taking.notified(), MINUTE).await, None, "it was told to stop");
    sender.finish().await;
    assert_eq!(inboxes.told(), [told("ben@example.com", &["first: waits"])]);
    let mut sender = team.sender("mail", "", &inboxes);
    team.pass(HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
}

#[tokio::test]
async fn of_two_senders_the_one_that_took_over_goes_on() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let (mut old, mut new) = (team.sender("slack", "", &inboxes), team.sender("slack", "", &inboxes));
    work(&mut old).await;
    work(&mut new).await;
    team.submitted("first", "high").await;
    team.pass(2 * MINUTE);
    work(&mut new).await;
    assert_eq!(inboxes.told().len(), 1);
    // It learns when it saves that it is not the one, and begins again from what the other has saved.
    team.pass(2 * MINUTE);
    old.round().await;
    inboxes.take();
    old.round().await;
    team.pass(HOUR);
    work(&mut old).await;
    assert_eq!(inboxes.told(), []);
}

#[tokio::test]
async fn once_a_day_everything_that_waits_is_summarised_for_each() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("mail", "summary_at = '09:00'", &inboxes);
    team.submitted("first", "low").await;
    team.submitted("second", "low").await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(HOUR);
    work(&mut sender).await;
    let got = inboxes.take();
    let summary: Vec<_> = got.iter().map(|(to, message)| (to.as_deref().unwrap(), message.occasion)).collect();
    let expected = ["ben@example.com", "cat@example.com"].map(|to| (to, Occasion::Summary));
    assert_eq!((summary, got[0].1.lines.len()), (expected.to_vec(), 2));
    team.pass(HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.told(), []);
    team.pass(23 * HOUR);
    work(&mut sender).await;
    assert_eq!(inboxes.take().iter().filter(|(_, message)| message.occasion == Occasion::Summary).count(), 2);
}

#[tokio::test]
async fn workflows_roles_and_detail_narrow_what_is_told() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let more = "workflows = ['emergency-operation']\nwaits_for = ['security_admin']\ndetail = 'thin'";
    let mut sender = team.sender("teams", more, &inboxes);
    work(&mut sender).await;
    team.submitted("another workflow", "high").await;
    let fire = team.draft("emergency-operation", "on fire", "low").await;
    team.act(&fire, ANA, "submit", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [told("chat", &["-: waits"])]);
    team.act(&fire, SOL, "return", None).await;
    work(&mut sender).await;
    assert_eq!(inboxes.told(), [], "it waits for its author, who is not in these roles");
}

#[tokio::test]
async fn a_long_list_is_cut_and_says_how_many_more_there_are_the_urgent_first() {
    let (team, inboxes) = (Team::new().await, Arc::new(Inboxes::default()));
    let mut sender = team.sender("slack", "", &inboxes);
    work(&mut sender).await;
    for number in 0..24 {
        team.submitted(&format!("number {number}"), "low").await;
        team.pass(Duration::from_secs(1));
    }
    team.submitted("dangerous", "high").await;
    work(&mut sender).await;
    let (_, message) = inboxes.take().remove(0);
    assert_eq!((message.lines.len(), message.more), (10, 15));
    assert_eq!(message.lines[0].title.as_deref(), Some("dangerous"));
    assert_eq!(message.lines[1].title.as_deref(), Some("number 0"), "then the one that is due first");
}
