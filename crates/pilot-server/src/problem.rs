//! Every error answer of the service (RFC 9457), and the only place with the status codes of errors.

use std::borrow::Cow;
use std::time::Duration;

use http::header::{ALLOW, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use pilot_api::problem::{FaultView, ProblemView, WhoCanView};
use pilot_core::fault::Fault;
use pilot_core::limits::FAULTS_MAX;
use pilot_wire::body::Body;
use pilot_wire::caps::Cap;

mod reasons;

macro_rules! codes {
    ($($variant:ident = $code:literal, $status:literal, $title:literal, $help:literal;)+) => {
        /// The stable codes of the API. Codes are added when needed, and never renamed or removed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code { $($variant),+ }

        impl Code {
            pub const ALL: &'static [Code] = &[$(Code::$variant),+];

            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $code),+ }
            }

            pub const fn status(self) -> u16 {
                match self { $(Code::$variant => $status),+ }
            }

            pub const fn title(self) -> &'static str {
                match self { $(Code::$variant => $title),+ }
            }

            /// What happened and what the caller can do about it, for the documentation.
            pub const fn help(self) -> &'static str {
                match self { $(Code::$variant => $help),+ }
            }
        }
    };
}

codes! {
    CredentialRequired = "credential_required", 401, "A valid credential is required",
        "The `Authorization: Bearer <token>` header is missing, or does not carry a valid credential. The answer does not say which. Check that the token is complete and has not expired or been revoked, and that the service was restarted after the credential was added.";
    RoleForbidden = "role_forbidden", 403, "The role does not allow this",
        "The credential is valid, but its role does not allow this. Ask someone whose role does.";
    SeparationOfDuties = "separation_of_duties", 403, "Separation of duties",
        "The actor already took part in this item in another role, in person or through a machine that they operate. Someone else has to act.";
    NotOwner = "not_owner", 403, "Only its owner may do this",
        "The action is reserved for one actor: the item's creator, the voter, or the executor who holds the lease.";
    NotFound = "not_found", 404, "Not found",
        "There is nothing at this path. Check the path and the id.";
    MethodNotAllowed = "method_not_allowed", 405, "Method not allowed",
        "The path does not support this method. The `Allow` header lists the methods it supports.";
    StateConflict = "state_conflict", 409, "The item's state does not allow this",
        "The action is not possible in the item's current state. Load the item again: `actions` lists what is possible.";
    AlreadyDecided = "already_decided", 409, "You have already decided",
        "You have already voted in this round. Each person counts once.";
    ContentChanged = "content_changed", 409, "The content has changed",
        "The `content_digest` sent does not match the item's current content. Read the item again before deciding.";
    ItemHeld = "item_held", 409, "The item is held",
        "The item is on hold. A security_admin can release it.";
    OutsideWindow = "outside_window", 409, "Outside the execution window",
        "The action is possible only between the window's `not_before` and `not_after`.";
    TooManyOpen = "too_many_open", 409, "The machine has too many open items",
        "A machine may have only so many items that have not ended: `max_open_items` in the role map, 5 if it is not set. Wait until people have dealt with some of them, or withdraw some.";
    VersionMismatch = "version_mismatch", 412, "The version does not match",
        "`If-Match` does not name the item's current version. Load the item again.";
    InvalidRequest = "invalid_request", 422, "The request is not valid",
        "`errors` lists the faults, each with a pointer to its place. The same code is used with 400 for malformed framing, 408 for a body that took too long, 414 for a URL over 8 KiB and 431 for headers that are too many or too large.";
    UnknownAction = "unknown_action", 422, "The workflow has no such action",
        "The item's definition has no action with this name. `GET /v1/workflows/{name}` lists them.";
    TokenInContent = "token_in_content", 422, "The content contains a token",
        "The request contains a clear token. `errors` points to the place. Remove it; if the token is in use, have it rotated.";
    IdempotencyKeyReused = "idempotency_key_reused", 422, "The idempotency key was used for another request",
        "The same `Idempotency-Key` was sent with a different body. Use a new key for a new request.";
    TokenInUrl = "token_in_url", 400, "The URL contains a token",
        "A live token was sent in the URL, where proxies and logs may have recorded it. Have it rotated now, and send tokens only in the `Authorization` header.";
    BodyTooLarge = "body_too_large", 413, "The body is too large",
        "The request body is larger than this operation allows, which is 1 MiB or less. The detail names the limit.";
    UnsupportedMediaType = "unsupported_media_type", 415, "Unsupported media type",
        "Send `Content-Type: application/json`.";
    RateLimited = "rate_limited", 429, "Too many requests",
        "The actor, or the address when no valid credential was sent, has used up its budget. Wait the number of seconds in `Retry-After`. Every answer under a limit has a `RateLimit` header that says how much is left.";
    Unavailable = "unavailable", 503, "The service cannot do this now",
        "Nothing was recorded, or the outcome is not known yet. Retry with the same `Idempotency-Key`.";
    Internal = "internal", 500, "Internal error",
        "The service failed. Its log has the cause under the `request_id`.";
}

/// An answer that is not a success.
#[derive(Debug)]
pub struct Problem {
    pub code: Code,
    status: StatusCode,
    detail: Cow<'static, str>,
    pub(crate) errors: Vec<Fault>,
    who_can: Option<WhoCanView>,
    header: Option<(HeaderName, HeaderValue)>,
    /// It is no longer certain where one request ends and the next begins.
    pub ends_connection: bool,
    /// The peer misses its deadlines, so the connection is closed, even with HTTP/2.
    pub peer_is_late: bool,
    /// Only for the request's log line; it never reaches the client.
    pub cause: Option<String>,
    /// The limit that was reached, for the operators.
    pub cap: Option<Cap>,
    /// The caller has reached a limit of its own: a flood of such refusals is answered late.
    pub is_slowed: bool,
}

impl Problem {
    pub fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Problem {
        let status = StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        Problem {
            code,
            status,
            detail: detail.into(),
            errors: Vec::new(),
            who_can: None,
            header: None,
            ends_connection: false,
            peer_is_late: false,
            cause: None,
            cap: None,
            is_slowed: false,
        }
    }

    /// A limit was reached: it is counted, logged and reported by `/readyz`.
    #[must_use]
    pub fn beyond(self, cap: Cap) -> Problem {
        Problem { cap: Some(cap), is_slowed: true, ..self }
    }

    /// `metadata` is where a client learns where to get a token, if there is a provider (RFC 9728).
    pub fn credential_required(credential_was_sent: bool, metadata: Option<&str>) -> Problem {
        let challenge = if credential_was_sent {
            r#"Bearer realm="pilot", error="invalid_token""#
        } else {
            r#"Bearer realm="pilot""#
        };
        let plain = HeaderValue::from_static(challenge);
        let longer = metadata.map(|url| HeaderValue::try_from(format!("{challenge}, resource_metadata=\"{url}\"")));
        let detail = "Send a valid token as `Authorization: Bearer <token>`.";
        Problem::new(Code::CredentialRequired, detail)
            .with(WWW_AUTHENTICATE, longer.and_then(Result::ok).unwrap_or(plain))
    }

    pub fn method_not_allowed(allowed: &str) -> Problem {
        let allow = HeaderValue::from_str(allowed).unwrap_or(HeaderValue::from_static(""));
        Problem::new(Code::MethodNotAllowed, format!("This path supports {allowed}.")).with(ALLOW, allow)
    }

    /// 400: the message itself is malformed, so nothing in it can be relied on.
    pub fn framing(detail: &'static str) -> Problem {
        let problem = Problem::new(Code::InvalidRequest, detail);
        Problem { status: StatusCode::BAD_REQUEST, ends_connection: true, ..problem }
    }

    pub fn url_too_long() -> Problem {
        let problem = Problem::new(Code::InvalidRequest, "A URL may be at most 8 KiB long.");
        Problem { status: StatusCode::URI_TOO_LONG, ends_connection: true, ..problem }
    }

    pub fn headers_too_large() -> Problem {
        let detail = "The headers may have at most 16 KiB and 64 fields.";
        let problem = Problem::new(Code::InvalidRequest, detail);
        Problem { status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, ends_connection: true, ..problem }
    }

    pub fn body_too_slow() -> Problem {
        let detail = "The body did not arrive within 15 seconds.";
        let problem = Problem::new(Code::InvalidRequest, detail);
        Problem { status: StatusCode::REQUEST_TIMEOUT, ends_connection: true, peer_is_late: true, ..problem }
    }

    pub fn invalid(errors: Vec<Fault>) -> Problem {
        Problem { errors, ..Problem::new(Code::InvalidRequest, "See `errors` for each fault and its place.") }
    }

    pub fn token_in_content(errors: Vec<Fault>) -> Problem {
        let detail = "The request contains a clear token; `errors` points to each place.";
        Problem { errors, ..Problem::new(Code::TokenInContent, detail) }
    }

    pub fn rate_limited(seconds: u64) -> Problem {
        let detail = format!("Too many requests; try again in {seconds} s.");
        let problem = Problem::new(Code::RateLimited, detail).with(RETRY_AFTER, HeaderValue::from(seconds));
        Problem { is_slowed: true, ..problem }
    }

    /// When to try again.
    #[must_use]
    pub fn retry_after(self, span: Duration) -> Problem {
        self.with(RETRY_AFTER, HeaderValue::from(span.as_secs().max(1)))
    }

    /// A refusal says who can do instead what the caller cannot.
    #[must_use]
    pub fn said_who_can(self, words: &str, who_can: WhoCanView) -> Problem {
        let detail = format!("{}; {words}", self.detail).into();
        Problem { detail, who_can: Some(who_can), ..self }
    }

    pub fn internal(cause: &impl ToString) -> Problem {
        let detail = "The service failed; its log has the cause under this request_id.";
        Problem { cause: Some(cause.to_string()), ..Problem::new(Code::Internal, detail) }
    }

    pub fn no_such_item() -> Problem {
        Problem::new(Code::NotFound, "There is no item with this id.")
    }

    pub fn key_reused() -> Problem {
        let detail = "This Idempotency-Key was used with a different body; use a new key for a new request.";
        let errors = vec![Fault::new("/headers/Idempotency-Key", "was used with a different body")];
        Problem { errors, ..Problem::new(Code::IdempotencyKeyReused, detail) }
    }

    pub fn unavailable(detail: &'static str, cause: &impl ToString) -> Problem {
        Problem { cause: Some(cause.to_string()), ..Problem::new(Code::Unavailable, detail) }
    }

    /// The cause goes into the request's log line, and no further.
    #[must_use]
    pub fn because(self, cause: impl Into<String>) -> Problem {
        Problem { cause: Some(cause.into()), ..self }
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Problem {
        self.header = Some((name, value));
        self
    }

    pub fn into_response(self, request_id: &str) -> Response<Body> {
        // One more than the limit may already be the count of those left out.
        let more = self.errors.len().saturating_sub(FAULTS_MAX);
        let rest = (more > 1).then(|| Fault::new("", format!("has {more} more faults")));
        let shown = if rest.is_some() { FAULTS_MAX } else { FAULTS_MAX + 1 };
        let errors = self.errors.into_iter().take(shown).chain(rest);
        let errors = errors.map(|Fault { pointer, detail, .. }| FaultView { pointer, detail }).collect();
        let view = ProblemView {
            r#type: format!("/docs#{}", self.code.as_str()),
            title: self.code.title().into(),
            status: self.status.as_u16(),
            detail: self.detail,
            code: self.code.as_str().into(),
            request_id: request_id.into(),
            errors,
            who_can: self.who_can,
        };
        let mut response = Response::new(Body::from(serde_json::to_vec(&view).unwrap_or_default()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Whether an answer with this status under `/v1` goes only to callers with a valid credential.
pub fn is_for_known_callers(status: StatusCode) -> bool {
    status.is_success()
        || matches!(
            status,
            StatusCode::NOT_MODIFIED
                | StatusCode::FORBIDDEN
                | StatusCode::NOT_FOUND
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::CONFLICT
                | StatusCode::PRECONDITION_FAILED
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNSUPPORTED_MEDIA_TYPE
                | StatusCode::UNPROCESSABLE_ENTITY
        )
}
