//! The definitions in force.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::named;

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Workflows")]
pub struct WorkflowsView<'d> {
    pub workflows: Vec<SummaryView<'d>>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WorkflowSummary")]
pub struct SummaryView<'d> {
    pub name: Cow<'d, str>,
    #[schemars(range(min = 1))]
    pub version: u32,
    #[schemars(with = "named::Digest")]
    pub digest: Cow<'d, str>,
    pub title: Cow<'d, str>,
    pub description: Cow<'d, str>,
}
