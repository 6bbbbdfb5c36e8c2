//! The definitions in force.

use schemars::JsonSchema;
use serde::Serialize;

use crate::named;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Workflows")]
pub struct WorkflowsView<'d> {
    pub workflows: Vec<SummaryView<'d>>,
    /// Always null: the list is complete.
    pub next: Option<String>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "WorkflowSummary")]
pub struct SummaryView<'d> {
    pub name: &'d str,
    #[schemars(range(min = 1))]
    pub version: u32,
    #[schemars(with = "named::Digest")]
    pub digest: &'d str,
    pub title: &'d str,
    pub description: &'d str,
}
