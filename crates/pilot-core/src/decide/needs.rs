//! What an action needs in the request: comment, digest, inputs. All faults are reported together.

use serde_json::{Map, Value};

use crate::decide::{ActionRequest, Case, Unasked};
use crate::document::ContentDigest;
use crate::fault::Fault;
use crate::item::Window;
use crate::json::{INTEGER_MAX, join};
use crate::limits::{ARTIFACTS_MAX, COMMENT_CHARS_MAX, PROGRESS_CHARS_MAX, RESULT_CHARS_MAX};
use crate::refusal::Refusal;
use crate::time::Time;
use crate::workflow::{Action, Input, Name, Rule, Span};

/// A request that has everything it needs.
pub(super) struct Needed<'c> {
    pub(super) rule: &'c Rule,
    pub(super) content_digest: Option<ContentDigest>,
    pub(super) window: Option<Window>,
}

impl<'c> Case<'c> {
    /// The rules of which one will apply: several if an input chooses between them and can no longer be read. In that
    /// case it chose one that leads to where the item went.
    pub(super) fn choices(self, action: &'c Action, rule: &'c Rule) -> Vec<Option<&'c Rule>> {
        if !self.gaps.inputs || rule.when.is_none() {
            return vec![None];
        }
        let led_there = |rule: &&Rule| rule.to.as_ref().unwrap_or(&self.item.state) == self.led_to();
        let possible: Vec<_> = self.beside(action, rule).filter(led_there).map(Some).collect();
        if possible.is_empty() { vec![Some(rule)] } else { possible }
    }

    fn led_to(self) -> &'c Name {
        self.gaps.led_to.as_ref().unwrap_or(&self.item.state)
    }

    /// This rule and those that an input distinguishes from it.
    pub(super) fn beside(self, action: &'c Action, rule: &'c Rule) -> impl Iterator<Item = &'c Rule> {
        let here = move |rule: &Rule| rule.leads_from(&self.item.state);
        let overlaps =
            move |other: &&Rule| other.from.iter().any(|from| rule.from.contains(from)) && here(other) == here(rule);
        let input = rule.when.as_ref().map(|when| &when.input);
        let is_told_apart = move |other: &&Rule| other.when.as_ref().map(|when| &when.input) == input;
        self.definition.rules_of(action).filter(overlaps).filter(is_told_apart)
    }

    /// `rule` is the first that fits the item's state. Among rules distinguished by an input, the input chooses; if it
    /// can no longer be read, it is assumed to have chosen `choice`.
    pub(super) fn needs(
        self,
        action: &'c Action,
        rule: &'c Rule,
        choice: Option<&'c Rule>,
        request: &ActionRequest,
        unasked: &mut Vec<Unasked>,
    ) -> Result<Needed<'c>, Refusal> {
        let mut faults = Vec::new();
        if self.gaps.comment {
            unasked.push(Unasked::Comment);
        } else {
            comment(rule, request.comment.as_deref(), &mut faults);
        }
        let content_digest = digest(rule, request.content_digest.as_deref(), &mut faults);
        if self.gaps.inputs {
            unasked.push(Unasked::Inputs);
            let rule = choice.unwrap_or(rule);
            let window = rule.sets_window.as_ref().map(|max| Window::left_out(self.at, self.at.plus(max.length)));
            return if faults.is_empty() {
                Ok(Needed { rule, content_digest, window })
            } else {
                Err(Refusal::Invalid(faults))
            };
        }
        let empty = Map::new();
        let inputs = match &request.inputs {
            None => &empty,
            Some(Value::Object(inputs)) => inputs,
            Some(_) => {
                faults.push(Fault::new("/inputs", "must be an object"));
                &empty
            }
        };
        let rule = self.chosen(action, rule, inputs, &mut faults);
        known(rule, inputs, &mut faults);
        let window = rule.sets_window.as_ref().and_then(|max| self.window(max, inputs, &mut faults));
        if faults.is_empty() { Ok(Needed { rule, content_digest, window }) } else { Err(Refusal::Invalid(faults)) }
    }

    fn chosen(
        self,
        action: &'c Action,
        rule: &'c Rule,
        inputs: &Map<String, Value>,
        faults: &mut Vec<Fault>,
    ) -> &'c Rule {
        let Some(when) = &rule.when else { return rule };
        let mut values = Vec::new();
        for other in self.beside(action, rule) {
            let Some(condition) = &other.when else { continue };
            if inputs.get(&*when.input).is_some_and(|value| *value == *condition.equals) {
                return other;
            }
            values.push(&*condition.equals);
        }
        faults.push(Fault::new(join("/inputs", &when.input), format!("must be {}", values.join(" or "))));
        rule
    }

    fn window(self, max: &Span, inputs: &Map<String, Value>, faults: &mut Vec<Fault>) -> Option<Window> {
        let not_after = time(inputs, "not_after", faults);
        let not_before = time(inputs, "not_before", faults).unwrap_or(self.at);
        let at = "/inputs/not_after";
        let Some(not_after) = not_after else {
            if !inputs.contains_key("not_after") {
                faults.push(Fault::new(at, "is required: until when the item may be executed"));
            }
            return None;
        };
        if not_after <= self.at {
            faults.push(Fault::new(at, "must be in the future"));
        } else if not_after > self.at.plus(max.length) {
            faults.push(Fault::new(at, format!("must be within {max} from now")));
        } else if not_before >= not_after {
            faults.push(Fault::new("/inputs/not_before", "must be before not_after"));
        }
        Some(Window::new(not_before, not_after))
    }
}

fn comment(rule: &Rule, comment: Option<&str>, faults: &mut Vec<Fault>) {
    let text = comment.unwrap_or_default();
    if rule.comment_required && text.trim().is_empty() {
        faults.push(Fault::new("/comment", format!("is required: say why ({})", rule.action)));
    } else if text.chars().count() > COMMENT_CHARS_MAX {
        faults.push(Fault::new("/comment", format!("must have at most {COMMENT_CHARS_MAX} characters")));
    }
}

/// A digest that is sent is checked even if none is required.
fn digest(rule: &Rule, digest: Option<&str>, faults: &mut Vec<Fault>) -> Option<ContentDigest> {
    let at = "/content_digest";
    let Some(digest) = digest else {
        if rule.content_digest_required {
            faults.push(Fault::new(at, "is required: the digest of the content decided on"));
        }
        return None;
    };
    let digest = digest.parse();
    if digest.is_err() {
        faults.push(Fault::new(at, "must be sha256: followed by 64 lowercase hexadecimal characters"));
    }
    digest.ok()
}

fn known(rule: &Rule, inputs: &Map<String, Value>, faults: &mut Vec<Fault>) {
    for (name, value) in inputs {
        let chooses = rule.when.as_ref().is_some_and(|when| *when.input == **name);
        let sets_window = rule.sets_window.is_some() && ["not_before", "not_after"].contains(&name.as_str());
        match rule.inputs.iter().find(|input| input.as_str() == name) {
            Some(Input::Result) => text(name, value, RESULT_CHARS_MAX, faults),
            Some(Input::Progress) => text(name, value, PROGRESS_CHARS_MAX, faults),
            Some(Input::Artifacts) => artifacts(value, faults),
            None if sets_window || chooses => {}
            None => faults.push(Fault::new(join("/inputs", name), format!("is not an input of {}", rule.action))),
        }
    }
}

fn time(inputs: &Map<String, Value>, name: &str, faults: &mut Vec<Fault>) -> Option<Time> {
    let value = inputs.get(name)?;
    let time = value.as_str().and_then(|text| text.parse().ok());
    if time.is_none() {
        faults.push(Fault::new(join("/inputs", name), "must be a time such as 2026-11-15T09:30:00Z"));
    }
    time
}

fn text(name: &str, value: &Value, chars_max: usize, faults: &mut Vec<Fault>) {
    if value.as_str().is_none_or(|text| text.chars().count() > chars_max) {
        faults.push(Fault::new(join("/inputs", name), format!("must be a string of at most {chars_max} characters")));
    }
}

fn artifacts(value: &Value, faults: &mut Vec<Fault>) {
    let Some(list) = value.as_array().filter(|list| list.len() <= ARTIFACTS_MAX) else {
        faults.push(Fault::new("/inputs/artifacts", format!("must be an array of at most {ARTIFACTS_MAX} artifacts")));
        return;
    };
    for (index, artifact) in list.iter().enumerate() {
        artifact_faults(artifact, &format!("/inputs/artifacts/{index}"), faults);
    }
}

fn artifact_faults(artifact: &Value, at: &str, faults: &mut Vec<Fault>) {
    let Some(members) = artifact.as_object() else {
        faults.push(Fault::new(at, "must be an object with name, sha256, bytes and uri"));
        return;
    };
    for (name, fits, detail) in ARTIFACT {
        if !members.get(*name).is_some_and(fits) {
            faults.push(Fault::new(join(at, name), *detail));
        }
    }
    for name in members.keys().filter(|name| !ARTIFACT.iter().any(|(known, ..)| *name == known)) {
        faults.push(Fault::new(join(at, name), "is not a member of an artifact"));
    }
}

/// A member, whether a value fits it, and what to say if not.
type Member = (&'static str, fn(&Value) -> bool, &'static str);

const ARTIFACT: &[Member] = &[
    ("name", short_text, "must be a string of 1 to 1,000 characters"),
    ("sha256", hex_digest, "must be 64 lowercase hexadecimal characters"),
    ("bytes", size, "must be a number of bytes"),
    ("uri", short_text, "must be a string of 1 to 1,000 characters"),
];

fn short_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| (1..=1_000).contains(&text.chars().count()))
}

fn hex_digest(value: &Value) -> bool {
    let lowercase_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    value.as_str().is_some_and(|text| text.len() == 64 && text.bytes().all(lowercase_hex))
}

fn size(value: &Value) -> bool {
    value.as_u64().is_some_and(|bytes| bytes <= INTEGER_MAX)
}
