//! Asks the provider whether a token is still active (RFC 7662), so that a revocation there takes effect here within
//! seconds.
//!
//! A token is asked about only after its signature and claims were accepted. While the provider does not answer, nobody
//! is let in: a token that is not known to be active may have been revoked.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::BASE64;
use http::HeaderValue;
use pilot_core::access_token::Demands;
use pilot_core::json::{self, Bounds};
use pilot_core::limits::{ANSWER_VALUES_MAX, INTROSPECTION_KEPT, INTROSPECTIONS_MAX, PROVIDER_DEADLINE};
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_setup::config::ProviderUrl;
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{Outgoing, OutgoingError};
use serde_json::Value;
use sha2::Digest as _;
use tokio::sync::Notify;

use super::provider::Undecided;

/// After a failure, others who ask about the same token get it too for this long, instead of waiting in turn.
const FAILURE_KEPT: Duration = Duration::from_secs(1);
const BOUNDS: Bounds = Bounds { depth: 16, values: ANSWER_VALUES_MAX };

type Answer = Result<Standing, Undecided>;

/// What the provider says about a token that is otherwise valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Active,
    /// With the cause, for the request's log line.
    Refused(&'static str),
}
/// The last answer about one token. The task that holds the lock is asking.
type Asked = Arc<tokio::sync::Mutex<Option<(Time, Answer)>>>;

/// A token that is otherwise valid, and what it says about itself.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    pub token: &'q [u8],
    pub sub: &'q str,
    pub client_id: &'q str,
    pub demands: &'q Demands,
}

pub struct Introspector {
    url: ProviderUrl,
    authorization: HeaderValue,
    clock: Clock,
    asked: Mutex<HashMap<[u8; 32], Asked>>,
    /// Why the last probe was not answered, if it was not. One caller's token says nothing about those of others.
    trouble: Mutex<Option<Undecided>>,
    /// A question was not answered.
    doubt: Notify,
}

impl Introspector {
    pub fn new(url: ProviderUrl, client_id: &str, secret: &str, clock: Clock) -> Introspector {
        let pair = format!("{}:{}", form_encoded(client_id), form_encoded(secret));
        let value = format!("Basic {}", BASE64.encode(pair.as_bytes()));
        let mut authorization = HeaderValue::try_from(value).unwrap_or(HeaderValue::from_static(""));
        authorization.set_sensitive(true);
        Introspector {
            url,
            authorization,
            clock,
            asked: Mutex::default(),
            trouble: Mutex::default(),
            doubt: Notify::new(),
        }
    }

    /// What the provider says, or said a moment ago, about the token: whether it is active, and whether its subject,
    /// client and scopes are those that the token itself names. The answer can only take away.
    pub async fn standing(&self, outgoing: &Outgoing, question: Question<'_>) -> Answer {
        let asked = self.asked_about(sha2::Sha256::digest(question.token).into());
        let mut last = asked.lock().await;
        if let Some((at, answer)) = last.as_ref()
            && is_fresh(*at, answer, self.clock.now())
        {
            return answer.clone();
        }
        let answer = self.ask(outgoing, question.token).await.map(|answer| judge(&answer, question));
        let answer = answer.and_then(|standing| standing.ok_or_else(no_verdict));
        if answer.is_err() {
            self.doubt.notify_one();
        }
        *last = Some((self.clock.now(), answer.clone()));
        answer
    }

    fn note(&self, trouble: Option<&Undecided>) {
        let before = {
            let mut held = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *held, trouble.cloned())
        };
        match (before, trouble) {
            (None, Some(Undecided(cause))) => tracing::warn!(cause, "tokens cannot be verified, so nobody can sign in"),
            (Some(_), None) => tracing::info!("the identity provider answers questions about tokens again"),
            _ => {}
        }
    }

    /// Returns when a question was not answered.
    pub async fn is_doubted(&self) {
        self.doubt.notified().await;
    }

    /// Whether the provider answered the last probe.
    pub fn check(&self) -> Result<(), Undecided> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone().map_or(Ok(()), Err)
    }

    /// Asks about a token that nobody has: a service that reports that it is not ready gets no requests by which it would
    /// notice that the provider is back.
    pub async fn probe(&self, outgoing: &Outgoing) {
        let answer = self.ask(outgoing, b"pilot-probe").await;
        let has_active = |answer: &Value| answer.get("active").is_some_and(Value::is_boolean);
        let answer = answer.and_then(|answer| has_active(&answer).then_some(()).ok_or_else(no_verdict));
        self.note(answer.err().as_ref());
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let help = "Whether the identity provider answers questions about tokens.";
        text.gauge("pilot_identity_introspection_up", help, u8::from(self.check().is_ok()));
    }

    fn asked_about(&self, digest: [u8; 32]) -> Asked {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= INTROSPECTIONS_MAX {
            let now = self.clock.now();
            // Those being asked about are locked, and stay.
            asked.retain(|_, asked| {
                asked
                    .try_lock()
                    .map_or(true, |last| last.as_ref().is_some_and(|(at, answer)| is_fresh(*at, answer, now)))
            });
        }
        if asked.len() >= INTROSPECTIONS_MAX {
            return Asked::default();
        }
        Arc::clone(asked.entry(digest).or_default())
    }

    async fn ask(&self, outgoing: &Outgoing, token: &[u8]) -> Result<Value, Undecided> {
        let token = std::str::from_utf8(token).unwrap_or_default();
        let form = format!("token={}&token_type_hint=access_token", form_encoded(token));
        let asked = outgoing.post_form(&self.url.uri, form, self.authorization.clone(), PROVIDER_DEADLINE).await;
        let reply = asked.map_err(|error: OutgoingError| failed(&error.to_string()))?;
        if reply.status != 200 {
            let hint = if reply.status == 401 { "; check identity.oauth.introspection" } else { "" };
            return Err(failed(&format!("it answers {}{hint}", reply.status)));
        }
        json::parse(&reply.body, BOUNDS).map_err(|_| failed("its answer is not strict JSON"))
    }
}

fn failed(cause: &str) -> Undecided {
    Undecided(format!("the identity provider does not say whether a token is active: {cause}"))
}

fn no_verdict() -> Undecided {
    failed("its answer has no `active`")
}

/// `None` if the answer does not say whether the token is active. All other members are optional (RFC 7662).
fn judge(answer: &Value, Question { sub, client_id, demands, .. }: Question<'_>) -> Option<Standing> {
    let differs = |name: &str, own: &str| answer.get(name).is_some_and(|value| value.as_str() != Some(own));
    let lacks = |scope: &Value| scope.as_str().is_none_or(|scope| demands.check_scope(scope).is_err());
    let cause = match answer.get("active")?.as_bool()? {
        false => "the provider says that the token is not active",
        true if differs("sub", sub) => "the provider says that the token belongs to another subject",
        true if differs("client_id", client_id) => "the provider says that the token belongs to another client",
        true if !demands.scopes.is_empty() && answer.get("scope").is_some_and(lacks) => {
            "the provider says that the token lacks one of identity.oauth.scopes_required"
        }
        true => return Some(Standing::Active),
    };
    Some(Standing::Refused(cause))
}

fn is_fresh(at: Time, answer: &Answer, now: Time) -> bool {
    let kept = if answer.is_ok() { INTROSPECTION_KEPT } else { FAILURE_KEPT };
    now >= at && now.since(at) < kept
}

/// In `application/x-www-form-urlencoded` form; everything except letters, digits and four marks is encoded.
pub fn form_encoded(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}
