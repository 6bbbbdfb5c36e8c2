//! The arguments of each tool: their shapes, which become the input schemas, and how strictly they are read.

use pilot_core::document::ContentDigest;
use pilot_core::item::ItemId;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::bounds::{ARGUMENT_BYTES_MAX, ARGUMENT_DEPTH_MAX};
use crate::refusal::Refusal;

/// How ids and digests are written, for schemas.
const ID: &str = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$";
const DIGEST: &str = "^sha256:[0-9a-f]{64}$";

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Workflows {
    /// The name of one workflow, to get its payload schema, states and actions. Without it, all are listed.
    pub name: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OneItem {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct History {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// The `next` of the previous answer, to read on. Without it, the history begins with the creation.
    pub cursor: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Propose {
    /// The workflow's name, as `workflows` lists it.
    pub workflow: String,
    /// What is to be done, in one line, for the people who decide.
    #[schemars(length(min = 1, max = 200))]
    pub title: String,
    /// What is to be done, in full. It must fit the workflow's payload schema; people decide on exactly this.
    pub payload: Map<String, Value>,
    /// 1, unless the same thing is to be proposed once more after an earlier attempt ended.
    #[serde(default = "first")]
    #[schemars(range(min = 1, max = 50))]
    pub attempt: u32,
}

const fn first() -> u32 {
    1
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wait {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// The state you last saw. If the item is no longer in it, the call returns at once. Without it: the state now.
    pub while_state: Option<String>,
    /// How long to wait. Never more than 45 seconds, whatever you ask for.
    #[schemars(range(max = 45))]
    pub timeout_seconds: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Revise {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// A new title. Without it, the title stays.
    #[schemars(length(min = 1, max = 200))]
    pub title: Option<String>,
    /// The whole new payload, in place of the old one. Without it, the payload stays.
    pub payload: Option<Map<String, Value>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Withdraw {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// Why, for the people who read the history.
    #[schemars(length(max = 4000))]
    pub comment: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Comment {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// What to say. It is kept under your name and cannot be deleted.
    #[schemars(length(min = 1, max = 4000))]
    pub text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cleared {
    /// Only items of this workflow.
    pub workflow: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Start {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// The digest of the content that you have read and are about to carry out, from `status`.
    #[schemars(with = "String", extend("pattern" = DIGEST))]
    pub content_digest: ContentDigest,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Heartbeat {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// How far you are, for the people who watch.
    #[schemars(length(max = 500))]
    pub progress: Option<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// The item's id.
    #[schemars(with = "String", extend("pattern" = ID))]
    pub item: ItemId,
    /// How the execution ended. If you do not know, it is `unknown`, never `fail`.
    pub outcome: Outcome,
    /// What happened, in words. Needed for `unknown`.
    #[schemars(length(max = 4000))]
    pub comment: Option<String>,
    /// The result, as text.
    pub result: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Outcome {
    Succeed,
    Fail,
    Unknown,
}

impl Outcome {
    pub(crate) const fn action(self) -> &'static str {
        match self {
            Outcome::Succeed => "succeed",
            Outcome::Fail => "fail",
            Outcome::Unknown => "unknown",
        }
    }
}

/// Reads arguments strictly, after their size and depth were measured.
pub(crate) fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Refusal> {
    let arguments = Value::Object(arguments);
    if depth(&arguments) > ARGUMENT_DEPTH_MAX {
        let words = format!("are nested more than {ARGUMENT_DEPTH_MAX} levels deep");
        return Err(Refusal::argument("", &words));
    }
    let bytes = arguments.to_string().len();
    if bytes > ARGUMENT_BYTES_MAX {
        let words = format!("have {bytes} bytes; at most {ARGUMENT_BYTES_MAX} are accepted");
        return Err(Refusal::argument("", &words));
    }
    T::deserialize(&arguments).map_err(|error| wrong::<T>(&arguments, &error.to_string()))
}

/// The place of a fault is the argument without which there is another one, or none.
fn wrong<T: DeserializeOwned>(arguments: &Value, error: &str) -> Refusal {
    let is_place = |name: &&String| {
        let mut others = arguments.clone();
        others.as_object_mut().map(|members| members.remove(*name));
        T::deserialize(&others).map_or_else(|other| other.to_string() != error, |_| true)
    };
    let place = arguments.as_object().and_then(|members| members.keys().find(is_place));
    let pointer = place.map_or(String::new(), |name| pilot_core::json::join("", name));
    Refusal::argument(&pointer, error)
}

/// How many levels of lists and objects there are. The JSON reader stops at 128.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(elements) => 1 + elements.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ITEM: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    #[track_caller]
    fn refused<T: DeserializeOwned + std::fmt::Debug>(arguments: &Value, words: &str) {
        let refusal = read::<T>(arguments.as_object().unwrap().clone()).unwrap_err();
        assert!(refusal.words().contains(words), "{}", refusal.words());
    }

    #[test]
    fn an_argument_that_no_tool_knows_is_refused_by_name() {
        refused::<OneItem>(&json!({"item": ITEM, "as": "ben"}), "/as: unknown field `as`, expected `item`.");
        refused::<Nothing>(&json!({"role": "approver"}), "/role: unknown field `role`");
    }

    #[test]
    fn an_id_is_an_id_and_never_a_path() {
        for id in ["../items", "", "01890A5D-AC96-774B-BCCE-B302099A8057", "01890a5d-ac96-774b-bcce-b302099a8057/x"] {
            refused::<OneItem>(&json!({"item": id}), "/item: an item id is a UUID in lowercase");
        }
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        refused::<Wait>(
            &json!({"item": ITEM, "timeout_seconds": -1}),
            "/timeout_seconds: invalid value: integer `-1`, expected u32",
        );
        refused::<Report>(&json!({"item": ITEM, "outcome": "approve"}), "/outcome: unknown variant `approve`");
        refused::<Report>(&json!({"item": ITEM}), "missing field `outcome`");
    }

    #[test]
    fn size_and_depth_are_measured_before_anything_is_read() {
        let deep = (0..40).fold(json!(1), |inside, _| json!([inside]));
        refused::<Propose>(&json!({"workflow": "w", "title": "t", "payload": {"a": deep}}), "33 levels deep");
        let long = "x".repeat(ARGUMENT_BYTES_MAX);
        refused::<Propose>(&json!({"workflow": "w", "title": long, "payload": {}}), "at most 98304 are accepted");
    }
}
