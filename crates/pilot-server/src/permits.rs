//! Permit tokens: the claims that a target reads, signed with a key of their own, and how targets find that key.

use std::time::Duration;

use bytes::Bytes;
use pilot_core::actor::ActorId;
use pilot_core::entry::Entry;
use pilot_core::entry::details::IssuedPermit;
use pilot_core::item::Item;
use pilot_core::time::Time;
use pilot_setup::config::Config;
use pilot_setup::error::StartError;
use pilot_setup::permit_key::{self, PermitKeyError, PermitKeys};
use serde_json::{Value, json};

/// How long a token is valid if nothing is said, and at most.
pub const LIFETIME: Duration = Duration::from_mins(10);
pub const LIFETIME_MAX: Duration = Duration::from_hours(1);
/// What a token says of an item's targets at most: it has to fit into a header.
const TARGETS_MAX: usize = 16;
const TARGET_CHARS_MAX: usize = 128;

/// Issues tokens under one name.
pub struct PermitIssuer {
    issuer: String,
    pub audiences: Vec<String>,
    keys: PermitKeys,
    /// For those who want to find the keys (OpenID Connect Discovery), and the keys.
    pub configuration: Bytes,
    pub key_set: Bytes,
}

impl PermitIssuer {
    /// `None` if the configuration asks for no tokens.
    pub fn open(config: &Config) -> Result<Option<PermitIssuer>, StartError> {
        let Some(permits) = &config.permits else { return Ok(None) };
        let keys = permit_key::load_or_make(&config.permit_key_path())?;
        let issuer = permits.issuer.to_string();
        let configuration = json!({
            "issuer": issuer,
            "jwks_uri": format!("{issuer}/.well-known/jwks.json"),
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        });
        let key_set = keys.published().to_string().into();
        let audiences = permits.audiences.clone();
        Ok(Some(PermitIssuer { issuer, audiences, keys, configuration: configuration.to_string().into(), key_set }))
    }

    /// The names of the published keys; the first signs.
    pub fn key_ids(&self) -> Vec<String> {
        self.keys.ids()
    }

    pub fn signing_id(&self) -> &str {
        self.keys.signing_id()
    }

    /// The token that an entry records. Signed again, it has the same claims and another signature.
    pub fn sign(&self, issued: &IssuedPermit, claims: &Value) -> Result<String, PermitKeyError> {
        self.keys.sign(&issued.key_id, claims)
    }

    pub fn claims(&self, of: &Grounds<'_>) -> Value {
        let Grounds { entry, issued, item, approved_by, cleared_by } = of;
        let issued_at = seconds(entry.at);
        let executor = entry.actor_id.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut claims = json!({
            "iss": self.issuer,
            "aud": issued.audience,
            // The same for every operation of this kind by this executor, for targets that can only compare it as a whole.
            "sub": format!("workflow:{}:executor:{executor}", item.workflow.name),
            "iat": issued_at,
            "nbf": issued_at,
            "exp": seconds(issued.expires_at),
            "jti": issued.jti,
            "txn": item.id,
            "attempt": item.attempts,
            "content_digest": item.content_digest,
            "executor": executor,
            "approved_by": approved_by,
            "entry": entry.index,
            "authorization_details": [authorization(item)],
        });
        if let (Some(claims), Some(cleared_by)) = (claims.as_object_mut(), cleared_by) {
            claims.insert("cleared_by".to_owned(), json!(cleared_by));
        }
        claims
    }
}

/// What a token is made from: all of it is in the ledger.
pub struct Grounds<'g> {
    pub entry: &'g Entry,
    pub issued: &'g IssuedPermit,
    pub item: &'g Item,
    pub approved_by: Vec<ActorId>,
    pub cleared_by: Option<ActorId>,
}

/// What is allowed, as RFC 9396 has it. The operation itself stays behind its digest: it may be long, or confidential.
fn authorization(item: &Item) -> Value {
    let targets = item.payload.at("/targets").and_then(|targets| serde_json::from_value::<Vec<String>>(targets).ok());
    let short = |target: &String| target.chars().count() <= TARGET_CHARS_MAX;
    let targets = targets.filter(|targets| targets.len() <= TARGETS_MAX && targets.iter().all(short));
    let mut details = json!({
        "type": "pilot_operation",
        "identifier": item.id,
        "actions": [item.state],
        "workflow": item.workflow.name,
        "content_digest": item.content_digest,
    });
    if let (Some(details), Some(targets)) = (details.as_object_mut(), targets) {
        details.insert("locations".to_owned(), json!(targets));
    }
    details
}

fn seconds(time: Time) -> i64 {
    time.unix_micros().div_euclid(1_000_000)
}
