//! The service: reads a checkpoint, checks whether it continues the previous one, and cosigns it.

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
use pilot_setup::error::StartError;
use pilot_wire::body::Body;
use pilot_wire::clock::since_1970;
use pilot_wire::deadline::PeerIsLate;
use pilot_wire::framing::{self, Malformed};
use pilot_wire::listen::Listener;
use pilot_wire::peer::Address;
use pilot_wire::served::Served;
use pilot_wire::traffic::Traffic;
use tokio::sync::watch;

use crate::state::{ConflictKind, State};

/// Seconds since 1970.
pub type Now = fn() -> u64;

pub struct Witness {
    key: CosignerKey,
    logs: Vec<VerifierKey>,
    /// Checked and changed under one lock, so that no other checkpoint can get in between.
    state: Mutex<State>,
    clock: Now,
    traffic: Traffic,
}

impl Served for Witness {
    fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    fn refuse(&self, malformed: Malformed) -> Response<Body> {
        let status = match malformed {
            Malformed::Framing(_) => 400,
            Malformed::UrlTooLong => 414,
            Malformed::HeadersTooLarge => 431,
        };
        plain(status, "the message is not a request that a witness understands".into())
    }
}

/// What a witness answers. The status codes are the specification's.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// 200, with signature lines.
    Cosigned(String),
    /// 409, with the size that was cosigned last.
    Conflict(u64),
    /// Any other status, with the reason.
    No(u16, String),
}

impl Witness {
    pub fn new(key: CosignerKey, logs: Vec<VerifierKey>, state: State, clock: Now) -> Witness {
        Witness { key, logs, state: Mutex::new(state), clock, traffic: Traffic::default() }
    }

    pub fn verifier(&self) -> CosignerVerifier {
        self.key.verifier()
    }

    /// Cosigns a checkpoint if it continues the last one. The checkpoint is on disk before this returns.
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
        let seconds = (self.clock)();
        Verdict::Cosigned(self.key.cosign(text, seconds) + "\n")
    }
}

/// A checkpoint with which the log may contradict its own past is kept, because it can prove that, and always logged.
fn refuse(state: &mut State, refused: Refused, new: &Checkpoint, note: &str) -> Verdict {
    let log = new.origin.as_str();
    let (kind, verdict) = match refused {
        // This is how a log finds out where the witness is. An older checkpoint contradicts nothing: a log has signed
        // many.
        Refused::OtherSize { size } => return Verdict::Conflict(size),
        Refused::Backwards => return Verdict::No(400, refused.to_string()),
        Refused::OtherRoot { size } => (ConflictKind::OtherRoot, Verdict::Conflict(size)),
        Refused::Inconsistent(_) => (ConflictKind::NotShown, Verdict::No(refused.status(), refused.to_string())),
    };
    tracing::error!(log, size = new.size, cause = %refused, "log `{log}` has signed a checkpoint that does not continue its earlier one, as far as was shown");
    match state.keep_conflict(kind, new, note) {
        Ok(path) => tracing::error!(log, file = %path.display(), "both checkpoints are kept as evidence"),
        Err(error) => tracing::error!(log, cause = %error, "a conflicting checkpoint could not be saved"),
    }
    verdict
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
        Ok(WitnessService {
            witness: Arc::new(Witness::new(key, logs, state, || since_1970().map_or(0, |since| since.as_secs()))),
            listener,
        })
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

async fn answer(witness: Arc<Witness>, _: Address, request: Request<Incoming>) -> Response<Body> {
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
    // Storing a checkpoint waits for the disk, which must not hold up other requests.
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

#[cfg(test)]
mod tests {
    use super::*;
    use pilot_evidence::merkle::{Hash, Peaks};
    use pilot_evidence::note::NoteKey;
    use pilot_testing::Scratch;

    fn checkpoint(key: &NoteKey, leaves: &[&str]) -> String {
        let mut peaks = Peaks::default();
        for leaf in leaves {
            peaks.push(Hash::of_leaf(leaf.as_bytes()));
        }
        let size = leaves.len() as u64;
        Checkpoint { origin: key.verifier().name, size, root: peaks.root() }.sign(key)
    }

    fn offered(witness: &Witness, old: u64, proof: Vec<Hash>, checkpoint: &str) -> Verdict {
        witness.add_checkpoint(&AddCheckpoint { old, proof, checkpoint }.to_body())
    }

    #[test]
    fn old_checkpoints_contradict_nothing_and_never_crowd_out_the_proof_of_a_fork() {
        let scratch = Scratch::new();
        let key = NoteKey::generate("log.example", &[7; 32]).unwrap();
        let (cosigner, state) = State::open(&scratch.file("w"), &[key.verifier()], Some("w.example")).unwrap();
        let witness = Witness::new(cosigner, vec![key.verifier()], state, || 5);
        let conflicts = || {
            let files = std::fs::read_dir(scratch.file("w").join("conflicts")).into_iter().flatten();
            let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names.iter().map(|name| name[17..].to_owned()).collect::<Vec<_>>()
        };
        let newest = checkpoint(&key, &["a", "b", "c"]);
        assert!(matches!(offered(&witness, 0, vec![], &newest), Verdict::Cosigned(_)));
        for old in 0..150 {
            let genuine = checkpoint(&key, &["a", "b"]);
            assert_eq!(offered(&witness, old % 3, vec![], &genuine), Verdict::Conflict(3));
        }
        assert_eq!(conflicts(), [""; 0]);
        // Any stranger can send a newer checkpoint with a wrong proof.
        for leaf in 0..150 {
            let newer = checkpoint(&key, &["a", "b", "c", &leaf.to_string()]);
            assert!(matches!(offered(&witness, 3, vec![Hash::of_nothing()], &newer), Verdict::No(422, _)));
        }
        assert_eq!(conflicts(), ["not-shown-first.txt", "not-shown-last.txt"]);
        for (old, leaf) in [(3, "x"), (2, "y"), (0, "z")] {
            let fork = checkpoint(&key, &["a", "b", leaf]);
            assert_eq!(offered(&witness, old, vec![], &fork), Verdict::Conflict(3));
            let which = if leaf == "x" { "first" } else { "last" };
            let kept = std::fs::read_dir(scratch.file("w").join("conflicts")).unwrap();
            let kept = kept.map(|file| file.unwrap().path());
            let kept =
                kept.into_iter().find(|path| path.to_str().unwrap().ends_with(&format!("other-root-{which}.txt")));
            let text = std::fs::read_to_string(kept.unwrap()).unwrap();
            assert!(text.contains(&fork) && text.contains(&newest), "{text}");
        }
        assert_eq!(conflicts().len(), 4);
    }
}
