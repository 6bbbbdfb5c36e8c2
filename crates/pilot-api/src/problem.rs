//! An answer that is not a success.

use std::borrow::Cow;

use serde::Serialize;

/// RFC 9457 problem details.
#[derive(Serialize)]
pub struct ProblemView<'a> {
    pub r#type: String,
    pub title: &'static str,
    pub status: u16,
    pub detail: Cow<'static, str>,
    pub code: &'static str,
    pub request_id: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FaultView>,
}

#[derive(Serialize)]
pub struct FaultView {
    pub pointer: String,
    pub detail: String,
}
