//! The definitions in force.

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use pilot_core::workflow::{Definition, graph};
use serde::Serialize;

use crate::problem::{Code, Problem};
use crate::routes::{Answer, Call};

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

#[expect(clippy::unused_async, reason = "every guarded handler has this shape")]
pub async fn list_workflows(call: Call) -> Answer {
    let workflows = call.app.workflows.in_force().iter().map(|definition| SummaryView {
        name: definition.name(),
        version: definition.version(),
        digest: definition.digest(),
        title: &definition.rules().title,
        description: &definition.rules().description,
    });
    super::json(&WorkflowsView { workflows: workflows.collect() })
}

#[expect(clippy::unused_async, reason = "every guarded handler has this shape")]
pub async fn get_workflow(call: Call) -> Answer {
    super::json(named(&call)?.as_ref())
}

#[expect(clippy::unused_async, reason = "every guarded handler has this shape")]
pub async fn get_workflow_diagram(call: Call) -> Answer {
    let mut response = super::page("image/svg+xml", graph::svg(named(&call)?, None));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

fn named(call: &Call) -> Result<&Arc<Definition>, Problem> {
    let found = call.parameter.as_deref().and_then(|name| call.app.workflows.named(name));
    found.ok_or_else(|| Problem::new(Code::NotFound, "There is no workflow of this name in force."))
}
