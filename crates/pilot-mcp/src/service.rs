//! What this crate needs of the service: requests and answers, without addresses and credentials.

use std::fmt;

use serde_json::Value;
use tokio::sync::mpsc;

/// The way to the service. The implementation adds the address and the credential, so that neither can appear in a
/// result.
pub trait Service: Send + Sync + 'static {
    /// One request. A GET, and a request with a key, may be repeated until it is answered.
    fn send(&self, request: Request) -> impl Future<Output = Result<Answer, Unreachable>> + Send;

    /// Sends a sign when the item can be followed, and whenever something was recorded about it. Ends if it cannot be
    /// followed; must stop when the receiver is dropped.
    fn follow(&self, item: &str) -> mpsc::Receiver<()>;

    /// Where people look at the item in a browser.
    fn link(&self, item: &str) -> String;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Get,
    Post,
    Patch,
}

#[derive(Debug, Clone)]
pub struct Request {
    pub method: Method,
    /// With its query, encoded.
    pub path: String,
    pub idempotency_key: Option<String>,
    /// The version that the item must still have.
    pub if_match: Option<u64>,
    pub body: Option<Value>,
}

impl Request {
    pub(crate) fn get(path: impl Into<String>) -> Request {
        Request { method: Method::Get, path: path.into(), idempotency_key: None, if_match: None, body: None }
    }

    pub(crate) fn post(path: impl Into<String>, body: Value, key: String) -> Request {
        Request { method: Method::Post, idempotency_key: Some(key), body: Some(body), ..Request::get(path) }
    }

    pub(crate) fn patch(path: impl Into<String>, body: Value, version: u64) -> Request {
        Request { method: Method::Patch, if_match: Some(version), body: Some(body), ..Request::get(path) }
    }
}

#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Null if the answer is not JSON.
    pub body: Value,
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// No answer came, and nobody knows whether the request arrived.
#[derive(Debug, Clone)]
pub struct Unreachable(pub String);

impl fmt::Display for Unreachable {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}
