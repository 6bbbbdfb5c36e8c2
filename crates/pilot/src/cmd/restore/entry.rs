//! The entry that records that the ledger was restored.

use pilot_core::entry::{Entry, EntryType};
use pilot_ledger::register::Doubt;
use pilot_store::{Fact, Outcome, Record, Situation, Store, Subject, Write};
use serde_json::{Value, json};

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
            let entry = Entry::new(EntryType::LedgerRestored, situation.index, situation.now, None, details.clone());
            let doubt = match credentials {
                // One that was there before, from an earlier loss, stays.
                Credentials::Known => None,
                Credentials::Doubted => Some(Doubt::about_all_before(situation.now)),
                Credentials::Trusted => Some(Doubt { is_over: true, ..Doubt::about_all_before(situation.now) }),
            };
            let noted = doubt.map(|doubt| Fact { name: Doubt::FACT.to_owned(), value: Some(doubt.to_bytes()) });
            let facts = noted.into_iter().collect();
            Ok(Record { entry, documents: Vec::new(), standing: None, answer: Vec::new(), facts })
        };
        let write = Write::new(Subject::Ledger, None, decide);
        match store.settle(write).await {
            Ok(Outcome::Recorded { .. }) => Ok(()),
            Ok(other) => Err(Failure::Environment(format!("the restore cannot be written to the ledger: {other:?}"))),
            Err(error) => Err(Failure::Environment(error.to_string())),
        }
    }

    fn details(&self) -> Value {
        let (Verdict::Whole(because) | Verdict::Refused(because)) = self.verdict;
        let mut details = json!({ "because": because });
        let Some(members) = details.as_object_mut() else { return details };
        if let Some(manifest) = self.manifest {
            members.insert("backup".into(), json!({ "entries": manifest.entries, "made_at": manifest.made_at }));
        }
        if let Some(operator) = self.operator {
            members.insert("operator".into(), json!(operator));
        }
        if let Some(reason) = self.reason {
            members.insert("loss_accepted".into(), json!(reason));
            members.insert("previous_checkpoint".into(), json!(self.previous));
            match self.credentials {
                Credentials::Known => {}
                Credentials::Doubted => drop(members.insert("credentials".into(), json!("doubted"))),
                Credentials::Trusted => drop(members.insert("credentials".into(), json!("trusted"))),
            }
        }
        details
    }
}
