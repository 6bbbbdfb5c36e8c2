//! What the service is told about an attempt, and how it gets there.

use std::fmt::Write as _;

use pilot_core::limits::{COMMENT_CHARS_MAX, RESULT_CHARS_MAX};
use serde_json::{Map, Value, json};

use crate::work::agent::{Agent, Ended, PAUSE_MIN};
use crate::work::artifacts::{artifact, collect};
use crate::work::captured::Captured;
use crate::work::journal::{Claim, Report};
use crate::work::outcome::{Ending, Judged, judge, read_said};
use crate::work::run::Files;
use crate::work::service::No;

/// What shells add to the number of a signal.
const SIGNALLED: i32 = 128;
/// For a command that did not choose its exit.
const NO_EXIT: i32 = 1;
const OUTPUT: &str = "output";
/// Versions begin with 1.
const NO_VERSION: u64 = 0;

pub(crate) async fn of(
    agent: &Agent,
    claim: &Claim,
    state: &str,
    ending: &Ending,
    output: Option<Captured>,
    files: &Files,
) -> Report {
    let Judged { outcome, mut sentence, result } = judge(ending, read_said(&files.result));
    let masks = agent.settings.variables.masks();
    let directory = output.as_ref().map(|_| files.artifacts.clone());
    // Files may be large, and other attempts have leases to renew meanwhile.
    let collected = tokio::task::spawn_blocking(move || directory.map(|directory| collect(&directory)));
    let (mut artifacts, faults) = collected.await.ok().flatten().unwrap_or_default();
    for artifact in &mut artifacts {
        for member in ["name", "uri"] {
            if let Some(Value::String(text)) = artifact.get_mut(member) {
                *text = masks.hide(text);
            }
        }
    }
    for fault in faults {
        let _ = write!(sentence, " Not listed as an artifact: {fault}.");
    }
    let end = output.as_ref().map(|output| output.end.clone()).filter(|end| !end.is_empty());
    if let Some(output) = output.filter(|output| output.bytes > 0) {
        sentence += &output_words(&output);
        artifacts.push(artifact(OUTPUT, &output.sha256, output.bytes, &files.output));
    }
    let mut inputs = Map::new();
    if let Some(result) = result.or(end) {
        let shown = agent.guard.redact(&last_chars(&masks.hide(&result), RESULT_CHARS_MAX)).into_owned();
        inputs.insert("result".into(), shown.into());
    }
    if !artifacts.is_empty() {
        inputs.insert("artifacts".into(), artifacts.into());
    }
    Report {
        action: outcome.action().to_owned(),
        comment: agent.guard.redact(&first_chars(&masks.hide(&sentence), COMMENT_CHARS_MAX)).into_owned(),
        inputs: inputs.into(),
        state: state.to_owned(),
        key: format!("{}-report", claim.key),
        exit_code: exit_code(ending),
    }
}

fn output_words(output: &Captured) -> String {
    let Captured { bytes, is_cut, is_kept, .. } = output;
    let cut = if *is_cut { ", cut in the middle" } else { "" };
    let kept = if *is_kept { "" } else { "; it could not be stored" };
    format!(" Output: {bytes} bytes{cut}{kept}.")
}

/// Text from commands may contain what the service does not store.
fn last_chars(text: &str, chars_max: usize) -> String {
    let start = text.char_indices().rev().nth(chars_max - 1).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or_default().replace('\0', "")
}

fn first_chars(text: &str, chars_max: usize) -> String {
    text.chars().take(chars_max).filter(|sign| *sign != '\0').collect()
}

fn exit_code(ending: &Ending) -> i32 {
    match ending {
        Ending::Exited { code, .. } => *code,
        Ending::Signalled(signal) => SIGNALLED + signal,
        Ending::NotRun(_) | Ending::Stopped(_) | Ending::Lost(_) => NO_EXIT,
    }
}

/// Tells the service until it has answered. If the item has moved on, those who have to find out what happened are
/// told in a comment.
pub(crate) async fn deliver(agent: &Agent, claim: &Claim, report: &Report) -> Result<Delivered, Ended> {
    let action = json!({"action": report.action, "comment": report.comment, "inputs": report.inputs});
    let (code, detail) = match settle(agent, claim, &report.state, &action, &report.key).await? {
        Ok(()) => return Ok(Delivered::Recorded),
        Err(refused) => refused,
    };
    if code == "invalid_request" || code == "token_in_content" {
        tracing::warn!(item.id = %claim.item, detail, "the report was refused; a shorter one is sent");
        let comment = format!("{} The agent's full report was refused ({code}).", first_sentence(&report.comment));
        let short = json!({"action": report.action, "comment": comment});
        if settle(agent, claim, &report.state, &short, &format!("{}-short", report.key)).await?.is_ok() {
            return Ok(Delivered::Recorded);
        }
    }
    tracing::warn!(item.id = %claim.item, detail, "the end of the attempt is reported in a comment");
    comment(agent, claim, report, &detail).await?;
    Ok(Delivered::Commented)
}

/// How the service was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delivered {
    Recorded,
    Commented,
}

/// The code and the words of a refusal.
type Refused = (String, String);

/// Whether it was recorded. What is said must be about this attempt and no later one, so it is said of a version in
/// which the item still is in the attempt's lease. If there is none, the version is one that no item has: then the
/// service has heard it before, under the same key, or does not take it.
async fn settle(
    agent: &Agent,
    claim: &Claim,
    state: &str,
    action: &Value,
    key: &str,
) -> Result<Result<(), Refused>, Ended> {
    let mut pause = PAUSE_MIN;
    loop {
        let looked = agent.service.item(&claim.item).await;
        let version = looked.map(|(item, _)| if claim.is_held_in(&item, state) { item.version } else { NO_VERSION });
        let answer = match version {
            Ok(version) => agent.service.act(&claim.item, action, key, Some(version)).await.map_err(|no| (version, no)),
            Err(no) => Err((NO_VERSION, no)),
        };
        match answer {
            Ok(_) => return Ok(Ok(())),
            // It moved between the look and the report: look again.
            Err((1.., No::Refused { status: 412, .. })) => {}
            Err((_, No::Refused { status: 412, .. })) => {
                return Ok(Err((String::new(), "the item has moved on".into())));
            }
            Err((_, No::Refused { code, detail, .. })) => return Ok(Err((code, detail))),
            Err((_, No::NotYet(why))) => tracing::warn!(item.id = %claim.item, cause = why, "not reported yet"),
        }
        agent.pause(&mut pause).await?;
    }
}

async fn comment(agent: &Agent, claim: &Claim, report: &Report, refusal: &str) -> Result<(), Ended> {
    let Claim { attempt, key, .. } = claim;
    let Report { action, comment, .. } = report;
    let text =
        format!("Attempt {attempt} could not be reported as `{action}` ({refusal}). {comment}{}", digests(report));
    let (text, key) = (first_chars(&text, COMMENT_CHARS_MAX), format!("{key}-comment"));
    let mut pause = PAUSE_MIN;
    loop {
        match agent.service.comment(&claim.item, &text, &key).await {
            Ok(_) => return Ok(()),
            Err(No::Refused { detail, .. }) => {
                tracing::error!(item.id = %claim.item, detail, comment = text, "the comment was refused");
                return Ok(());
            }
            Err(No::NotYet(why)) => tracing::warn!(item.id = %claim.item, cause = why, "not reported yet"),
        }
        agent.pause(&mut pause).await?;
    }
}

/// One line for each artifact.
fn digests(report: &Report) -> String {
    let line = |artifact: &Value| format!("\n{} sha256:{}", said(artifact, "name"), said(artifact, "sha256"));
    report.inputs.get("artifacts").and_then(Value::as_array).into_iter().flatten().map(line).collect()
}

fn said<'a>(artifact: &'a Value, member: &str) -> &'a str {
    artifact.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn first_sentence(text: &str) -> &str {
    text.split_inclusive(". ").next().unwrap_or(text).trim_end()
}
