//! The agent's own listener: health, readiness and metrics. It knows no credential and says nothing about items.

use std::net::SocketAddr;
use std::sync::Arc;

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use pilot_wire::body::Body;
use pilot_wire::framing::Malformed;
use pilot_wire::listen::Listener;
use pilot_wire::peer::Address;
use pilot_wire::served::Served;
use pilot_wire::traffic::Traffic;
use tokio::sync::watch;

use crate::exit::Failure;
use crate::work::gauges::Gauges;

const CONNECTIONS_MAX: usize = 64;

struct Health(Arc<Gauges>);

impl Served for Health {
    fn traffic(&self) -> &Traffic {
        &self.0.traffic
    }

    fn refuse(&self, malformed: Malformed) -> Response<Body> {
        let status = match malformed {
            Malformed::Framing(_) => 400,
            Malformed::UrlTooLong => 414,
            Malformed::HeadersTooLarge => 431,
        };
        plain(status, "the message is not a request\n".into())
    }
}

/// Serves until `stop`; gives the address.
pub(crate) fn serve(listen: SocketAddr, gauges: Arc<Gauges>, stop: watch::Receiver<bool>) -> Result<String, Failure> {
    let failed = |error| Failure::environment(format!("{listen}: cannot listen on this address"), error);
    let mut listener = Listener::bind(listen).map_err(failed)?;
    listener.limit_connections(CONNECTIONS_MAX);
    let address = listener.address().map_err(failed)?;
    tokio::spawn(async move { listener.serve(Arc::new(Health(gauges)), answer, stop).await });
    Ok(address)
}

async fn answer<B>(health: Arc<Health>, _: Address, request: Request<B>) -> Response<Body> {
    let gauges = &health.0;
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/healthz") => plain(200, "ok\n".into()),
        (&Method::GET | &Method::HEAD, "/readyz") => match gauges.fault() {
            None => plain(200, "ready\n".into()),
            Some(fault) => plain(503, format!("{fault}\n")),
        },
        (&Method::GET | &Method::HEAD, "/metrics") => plain(200, gauges.exposition()),
        (_, "/healthz" | "/readyz" | "/metrics") => plain(405, "use GET\n".into()),
        _ => plain(404, "this listener has /healthz, /readyz and /metrics\n".into()),
    }
}

fn plain(status: u16, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into_bytes()));
    if let Ok(status) = StatusCode::from_u16(status) {
        *response.status_mut() = status;
    }
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8"));
    response
}
