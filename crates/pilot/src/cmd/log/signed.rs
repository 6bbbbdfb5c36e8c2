//! Compares a ledger with what its log has signed: the key, and the checkpoint in the second place.

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::VerifierKey;
use pilot_ledger::starts::LastStart;
use pilot_ledger::{second_place, signer};
use pilot_setup::config::Config;
use pilot_setup::error::StartError;
use pilot_setup::log_key;
use pilot_store::archive::{Archive, Report, StoredFault};

use super::examine::examine;
use crate::exit::Failure;

/// Reads the whole store like [`examine`], and also says whether it is the one that was signed.
pub(crate) fn examine_signed(config: &Config, ledger: &dyn Archive) -> Result<Report, Failure> {
    // Before the ledger, to which a service may be writing: then the ledger has everything the checkpoint covers.
    let place = config.checkpoint_path();
    let kept = second_place::read(&place);
    let mut report = examine(ledger)?;
    let mut faults = Faults { place: place.display().to_string(), found: Vec::new() };
    let is_begun = report.entries > 0 || place.exists();
    let key = faults.key(config, is_begun);
    match (kept, key) {
        (Err(error), _) => faults.second_place(format!("cannot be read: {error}")),
        (Ok(None), _) => faults.missing(ledger),
        (Ok(Some(_)), None) => {}
        (Ok(Some(note)), Some(key)) => faults.checkpoint(&note, &key, &report, ledger),
    }
    report.faults.append(&mut faults.found);
    Ok(report)
}

struct Faults {
    place: String,
    found: Vec<StoredFault>,
}

impl Faults {
    fn second_place(&mut self, what: impl Into<String>) {
        self.found.push(StoredFault { place: format!("checkpoint {}", self.place), what: what.into() });
    }

    fn key(&mut self, config: &Config, is_begun: bool) -> Option<VerifierKey> {
        let path = match config.log.signer {
            Some(_) => config.log_public_key_path(),
            None => config.log_key_path(),
        };
        let place = format!("log key {}", path.display());
        if !log_key::is_known(config) {
            if is_begun {
                let what = "is missing, but the ledger is not empty; put it back from your copy".to_owned();
                self.found.push(StoredFault { place, what });
            }
            return None;
        }
        match log_key::verifier(config) {
            Ok(key) => Some(key),
            Err(StartError::Refused(what) | StartError::Environment { what, .. }) => {
                let said = format!("{}: ", path.display());
                let what = what.strip_prefix(&said).unwrap_or(&what).to_owned();
                self.found.push(StoredFault { place, what: format!("cannot be used: {what}") });
                None
            }
        }
    }

    /// A missing file is not a fault, unless the ledger says that there was one.
    fn missing(&mut self, ledger: &dyn Archive) {
        // The faults of a store that cannot be read are already reported.
        let last = ledger.fact(LastStart::FACT).ok().flatten().and_then(|fact| LastStart::parse(&fact).ok());
        if last.is_some_and(|last| last.second_place) {
            self.second_place("is missing, but this ledger has kept its checkpoint there; put the newest one back");
        }
    }

    fn checkpoint(&mut self, note: &str, key: &VerifierKey, report: &Report, ledger: &dyn Archive) {
        let checkpoint = match signer::read_checkpoint(note, key) {
            Ok(checkpoint) => checkpoint,
            Err(cause) => {
                let remedy = "log.key or this file belongs to another log, or the file was changed";
                return self.second_place(format!("is not signed by this log's key ({cause}); {remedy}"));
            }
        };
        let Checkpoint { size, root, .. } = checkpoint;
        if report.entries < size {
            let (entries, missing) = (report.entries, size - report.entries);
            let what = format!("covers {size} entries, but the ledger has {entries}: {missing} are missing");
            return self.second_place(what);
        }
        match ledger.root_at(size) {
            Ok(Some(found)) if found == root => {}
            Ok(_) => self.second_place(format!(
                "has a different root from the ledger at {size} entries: the ledger's history is not the one that was signed"
            )),
            Err(error) => self.second_place(format!("cannot be compared with the ledger at {size} entries: {error}")),
        }
    }
}
