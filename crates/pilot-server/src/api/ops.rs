//! The ops listener: metrics and health, for internal use.

use std::sync::Arc;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use pilot_wire::body::Body;
use pilot_wire::exposition::Exposition;
use pilot_wire::framing::{self, Malformed};
use pilot_wire::peer::Address;
use pilot_wire::served::Served;
use pilot_wire::traffic::Traffic;

use super::answers::page;
use super::health;
use crate::answer::{refuse, remove_body};
use crate::app::App;
use crate::call::Answer;
use crate::problem::{Code, Problem};
use crate::process;

/// What the ops listener serves.
pub struct Operations(pub Arc<App>);

impl Served for Operations {
    fn traffic(&self) -> &Traffic {
        &self.0.metrics.traffic
    }

    fn refuse(&self, malformed: Malformed) -> Response<Body> {
        refuse(&self.0, malformed.into())
    }
}

pub async fn answer_ops(operations: Arc<Operations>, _: Address, request: Request<Incoming>) -> Response<Body> {
    let (app, (head, _)) = (&operations.0, request.into_parts());
    // HEAD has the headers of GET but no body.
    let method = if head.method == Method::HEAD { &Method::GET } else { &head.method };
    let answered = framing::check(&head).map_err(Problem::from).and_then(|()| route(app, method, head.uri.path()));
    let mut response = answered.unwrap_or_else(|problem| problem.into_response(app.request_ids.next().as_str()));
    if head.method == Method::HEAD {
        remove_body(&mut response);
    }
    response
}

fn route(app: &App, method: &Method, path: &str) -> Answer {
    match (method, path) {
        (&Method::GET, "/metrics") => {
            let mut text = Exposition::default();
            let (entries, behind) = (app.ledger.store.head().borrow().size(), app.ledger.clock.machine_behind());
            app.metrics.write(entries, behind, &mut text);
            app.ledger.signer.metrics(&mut text);
            store_metrics(app, &mut text);
            app.ledger.reserve.metrics(&mut text);
            app.ledger.clock_keeper.metrics(&mut text);
            app.witnesses.metrics(&mut text);
            app.timestamps.metrics(&mut text);
            app.webhooks.metrics(entries, app.ledger.clock.now(), &mut text);
            app.notices.metrics(app.ledger.clock.now(), &mut text);
            app.register.metrics(app.clock.now(), &mut text);
            app.identity.metrics(&mut text);
            app.log.metrics(&mut text);
            if let Some(spans) = &app.spans {
                spans.metrics(&mut text);
            }
            let is_ready = health::get_readiness(app).is_ok();
            text.gauge("pilot_ready", "Whether /readyz says that the service is ready.", u8::from(is_ready));
            app.work_metrics.write(&mut text);
            process::metrics(app.started, &mut text);
            if let Some(clients) = &app.clients {
                clients.metrics(&mut text);
            }
            Ok(page("text/plain; version=0.0.4; charset=utf-8", text.into_text()))
        }
        (&Method::GET, "/healthz") => health::get_health(app),
        (&Method::GET, "/readyz") => health::get_readiness(app),
        (_, "/metrics" | "/healthz" | "/readyz") => Err(Problem::method_not_allowed("GET, HEAD")),
        _ => Err(Problem::new(Code::NotFound, "There is nothing at this path.")),
    }
}

fn store_metrics(app: &App, text: &mut Exposition) {
    let pulse = app.ledger.store.pulse();
    let help = "How long writes have been waiting for the disk, once that exceeds the limit.";
    text.gauge("pilot_store_hang_seconds", help, pulse.hanging.unwrap_or_default().as_secs());
    let help = "How often writes waited for the disk longer than the limit.";
    text.counter("pilot_store_hangs_total", help, pulse.hangs);
    if let Some(is_replicated) = pulse.is_replicated {
        let help = "Whether the database waits for a second server at every commit.";
        text.gauge("pilot_store_replicated", help, u8::from(is_replicated));
        let nodes = app.ledger.store.nodes();
        let alive = nodes.iter().filter(|node| node.is_alive).count();
        text.gauge("pilot_nodes_alive", "Nodes that were heard of within the last second.", alive);
        let lag = nodes.iter().find(|node| node.is_this).map_or(0, |node| node.lag);
        text.gauge("pilot_node_lag_entries", "Entries that this node has not applied yet.", lag);
        let is_current = app.ledger.store.check_current().is_ok();
        text.gauge(
            "pilot_node_current",
            "Whether this node knows the ledger as it is, and answers.",
            u8::from(is_current),
        );
    }
}
