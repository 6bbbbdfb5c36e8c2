//! What `cargo xtask bench session` compares with: the least that a session check can be. The SHA3-256 digest of the
//! bearer token is looked up in a map, and the answer is ready in it. No log, no limits, no deadlines, no metrics.
//!
//! `session_peers axum|hyper FILE` serves the credentials of a file: by axum as it comes, or by hyper alone on a single
//! thread.
#![allow(clippy::print_stdout, reason = "the benchmark reads the address from standard output")]

use std::collections::HashMap;
use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderValue;
use axum::{Router, routing::get};
use bytes::Bytes;
use data_encoding::HEXLOWER;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use pilot_core::credentials::{Credential, Credentials};
use sha3::{Digest as _, Sha3_256};
use tokio::net::TcpListener;

type Anything = Box<dyn Error + Send + Sync>;
type Answer = Response<Full<Bytes>>;

const PATH: &str = "/v1/session";

/// Answers by digest.
type Sessions = HashMap<[u8; 32], Bytes>;

fn main() -> Result<(), Anything> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [peer, file] = arguments.as_slice() else {
        return Err("usage: session_peers axum|hyper FILE".into());
    };
    let sessions = read(&std::fs::read(file)?)?;
    match peer.as_str() {
        "axum" => tokio::runtime::Runtime::new()?.block_on(serve_axum(sessions)),
        "hyper" => {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            tokio::task::LocalSet::new().block_on(&runtime, serve_hyper(sessions))
        }
        _ => Err("the peer is `axum` or `hyper`".into()),
    }
}

fn read(file: &[u8]) -> Result<Arc<Sessions>, Anything> {
    let credentials = Credentials::parse(file).map_err(|faults| format!("{} faults in the file", faults.len()))?;
    let mut sessions = Sessions::new();
    for Credential { actor, digest, .. } in credentials.entries() {
        let mut key = [0; 32];
        HEXLOWER.decode_mut(digest.to_hex().as_bytes(), &mut key).map_err(|partial| partial.error)?;
        let body = format!(r#"{{"actor_id":"{}","role":"{}"}}"#, actor.actor_id, actor.role);
        sessions.insert(key, Bytes::from(body));
    }
    Ok(Arc::new(sessions))
}

async fn listen() -> Result<TcpListener, Anything> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on http://{}", listener.local_addr()?);
    Ok(listener)
}

async fn serve_axum(sessions: Arc<Sessions>) -> Result<(), Anything> {
    let show = async |State(sessions): State<Arc<Sessions>>, headers: HeaderMap| answer(&sessions, &headers);
    let router = Router::new().route(PATH, get(show)).with_state(sessions);
    Ok(axum::serve(listen().await?, router).await?)
}

async fn serve_hyper(sessions: Arc<Sessions>) -> Result<(), Anything> {
    let listener = listen().await?;
    loop {
        let (socket, _) = listener.accept().await?;
        let sessions = Arc::clone(&sessions);
        let service = service_fn(move |request: Request<Incoming>| {
            let is_known = request.uri().path() == PATH && request.method() == Method::GET;
            let status = StatusCode::NOT_FOUND;
            let answer = if is_known { answer(&sessions, request.headers()) } else { empty(status) };
            async { Ok::<_, Infallible>(answer) }
        });
        tokio::task::spawn_local(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

fn answer(sessions: &Sessions, headers: &HeaderMap) -> Answer {
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let session = token.and_then(|token| sessions.get(<[u8; 32]>::from(Sha3_256::digest(token)).as_slice()));
    let Some(body) = session else { return empty(StatusCode::UNAUTHORIZED) };
    let mut answer = Response::new(Full::new(body.clone()));
    answer.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}
