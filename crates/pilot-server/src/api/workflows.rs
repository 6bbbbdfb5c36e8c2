//! The definitions in force.

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use pilot_core::workflow::{Definition, graph};
use serde::Serialize;

use crate::access::Caller;
use crate::app::App;
use crate::problem::{Code, Problem};
use crate::routes::Answer;

#[derive(Serialize)]
struct WorkflowsView<'d> {
    workflows: Vec<SummaryView<'d>>,
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
    super::json(&WorkflowsView { workflows: workflows.collect() })
}

pub fn get_workflow(app: &App, _: &Caller, name: Option<&str>) -> Answer {
    super::json(named(app, name)?.as_ref())
}

pub fn get_workflow_diagram(app: &App, _: &Caller, name: Option<&str>) -> Answer {
    let mut response = super::page("image/svg+xml", graph::svg(named(app, name)?, None));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

fn named<'a>(app: &'a App, name: Option<&str>) -> Result<&'a Arc<Definition>, Problem> {
    let found = name.and_then(|name| app.workflows.named(name));
    found.ok_or_else(|| Problem::new(Code::NotFound, "There is no workflow of this name in force."))
}
