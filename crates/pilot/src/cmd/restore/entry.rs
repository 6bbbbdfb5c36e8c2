//! The entry that records that the ledger was restored.

use pilot_core::entry::Entry;
use pilot_core::entry::details::{self, Backup, Details, Loss};
use pilot_ledger::register::Doubt;
use pilot_store::{Fact, Outcome, Record, Situation, Store, Subject, Write};

use super::outside::Verdict;
use crate::cmd::backup::Manifest;
use crate::exit::Failure;

pub(super) struct Restored<'a> {
    pub manifest: Option<&'a Manifest>,
    pub verdict: &'a Verdict,
    /// Why the log continues although something may be lost; then it has a new key.
    pub reason: Option<&'a str>,
    pub operator: Option<&'a str>,
    /// With a new key: the last checkpoint of the previous log, if anyone had it.
    pub previous: Option<String>,
    /// What becomes of credentials that are older than this.
    pub credentials: Credentials,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Credentials {
    /// Every revocation is known.
    Known,
    /// They are not accepted until an operator says so.
    Doubted,
    /// The operator has already accepted them.
    Trusted,
}

impl Restored<'_> {
    pub(super) async fn write(&self, store: &dyn Store) -> Result<(), Failure> {
        let (details, credentials) = (self.details(), self.credentials);
        let decide = move |situation: &Situation<'_>| {
            let entry = Entry::of_service(situation.index, situation.now, None, &details);
            let doubt = match credentials {
                // One that was there before, from an earlier loss, stays.
                Credentials::Known => None,
                Credentials::Doubted => Some(Doubt::about_all_before(situation.now)),
                Credentials::Trusted => Some(Doubt { is_over: true, ..Doubt::about_all_before(situation.now) }),
            };
            let noted = doubt.map(|doubt| Fact { name: Doubt::FACT.to_owned(), value: Some(doubt.to_bytes()) });
            let facts = noted.into_iter().collect();
            Ok(Record { facts, ..Record::of(entry) })
        };
        let write = Write::new(Subject::Ledger, None, decide);
        match store.settle(write).await {
            Ok(Outcome::Recorded { .. }) => Ok(()),
            Ok(other) => Err(Failure::Environment(format!("the restore cannot be written to the ledger: {other:?}"))),
            Err(error) => Err(Failure::Environment(error.to_string())),
        }
    }

    fn details(&self) -> Details {
        let (Verdict::Whole(because) | Verdict::Refused(because)) = self.verdict;
        let credentials = match self.credentials {
            Credentials::Known => None,
            Credentials::Doubted => Some("doubted".to_owned()),
            Credentials::Trusted => Some("trusted".to_owned()),
        };
        let loss = |reason: &str| Loss {
            loss_accepted: reason.to_owned(),
            previous_checkpoint: self.previous.clone(),
            credentials,
        };
        let backup = |manifest: &Manifest| Backup { entries: manifest.entries, made_at: manifest.made_at };
        Details::LedgerRestored(details::Restored {
            because: because.clone(),
            backup: self.manifest.map(backup),
            operator: self.operator.map(str::to_owned),
            loss: self.reason.map(loss),
        })
    }
}
