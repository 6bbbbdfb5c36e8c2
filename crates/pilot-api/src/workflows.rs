//! The definitions in force.

use serde::Serialize;

#[derive(Serialize)]
pub struct WorkflowsView<'d> {
    pub workflows: Vec<SummaryView<'d>>,
    /// Always null: this list is whole.
    pub next: Option<String>,
}

#[derive(Serialize)]
pub struct SummaryView<'d> {
    pub name: &'d str,
    pub version: u32,
    pub digest: &'d str,
    pub title: &'d str,
    pub description: &'d str,
}
