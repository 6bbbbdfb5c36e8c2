//! A witness (C2SP tlog-witness): cosigns checkpoints of logs it was told about, each only if it continues the one before.
//!
//! It is run by somebody else than the log: the partner organisation, or an auditor. It keeps nothing but the newest
//! checkpoint of each log, and its own key.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use http::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use pilot_core::limits::{BODY_DEADLINE, WITNESS_BODY_BYTES_MAX, WITNESS_CONNECTIONS_MAX};
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::{CosignerKey, CosignerVerifier};
use pilot_evidence::note::{Note, VerifierKey};
use pilot_evidence::witness::{AddCheckpoint, Refused, SIZE_CONTENT_TYPE, check_growth, size_body};
use tokio::sync::watch;

use crate::body::Body;
use crate::clock::Clock;
use crate::deadline::PeerIsLate;
use crate::framing;
use crate::listen::{Listener, Served};
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::start::StartError;

mod state;

pub use state::State;

pub struct Witness {
    key: CosignerKey,
    logs: Vec<VerifierKey>,
    /// Checked and changed under one lock, so that no checkpoint can slip in between.
    state: Mutex<State>,
    clock: Clock,
    metrics: Metrics,
}

impl Served for Witness {
    fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    fn refuse(&self, problem: Problem) -> Response<Body> {
        let status = problem.into_response("").status();
        plain(status.as_u16(), "the message is not a request that a witness understands".into())
    }
}

/// What a witness answers. The numbers are the specification's.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 200, with signature lines.
    Cosigned(String),
    /// 409, with the size of what was cosigned last.
    Conflict(u64),
    /// Any other status, with the reason.
    No(u16, String),
}

impl Witness {
    pub fn new(key: CosignerKey, logs: Vec<VerifierKey>, state: State, clock: Clock) -> Witness {
        Witness { key, logs, state: Mutex::new(state), clock, metrics: Metrics::new(vec!["add_checkpoint"]) }
    }

    pub fn verifier(&self) -> CosignerVerifier {
        self.key.verifier()
    }

    /// Cosigns a checkpoint, if it continues the last one. What is cosigned is on disk before this returns.
    pub fn add_checkpoint(&self, body: &str) -> Verdict {
        let malformed = |error: &dyn std::fmt::Display| Verdict::No(400, error.to_string());
        let request = match AddCheckpoint::parse(body) {
            Ok(request) => request,
            Err(error) => return malformed(&error),
        };
        let (text, new) = match Note::parse(request.checkpoint).map(|note| (note.text, Checkpoint::parse(note.text))) {
            Ok((text, Ok(new))) => (text, new),
            Ok((_, Err(error))) => return malformed(&error),
            Err(error) => return malformed(&error),
        };
        let mut keys = self.logs.iter().filter(|key| key.name == new.origin).peekable();
        if keys.peek().is_none() {
            return Verdict::No(404, "this witness does not know the log".into());
        }
        if !keys.any(|key| Checkpoint::open(request.checkpoint, key).is_ok()) {
            return Verdict::No(
                403,
                "the checkpoint has no signature by a key that this witness knows for the log".into(),
            );
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(refused) = check_growth(state.newest(&new.origin), request.old, &new, &request.proof) {
            return refuse(&mut state, refused, &new, request.checkpoint);
        }
        if let Err(error) = state.keep(new, request.checkpoint) {
            tracing::error!(cause = %error, "the checkpoint cannot be saved, so it is not cosigned");
            return Verdict::No(503, "the witness cannot save the checkpoint right now".into());
        }
        let seconds = u64::try_from(self.clock.now().unix_micros()).unwrap_or(0) / 1_000_000;
        Verdict::Cosigned(self.key.cosign(text, seconds) + "\n")
    }
}

/// What the log has signed against its own past is kept: it is the proof that it did.
fn refuse(state: &mut State, refused: Refused, new: &Checkpoint, note: &str) -> Verdict {
    let log = new.origin.as_str();
    match refused {
        // How a log finds out where the witness is.
        Refused::OtherSize { size } if new.size >= size => return Verdict::Conflict(size),
        Refused::Backwards => return Verdict::No(400, refused.to_string()),
        Refused::OtherSize { .. } | Refused::OtherRoot { .. } | Refused::Inconsistent(_) => {}
    }
    match state.keep_conflict(new, note) {
        Ok(true) => {
            tracing::error!(log, size = new.size, cause = %refused, "log `{log}` has signed a checkpoint that does not continue its earlier one; it is kept as evidence");
        }
        Ok(false) => {}
        Err(error) => tracing::error!(log, cause = %error, "a conflicting checkpoint could not be saved"),
    }
    match refused {
        Refused::OtherSize { size } | Refused::OtherRoot { size } => Verdict::Conflict(size),
        Refused::Backwards | Refused::Inconsistent(_) => Verdict::No(refused.status(), refused.to_string()),
    }
}

/// A witness that is ready to run: its address is bound.
pub struct WitnessService {
    witness: Arc<Witness>,
    listener: Listener,
}

impl WitnessService {
    pub fn start(
        listen: SocketAddr,
        state: &Path,
        logs: Vec<VerifierKey>,
        name: Option<&str>,
    ) -> Result<WitnessService, StartError> {
        let (key, state) = State::open(state, &logs, name)?;
        let mut listener = Listener::bind(listen).map_err(|error| {
            StartError::environment(
                format!("{listen}: cannot listen on this address; is another service using the port?"),
                error,
            )
        })?;
        listener.limit_connections(WITNESS_CONNECTIONS_MAX);
        Ok(WitnessService { witness: Arc::new(Witness::new(key, logs, state, Clock::System)), listener })
    }

    pub fn announcement(&self) -> std::io::Result<String> {
        Ok(format!("listening on http://{}", self.listener.address()?))
    }

    pub fn verifier(&self) -> CosignerVerifier {
        self.witness.verifier()
    }

    pub async fn run(self, stop: watch::Receiver<bool>) {
        self.listener.serve(self.witness, answer, stop).await;
    }
}

async fn answer(witness: Arc<Witness>, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    if framing::check(&head).is_err() {
        return plain(400, "the message is ambiguous: two readers could understand it differently".into());
    }
    match (&head.method, head.uri.path()) {
        (&Method::POST, "/add-checkpoint") => {}
        (&Method::GET, "/healthz") => return plain(200, "ok".into()),
        (_, "/add-checkpoint") => {
            let mut response = plain(405, "use POST".into());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        _ => return plain(404, "a witness supports only POST /add-checkpoint".into()),
    }
    let body = match read(body).await {
        Ok(body) => body,
        Err(response) => return response,
    };
    // Keeping a checkpoint waits for the disk, which must not hold up the others.
    let verdict = tokio::task::spawn_blocking(move || witness.add_checkpoint(&body)).await;
    match verdict {
        Ok(Verdict::Cosigned(lines)) => page(200, "text/plain; charset=utf-8", lines),
        Ok(Verdict::Conflict(size)) => page(409, SIZE_CONTENT_TYPE, size_body(size)),
        Ok(Verdict::No(status, reason)) => plain(status, reason),
        Err(_) => plain(500, "the witness failed".into()),
    }
}

async fn read(body: Incoming) -> Result<String, Response<Body>> {
    let collected = tokio::time::timeout(BODY_DEADLINE, Limited::new(body, WITNESS_BODY_BYTES_MAX).collect()).await;
    match collected {
        Err(_) => {
            let mut response = plain(408, "the body took too long".into());
            response.extensions_mut().insert(PeerIsLate);
            Err(response)
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(plain(413, "a request may be at most 64 KiB".into())),
        Ok(Err(_)) => Err(plain(400, "the body ended before it was complete".into())),
        Ok(Ok(body)) => {
            String::from_utf8(body.to_bytes().into()).map_err(|_| plain(400, "the body is not text".into()))
        }
    }
}

fn plain(status: u16, reason: String) -> Response<Body> {
    page(status, "text/plain; charset=utf-8", reason + "\n")
}

fn page(status: u16, media_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    response
}
