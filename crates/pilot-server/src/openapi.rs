//! The OpenAPI 3.1 document and the page for people, both generated from the route table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::caller::Access;
use crate::problem::Code;
use crate::routes::{Handler, Needed, Parameter, RequestBody, Route, Success};

/// The version of the API, not of the program, so that an outsider learns nothing from it.
const API_VERSION: &str = "1.0.0";
/// What no type in `pilot_api` describes: requests, and the types of the core.
const SCHEMAS: &str = include_str!("openapi/schemas.json");

pub fn document(routes: &[Route]) -> Value {
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        // OpenAPI has no notation for "the rest of the path".
        paths
            .entry(route.path.replace("{*", "{"))
            .or_default()
            .insert(route.method.as_str().to_ascii_lowercase(), operation(route));
    }
    let mut schemas: Map<String, Value> = serde_json::from_str(SCHEMAS).unwrap_or_default();
    schemas.extend(pilot_api::schemas::schemas());
    let codes: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
    schemas.insert("Code".into(), json!({ "type": "string", "enum": codes }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Pilot",
            "version": API_VERSION,
            "description": "The workflow service for operations that no one should be able to carry out alone.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "bearer": { "type": "http", "scheme": "bearer", "description": "32 to 256 printable ASCII characters without spaces." },
            },
        },
    })
}

/// The problems that any call can get, whatever its operation.
pub fn problems(route: &Route) -> Vec<Code> {
    let mut codes = vec![Code::TokenInUrl];
    if let Handler::Guarded(access, _) = route.handler {
        codes.extend([Code::CredentialRequired, Code::RateLimited]);
        if access != Access::AnyRole {
            codes.push(Code::RoleForbidden);
        }
    }
    codes.extend(route.docs.problems);
    codes
}

/// An answer without a body.
const NO_CONTENT: u16 = 204;

fn operation(route: &Route) -> Value {
    let Success(status, description, media_type, schema) = route.docs.success;
    let mut content = Map::new();
    if status != NO_CONTENT {
        content.insert(media_type.to_owned(), json!({ "schema": schema.map_or(json!({}), reference) }));
    }
    for (media_type, schema) in route.docs.also {
        content.insert((*media_type).to_owned(), json!({ "schema": reference(schema) }));
    }
    let headers: Map<_, _> =
        route.docs.answer_headers.iter().map(|name| ((*name).to_owned(), answer_header(name))).collect();
    let mut responses = Map::new();
    let success = if content.is_empty() {
        json!({ "description": description, "headers": headers })
    } else {
        json!({ "description": description, "headers": headers, "content": content })
    };
    responses.insert(status.to_string(), success);
    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    for code in problems(route) {
        by_status.entry(code.status()).or_default().push(code);
    }
    // Faults of the message itself come before the operation, and share one code.
    for status in [400, 414, 431] {
        by_status.entry(status).or_default().push(Code::InvalidRequest);
    }
    for (status, codes) in by_status {
        let description =
            codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.title())).collect::<Vec<_>>().join("; ");
        let content = json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
        let mut response = json!({ "description": description, "content": content });
        if let Some(members) = response.as_object_mut().filter(|_| codes.contains(&Code::RateLimited)) {
            members.insert("headers".into(), json!({ "Retry-After": retry_after() }));
        }
        responses.insert(status.to_string(), response);
    }
    let mut operation =
        json!({ "operationId": route.operation, "summary": route.docs.summary, "responses": responses });
    let (security, access) = match route.handler {
        Handler::Open(_) | Handler::File(_) => (json!([]), "Open to anyone.".to_owned()),
        Handler::Guarded(access, _) => (json!([{ "bearer": [] }]), format!("For {}.", who(access))),
    };
    if let Some(members) = operation.as_object_mut() {
        let parameters = parameters(route);
        if !parameters.is_empty() {
            members.insert("parameters".into(), parameters.into());
        }
        if let Some(RequestBody(media_types, schema, needed, _)) = route.docs.request {
            let content: Map<_, _> = media_types
                .iter()
                .map(|media_type| ((*media_type).to_owned(), json!({ "schema": reference(schema) })))
                .collect();
            members.insert("requestBody".into(), json!({ "required": needed == Needed::Always, "content": content }));
        }
        members.insert("security".into(), security);
        members.insert("description".into(), access.into());
    }
    operation
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// Path, query and header parameters, in that order.
fn parameters(route: &Route) -> Vec<Value> {
    let variables = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<_> = variables
        .map(|name| {
            let name = name.trim_start_matches('*');
            let schema = match name {
                "id" if route.path.starts_with("/v1/credentials/") => reference("CredentialId"),
                "id" => reference("ItemId"),
                "digest" => reference("Digest"),
                _ => json!({ "type": "string" }),
            };
            json!({ "name": name, "in": "path", "required": true, "schema": schema })
        })
        .collect();
    for Parameter(name, schema, description) in route.docs.query {
        parameters
            .push(json!({ "name": name, "in": "query", "description": description, "schema": reference(schema) }));
    }
    for name in route.docs.headers {
        let (schema, description) = request_header(name);
        parameters.push(json!({ "name": name, "in": "header", "description": description, "schema": schema }));
    }
    parameters
}

fn request_header(name: &str) -> (Value, &'static str) {
    match name {
        "Idempotency-Key" => (
            json!({ "type": "string", "pattern": "^(\"[!-~]{1,255}\"|[!-~]{1,255})$" }),
            "The same key and body give the same answer again, for 24 hours",
        ),
        "If-Match" => {
            (json!({ "type": "string", "pattern": "^(\\*|\"[0-9]+\")$" }), "Only if the item still has this version")
        }
        "Last-Event-ID" => (json!({ "type": "string" }), "The last event received; the feed continues after it"),
        _ => (json!({ "type": "string" }), ""),
    }
}

fn answer_header(name: &str) -> Value {
    let (required, pattern, description) = match name {
        "Credential-Expires-At" => (false, "^[0-9T:.-]+Z$", "When the credential expires; absent if it does not"),
        "ETag" => (true, "^\"[1-9][0-9]*\"$", "The item's version"),
        "Content-Disposition" => (true, "^attachment; filename=\"evidence-[0-9a-z-]+[.]zip\"$", "A name for the file"),
        "Evidence-Entries" => (true, "^[0-9]+$", "The number of entries in the bundle, for showing progress"),
        "Location" => (true, "^/v1/items/[0-9a-f-]{36}$", "Where the new item is"),
        _ => (false, "^</v1/items(/[0-9a-f-]+/[a-z]+)?\\?.*>; rel=\"next\"$", "The next page, unless this is the last"),
    };
    json!({ "description": description, "required": required, "schema": { "type": "string", "pattern": pattern } })
}

fn retry_after() -> Value {
    let schema = json!({ "type": "integer", "minimum": 1 });
    json!({ "description": "How many seconds to wait", "required": true, "schema": schema })
}

pub fn who(access: Access) -> String {
    match access {
        Access::AnyRole => "any valid credential".to_owned(),
        Access::Roles(roles) => roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", "),
    }
}

/// Turns text in backticks into marked-up code; the texts are ours, and their backticks come in pairs.
fn with_code_marks(text: &str) -> String {
    let marked = |(at, part): (usize, &str)| if at % 2 == 1 { format!("<code>{part}</code>") } else { part.to_owned() };
    text.split('`').enumerate().map(marked).collect()
}

/// A page without scripts: tables of operations and problems.
pub fn page(routes: &[Route]) -> String {
    let mut rows = String::new();
    for route in routes {
        let who = match route.handler {
            Handler::Open(_) | Handler::File(_) => "anyone".to_owned(),
            Handler::Guarded(access, _) => who(access),
        };
        let (method, operation, path) = (&route.method, route.operation, route.path.replace("{*", "{"));
        let summary = with_code_marks(route.docs.summary);
        let _ = writeln!(
            rows,
            "<tr id=\"{operation}\"><td>{method}</td><td><code>{path}</code></td><td>{who}</td><td>{summary}</td></tr>"
        );
    }
    let mut problems = String::new();
    for code in Code::ALL {
        let (name, status, help) = (code.as_str(), code.status(), code.help());
        let help = with_code_marks(&help.replace('<', "&lt;"));
        let _ =
            writeln!(problems, "<tr id=\"{name}\"><td><code>{name}</code></td><td>{status}</td><td>{help}</td></tr>");
    }
    include_str!("openapi/page.html").replace("<!-- operations -->", &rows).replace("<!-- problems -->", &problems)
}
