//! What an action says beyond its name, and asking a person for what is missing.

use std::io::Read as _;

use pilot_api::items::ItemView;
use pilot_api::workflows::RuleView;
use pilot_core::document::ContentDigest;
use pilot_core::time::Time;
use pilot_wire::clock;
use serde_json::{Map, Value, json};

use crate::exit::Failure;
use crate::moment::Moment;
use crate::terminal;

/// Wrong answers are typing errors; more of them are not.
const TRIES_MAX: usize = 3;
/// As much as a comment may have, and then some.
const COMMENT_BYTES_MAX: u64 = 64 * 1024;

#[derive(clap::Args, Default, Clone)]
pub(crate) struct Said {
    /// The digest of the content you decide on, as `pilot item show` prints it; without a terminal it is required
    #[arg(long, value_name = "sha256:…")]
    pub digest: Option<ContentDigest>,
    /// Why, or - to read it from standard input
    #[arg(long, value_name = "TEXT")]
    pub comment: Option<String>,
    /// The end of the execution window: a time, or 2h from now
    #[arg(long, value_name = "TIME")]
    pub not_after: Option<Moment>,
    /// The beginning of the execution window [default: now]
    #[arg(long, value_name = "TIME")]
    pub not_before: Option<Moment>,
    /// The outcome that was found out: succeeded or failed
    #[arg(long)]
    pub outcome: Option<String>,
    /// What came of the execution, in words
    #[arg(long, value_name = "TEXT")]
    pub result: Option<String>,
    /// Another input of the action: NAME=TEXT, or NAME:=JSON
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = read_input)]
    pub inputs: Vec<(String, Value)>,
}

fn read_input(text: &str) -> Result<(String, Value), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=TEXT, or NAME:=JSON")?;
    match name.strip_suffix(':') {
        Some(name) => Ok((name.to_owned(), serde_json::from_str(value).map_err(|error| format!("JSON: {error}"))?)),
        None => Ok((name.to_owned(), value.into())),
    }
}

impl Said {
    /// Asks the person for what the rules need and was not said.
    pub(crate) fn ask_for_the_rest(&mut self, rules: &[&RuleView]) -> Result<(), Failure> {
        if self.comment.is_none() && rules.iter().any(|rule| rule.comment_required) {
            self.comment = Some(insist("Comment: ", |line| Ok(line.to_owned()))?);
        }
        if self.not_after.is_none() && rules.iter().any(|rule| rule.sets_window.is_some()) {
            let most = rules.iter().find_map(|rule| rule.sets_window.as_deref()).unwrap_or_default();
            let question = format!("End of the window (2h, or a time; at most {most}): ");
            self.not_after = Some(insist(&question, |line| line.parse().map_err(str::to_owned))?);
        }
        let choices: Vec<_> = rules.iter().filter_map(|rule| rule.when.as_ref()).collect();
        let input = choices.first().map_or("", |when| &when.input);
        let is_said =
            self.inputs.iter().any(|(name, _)| name == input) || (input == "outcome" && self.outcome.is_some());
        if !choices.is_empty() && !is_said {
            let known: Vec<_> = choices.iter().map(|when| &*when.equals).collect();
            let question = format!("{input} ({}): ", known.join(" or "));
            let chosen = insist(&question, |line| {
                known.contains(&line).then(|| line.to_owned()).ok_or_else(|| format!("type {}", known.join(" or ")))
            })?;
            self.inputs.push((input.to_owned(), chosen.into()));
        }
        Ok(())
    }

    /// The request. `now` is the service's time, if it said so.
    pub(crate) fn body(&self, action: &str, now: Option<Time>) -> Result<Value, Failure> {
        let mut body = Map::new();
        body.insert("action".into(), action.into());
        if let Some(digest) = &self.digest {
            body.insert("content_digest".into(), digest.as_str().into());
        }
        if let Some(comment) = &self.comment {
            body.insert("comment".into(), comment_text(comment)?.into());
        }
        let inputs = self.all_inputs(now);
        if !inputs.is_empty() {
            body.insert("inputs".into(), inputs.into());
        }
        Ok(body.into())
    }

    fn all_inputs(&self, now: Option<Time>) -> Map<String, Value> {
        let ours = || clock::since_1970().map_or(Time::EPOCH, |since| Time::EPOCH.plus(since));
        let time = |moment: Moment| json!(moment.from(now.unwrap_or_else(ours)));
        let named = [
            ("not_after", self.not_after.map(time)),
            ("not_before", self.not_before.map(time)),
            ("outcome", self.outcome.as_deref().map(Value::from)),
            ("result", self.result.as_deref().map(Value::from)),
        ];
        let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        named.chain(self.inputs.iter().cloned()).collect()
    }
}

fn comment_text(given: &str) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    let read = std::io::stdin().take(COMMENT_BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| Failure::environment("standard input", error))?;
    Ok(text.trim_end().to_owned())
}

/// What a person types, once it can be understood.
fn insist<T>(question: &str, read: impl Fn(&str) -> Result<T, String>) -> Result<T, Failure> {
    for _ in 0..TRIES_MAX {
        let Some(line) = terminal::ask(question)? else { break };
        match read(&line) {
            Ok(value) if !line.is_empty() => return Ok(value),
            Ok(_) => {}
            Err(why) => crate::output::note(&why)?,
        }
    }
    Err(nothing_sent())
}

/// The person has seen the content, and types the beginning of its digest.
pub(crate) fn confirm(item: &ItemView<'_>) -> Result<ContentDigest, Failure> {
    let digest = item.content_digest.as_ref();
    let first = digest.as_str().trim_start_matches("sha256:").get(..8).unwrap_or_default();
    for _ in 0..TRIES_MAX {
        let question = "To decide on this content, type the first 8 characters of its digest: ";
        let Some(line) = terminal::ask(question)? else { break };
        if line.trim_start_matches("sha256:") == first {
            return Ok(digest.clone());
        }
        crate::output::note("that is not how this content's digest begins")?;
    }
    Err(nothing_sent())
}

pub(crate) fn nothing_sent() -> Failure {
    Failure::Refused("not confirmed; nothing was sent".into())
}
