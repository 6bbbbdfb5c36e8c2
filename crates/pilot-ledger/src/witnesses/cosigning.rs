//! Asks the configured witnesses for cosignatures, and knows which checkpoint has enough of them.
//!
//! All witnesses are offered the same checkpoint at the same moment, so that their cosignatures collect under one. A
//! witness that is slow or down delays nobody: it is left out of the rounds until it has answered.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pilot_core::limits::{CHECKPOINT_KEPT_EVERY, WITNESSES_DEADLINE};
use pilot_core::time::Time;
use pilot_evidence::note::{Note, VerifierKey};
use pilot_evidence::verify::Trust;
use pilot_setup::config;
use pilot_store::{Duty, Store};
use pilot_wire::clock::Stopwatch;
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{Outgoing, TrustError};
use tokio::sync::watch;

use super::effects::EffectGate;
use super::offer::offer;
use super::shared;
use super::witness::{self, Witness};
use crate::dated::{Dated, Shelf};
use crate::signer::{SignError, Signed, Signer};

/// How often the witnesses are offered a newer checkpoint, if there is one.
const ROUND: Duration = Duration::from_secs(1);
/// How often a request that is waiting for cosignatures asks again.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How many checkpoints collect cosignatures; older ones will not be completed any more.
const GATHERED_MAX: usize = 32;

/// Why an effect may not begin yet.
#[derive(Debug, thiserror::Error)]
pub enum CoverError {
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(
        "An effect may begin only when {required} of {all} witnesses have cosigned the item's newest entry, but {} have: {}.",
        all - missing.len(), missing.join("; ")
    )]
    NotCovered { required: usize, all: usize, missing: Vec<String> },
}

pub struct Witnesses {
    list: Vec<Arc<Witness>>,
    required: usize,
    outgoing: Outgoing,
    gathered: Mutex<BTreeMap<u64, Gathered>>,
    last_kept: Mutex<LastKept>,
    /// How many entries are under a checkpoint with enough cosignatures.
    covered: watch::Sender<u64>,
}

/// What was last kept to date the entries.
#[derive(Default)]
struct LastKept {
    size: u64,
    cosignatures: usize,
    since: Option<Stopwatch>,
}

/// A checkpoint and its cosignatures so far, by the number of the witness.
struct Gathered {
    signed: Arc<Signed>,
    lines: BTreeMap<usize, String>,
}

impl Gathered {
    fn text(&self) -> String {
        self.lines.values().fold(self.signed.note.clone(), |note, line| note + line + "\n")
    }
}

impl Witnesses {
    pub fn new(log: &config::Log) -> Result<Witnesses, TrustError> {
        let https = log.witnesses.iter().any(|witness| witness.url.scheme_str() == Some("https"));
        Ok(Witnesses {
            list: log.witnesses.iter().map(|witness| Arc::new(Witness::new(witness))).collect(),
            required: log.require_witnesses,
            outgoing: Outgoing::new(https, log.ca_file.as_deref())?,
            gathered: Mutex::new(BTreeMap::new()),
            last_kept: Mutex::default(),
            covered: watch::Sender::new(0),
        })
    }

    pub fn list(&self) -> &[Arc<Witness>] {
        &self.list
    }

    /// What someone who trusts this log's own configuration trusts.
    pub fn trust(&self, key: VerifierKey) -> Trust {
        let witnesses = self.list.iter().map(|witness| witness.key.clone()).collect();
        Trust::witnessed(key, witnesses, self.required)
    }

    pub fn required(&self) -> usize {
        self.required
    }

    /// What must be checked before an effect begins.
    pub fn gate(&self) -> EffectGate {
        match self.required {
            0 => EffectGate::open(),
            _ => EffectGate::requiring(self.covered.subscribe()),
        }
    }

    pub fn outgoing(&self) -> &Outgoing {
        &self.outgoing
    }

    fn gathered(&self) -> MutexGuard<'_, BTreeMap<u64, Gathered>> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The checkpoint with the cosignatures it has so far.
    pub fn cosigned(&self, signed: &Signed) -> String {
        let gathered = self.gathered();
        gathered.get(&signed.checkpoint.size).map_or_else(|| signed.note.clone(), Gathered::text)
    }

    /// The newest checkpoint with as many cosignatures as are required, if any are required.
    pub fn newest_covered(&self) -> Option<String> {
        let is_covered = |gathered: &&Gathered| gathered.lines.len() >= self.required;
        let gathered = self.gathered();
        gathered.values().rev().find(is_covered).filter(|_| self.required > 0).map(Gathered::text)
    }

    /// Offers the newest checkpoint to every witness that has not cosigned it and is not being asked already.
    pub fn round(self: &Arc<Self>, signer: &Arc<Signer>, is_urgent: bool) {
        let head = Arc::clone(&signer.newest().borrow());
        if head.checkpoint.size == 0 {
            return;
        }
        if !signer.store().holds(Duty::Witnesses) {
            let (witnesses, signer) = (Arc::clone(self), Arc::clone(signer));
            tokio::spawn(async move { witnesses.learn(&signer).await });
            return;
        }
        for (number, witness) in self.list.iter().enumerate() {
            if !witness.is_to_be_asked(head.checkpoint.size, is_urgent) {
                continue;
            }
            let (witnesses, witness, head) = (Arc::clone(self), Arc::clone(witness), Arc::clone(&head));
            let store = Arc::clone(signer.store());
            tokio::spawn(async move {
                let offered = offer(&witnesses.outgoing, &*store, &witness, &head).await;
                if let Ok(line) = &offered {
                    witnesses.gather(number, &head, line);
                    witnesses.tell(&store, head.checkpoint.size).await;
                }
                witness.answered(head.checkpoint.size, offered.err().as_ref());
            });
        }
    }

    /// Shares what was gathered with the other nodes.
    async fn tell(&self, store: &Arc<dyn Store>, size: u64) {
        if !store.is_shared() {
            return;
        }
        let gathered = self.gathered().get(&size).map(|found| (found.lines.len(), found.text()));
        if let Some((count, note)) = gathered {
            shared::tell(store, size, count, note).await;
        }
    }

    /// Takes in what another node has gathered.
    async fn learn(&self, signer: &Signer) {
        if let Some((signed, lines)) = shared::learn(&self.list, signer).await {
            for (number, line) in lines {
                self.gather(number, &signed, &line);
            }
        }
    }

    fn gather(&self, number: usize, signed: &Arc<Signed>, line: &str) {
        let mut gathered = self.gathered();
        let new = || Gathered { signed: Arc::clone(signed), lines: BTreeMap::new() };
        let at = gathered.entry(signed.checkpoint.size).or_insert_with(new);
        at.lines.insert(number, line.to_owned());
        let is_covered = self.required > 0 && at.lines.len() >= self.required;
        while gathered.len() > GATHERED_MAX {
            // The newest covered one stays: it is the one that is served.
            let covered = *self.covered.borrow();
            let Some(oldest) = gathered.keys().copied().find(|size| *size != covered) else { break };
            gathered.remove(&oldest);
        }
        if is_covered {
            self.covered.send_if_modified(|covered| {
                let is_more = signed.checkpoint.size > *covered;
                *covered = signed.checkpoint.size.max(*covered);
                is_more
            });
        }
    }

    /// Keeps the newest cosigned checkpoint, once a minute while the log grows, and once more when it has stopped.
    async fn keep(&self, store: &dyn Store) {
        let Some((size, cosignatures, note)) = self.to_keep() else { return };
        match Shelf::Cosigned.keep(store, size, Dated { note, reply: None }).await {
            Ok(()) => {
                let mut last = self.last_kept.lock().unwrap_or_else(PoisonError::into_inner);
                *last = LastKept { size, cosignatures, since: Some(Stopwatch::start()) };
            }
            // The next round tries again.
            Err(error) => tracing::debug!(cause = %error, "a cosigned checkpoint could not be kept"),
        }
    }

    fn to_keep(&self) -> Option<(u64, usize, String)> {
        let last = self.last_kept.lock().unwrap_or_else(PoisonError::into_inner);
        let gathered = self.gathered();
        let enough = self.required.max(1);
        let (size, newest) = gathered.iter().rev().find(|(_, gathered)| gathered.lines.len() >= enough)?;
        let cosignatures = newest.lines.len();
        let is_time = last.since.as_ref().is_none_or(|since| since.elapsed() >= CHECKPOINT_KEPT_EVERY);
        let is_newer = *size > last.size && is_time;
        let is_fuller = *size == last.size && cosignatures > last.cosignatures;
        (is_newer || is_fuller).then(|| (*size, cosignatures, newest.text()))
    }

    /// How many cosignatures a checkpoint has, and how many witnesses there are; `None` if there are none.
    pub fn count(&self, signed: &Signed) -> Option<(usize, usize)> {
        let note = Note::parse(&signed.note).ok();
        // The log's own signature is one of them.
        let count = note.map_or(0, |note| note.signatures.len().saturating_sub(1));
        (!self.list.is_empty()).then_some((count, self.list.len()))
    }

    /// Asks every witness to cosign this checkpoint again, so that they vouch for it at this time too: a log that does
    /// not grow is otherwise cosigned once.
    async fn refresh(self: &Arc<Self>, signer: &Arc<Signer>, head: &Arc<Signed>) {
        let mut asked = tokio::task::JoinSet::new();
        for (number, witness) in self.list.iter().enumerate() {
            let (witnesses, witness, head) = (Arc::clone(self), Arc::clone(witness), Arc::clone(head));
            let store = Arc::clone(signer.store());
            asked.spawn(async move {
                // A witness that does not answer, or is further already, leaves what it said before.
                if let Ok(line) = offer(&witnesses.outgoing, &*store, &witness, &head).await {
                    witnesses.gather(number, &head, &line);
                }
            });
        }
        let _ = tokio::time::timeout(WITNESSES_DEADLINE, asked.join_all()).await;
    }

    /// Whether as many witnesses as are required vouch for this checkpoint at this time or later.
    fn is_vouched(&self, signed: &Signed, since: Time) -> bool {
        let Ok(note) = Note::parse(&signed.note) else { return false };
        let seconds = since.unix_micros().div_euclid(1_000_000);
        let is_late_enough = |witness: &&Arc<Witness>| {
            witness.key.verify(&note).is_ok_and(|time| i64::try_from(time).is_ok_and(|time| time >= seconds))
        };
        self.list.iter().filter(is_late_enough).count() >= self.required.max(1)
    }

    /// The best checkpoint for a period: if the log has not grown since its end, the witnesses are asked again.
    pub async fn best_after(
        self: &Arc<Self>,
        signer: &Arc<Signer>,
        end: Time,
        now: Time,
    ) -> Result<Arc<Signed>, SignError> {
        let best = self.best(signer).await?;
        if self.list.is_empty() || end > now || self.is_vouched(&best, end) {
            return Ok(best);
        }
        let bare = self.gathered().get(&best.checkpoint.size).map(|gathered| Arc::clone(&gathered.signed));
        self.refresh(signer, &bare.unwrap_or_else(|| Arc::clone(&best))).await;
        self.best(signer).await
    }

    /// A checkpoint of everything so far, with the cosignatures of as many witnesses as answer in time.
    pub async fn best(self: &Arc<Self>, signer: &Arc<Signer>) -> Result<Arc<Signed>, SignError> {
        let newest = signer.checkpoint().await?;
        let size = newest.checkpoint.size;
        let asking = async {
            while self.most_cosigned(size).is_none_or(|(count, _)| count < self.list.len()) {
                self.round(signer, true);
                tokio::time::sleep(ASK_AGAIN).await;
            }
        };
        if !self.list.is_empty() {
            let _ = tokio::time::timeout(WITNESSES_DEADLINE, asking).await;
        }
        Ok(self.most_cosigned(size).map_or(newest, |(_, most)| Arc::new(most)))
    }

    /// Of the checkpoints that cover at least this many entries, the one with the most cosignatures.
    fn most_cosigned(&self, size: u64) -> Option<(usize, Signed)> {
        let gathered = self.gathered();
        let (_, most) = gathered.range(size..).max_by_key(|(_, gathered)| gathered.lines.len())?;
        Some((most.lines.len(), Signed { checkpoint: most.signed.checkpoint.clone(), note: most.text() }))
    }

    /// Returns when this many entries are under a checkpoint with enough cosignatures, or `patience` runs out.
    pub async fn cover(
        self: &Arc<Self>,
        signer: &Arc<Signer>,
        size: u64,
        patience: Duration,
    ) -> Result<(), CoverError> {
        let mut covered = self.covered.subscribe();
        if *covered.borrow() >= size {
            return Ok(());
        }
        signer.covering(size).await?;
        let asking = async {
            while *covered.borrow_and_update() < size {
                self.round(signer, true);
                let _ = tokio::time::timeout(ASK_AGAIN, covered.changed()).await;
            }
        };
        tokio::time::timeout(patience, asking).await.map_err(|_| self.not_covered(size))
    }

    fn not_covered(&self, size: u64) -> CoverError {
        let missing = self.list.iter().filter_map(|witness| witness.complaint(size)).collect();
        CoverError::NotCovered { required: self.required, all: self.list.len(), missing }
    }

    pub fn metrics(&self, text: &mut Exposition) {
        for (name, kind, help, value) in witness::FIGURES {
            if self.list.is_empty() {
                break;
            }
            text.family(name, kind, help);
            for witness in &self.list {
                text.sample(name, &[("witness", &witness.name())], value(witness));
            }
        }
    }
}

/// Runs as long as the service does.
pub async fn run(witnesses: Arc<Witnesses>, signer: Arc<Signer>) {
    if witnesses.list.is_empty() {
        return;
    }
    loop {
        witnesses.round(&signer, false);
        if signer.store().holds(Duty::Witnesses) {
            witnesses.keep(&**signer.store()).await;
        }
        tokio::time::sleep(ROUND).await;
    }
}
