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

pub(crate) async fn of(
    agent: &Agent,
    claim: &Claim,
    ending: &Ending,
    output: Option<Captured>,
    files: &Files,
) -> Report {
    let Judged { outcome, mut sentence, result } = judge(ending, read_said(&files.result));
    let directory = output.as_ref().map(|_| files.artifacts.clone());
    // Files may be large, and other attempts have leases to renew meanwhile.
    let collected = tokio::task::spawn_blocking(move || directory.map(|directory| collect(&directory)));
    let (mut artifacts, faults) = collected.await.ok().flatten().unwrap_or_default();
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
        let shown = agent.guard.redact(&last_chars(&result, RESULT_CHARS_MAX)).into_owned();
        inputs.insert("result".into(), shown.into());
    }
    if !artifacts.is_empty() {
        inputs.insert("artifacts".into(), artifacts.into());
    }
    Report {
        action: outcome.action().to_owned(),
        comment: agent.guard.redact(&first_chars(&sentence, COMMENT_CHARS_MAX)).into_owned(),
        inputs: inputs.into(),
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
pub(crate) async fn deliver(agent: &Agent, claim: &Claim, report: &Report) -> Result<(), Ended> {
    let action = json!({"action": report.action, "comment": report.comment, "inputs": report.inputs});
    let (code, detail) = match settle(agent, claim, &action, &report.key).await? {
        Ok(()) => return Ok(()),
        Err(refused) => refused,
    };
    if code == "invalid_request" || code == "token_in_content" {
        tracing::warn!(item.id = %claim.item, detail, "the report was refused; a shorter one is sent");
        let comment = format!("{} The agent's full report was refused ({code}).", first_sentence(&report.comment));
        let short = json!({"action": report.action, "comment": comment});
        if settle(agent, claim, &short, &format!("{}-short", report.key)).await?.is_ok() {
            return Ok(());
        }
    }
    tracing::warn!(item.id = %claim.item, detail, "the end of the attempt is reported in a comment");
    comment(agent, claim, report, &detail).await
}

/// Whether it was recorded, or the code and the words of the refusal.
async fn settle(
    agent: &Agent,
    claim: &Claim,
    action: &Value,
    key: &str,
) -> Result<Result<(), (String, String)>, Ended> {
    let mut pause = PAUSE_MIN;
    loop {
        match agent.service.act(&claim.item, action, key, None).await {
            Ok(_) => return Ok(Ok(())),
            Err(No::Refused { code, detail, .. }) => return Ok(Err((code, detail))),
            Err(No::NotYet(why)) => tracing::warn!(item.id = %claim.item, cause = why, "not reported yet"),
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
