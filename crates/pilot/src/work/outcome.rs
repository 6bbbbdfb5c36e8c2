//! How an execution ended, as far as anyone knows. Only an exit that the command chose is an outcome: a command that
//! was killed may have done all, some or nothing of its work.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

/// What the service is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    Succeeded,
    Failed,
    Unknown,
}

impl Outcome {
    /// The action that reports it.
    pub(crate) const fn action(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeed",
            Outcome::Failed => "fail",
            Outcome::Unknown => "unknown",
        }
    }
}

/// How the command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It was never started.
    NotRun(String),
    /// By itself, with this code, and with this many processes left behind.
    Exited { code: i32, left_over: usize },
    /// By a signal that someone else sent.
    Signalled(i32),
    /// By the agent, which says why.
    Stopped(String),
    /// Nobody saw it.
    Lost(String),
}

/// What a command may write to the file that `PILOT_RESULT_FILE` names.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    outcome: SaidOutcome,
    #[serde(default)]
    result: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SaidOutcome {
    #[serde(alias = "succeed")]
    Succeeded,
    #[serde(alias = "fail")]
    Failed,
    Unknown,
}

/// A result is a few lines.
const SAID_BYTES_MAX: u64 = 64 * 1024;

/// Nothing if the command wrote nothing.
pub(crate) fn read_said(path: &Path) -> Result<Option<Said>, String> {
    let mut text = Vec::new();
    // The command may have put anything there: a pipe would keep the agent waiting, a link may lead anywhere.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits();
    let file = File::options().read(true).custom_flags(i32::try_from(flags).unwrap_or_default()).open(path);
    if file.as_ref().is_ok_and(|file| file.metadata().is_ok_and(|found| !found.is_file())) {
        return Err("it is not a regular file".into());
    }
    match file.and_then(|file| file.take(SAID_BYTES_MAX + 1).read_to_end(&mut text)) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.to_string()),
        Ok(_) if text.trim_ascii().is_empty() => Ok(None),
        Ok(length) if length as u64 > SAID_BYTES_MAX => Err(format!("it has more than {SAID_BYTES_MAX} bytes")),
        Ok(_) => serde_json::from_slice(&text).map(Some).map_err(|error| error.to_string()),
    }
}

/// An outcome with a sentence for people, and the command's own words about it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Judged {
    pub outcome: Outcome,
    pub sentence: String,
    pub result: Option<String>,
}

pub(crate) fn judge(ending: &Ending, said: Result<Option<Said>, String>) -> Judged {
    let unsaid = |outcome, sentence: String| Judged { outcome, sentence, result: None };
    match ending {
        Ending::NotRun(why) => unsaid(Outcome::Failed, format!("The command was not run: {why}.")),
        Ending::Signalled(signal) => unsaid(Outcome::Unknown, format!("The command was killed by signal {signal}.")),
        Ending::Stopped(why) => unsaid(Outcome::Unknown, format!("The agent stopped the command: {why}.")),
        Ending::Lost(why) => unsaid(Outcome::Unknown, format!("Nobody saw the command end: {why}.")),
        Ending::Exited { code, left_over } => {
            let mut judged = judge_exit(*code, said);
            if *left_over > 0 {
                let _ = write!(judged.sentence, " It left {left_over} processes running, which were killed.");
            }
            judged
        }
    }
}

fn judge_exit(code: i32, said: Result<Option<Said>, String>) -> Judged {
    let exit = format!("The command exited with code {code}");
    match said {
        Err(fault) => {
            let sentence = format!("{exit}, and what it wrote to PILOT_RESULT_FILE cannot be read: {fault}.");
            Judged { outcome: Outcome::Unknown, sentence, result: None }
        }
        Ok(None) => {
            let outcome = if code == 0 { Outcome::Succeeded } else { Outcome::Failed };
            Judged { outcome, sentence: format!("{exit}."), result: None }
        }
        Ok(Some(Said { outcome, result })) => {
            let (outcome, word) = match outcome {
                SaidOutcome::Succeeded => (Outcome::Succeeded, "succeeded"),
                SaidOutcome::Failed => (Outcome::Failed, "failed"),
                SaidOutcome::Unknown => (Outcome::Unknown, "unknown"),
            };
            Judged { outcome, sentence: format!("{exit} and reported the outcome {word}."), result }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ending: &Ending, said: &str) -> Outcome {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("result");
        std::fs::write(&path, said).unwrap();
        judge(ending, read_said(&path)).outcome
    }

    #[test]
    fn only_an_exit_that_the_command_chose_is_an_outcome() {
        let exited = |code| Ending::Exited { code, left_over: 0 };
        let said = r#"{"outcome":"succeeded"}"#;
        for (ending, said, expected) in [
            (exited(0), "", Outcome::Succeeded),
            (exited(1), "", Outcome::Failed),
            (exited(137), "", Outcome::Failed),
            (exited(3), said, Outcome::Succeeded),
            (exited(0), r#"{"outcome":"failed","result":"no"}"#, Outcome::Failed),
            (exited(0), r#"{"outcome":"unknown"}"#, Outcome::Unknown),
            (exited(0), r#"{"outcome":"succ"#, Outcome::Unknown),
            (exited(0), r#"{"outcome":"succeeded","actor":"ana"}"#, Outcome::Unknown),
            (Ending::Signalled(9), said, Outcome::Unknown),
            (Ending::Stopped("its time is over".into()), said, Outcome::Unknown),
            (Ending::Lost("the agent was killed".into()), said, Outcome::Unknown),
            (Ending::NotRun("it does not exist".into()), "", Outcome::Failed),
        ] {
            assert_eq!(outcome(&ending, said), expected, "{ending:?} with {said}");
        }
    }

    #[test]
    fn a_pipe_or_a_link_in_place_of_the_result_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let [pipe, link] = ["pipe", "link"].map(|name| directory.path().join(name));
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let exited = Ending::Exited { code: 0, left_over: 0 };
        for path in [&pipe, &link, &directory.path().to_owned()] {
            assert_eq!(judge(&exited, read_said(path)).outcome, Outcome::Unknown, "{}", path.display());
        }
    }
}
