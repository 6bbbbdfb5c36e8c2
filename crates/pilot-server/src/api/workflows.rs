//! The definitions in force.

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use pilot_core::workflow::Definition;
use serde::Serialize;

use crate::access::Caller;
use crate::api::request::Query;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call};

#[derive(Serialize)]
struct WorkflowsView<'d> {
    workflows: Vec<SummaryView<'d>>,
    /// Always null: this list is whole.
    next: Option<String>,
}

#[derive(Serialize)]
struct SummaryView<'d> {
    name: &'d str,
    version: u32,
    digest: &'d str,
    title: &'d str,
    description: &'d str,
}

pub fn list_workflows(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    let workflows = app.workflows.in_force().map(|definition| SummaryView {
        name: definition.name(),
        version: definition.version(),
        digest: definition.digest(),
        title: &definition.rules().title,
        description: &definition.rules().description,
    });
    super::json(&WorkflowsView { workflows: workflows.collect(), next: None })
}

pub fn get_workflow(call: &Call) -> Answer {
    super::json(wanted(call)?.as_ref())
}

pub fn get_workflow_diagram(call: &Call) -> Answer {
    let mut response = super::page("image/svg+xml", call.app.workflows.diagram(wanted(call)?));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// The definition in force, or with a digest the very one that an item was created under.
fn wanted(call: &Call) -> Result<&Arc<Definition>, Problem> {
    let query = Query::read(call, &["digest"])?;
    let (name, workflows) = (call.parameter.as_deref().unwrap_or(""), &call.app.workflows);
    match query.get("digest") {
        None => workflows
            .named(name)
            .ok_or_else(|| Problem::new(Code::NotFound, "There is no workflow with this name in force.")),
        Some(digest) => workflows
            .with_digest(name, digest)
            .ok_or_else(|| Problem::new(Code::NotFound, "There is no definition with this name and digest.")),
    }
}
