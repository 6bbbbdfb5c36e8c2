//! From a decision to the ledger and back: the path of every write that a caller asks for.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::actor::Actor;
use pilot_core::entry::Entry;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_store::{Outcome, Store, StoreError, Write};
use pilot_wire::peer::Address;

use crate::clock::{ClockKeeper, LedgerClock};
use crate::refusals::Refusals;
use crate::repeated::{Repeated, recall};
use crate::reserve::Reserve;
use crate::signer::Signer;

/// Why no writes are accepted at the moment. Reads still work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotNow {
    /// The machine's clock has leapt ahead by this much.
    ClockAhead(Duration),
    DiskNearlyFull,
    NoCheckpoint,
}

#[derive(Debug)]
pub enum SettleError {
    NotNow(NotNow),
    Store(StoreError),
    Refused(Refusal),
    NoSuchItem,
    /// The idempotency key was used with another body before.
    KeyReused,
    /// What was stored about an earlier request cannot be read.
    Unreadable,
}

impl From<StoreError> for SettleError {
    fn from(error: StoreError) -> Self {
        SettleError::Store(error)
    }
}

/// The result of a caller's write.
pub enum Settled {
    Recorded {
        entry: Entry,
        /// For answers that show the whole item.
        shown: Option<Box<Item>>,
    },
    Repeated(Repeated),
}

/// The actor behind a write, and where the request came from.
#[derive(Debug, Clone, Copy)]
pub struct Asking<'a> {
    pub actor: &'a Actor,
    /// Where the request came from, if a refusal is to be recorded with it.
    pub origin: Option<Address>,
}

/// Where callers' writes go.
pub struct Ledger {
    pub store: Arc<dyn Store>,
    pub signer: Arc<Signer>,
    pub reserve: Arc<Reserve>,
    pub clock: LedgerClock,
    pub clock_keeper: Arc<ClockKeeper>,
    pub refusals: Arc<Refusals>,
}

impl Ledger {
    /// Whether anything may be written, or why not.
    pub fn check_writing(&self) -> Result<(), NotNow> {
        if let Some(ahead) = self.clock_keeper.doubt() {
            return Err(NotNow::ClockAhead(ahead));
        }
        if self.reserve.is_short() {
            return Err(NotNow::DiskNearlyFull);
        }
        if self.signer.is_behind() {
            return Err(NotNow::NoCheckpoint);
        }
        Ok(())
    }

    /// A caller's write that changes no more than facts, or nothing at all.
    pub async fn note(&self, write: Write) -> Result<(), SettleError> {
        self.check_writing().map_err(SettleError::NotNow)?;
        let settled = self.store.settle(write).await;
        if matches!(settled, Err(StoreError::Full(_))) {
            self.reserve.found_full();
        }
        match settled? {
            Outcome::Nothing | Outcome::Noted => Ok(()),
            Outcome::NoSuchItem => Err(SettleError::NoSuchItem),
            Outcome::Refused(refusal) => Err(SettleError::Refused(refusal)),
            Outcome::KeyReused => Err(SettleError::KeyReused),
            // A note is never recorded, and has no key.
            Outcome::Recorded { .. } | Outcome::Repeated(_) => Err(SettleError::Unreadable),
        }
    }

    /// Decides and records. `action` is the name under which a refusal for role, ownership or separation of duties is
    /// recorded.
    pub async fn settle(
        &self,
        Asking { actor, origin }: Asking<'_>,
        action: &str,
        write: Write,
    ) -> Result<Settled, SettleError> {
        self.check_writing().map_err(SettleError::NotNow)?;
        let settled = self.store.settle(write).await;
        if matches!(settled, Err(StoreError::Full(_))) {
            // Stops all writes at once, without waiting for the next check of the disk.
            self.reserve.found_full();
        }
        match settled? {
            Outcome::Recorded { entry, shown } => Ok(Settled::Recorded { entry, shown }),
            Outcome::Repeated(remembered) => {
                let repeated = recall(&*self.store, remembered).await?;
                // A key belongs to one actor, and so does the entry it recorded.
                let is_theirs = |repeated: &Repeated| match repeated {
                    Repeated::Entry(entry) => entry.actor_id.as_ref() == Some(&actor.actor_id),
                    Repeated::Answer(_) => true,
                };
                repeated.filter(is_theirs).map(Settled::Repeated).ok_or(SettleError::Unreadable)
            }
            Outcome::KeyReused => Err(SettleError::KeyReused),
            Outcome::NoSuchItem => Err(SettleError::NoSuchItem),
            // A caller's write always has something to record.
            Outcome::Nothing | Outcome::Noted => Err(SettleError::Unreadable),
            Outcome::Refused(refusal) => {
                if refusal.is_about_access() {
                    self.refusals.note(actor, origin, action, refusal.code().as_str(), self.clock.now());
                }
                Err(SettleError::Refused(refusal))
            }
        }
    }
}
