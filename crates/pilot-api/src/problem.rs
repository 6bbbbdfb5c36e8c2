//! An answer that is not a success.

use std::borrow::Cow;

use pilot_core::actor::ActorId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

/// RFC 9457 problem details. `code` is stable; `title` and `detail` are for people and may change.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub struct ProblemView<'a> {
    #[schemars(extend("format" = "uri-reference"))]
    pub r#type: String,
    pub title: Cow<'a, str>,
    #[schemars(with = "i64")]
    pub status: u16,
    pub detail: Cow<'a, str>,
    #[schemars(with = "named::Code")]
    pub code: Cow<'a, str>,
    pub request_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultView>,
    /// Who could do it now, when an action was refused for role, separation of duties or ownership.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who_can: Option<WhoCanView>,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct WhoCanView {
    /// The first few of them; empty if nobody can.
    #[schemars(with = "Vec<named::ActorId>")]
    pub actors: Vec<ActorId>,
    /// How many more there are.
    pub others: usize,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct FaultView {
    /// RFC 6901 JSON pointer into the request; empty for the whole request.
    pub pointer: String,
    pub detail: String,
}
