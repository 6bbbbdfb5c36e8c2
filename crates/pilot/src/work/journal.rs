//! What the agent has done about an attempt, durable before it goes on: so that after a crash nothing runs twice and
//! nothing is reported that nobody saw.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use pilot_api::items::ItemView;
use pilot_core::item::ItemId;
use pilot_setup::private_file::{make_directory, sync_directory};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::exit::Failure;

const STEPS: &str = "journal.jsonl";

/// One line of an attempt's journal.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "snake_case")]
pub(crate) enum Step {
    /// About to ask for the lease, under this key.
    Claiming(Claim),
    /// The lease was granted, and the item moved to this state.
    Claimed { state: String },
    /// The command may have been started from here on.
    Spawned { boot_id: String, group: Option<PathBuf> },
    /// The command has ended, and this will be reported.
    Exited(Report),
    /// The service knows, or has refused to hear it.
    Reported,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claim {
    pub v: u32,
    /// Whose work this is: the service and the actor.
    pub service: String,
    pub actor_id: String,
    pub item: ItemId,
    pub attempt: u32,
    /// `start` or `retry`.
    pub action: String,
    pub content_digest: String,
    pub version: u64,
    pub key: String,
}

impl Claim {
    /// Whether the item is in the lease of this very attempt. A retry is another attempt, and a roll-back another state;
    /// both may be the same actor's, at another agent.
    pub(crate) fn is_held_in(&self, item: &ItemView<'_>, state: &str) -> bool {
        item.lease.as_ref().as_ref().is_some_and(|lease| lease.holder.as_str() == self.actor_id)
            && item.attempts == self.attempt
            && item.state == state
    }
}

/// An action with everything it says, to be sent under this key until the service has answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Report {
    pub action: String,
    pub comment: String,
    pub inputs: Value,
    /// The state in which the attempt left the item. In any other, this is no longer about it.
    pub state: String,
    pub key: String,
    /// What the agent's own exit code reflects.
    pub exit_code: i32,
}

/// Where an attempt stands.
#[derive(Debug)]
pub(crate) enum Stand {
    /// The service has not been asked yet.
    New,
    /// The service may have been asked by an agent that died.
    Claiming,
    Claimed {
        state: String,
    },
    Spawned {
        boot_id: String,
        group: Option<PathBuf>,
        state: String,
    },
    Exited(Report),
    Reported,
}

/// All attempts of one agent.
pub(crate) struct Journal {
    directory: PathBuf,
    /// Held as long as the agent runs.
    _lock: File,
}

impl Journal {
    /// Two agents with the same journal would each believe the other's attempts to be their own.
    pub(crate) fn open(directory: &Path) -> Result<Journal, Failure> {
        let failed = |error: io::Error| Failure::environment(directory.display(), error);
        make_directory(directory).map_err(failed)?;
        // Commands run elsewhere, so a relative path would mean something else to them.
        let directory = directory.canonicalize().map_err(failed)?;
        let lock = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(directory.join("lock"));
        let lock = lock.map_err(failed)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            Failure::Usage(format!(
                "{}: another agent is using this journal. Give each agent its own --journal directory",
                directory.display()
            ))
        })?;
        Ok(Journal { directory, _lock: lock })
    }

    /// The attempts that the service has not been told the end of.
    pub(crate) fn pending(&self) -> Result<Vec<(Claim, Stand, Attempt)>, Failure> {
        let failed = |path: &Path, error: &dyn std::fmt::Display| Failure::environment(path.display(), error);
        let mut pending = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(|error| failed(&self.directory, &error))? {
            let path = entry.map_err(|error| failed(&self.directory, &error))?.path();
            let steps = path.join(STEPS);
            let text = match fs::read_to_string(&steps) {
                Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                    continue;
                }
                read => read.map_err(|error| failed(&steps, &error))?,
            };
            forget_half_a_line(&steps, &text).map_err(|error| failed(&steps, &error))?;
            match replay(&text).map_err(|fault| failed(&steps, &fault))? {
                None => remove(&path),
                Some((_, Stand::Reported)) => {}
                Some((claim, stand)) => pending.push((claim, stand, Attempt { directory: path })),
            }
        }
        Ok(pending)
    }

    pub(crate) fn begin(&self, claim: &Claim) -> io::Result<Attempt> {
        let directory = self.directory.join(format!("{}.{}", claim.item, claim.attempt));
        // A service that was restored to an earlier state offers again what was done already.
        let known = fs::read_to_string(directory.join(STEPS)).ok().map(|text| replay(&text));
        if !matches!(known, None | Some(Ok(None | Some((_, Stand::Claiming))))) {
            let text = format!("{} has this attempt already: it is not run twice", directory.display());
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        remove(&directory);
        make_directory(&directory)?;
        let attempt = Attempt { directory };
        attempt.record(&Step::Claiming(claim.clone()))?;
        Ok(attempt)
    }

    /// Removes what was reported more than `kept` ago.
    pub(crate) fn tidy(&self, kept: std::time::Duration) {
        for path in fs::read_dir(&self.directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let steps = path.join(STEPS);
            let age =
                fs::metadata(&steps).and_then(|found| found.modified()).map(|at| at.elapsed().unwrap_or_default());
            let is_over = || fs::read_to_string(&steps).ok().and_then(|text| replay(&text).ok().flatten());
            if age.is_ok_and(|age| age > kept) && matches!(is_over(), Some((_, Stand::Reported))) {
                remove(&path);
            }
        }
    }
}

fn remove(directory: &Path) {
    if let Err(error) = fs::remove_dir_all(directory)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(directory = %directory.display(), %error, "an old attempt cannot be removed");
    }
}

/// What is recorded from now on must not continue it.
fn forget_half_a_line(steps: &Path, text: &str) -> io::Result<()> {
    let complete = text.rfind('\n').map_or(0, |end| end + 1);
    if complete == text.len() {
        return Ok(());
    }
    let file = OpenOptions::new().write(true).open(steps)?;
    file.set_len(complete as u64)?;
    file.sync_all()
}

/// A last line without an end was being written when the machine or the agent died, and nothing was done because of it.
fn replay(text: &str) -> Result<Option<(Claim, Stand)>, String> {
    let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
    let mut stands: Option<(Claim, Stand)> = None;
    for line in complete.lines() {
        let step: Step = serde_json::from_str(line).map_err(|error| format!("cannot be read: {error}"))?;
        stands = match (stands, step) {
            (None, Step::Claiming(claim)) if claim.v == 1 => Some((claim, Stand::Claiming)),
            (Some((claim, _)), Step::Claimed { state }) => Some((claim, Stand::Claimed { state })),
            (Some((claim, Stand::Claimed { state })), Step::Spawned { boot_id, group }) => {
                Some((claim, Stand::Spawned { boot_id, group, state }))
            }
            (Some((claim, _)), Step::Exited(report)) => Some((claim, Stand::Exited(report))),
            (Some((claim, _)), Step::Reported) => Some((claim, Stand::Reported)),
            (_, _) => return Err("is not a journal that this version can read".into()),
        };
    }
    Ok(stands)
}

/// The directory of one attempt: its journal, and the files of its command.
#[derive(Debug)]
pub(crate) struct Attempt {
    directory: PathBuf,
}

impl Attempt {
    pub(crate) fn record(&self, step: &Step) -> io::Result<()> {
        let path = self.directory.join(STEPS);
        let mut line = serde_json::to_vec(step).map_err(io::Error::from)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path)?;
        let length = file.metadata()?.len();
        let written = file.write_all(&line).and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a line must not come before a whole one.
            let _ = file.set_len(length);
            return written;
        }
        sync_directory(&path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Forgets an attempt that was never granted.
    pub(crate) fn forget(self) {
        remove(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim() -> Claim {
        Claim {
            v: 1,
            service: "http://127.0.0.1:1".into(),
            actor_id: "eli".into(),
            item: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
            attempt: 1,
            action: "start".into(),
            content_digest: "sha256:".into(),
            version: 5,
            key: "k".into(),
        }
    }

    fn line(step: &Step) -> String {
        serde_json::to_string(step).unwrap() + "\n"
    }

    #[test]
    fn half_a_line_was_never_written() {
        let [claiming, claimed] = [line(&Step::Claiming(claim())), line(&Step::Claimed { state: "executing".into() })];
        let spawned = line(&Step::Spawned { boot_id: "b".into(), group: None });
        let all = format!("{claiming}{claimed}{spawned}");
        for end in 0..=all.len() {
            let stands = replay(&all[..end]).unwrap().map(|(_, stand)| stand);
            let (first, second) = (claiming.len(), claiming.len() + claimed.len());
            let is_right = match stands {
                None => end < first,
                Some(Stand::Claiming) => (first..second).contains(&end),
                Some(Stand::Claimed { .. }) => (second..all.len()).contains(&end),
                Some(Stand::Spawned { .. }) => end == all.len(),
                Some(_) => false,
            };
            assert!(is_right, "after {end} bytes");
        }
    }

    #[test]
    fn a_journal_in_use_belongs_to_one_agent() {
        let directory = tempfile::tempdir().unwrap();
        let first = Journal::open(directory.path()).unwrap();
        assert!(matches!(Journal::open(directory.path()), Err(Failure::Usage(_))));
        drop(first);
        assert!(Journal::open(directory.path()).is_ok());
    }

    #[test]
    fn what_was_reported_is_not_pending() {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::open(directory.path()).unwrap();
        let attempt = journal.begin(&claim()).unwrap();
        assert_eq!(journal.pending().unwrap().len(), 1);
        attempt.record(&Step::Reported).unwrap();
        assert_eq!(journal.pending().unwrap().len(), 0);
    }
}
