//! What is known outside of a backup about how far the log had come.

use std::path::Path;
use std::sync::Arc;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::NoteKey;
use pilot_server::config::Config;
use pilot_server::second_place::{self, SecondPlace};
use pilot_server::signer::{Signed, continued, read};
use pilot_server::start::StartError;
use pilot_server::witnesses::{Witnesses, offer};
use pilot_store::Store;

use crate::exit::Failure;
use crate::output::complain;

pub enum Verdict {
    /// Something outside says that nothing is missing: what.
    Whole(String),
    /// Something is missing, or nobody can tell: why.
    Refused(String),
}

pub struct Outside<'a> {
    pub config: &'a Config,
    pub place: &'a SecondPlace,
    /// A checkpoint somebody else has kept.
    pub given: Option<&'a Path>,
}

impl Outside<'_> {
    /// Holds the ledger that would be restored against everything known outside of it.
    pub async fn judge(&self, key: Option<&NoteKey>, store: &Arc<dyn Store>) -> Result<Verdict, Failure> {
        let Some(key) = key else {
            return Ok(Verdict::Refused("there is no log signing key, neither here nor in the backup".into()));
        };
        let mut reasons = Vec::new();
        for path in [Some(self.place.path()), self.given].into_iter().flatten() {
            let note = second_place::read(path).map_err(|error| Failure::environment(path.display(), error))?;
            match note {
                Some(note) => match fits(&note, key, &**store, path).await? {
                    Ok(size) => {
                        reasons.push(format!("it continues the checkpoint of {size} entries in {}", path.display()));
                    }
                    Err(why) => return Ok(Verdict::Refused(why)),
                },
                None if self.given == Some(path) => {
                    return Err(Failure::Usage(format!("--checkpoint {}: there is no such file", path.display())));
                }
                None => {}
            }
        }
        match self.ask_witnesses(key, store).await? {
            Ok(mut said) => reasons.append(&mut said),
            Err(why) => return Ok(Verdict::Refused(why)),
        }
        if reasons.is_empty() {
            return Ok(Verdict::Refused(format!(
                "nothing outside of it says how far the log had come, so entries may be missing and the same key would sign a second history.\n\
                 Do: put the newest signed checkpoint you have into {}, or name it with --checkpoint FILE (from an auditor, a monitor, the old disk).\n\
                 If nobody has one: --accept-loss WHY goes on under a new log key.",
                self.place.path().display()
            )));
        }
        Ok(Verdict::Whole(reasons.join("; ")))
    }

    /// What the witnesses say who can be reached; one that knows more than the backup is enough for a no.
    async fn ask_witnesses(
        &self,
        key: &NoteKey,
        store: &Arc<dyn Store>,
    ) -> Result<Result<Vec<String>, String>, Failure> {
        let witnesses = Witnesses::new(&self.config.log).map_err(|error| Failure::Usage(error.to_string()))?;
        let head = Arc::clone(&store.head().borrow());
        let checkpoint = Checkpoint { origin: key.verifier().name, size: head.size(), root: head.root() };
        let signed = Signed { note: checkpoint.sign(key), checkpoint };
        let mut said = Vec::new();
        for witness in witnesses.list() {
            let name = witness.name();
            match offer(witnesses.outgoing(), &**store, witness, &signed).await {
                Ok(_) => said.push(format!("witness {name} knows nothing that is missing in it")),
                Err(error) if error.is_conflict() => return Ok(Err(format!("witness {name}: {error}"))),
                // A witness that cannot be asked decides nothing.
                Err(error) => say(&format!("witness {name} was not heard: {error}")),
            }
        }
        Ok(Ok(said))
    }

    /// The last checkpoint of the log as it was, for the entry that begins the new one.
    pub fn previous(&self) -> Option<String> {
        let given = self.given.and_then(|path| second_place::read(path).ok().flatten());
        self.place.read().ok().flatten().or(given)
    }
}

fn say(text: &str) {
    let _ = complain(&format!("pilot: {text}"));
}

/// Whether the ledger begins with what a checkpoint says, and how far that reaches.
async fn fits(note: &str, key: &NoteKey, store: &dyn Store, path: &Path) -> Result<Result<u64, String>, Failure> {
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
