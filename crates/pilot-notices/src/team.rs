//! All notices: each has a sender of its own, so that one that hangs delays no other.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::ActorId;
use pilot_core::certain::Certain as _;
use pilot_core::leak::LeakGuard;
use pilot_core::limits::LAST_STEP_MAX;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::merkle::Edge;
use pilot_ledger::last_step::until_stopped;
use pilot_ledger::webhooks::Sources;
use pilot_setup::config::{Config, Notice, NoticeKind};
use pilot_setup::error::{StartError, with_cause};
use pilot_wire::exposition::Exposition;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::address_book::AddressBook;
use crate::message::{Line, Message, Occasion, Person, Task, Why};
use crate::sender::{People, ROUND, Sender};
use crate::tally::{self, Tally};
use crate::ways::{Channel, Opened, Undelivered, Way as _};

/// The configured notices, with what each has done.
pub struct Notices {
    configured: Vec<Configured>,
    contacts: Arc<AddressBook>,
    public_url: Option<String>,
    /// What is to be said about the files.
    pub warnings: Vec<String>,
}

struct Configured {
    notice: Notice,
    opened: Opened,
    tally: Arc<Tally>,
}

impl Notices {
    /// Reads every file that they need.
    pub fn open(config: &Config) -> Result<Notices, StartError> {
        let (mut configured, mut refused, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for notice in &config.notices {
            match Opened::open(config, notice) {
                Ok(opened) => {
                    warnings.extend(opened.warnings.iter().cloned());
                    let tally = Arc::new(Tally::new(&notice.name, &opened.shown));
                    configured.push(Configured { notice: notice.clone(), opened, tally });
                }
                Err(error) => refused.push(error.to_string()),
            }
        }
        let file = config.contacts_file.clone().filter(|_| !config.notices.is_empty());
        let contacts = match AddressBook::open(file.map(|path| (path, config.others()))) {
            Ok((contacts, warning)) => {
                warnings.extend(warning);
                Some(contacts)
            }
            Err(error) => {
                refused.push(format!("contacts_file: {}", with_cause(&error)));
                None
            }
        };
        match contacts {
            Some(contacts) if refused.is_empty() => {
                let (contacts, public_url) = (Arc::new(contacts), config.public_url.clone());
                Ok(Notices { configured, contacts, public_url, warnings })
            }
            _ => Err(StartError::Refused(refused.join("\n"))),
        }
    }

    /// Secret addresses and passwords are found wherever tokens are looked for.
    pub fn make_known(&self, guard: &LeakGuard) {
        self.configured.iter().for_each(|configured| configured.opened.make_known(guard));
    }

    /// Each by its name and where it goes, without what is secret.
    pub fn shown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.configured.iter().map(|configured| (configured.notice.name.as_str(), configured.opened.shown.as_str()))
    }

    pub fn metrics(&self, now: Time, text: &mut Exposition) {
        let tallies: Vec<_> = self.configured.iter().map(|configured| &*configured.tally).collect();
        tally::metrics(&tallies, now, text);
    }
}

/// Runs until `done` is dropped, and saves every place in the ledger then.
pub async fn run(
    notices: Arc<Notices>,
    sources: Sources,
    people: People,
    log_name: String,
    done: oneshot::Receiver<()>,
) {
    let (stop, is_stopping) = watch::channel(false);
    let mut running = JoinSet::new();
    for Configured { notice, opened, tally } in &notices.configured {
        let sender = Sender {
            notice: notice.clone(),
            way: Arc::<Channel>::clone(&opened.way),
            sources: sources.clone(),
            people: Arc::clone(&people),
            contacts: Arc::clone(&notices.contacts),
            public_url: notices.public_url.clone(),
            tag: log_name.clone(),
            tally: Arc::clone(tally),
            work: None,
        };
        running.spawn(send(sender, is_stopping.clone()));
    }
    let _ = done.await;
    stop.send_replace(true);
    running.join_all().await;
}

async fn send(mut sender: Sender, mut stop: watch::Receiver<bool>) {
    let mut head = sender.sources.store.head();
    let mut stopped = pin!(async move {
        let _ = stop.wait_for(|is_stopping| *is_stopping).await;
    });
    loop {
        head.mark_unchanged();
        let Some(is_more) = until_stopped(sender.round(), stopped.as_mut(), LAST_STEP_MAX).await else { break };
        let rest = async {
            if !is_more {
                grown(&mut head).await;
            }
        };
        tokio::select! {
            biased;
            () = &mut stopped => break,
            () = rest => {}
        }
    }
    sender.finish().await;
}

/// Until the ledger has grown, or for a while.
async fn grown(head: &mut watch::Receiver<Arc<Edge>>) {
    if !matches!(tokio::time::timeout(ROUND, head.changed()).await, Ok(Ok(()))) {
        // A head that nobody changes any more says so at once, each time.
        tokio::time::sleep(ROUND / 10).await;
    }
}

/// Why a message that was sent to see whether it arrives did not.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error("there is no notice with the name `{0}`; there is {1}")]
    NoSuchNotice(String, String),
    #[error("mail needs somebody to go to: name an actor of the contacts file")]
    NobodyToGoTo,
    #[error("the contacts file has no mail address of `{0}`")]
    NoAddress(ActorId),
    #[error("{0}")]
    NotDelivered(String),
}

impl Notices {
    /// Sends a message that is about nothing, and says where it went.
    pub async fn send_trial(&self, name: &str, to: Option<&ActorId>, now: Time) -> Result<String, TrialError> {
        let names = || self.shown().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let found = self.configured.iter().find(|configured| configured.notice.name == name);
        let found = found.ok_or_else(|| TrialError::NoSuchNotice(name.to_owned(), names()))?;
        let contacts = self.contacts.current();
        let address = match (found.notice.kind, to) {
            (NoticeKind::Mail, None) => return Err(TrialError::NobodyToGoTo),
            (NoticeKind::Mail, Some(actor)) => {
                let mail = contacts.of(actor).and_then(|contact| contact.mail.clone());
                Some(mail.ok_or_else(|| TrialError::NoAddress(actor.clone()))?)
            }
            (NoticeKind::Slack | NoticeKind::Teams, _) => None,
        };
        let id = format!("trial.{}.{}", found.notice.name, now.unix_micros());
        let sent = found.opened.way.send(address.as_deref(), &self.trial(to, &found.notice, now), &id).await;
        sent.map_err(|error| match error {
            Undelivered::Refused(said) | Undelivered::Failed { said, .. } => TrialError::NotDelivered(said),
        })?;
        Ok(found.opened.shown.clone())
    }

    fn trial(&self, to: Option<&ActorId>, notice: &Notice, now: Time) -> Message {
        let (contacts, who) = (self.contacts.current(), to.cloned());
        let person = |actor: ActorId| {
            let contact = contacts.of(&actor);
            let mention = match notice.kind {
                NoticeKind::Slack => contact.and_then(|contact| contact.slack.clone()),
                NoticeKind::Teams => contact.and_then(|contact| contact.teams.clone()),
                NoticeKind::Mail => None,
            };
            Person { name: actor.to_string(), mention }
        };
        let task = Task {
            action: "approve".to_owned(),
            role: Role::Approver,
            needed: 1,
            who: who.into_iter().map(person).collect(),
            others: 0,
        };
        let line = Line {
            why: Why::Waits,
            item: TRIAL_ITEM.parse().certain("it has the form of an id"),
            title: Some("This is a trial: nothing waits for you".to_owned()),
            workflow: "Trial".to_owned(),
            state: "submitted".to_owned(),
            risk: None,
            created_by: "pilot".to_owned(),
            tasks: if to.is_some() { vec![task] } else { Vec::new() },
            until: Some(notice.time_zone.written(now.plus(TRIAL_SPAN))),
            link: None,
            is_urgent: false,
        };
        let console = self.public_url.as_ref().map(|url| format!("{url}/console/"));
        Message { occasion: Occasion::News, lines: vec![line], more: 0, link: console }
    }
}

const TRIAL_ITEM: &str = "00000000-0000-7000-8000-000000000000";
const TRIAL_SPAN: Duration = Duration::from_hours(1);
