//! The rotation record: one JSON line per step, appended and never changed, separate from the credential file.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use pilot_core::actor::Actor;
use pilot_core::digest::Fingerprint;
use pilot_core::leak::LeakGuard;
use pilot_core::time::Time;
use pilot_setup::private_file;
use serde::{Deserialize, Serialize};

use crate::exit::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    Begin,
    VerifyNew,
    VerifyOldStillWorks,
    Finish,
    VerifyOld,
    Abandon,
}

impl Step {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Step::Begin => "new digest added",
            Step::VerifyNew => "new token presented",
            Step::VerifyOldStillWorks => "old token presented before its removal",
            Step::Finish => "old digest removed",
            Step::VerifyOld => "old token presented after its removal",
            Step::Abandon => "abandoned, new digest removed",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    Done,
    Matches,
    Differs,
    NotAccepted,
    Refused,
    StillAccepted,
}

impl Verdict {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Verdict::Done => "done",
            Verdict::Matches => "accepted, actor and role match",
            Verdict::Differs => "accepted, but actor or role differ",
            Verdict::NotAccepted => "not accepted (401)",
            Verdict::Refused => "refused (401), as it must be",
            Verdict::StillAccepted => "still accepted, though it must not be",
        }
    }

    pub(super) fn is_good(self) -> bool {
        matches!(self, Verdict::Done | Verdict::Matches | Verdict::Refused)
    }

    pub(super) fn remedy(self) -> &'static str {
        match self {
            Verdict::NotAccepted | Verdict::StillAccepted => "restart the service, then verify again",
            Verdict::Differs => "stop and settle it: the service knows this token as someone else's",
            Verdict::Done | Verdict::Matches | Verdict::Refused => "nothing to do",
        }
    }
}

/// One line of the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Line {
    pub schema_version: u32,
    pub rotation: String,
    pub at: Time,
    pub step: Step,
    pub operator: String,
    #[serde(flatten)]
    pub actor: Actor,
    pub old: Vec<String>,
    pub new: String,
    pub result: Verdict,
}

/// The steps of one rotation so far.
#[derive(Debug, Clone)]
pub(super) struct Rotation {
    id: String,
    pub actor: Actor,
    pub old: Vec<Fingerprint>,
    pub new: Fingerprint,
    steps: Vec<(Step, Verdict)>,
}

impl Rotation {
    pub(super) fn begin(actor: Actor, old: Vec<Fingerprint>, new: Fingerprint, id: u64) -> Rotation {
        Rotation { id: format!("{id:016x}"), actor, old, new, steps: Vec::new() }
    }

    pub(super) fn is_finished(&self) -> bool {
        self.steps.iter().any(|(step, _)| *step == Step::Finish)
    }

    /// Finished or abandoned: it can only be viewed.
    pub(super) fn is_over(&self) -> bool {
        self.is_finished() || self.steps.iter().any(|(step, _)| *step == Step::Abandon)
    }

    pub(super) fn new_was_verified(&self) -> bool {
        self.steps.contains(&(Step::VerifyNew, Verdict::Matches))
    }

    /// What presenting this token would prove.
    pub(super) fn step_for(&self, presented: Fingerprint) -> Option<Step> {
        match (presented == self.new, self.old.contains(&presented), self.is_finished()) {
            (true, _, _) => Some(Step::VerifyNew),
            (_, true, true) => Some(Step::VerifyOld),
            (_, true, false) => Some(Step::VerifyOldStillWorks),
            _ => None,
        }
    }
}

pub(super) struct Record {
    path: PathBuf,
}

impl Record {
    pub(super) fn open(path: &Path) -> Record {
        Record { path: path.to_owned() }
    }

    pub(super) fn lines(&self) -> Result<Vec<Line>, Failure> {
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(Failure::environment(self.path.display(), error)),
        };
        let parse = |(index, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|_| {
                let remedy = "restore the record from a copy, or move it aside";
                Failure::Usage(format!("{}, line {}: is damaged; {remedy}", self.path.display(), index + 1))
            })
        };
        text.lines().enumerate().map(parse).collect()
    }

    pub(super) fn read(&self) -> Result<Vec<Rotation>, Failure> {
        let mut rotations: Vec<Rotation> = Vec::new();
        for line in self.lines()? {
            let damaged = || Failure::Usage(format!("{}: contains a malformed fingerprint", self.path.display()));
            let parse = |text: &String| Fingerprint::from_hex(text).ok_or_else(damaged);
            if !rotations.iter().any(|rotation| rotation.id == line.rotation) {
                let old = line.old.iter().map(parse).collect::<Result<_, _>>()?;
                let (id, new) = (line.rotation.clone(), parse(&line.new)?);
                rotations.push(Rotation { id, actor: line.actor.clone(), old, new, steps: Vec::new() });
            }
            if let Some(rotation) = rotations.iter_mut().find(|rotation| rotation.id == line.rotation) {
                rotation.steps.push((line.step, line.result));
            }
        }
        Ok(rotations)
    }

    pub(super) fn append(
        &self,
        rotation: &Rotation,
        step: Step,
        operator: &str,
        result: Verdict,
        at: Time,
    ) -> Result<(), Failure> {
        let line = Line {
            schema_version: 1,
            rotation: rotation.id.clone(),
            at,
            step,
            operator: operator.to_owned(),
            actor: rotation.actor.clone(),
            old: rotation.old.iter().map(Fingerprint::to_string).collect(),
            new: rotation.new.to_string(),
            result,
        };
        let failed = |error: std::io::Error| Failure::environment(self.path.display(), error);
        let text = serde_json::to_string(&line).map_err(|error| Failure::environment("JSON", error))? + "\n";
        let text = LeakGuard::for_generated_tokens().redact(&text).into_owned();
        if let Some(parent) = self.path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        // Root may run this; the service's user must be able to read the record and to append to it.
        let mut file = private_file::append(&self.path).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)
    }
}
