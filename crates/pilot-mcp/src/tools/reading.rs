//! Tools of every role: who am I, which workflows are there, where is an item, what happened to it.

use pilot_api::items::{HistoryPage, TransitionView};
use pilot_api::workflows::{RuleView, StateKind, WorkflowView, WorkflowsView};
use pilot_core::actor::Actor;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::arguments;
use crate::bounds::{HISTORY_MAX, JSON_BYTES_MAX, LIST_MAX, TEXT_BYTES_MAX};
use crate::desk::{Desk, encoded};
use crate::refusal::Refusal;
use crate::service::{Request, Service};
use crate::texts::{Quoted, QuotedJson, WARNING, shortened, visible_value};
use crate::tools::Said;
use crate::view::Status;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Whoami {
    /// The name under which the service records what you do.
    pub actor_id: String,
    pub role: String,
}

pub(crate) async fn whoami<S: Service>(desk: &Desk<S>) -> Result<Said<Whoami>, Refusal> {
    let Actor { actor_id, role, .. } = desk.ask(Request::get("/v1/session")).await?;
    let view = Whoami { actor_id: actor_id.to_string(), role: role.to_string() };
    let words = format!(
        "You are {actor_id}, in the role {role}. What you do is recorded under this name. Decisions about items are made by \
         other people with their own credentials; there is no tool for them."
    );
    Ok(Said { words, view })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WorkflowsResult {
    pub workflows: Vec<Summary>,
    /// Whether there are more than are listed.
    pub cut: bool,
    /// The one that was asked for.
    pub workflow: Option<Workflow>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Summary {
    pub name: String,
    pub version: u32,
    pub title: String,
    pub description: String,
}

/// The rules of one workflow, as its definition states them.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Workflow {
    pub name: String,
    pub version: u32,
    pub title: String,
    pub description: String,
    /// JSON Schema of the payload. Null if it is too long to be shown.
    #[schemars(with = "Option<Map<String, Value>>")]
    pub payload_schema: Value,
    pub payload_schema_cut: bool,
    pub states: Vec<State>,
    pub actions: Vec<Rule>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct State {
    pub name: String,
    /// `open`, `effect` (it is being carried out) or `finished`.
    pub kind: &'static str,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Rule {
    pub action: String,
    pub from: Vec<String>,
    /// Null if the item stays where it is.
    pub to: Option<String>,
    pub roles: Vec<String>,
    pub needs_comment: bool,
}

pub(crate) async fn workflows<S: Service>(
    desk: &Desk<S>,
    arguments: arguments::Workflows,
) -> Result<Said<WorkflowsResult>, Refusal> {
    if let Some(name) = arguments.name {
        let workflow = Workflow::from(desk.workflow(&name).await?);
        let words = format!("The workflow {}: its payload schema, states and actions.", workflow.name);
        return Ok(Said {
            words,
            view: WorkflowsResult { workflows: Vec::new(), cut: false, workflow: Some(workflow) },
        });
    }
    let found: WorkflowsView<'static> = desk.ask(Request::get("/v1/workflows")).await?;
    let cut = found.workflows.len() > LIST_MAX;
    let summaries = found.workflows.iter().take(LIST_MAX).map(|workflow| Summary {
        name: workflow.name.to_string(),
        version: workflow.version,
        title: shortened(&workflow.title, TEXT_BYTES_MAX).0,
        description: shortened(&workflow.description, TEXT_BYTES_MAX).0,
    });
    let workflows: Vec<_> = summaries.collect();
    let names: Vec<_> = workflows.iter().map(|workflow| workflow.name.as_str()).collect();
    let words = format!("The workflows are {}. Ask for one by name to get its payload schema.", names.join(", "));
    Ok(Said { words, view: WorkflowsResult { workflows, cut, workflow: None } })
}

impl From<WorkflowView> for Workflow {
    fn from(found: WorkflowView) -> Workflow {
        let schema = visible_value(&found.payload_schema);
        let payload_schema_cut = schema.to_string().len() > JSON_BYTES_MAX;
        let kind = |kind| match kind {
            StateKind::Open => "open",
            StateKind::Effect => "effect",
            StateKind::Terminal => "finished",
        };
        Workflow {
            title: shortened(&found.title, TEXT_BYTES_MAX).0,
            description: shortened(&found.description, TEXT_BYTES_MAX).0,
            payload_schema: if payload_schema_cut { Value::Null } else { schema },
            payload_schema_cut,
            states: found.states.into_iter().map(|state| State { name: state.name, kind: kind(state.kind) }).collect(),
            actions: found.transitions.into_iter().map(Rule::from).collect(),
            name: found.name,
            version: found.version,
        }
    }
}

impl From<RuleView> for Rule {
    fn from(rule: RuleView) -> Rule {
        let RuleView { action, from, to, roles, comment_required, .. } = rule;
        let roles = roles.iter().map(ToString::to_string).collect();
        Rule { action, from, to, roles, needs_comment: comment_required }
    }
}

pub(crate) async fn status<S: Service>(desk: &Desk<S>, arguments: arguments::OneItem) -> Result<Said<Status>, Refusal> {
    let found = desk.item(&arguments.item).await?;
    let view = Status::new(&found, desk.service.link(arguments.item.as_str()));
    Ok(Said { words: format!("{} {WARNING}", view.words()), view })
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct History {
    /// Oldest first.
    pub entries: Vec<Line>,
    /// Give this as `cursor` to read on. Null if these are the last.
    pub next: Option<String>,
}

/// Something that happened to the item.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct Line {
    /// Its index in the ledger.
    pub entry: u64,
    /// RFC 3339.
    pub at: String,
    pub action: String,
    pub from: Option<String>,
    pub to: Option<String>,
    /// Null if a timer did it.
    pub by: Option<String>,
    pub role: Option<String>,
    pub comment: Option<Quoted>,
    pub inputs: Option<QuotedJson>,
    pub content_digest: Option<String>,
}

pub(crate) async fn history<S: Service>(
    desk: &Desk<S>,
    arguments: arguments::History,
) -> Result<Said<History>, Refusal> {
    let id = &arguments.item;
    let cursor = arguments.cursor.map_or_else(String::new, |cursor| format!("&cursor={}", encoded(&cursor)));
    let path = format!("/v1/items/{id}/history?limit={HISTORY_MAX}{cursor}");
    let page: HistoryPage = desk.ask(Request::get(path)).await.map_err(|refusal| refusal.about(id.as_str()))?;
    let entries: Vec<_> = page.transitions.iter().map(Line::from).collect();
    let more = if page.next.is_some() { " There are more; give `next` as `cursor`." } else { "" };
    let words = format!("{} entries of item {id}, oldest first.{more} {WARNING}", entries.len());
    Ok(Said { words, view: History { entries, next: page.next } })
}

impl From<&TransitionView<'_>> for Line {
    fn from(entry: &TransitionView<'_>) -> Line {
        let by = entry.actor_id.as_ref().map(ToString::to_string);
        let author = by.as_deref().unwrap_or("a timer");
        Line {
            entry: entry.entry,
            at: entry.at.to_string(),
            action: entry.action.to_string(),
            from: entry.from.as_ref().map(ToString::to_string),
            to: entry.to.as_ref().map(ToString::to_string),
            role: entry.role.map(|role| role.to_string()),
            comment: entry.comment.as_ref().map(|text| Quoted::new(author, text, TEXT_BYTES_MAX)),
            inputs: entry.inputs.as_ref().map(|inputs| QuotedJson::new(author, inputs, TEXT_BYTES_MAX)),
            content_digest: entry.content_digest.as_ref().map(|digest| digest.as_str().to_owned()),
            by,
        }
    }
}
