//! One entry as a message: a CloudEvent with the headers of Standard Webhooks. Who wants it, and what it says.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue, InvalidHeaderValue};
use pilot_core::entry::Entry;
use pilot_core::item::{Item, ItemId};
use pilot_core::leak::LeakGuard;
use pilot_core::limits::WEBHOOK_BYTES_MAX;
use pilot_core::role::Role;
use pilot_core::role_set::RoleSet;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;
use pilot_setup::config::Webhook;
use pilot_setup::webhook_key::{WebhookKey, signed_text};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

const MEDIA_TYPE: HeaderValue = HeaderValue::from_static("application/cloudevents+json");
const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// How much of the digest of a log's name is in the id of a message.
const TAG_BYTES: usize = 8;

/// Where messages come from, as they say it.
#[derive(Debug, Clone)]
pub(super) struct Origin {
    /// The log's name. Not the service's address: a log that lost entries has a new name, and its indices repeat with
    /// other content.
    source: String,
    /// Under which the console is found.
    console: Option<String>,
    /// Distinguishes the messages of different services.
    tag: String,
}

impl Origin {
    pub(super) fn new(log_name: &str, public_url: Option<&str>) -> Origin {
        let digest = Sha256::digest(log_name.as_bytes());
        Origin {
            source: log_name.to_owned(),
            console: public_url.map(|url| format!("{url}/console/items/")),
            tag: digest.iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The same for every attempt, so that a receiver knows what it has seen.
    pub(super) fn id(&self, index: u64) -> String {
        format!("msg_{}_{index}", self.tag)
    }
}

/// What is known about the item of an entry.
#[derive(Clone, Copy, Default)]
pub(super) struct About<'a> {
    pub(super) definition: Option<&'a Definition>,
    /// As it is now, which may be later than the entry.
    pub(super) item: Option<&'a Item>,
}

impl About<'_> {
    /// The roles whose turn it is after this entry; none if the entry is not about a state. If the item has moved on,
    /// whether it was held then is not known, and the definition alone says whose turn it was.
    pub(super) fn waits_for(&self, entry: &Entry) -> Vec<Role> {
        let (Some(definition), Some(state)) = (self.definition, entry.to.as_ref()) else { return Vec::new() };
        if let Some(item) = self.item.filter(|item| Some(item.version) == entry.version) {
            return item.waits_for(definition);
        }
        let rules = definition.rules();
        let hold = rules.hold.as_ref().filter(|_| entry.action.as_deref() == Some("hold"));
        let turn = match hold {
            Some(hold) => hold.release_roles,
            None => rules.state(state).map_or(RoleSet::EMPTY, |state| state.waits_for),
        };
        turn.iter().collect()
    }
}

/// Whether the endpoint is told about such entries at all. Needs nothing but the entry.
pub(super) fn is_of_wanted_type(webhook: &Webhook, entry: &Entry) -> bool {
    let Webhook { types, restricted, .. } = webhook;
    (entry.r#type.is_about_item() || *restricted) && (types.is_empty() || types.contains(&entry.r#type))
}

pub(super) fn is_of_wanted_workflow(webhook: &Webhook, definition: Option<&Definition>) -> bool {
    let is_of = |definition: &Definition| webhook.workflows.iter().any(|name| **name == **definition.name());
    webhook.workflows.is_empty() || definition.is_some_and(is_of)
}

/// Whether someone is to be told that it is their turn. A vote, an edit or a heartbeat leaves the turn where it was.
pub(super) fn is_of_wanted_turn(webhook: &Webhook, entry: &Entry, about: &About<'_>) -> bool {
    let roles = &webhook.waits_for;
    let is_toggle = matches!(entry.action.as_deref(), Some("hold" | "release"));
    let is_news = entry.from != entry.to || is_toggle;
    roles.is_empty() || (is_news && about.waits_for(entry).iter().any(|role| roles.contains(role)))
}

/// The event, which says the same at every attempt, except for what depends on the item as it is now: its title, and
/// whether it is held.
pub(super) fn event(
    origin: &Origin,
    entry: &Entry,
    about: &About<'_>,
    title: Option<&str>,
    guard: &LeakGuard,
) -> Bytes {
    let whole = data(origin, entry, about, title, guard);
    let body = envelope(origin, entry, &whole);
    if body.len() <= WEBHOOK_BYTES_MAX {
        return body;
    }
    // A start names every credential it found changed; a receiver that needs them reads the entry.
    let Value::Object(mut short) = whole else { return body };
    short.remove("details");
    short.insert("details_left_out".to_owned(), true.into());
    envelope(origin, entry, &short.into())
}

fn data(origin: &Origin, entry: &Entry, about: &About<'_>, title: Option<&str>, guard: &LeakGuard) -> Value {
    let mut data = match serde_json::to_value(entry) {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    if entry.r#type.is_about_item() {
        data.insert("waits_for".to_owned(), json!(about.waits_for(entry)));
        data.insert("workflow".to_owned(), json!(about.definition.map(Definition::name)));
    }
    // A text that was fine when it was written may contain what has become a token since.
    if let Some(title) = title {
        data.insert("title".to_owned(), guard.redact(title).into());
    }
    let link = |item: &ItemId| Some(format!("{}{item}", origin.console.as_ref()?));
    if let Some(link) = entry.item.as_ref().and_then(link) {
        data.insert("link".to_owned(), link.into());
    }
    data.into()
}

fn envelope(origin: &Origin, entry: &Entry, data: &Value) -> Bytes {
    let mut event = json!({
        "specversion": "1.0",
        "id": entry.index.to_string(),
        "source": origin.source,
        "type": entry.r#type,
        "time": entry.at,
        "datacontenttype": "application/json",
        "data": data,
    });
    if let (Some(item), Some(members)) = (&entry.item, event.as_object_mut()) {
        members.insert("subject".to_owned(), item.as_str().into());
    }
    event.to_string().into()
}

/// Signed by every key, for a receiver that knows one of them.
pub(super) fn headers(
    id: &str,
    now: Time,
    body: &[u8],
    keys: &[WebhookKey],
) -> Result<Vec<(HeaderName, HeaderValue)>, InvalidHeaderValue> {
    let timestamp = now.unix_micros().div_euclid(1_000_000);
    let text = signed_text(id, timestamp, body);
    let signatures: Vec<_> = keys.iter().map(|key| key.sign(&text)).collect();
    Ok(vec![
        (CONTENT_TYPE, MEDIA_TYPE),
        (ID, HeaderValue::from_str(id)?),
        (TIMESTAMP, HeaderValue::from(timestamp)),
        (SIGNATURE, HeaderValue::from_str(&signatures.join(" "))?),
    ])
}
