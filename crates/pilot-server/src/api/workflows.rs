//! The definitions in force.

use std::borrow::Cow;
use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, HeaderValue};
use pilot_api::workflows::{SummaryView, WorkflowsView};
use pilot_core::workflow::Definition;

use crate::api::answers::{json, page};
use crate::api::request::Query;
use crate::app::App;
use crate::call::{Answer, Call};
use crate::caller::Caller;
use crate::problem::{Code, Problem};

pub fn list_workflows(app: &App, _: &Caller, _: Option<&str>) -> Answer {
    let workflows = app.workflows.in_force().map(|definition| SummaryView {
        name: Cow::Borrowed(definition.name()),
        version: definition.version(),
        digest: Cow::Borrowed(definition.digest()),
        title: Cow::Borrowed(&definition.rules().title),
        description: Cow::Borrowed(&definition.rules().description),
    });
    json(&WorkflowsView { workflows: workflows.collect(), next: None })
}

pub fn get_workflow(call: &Call) -> Answer {
    json(wanted(call)?.as_ref())
}

pub fn get_workflow_diagram(call: &Call) -> Answer {
    let mut response = page("image/svg+xml", call.app.workflows.diagram(wanted(call)?));
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    Ok(response)
}

/// The definition in force or, given a digest, exactly the one an item was created under.
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
