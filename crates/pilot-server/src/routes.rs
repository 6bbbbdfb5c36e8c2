//! THE table: every operation with its method, path, access rule and handler. The router, the OpenAPI document and the
//! reference page "Who may call what" are all generated from it.

use std::future::ready;

use http::Method;
use pilot_core::role::Role;
use pilot_wire::body::Body;

use crate::api::{
    actors, attestations, console, contents, credentials, events, evidence, figures, health, items, lists, log, looks,
    nodes, permits, reference, resource, session, transitions, webhooks, workflows,
};
use crate::call::end_upload;
use crate::caller::Access;

mod docs;
mod route;
mod router;

pub use route::{Docs, Guarded, Handler, Needed, Parameter, RequestBody, Route, Success};
use route::{at_once, file, guarded, open};
pub use router::{FaultyTable, Found, FoundAtOnce, Router, is_under_v1};

const ANY: Access = Access::AnyRole;

/// A handler that borrows its call: passed by value, a call would be stored again in every future it passes through.
macro_rules! in_time {
    ($handler:path) => {
        |mut call| {
            Box::pin(async move {
                let mut answer = $handler(&mut call).await;
                if let (Ok(response), Some(share)) = (&mut answer, call.share.take()) {
                    let body = std::mem::replace(response.body_mut(), Body::empty());
                    *response.body_mut() = body.holding(|bytes| share.shrunk_to(bytes));
                }
                if let Some(upload) = call.upload.filter(|upload| !upload.is_at_end()) {
                    // Boxed, so that the many requests whose body was read do not carry the space for it.
                    Box::pin(end_upload(upload, &mut answer)).await;
                }
                answer
            })
        }
    };
}

// One line per route: a table is read by its columns.
#[rustfmt::skip]
pub fn table() -> Vec<Route> {
    let get = Method::GET;
    let post = Method::POST;
    vec![
        at_once("/v1/session", "get_session", ANY, session::get_session, docs::SESSION),
        at_once("/v1/workflows", "list_workflows", ANY, workflows::list_workflows, docs::WORKFLOWS),
        guarded(&get, "/v1/workflows/{name}", "get_workflow", ANY, |call| Box::pin(ready(workflows::get_workflow(&call))), docs::WORKFLOW),
        guarded(&get, "/v1/workflows/{name}/diagram", "get_workflow_diagram", ANY, |call| Box::pin(ready(workflows::get_workflow_diagram(&call))), docs::DIAGRAM),
        guarded(&post, "/v1/items", "create_item", Access::Roles(&[Role::Initiator]), in_time!(items::create_item), docs::CREATE),
        guarded(&get, "/v1/items", "list_items", ANY, in_time!(lists::list_items), docs::ITEMS),
        guarded(&get, "/v1/items/{id}", "get_item", ANY, in_time!(items::get_item), docs::ITEM),
        guarded(&Method::PATCH, "/v1/items/{id}", "edit_item", Access::Roles(&[Role::Initiator]), in_time!(items::edit_item), docs::EDIT),
        guarded(&post, "/v1/items/{id}/transitions", "take_action", ANY, in_time!(transitions::take_action), docs::ACT),
        guarded(&get, "/v1/items/{id}/transitions", "list_transitions", ANY, in_time!(transitions::list_transitions), docs::TRANSITIONS),
        guarded(&get, "/v1/items/{id}/history", "list_history", ANY, in_time!(transitions::list_history), docs::HISTORY),
        guarded(&get, "/v1/items/{id}/contents/{digest}", "get_content", ANY, in_time!(contents::get_content), docs::CONTENT),
        guarded(&Method::PUT, "/v1/items/{id}/look", "look_at_item", ANY, in_time!(looks::look_at_item), docs::LOOK),
        guarded(&post, "/v1/items/{id}/comments", "add_comment", ANY, in_time!(transitions::add_comment), docs::COMMENT),
        guarded(&get, "/v1/items/{id}/proof", "get_item_proof", ANY, in_time!(log::get_item_proof), docs::PROOF),
        guarded(&get, "/v1/items/{id}/attestation", "get_attestation", ANY, in_time!(attestations::get_attestation), docs::ATTESTATION),
        guarded(&get, "/v1/items/{id}/permit", "get_permit", Access::Roles(&[Role::Executor]), in_time!(evidence::get_permit), docs::PERMIT),
        guarded(&post, "/v1/items/{id}/permit-token", "issue_permit_token", Access::Roles(&[Role::Executor]), in_time!(permits::issue_permit_token), docs::PERMIT_TOKEN),
        guarded(&get, "/v1/events", "list_events", ANY, in_time!(events::list_events), docs::EVENTS),
        guarded(&get, "/v1/figures", "get_figures", ANY, in_time!(figures::get_figures), docs::FIGURES),
        at_once("/v1/actors", "list_actors", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), actors::list_actors, docs::ACTORS),
        at_once("/v1/nodes", "list_nodes", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), nodes::list_nodes, docs::NODES),
        guarded(&get, "/v1/webhooks", "list_webhooks", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), in_time!(webhooks::list_webhooks), docs::WEBHOOKS),
        guarded(&post, "/v1/webhooks/{name}/replay", "replay_webhook", Access::Roles(&[Role::SecurityAdmin]), in_time!(webhooks::replay_webhook), docs::REPLAY),
        at_once("/v1/credentials", "list_credentials", Access::Roles(&[Role::SecurityAdmin, Role::Auditor]), credentials::list_credentials, docs::CREDENTIALS),
        guarded(&post, "/v1/credentials/{id}/revocation", "revoke_credential", Access::Roles(&[Role::SecurityAdmin]), in_time!(credentials::revoke_credential), docs::REVOCATION),
        guarded(&get, "/v1/log/checkpoint", "get_checkpoint", ANY, in_time!(log::get_checkpoint), docs::CHECKPOINT),
        guarded(&get, "/v1/log/tile/{*tile}", "get_tile", ANY, in_time!(log::get_tile), docs::TILE),
        guarded(&get, "/v1/log/tile/entries/{*tile}", "get_entry_bundle", Access::Roles(&[Role::Auditor]), in_time!(log::get_entry_bundle), docs::ENTRIES),
        guarded(&get, "/v1/evidence", "get_evidence", Access::Roles(&[Role::Auditor]), in_time!(evidence::get_evidence), docs::EVIDENCE),
        open("/openapi.json", "get_openapi", reference::get_openapi, docs::OPENAPI),
        open("/docs", "get_docs", reference::get_docs, docs::PAGE),
        open("/docs.css", "get_docs_style", reference::get_docs_style, docs::STYLE),
        open("/healthz", "get_health", health::get_health, docs::HEALTH),
        open("/readyz", "get_readiness", health::get_readiness, docs::READINESS),
        file("/", "get_console", console::get_console, docs::CONSOLE),
        file("/console", "get_console_root", console::get_console, docs::ROOT),
        file("/console/", "get_console_folder", console::get_console, docs::ROOT),
        file("/console/{*screen}", "get_console_screen", console::get_console, docs::SCREEN),
        file("/assets/{*file}", "get_console_asset", console::get_console_asset, docs::ASSET),
        open("/.well-known/oauth-protected-resource", "get_protected_resource", resource::get_protected_resource, docs::RESOURCE),
        open("/.well-known/openid-configuration", "get_permit_issuer", permits::get_permit_issuer, docs::PERMIT_ISSUER),
        open("/.well-known/jwks.json", "get_permit_keys", permits::get_permit_keys, docs::PERMIT_KEYS),
        open("/console.json", "get_console_settings", console::get_console_settings, docs::SETTINGS),
    ]
}
