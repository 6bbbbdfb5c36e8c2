//! What is known outside a backup about how far the log had grown.

use std::path::Path;
use std::sync::Arc;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::VerifierKey;
use pilot_ledger::second_place::{self, SecondPlace};
use pilot_ledger::signer::{Signed, continued, read};
use pilot_ledger::witnesses::{Seen, Witnesses, ask};
use pilot_setup::config::Config;
use pilot_setup::error::StartError;
use pilot_setup::log_key::Haste;
use pilot_store::Store;

use super::keys::Keys;
use crate::exit::Failure;
use crate::output::complain;

pub(super) enum Verdict {
    /// Something outside shows that nothing is missing: what.
    Whole(String),
    /// Something is missing, or it is not known: why.
    Refused(String),
}

pub(super) struct Outside<'a> {
    pub config: &'a Config,
    pub place: &'a SecondPlace,
    /// A checkpoint that someone else has kept.
    pub given: Option<&'a Path>,
    /// The ledger is the existing one, not a backup.
    pub is_present: bool,
}

/// What was heard.
#[derive(Default)]
struct Said {
    /// That nothing is missing.
    enough: Vec<String>,
    /// What does not reach as far as the ledger.
    too_little: Vec<String>,
}

impl Outside<'_> {
    /// Compares the ledger that would be restored with everything known outside of it. Evidence that reaches at least
    /// as far as the ledger counts; evidence that ends before it cannot show whether anything came after.
    pub(super) async fn judge(&self, keys: &Keys, store: &Arc<dyn Store>) -> Result<Verdict, Failure> {
        let Some(key) = &keys.known else {
            return Ok(Verdict::Refused("there is no log signing key here or in the backup".into()));
        };
        let mut said = Said::default();
        for path in [Some(self.place.path()), self.given].into_iter().flatten() {
            let note = second_place::read(path).map_err(|error| Failure::environment(path.display(), error))?;
            match note {
                Some(note) => match fits(&note, key, &**store, path).await? {
                    Ok(size) => self.hear(&mut said, path, size, store.head().borrow().size()),
                    Err(why) => return Ok(Verdict::Refused(why)),
                },
                None if self.given == Some(path) => {
                    return Err(Failure::Usage(format!("--checkpoint {}: there is no such file", path.display())));
                }
                None => {}
            }
        }
        if let Err(why) = self.ask_witnesses(keys, store, &mut said).await? {
            return Ok(Verdict::Refused(why));
        }
        if said.enough.is_empty() {
            let heard: Vec<_> = said.too_little.iter().map(|what| format!("\n- {what}")).collect();
            return Ok(Verdict::Refused(format!(
                "nothing outside of it shows how far the log had grown, so entries may be missing and the same key would sign a second history.{}\n\
                 Fix: put the newest signed checkpoint you have into {}, or name it with --checkpoint FILE (from an auditor, a monitor, the old disk).\n\
                 If nobody has one: --accept-loss WHY continues under a new log key.",
                heard.concat(),
                self.place.path().display()
            )));
        }
        for what in &said.too_little {
            say(what);
        }
        Ok(Verdict::Whole(said.enough.join("; ")))
    }

    /// A checkpoint that the ledger continues.
    fn hear(&self, said: &mut Said, path: &Path, size: u64, entries: u64) {
        let what = format!("it continues the checkpoint of {size} entries in {}", path.display());
        // Next to the database it was written with, it may be a moment behind; a start accepts that too.
        if size >= entries || (self.is_present && path == self.place.path()) {
            said.enough.push(what);
        } else {
            said.too_little
                .push(format!("{what}, which shows nothing about later entries, and this ledger has {entries}"));
        }
    }

    /// What the reachable witnesses say. One that knows more than the backup, or a different history, is enough to
    /// refuse; one that has not seen all of it cannot show that nothing is missing.
    async fn ask_witnesses(
        &self,
        keys: &Keys,
        store: &Arc<dyn Store>,
        said: &mut Said,
    ) -> Result<Result<(), String>, Failure> {
        let witnesses = Witnesses::new(&self.config.log).map_err(|error| Failure::Usage(error.to_string()))?;
        if witnesses.list().is_empty() {
            return Ok(Ok(()));
        }
        let Some(key) = keys.own() else {
            said.too_little.push("no witness could be asked: the log's own key is not available".into());
            return Ok(Ok(()));
        };
        let head = Arc::clone(&store.head().borrow());
        let checkpoint = Checkpoint { origin: key.verifier().name, size: head.size(), root: head.root() };
        let note = key.note(checkpoint.text(), Haste::Checkpoint).await.map_err(StartError::from)?;
        let signed = Signed { note, checkpoint };
        for witness in witnesses.list() {
            let name = witness.name();
            match ask(witnesses.outgoing(), witness, &signed).await {
                Ok(Seen::All) => said.enough.push(format!("witness {name} has seen these {} entries and no more", head.size())),
                Ok(Seen::Only(theirs)) => said.too_little.push(format!(
                    "witness {name} has seen {theirs} entries, which shows nothing about later ones, and this ledger has {}",
                    head.size()
                )),
                Err(error) if error.is_conflict() => return Ok(Err(format!("witness {name}: {error}"))),
                // A witness that cannot be asked decides nothing.
                Err(error) => said.too_little.push(format!("witness {name} could not be asked: {error}")),
            }
        }
        Ok(Ok(()))
    }

    /// The last checkpoint of the log as it was, for the entry that begins the new one.
    pub(super) fn previous(&self) -> Option<String> {
        let given = self.given.and_then(|path| second_place::read(path).ok().flatten());
        self.place.read().ok().flatten().or(given)
    }
}

fn say(text: &str) {
    let _ = complain(&format!("pilot: {text}"));
}

/// Whether the ledger begins with what a checkpoint says, and how far that reaches.
async fn fits(note: &str, key: &VerifierKey, store: &dyn Store, path: &Path) -> Result<Result<u64, String>, Failure> {
    let checkpoint = match read(note, key, path) {
        Ok(checkpoint) => checkpoint,
        Err(refused) => return Ok(Err(refused.to_string())),
    };
    match continued(store, &checkpoint, path).await {
        Ok(_) => Ok(Ok(checkpoint.size)),
        Err(StartError::Refused(why)) => Ok(Err(why)),
        Err(error) => Err(error.into()),
    }
}
