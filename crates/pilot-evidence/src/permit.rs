//! A permit: an evidence bundle about one item, from which a target concludes that an effect was begun by the rules.
//!
//! Pure, like the verifier it calls. The time comes from the caller, and so does the age that is still acceptable.

use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::certain::Certain as _;
use pilot_core::entry::EntryType;
use pilot_core::item::{Item, ItemId, Window};
use pilot_core::time::Time;
use pilot_core::workflow::{Definition, Name};
use serde::Serialize;
use serde_json::Value;

use crate::bundle::zip::read;
use crate::bundle::{CHECKPOINT, Scope};
use crate::checkpoint::Checkpoint;
use crate::cosignature::CosignerVerifier;
use crate::merkle::Hash;
use crate::note::{Note, NoteError, VerifierKey};
use crate::policy::Policy;
use crate::replay::follow;
use crate::verify::contents::{Contents, OpenError, open};
use crate::verify::items::histories;
use crate::verify::{Conclusion, IN_MEMORY, Trust, Verdict, examine, unopened};

/// How far the clocks of a target, a witness and the service may be apart.
pub const CLOCK_SKEW_MAX: Duration = Duration::from_mins(1);

/// Why a permit is not accepted. Each sentence says what to do about it.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum PermitError {
    #[error("it is not a permit: {0}; download it again with GET /v1/items/ID/permit")]
    Unreadable(String),
    #[error(
        "it comes from a log that the policy does not know: signed by {signers}; use the policy of that log, or the permit of {known}"
    )]
    OtherLog { signers: String, known: String },
    #[error("{}; do not run anything on it, and tell the operators of the service", .0.sentence())]
    Evidence(Box<Verdict>),
    #[error(
        "documents were left out of it, so it cannot be checked whether the rules were followed; download a whole permit from the service"
    )]
    NotAllChecked(Box<Verdict>),
    #[error("it is evidence about a period; a permit is about one item and comes from GET /v1/items/ID/permit")]
    Period,
    #[error(
        "too few witnesses of the policy have cosigned its checkpoint: {have}; download it again once they have, or repair the witnesses"
    )]
    Quorum { have: String },
    #[error("the item is {state}, and nothing may be executed in that state; start it first, then download its permit")]
    NoEffect { state: Name },
    #[error("the item was held when it was made; ask a security_admin to release it, then download the permit again")]
    Held,
    #[error("{action} is allowed only from {} to {}, and it is {now} now; have the item cleared again", window.not_before, window.not_after)]
    OutsideWindow { action: Name, window: Window, now: Time },
    #[error("it is {} s old by {by}, and at most {} s are accepted; send a heartbeat for the item, then download it again", age.as_secs(), max.as_secs())]
    TooOld { by: &'static str, age: Duration, max: Duration },
    #[error("it is dated {at} by {by}, which is in the future; set this machine's clock, or theirs")]
    Future { by: &'static str, at: Time },
}

impl PermitError {
    /// No fault was found, but not everything could be checked.
    pub fn is_partial(&self) -> bool {
        matches!(self, PermitError::NotAllChecked(_))
    }
}

/// The move that began the effect which is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Begun {
    /// Its index in the ledger, which identifies the attempt.
    pub entry: u64,
    pub action: Name,
    pub at: Time,
    pub actor: Actor,
    /// It was possible only inside the window, so whatever it begins is too.
    #[serde(skip)]
    pub inside_window: bool,
    /// It counts as an attempt at the operation. A move that does not, such as a roll-back, undoes one.
    pub is_attempt: bool,
}

/// One cosignature of the permit's checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cosigned {
    pub witness: String,
    pub at: Time,
}

/// A permit whose signatures, proofs and rules hold. What depends on the time of day is checked by [`Permit::check_at`].
#[derive(Debug, Clone, PartialEq)]
pub struct Permit {
    pub log: VerifierKey,
    pub size: u64,
    pub root: Hash,
    pub cosigned: Vec<Cosigned>,
    /// The latest moment that is vouched for: by the policy's quorum of witnesses or, without one, by the log itself.
    pub vouched_at: Time,
    pub by_witnesses: bool,
    /// As of the move that began the effect.
    pub item: Item,
    pub begun: Begun,
}

impl Permit {
    /// Checks everything about a permit except what depends on the time of day.
    pub fn open(bundle: &[u8], policy: &Policy) -> Result<Permit, PermitError> {
        let log = log_of(bundle, policy)?;
        let trust = Trust::log(log.clone());
        let (source, watch) = (bundle.into(), &mut |_, _, _| {});
        let contents = open(&source, &log, watch).map_err(|error| match error {
            OpenError::Faults(faults) => PermitError::Evidence(Box::new(unopened(faults))),
            OpenError::Unreadable(error) => PermitError::Unreadable(error.to_string()),
        })?;
        let verdict = examine(&contents, &trust, watch).certain(IN_MEMORY);
        match verdict.verdict {
            Conclusion::Holds => {}
            Conclusion::DoesNotHold => return Err(PermitError::Evidence(Box::new(verdict))),
            Conclusion::HoldsAsFarAsChecked => return Err(PermitError::NotAllChecked(Box::new(verdict))),
        }
        let Scope::Item(id) = &contents.manifest.scope else { return Err(PermitError::Period) };
        let (item, begun) = replayed(&contents, id)?;
        let checkpoint = contents.text(CHECKPOINT).unwrap_or_default();
        let (cosigned, vouched) = cosignatures(checkpoint, policy)?;
        let Checkpoint { size, root, .. } =
            Checkpoint::open(checkpoint, &log).map_err(|error| PermitError::Unreadable(error.to_string()))?;
        let vouched_at = vouched.unwrap_or(contents.manifest.made);
        let by_witnesses = policy.requires_witnesses();
        Ok(Permit { log, size, root, cosigned, vouched_at, by_witnesses, item, begun })
    }

    /// Who vouches for its age.
    pub const fn voucher(&self) -> &'static str {
        if self.by_witnesses { "the witnesses' cosignatures" } else { "the log's own clock" }
    }

    /// Whether it may be used now: young enough, dated in the past, and inside the window of what was begun.
    pub fn check_at(&self, now: Time, age_max: Duration) -> Result<(), PermitError> {
        let by = self.voucher();
        for (by, at) in [(by, self.vouched_at), ("the service", self.begun.at)] {
            if at > now.plus(CLOCK_SKEW_MAX) {
                return Err(PermitError::Future { by, at });
            }
        }
        let age = now.since(self.vouched_at);
        if age > age_max {
            return Err(PermitError::TooOld { by, age, max: age_max });
        }
        let window = self.item.window.as_ref().filter(|_| self.begun.inside_window);
        match window.filter(|window| !window.contains(now)) {
            None => Ok(()),
            Some(window) => {
                Err(PermitError::OutsideWindow { action: self.begun.action.clone(), window: window.clone(), now })
            }
        }
    }

    /// What was approved for execution: the payload's `operation`, or `rollback_operation` for a move that undoes it.
    pub fn operation(&self) -> (&'static str, Option<Value>) {
        let member = if self.begun.is_attempt { "operation" } else { "rollback_operation" };
        (member, self.item.payload.at(&format!("/{member}")))
    }
}

/// Which of the known logs to check it with. The choice is not trusted: everything is checked with that key.
fn log_of(bundle: &[u8], policy: &Policy) -> Result<VerifierKey, PermitError> {
    let unreadable = |what: String| PermitError::Unreadable(what);
    let files = read(bundle).map_err(|fault| unreadable(fault.to_string()))?;
    let checkpoint = files.iter().find(|file| file.path == CHECKPOINT);
    let checkpoint = checkpoint.ok_or_else(|| unreadable("it has no checkpoint".into()))?;
    let text = std::str::from_utf8(checkpoint.bytes).map_err(|_| unreadable("its checkpoint is not text".into()))?;
    let note = Note::parse(text).map_err(|error| unreadable(error.to_string()))?;
    policy.log_of(&note).cloned().ok_or_else(|| {
        let names = |names: Vec<&str>| if names.is_empty() { "nobody".to_owned() } else { names.join(" and ") };
        PermitError::OtherLog {
            signers: names(note.signatures.iter().map(|line| line.name).collect()),
            known: names(policy.logs().iter().map(|log| log.name.as_str()).collect()),
        }
    })
}

/// The cosignatures of known witnesses, and the latest moment the quorum vouches for, if the policy has one.
fn cosignatures(checkpoint: &str, policy: &Policy) -> Result<(Vec<Cosigned>, Option<Time>), PermitError> {
    let wrong = |error: NoteError| PermitError::Unreadable(format!("a cosignature: {error}"));
    let note = Note::parse(checkpoint).map_err(wrong)?;
    let found = policy.cosigned(&note).map_err(wrong)?;
    let times: Vec<_> = found.iter().map(|(_, time)| *time).collect();
    let cosigned = |(witness, time): &(&CosignerVerifier, Option<u64>)| {
        Some(Cosigned { witness: witness.name.clone(), at: seconds((*time)?) })
    };
    let cosigned: Vec<_> = found.iter().filter_map(cosigned).collect();
    if !policy.requires_witnesses() {
        return Ok((cosigned, None));
    }
    if let Some(time) = policy.vouched_at(&times) {
        return Ok((cosigned, Some(seconds(time))));
    }
    let words = |(witness, time): &(&CosignerVerifier, Option<u64>)| {
        format!("{} {}", witness.name, if time.is_some() { "has" } else { "has not" })
    };
    Err(PermitError::Quorum { have: found.iter().map(words).collect::<Vec<_>>().join(", ") })
}

fn seconds(time: u64) -> Time {
    Time::from_unix_micros(i64::try_from(time).unwrap_or(i64::MAX).saturating_mul(1_000_000))
}

/// The item after its last entry, and the move that began the effect it is in. The verifier has already followed every
/// entry, so nothing new is decided here.
fn replayed(contents: &Contents<'_>, id: &ItemId) -> Result<(Item, Begun), PermitError> {
    let broken = |what: &str| PermitError::Unreadable(what.to_owned());
    let histories = histories(contents);
    let history = histories.iter().find(|history| history.id == id).ok_or_else(|| broken("it has no history"))?;
    let history = history.read(contents).certain(IN_MEMORY);
    let mut item: Option<Item> = None;
    let (mut moved, mut first_effect) = (None, None);
    for held in &history {
        let definition = held.entry.definition.as_deref().and_then(|digest| contents.definitions.get(digest));
        let definition = definition.ok_or_else(|| broken("a definition is missing"))?;
        let brought = contents.brought(&held.entry).certain(IN_MEMORY);
        let step = follow(definition, item.as_ref(), &held.entry, brought.documents());
        item = Some(step.map_err(|stray| PermitError::Unreadable(stray.to_string()))?.item);
        if held.entry.r#type == EntryType::ItemTransition && held.entry.from != held.entry.to {
            moved = Some((held, definition));
            first_effect = first_effect.or_else(|| held.entry.to.clone().filter(|to| is_effect(definition, to)));
        }
    }
    let item = item.ok_or_else(|| broken("it has no history"))?;
    let no_effect = || PermitError::NoEffect { state: item.state.clone() };
    let (held, definition) = moved.ok_or_else(no_effect)?;
    let is_under_way = is_effect(definition, &item.state);
    let actor = held.entry.actor().filter(|_| is_under_way).ok_or_else(no_effect)?;
    if item.held {
        return Err(PermitError::Held);
    }
    let action = held.entry.action.clone().ok_or_else(no_effect)?;
    let (inside_window, is_counted) = kind_of(definition, &held.entry);
    // What the item did first is what it is for; another effect after that undoes it.
    let is_attempt = is_counted || first_effect.as_ref() == Some(&item.state);
    let begun = Begun { entry: held.entry.index, action, at: held.entry.at, actor, inside_window, is_attempt };
    Ok((item, begun))
}

fn is_effect(definition: &Definition, state: &str) -> bool {
    definition.rules().state(state).is_some_and(|state| state.kind.is_effect())
}

/// Whether the move was bound to the window, and whether it counts as an attempt.
fn kind_of(definition: &Definition, entry: &pilot_core::entry::Entry) -> (bool, bool) {
    let is_it = |rule: &&pilot_core::workflow::Rule| {
        Some(&rule.action) == entry.action.as_ref()
            && rule.to == entry.to
            && entry.from.as_deref().is_some_and(|from| rule.leads_from(from))
    };
    let rules: Vec<_> = definition.rules().transitions.iter().filter(is_it).collect();
    (rules.iter().any(|rule| rule.inside_window), rules.iter().any(|rule| rule.attempts.is_some()))
}
