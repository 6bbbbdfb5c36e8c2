//! What handlers share: built once at the start, never replaced.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pilot_core::leak::LeakGuard;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::evidence::Exports;
use pilot_ledger::figures::Figures;
use pilot_ledger::ids::Ids;
use pilot_ledger::register::Register;
use pilot_ledger::settle::Ledger;
use pilot_ledger::timestamps::Timestamps;
use pilot_ledger::webhooks::Webhooks;
use pilot_ledger::witnesses::Witnesses;
use pilot_ledger::workflows::Workflows;
use pilot_notices::Notices;
use pilot_setup::config;
use pilot_wire::peer::Address;
use tokio::sync::watch;

use crate::budget::Budget;
use crate::client_trust::ClientIssuers;
use crate::edge::Edge;
use crate::feeds::Feeds;
use crate::flood::Flood;
use crate::identity::Identity;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::permits::PermitIssuer;
use crate::rate::Limits;
use crate::spans::Spans;
use crate::work_metrics::WorkMetrics;
use crate::workshop::Workshop;

pub struct App {
    /// Whose client certificates count, if any do.
    pub clients: Option<Arc<ClientIssuers>>,
    pub identity: Identity,
    pub register: Arc<Register>,
    /// How often anyone may call; `None` if that is not limited.
    pub limits: Option<Limits>,
    pub(crate) flood: Flood,
    pub edge: Edge,
    pub guard: Arc<LeakGuard>,
    pub metrics: Arc<Metrics>,
    /// When the service started.
    pub(crate) started: Time,
    /// For what others have dated: credentials. What is compared with the ledger uses the ledger's clock.
    pub clock: Clock,
    pub log: Log,
    /// Where spans of requests go, if they go anywhere.
    pub(crate) spans: Option<Arc<Spans>>,
    /// Whether callers' addresses are recorded.
    pub origin: config::Origin,
    pub ledger: Ledger,
    pub workflows: Arc<Workflows>,
    /// Counted from the ledger as far as anyone has asked; one caller at a time counts on.
    pub figures: Arc<tokio::sync::Mutex<Figures>>,
    pub(crate) work_metrics: Arc<WorkMetrics>,
    pub witnesses: Arc<Witnesses>,
    pub timestamps: Arc<Timestamps>,
    pub webhooks: Arc<Webhooks>,
    pub notices: Arc<Notices>,
    /// Who is downloading evidence.
    pub exports: Arc<Exports>,
    /// Signs permit tokens, if the configuration asks for that.
    pub issuer: Option<PermitIssuer>,
    /// Who is downloading a permit.
    pub permits: Arc<Exports>,
    /// The actors whose attestations are being signed.
    pub attestations: Arc<Exports>,
    /// Bytes held for requests and answers.
    pub budget: Budget,
    pub workshop: Workshop,
    pub feeds: Arc<Feeds>,
    pub ids: Ids,
    /// What this node is called.
    pub node_name: String,
    /// Becomes true when the service is told to stop.
    pub stop: watch::Receiver<bool>,
    /// What the console is told before anyone has signed in.
    pub console: config::Console,
    pub openapi: Bytes,
    pub docs: Bytes,
    pub request_ids: RequestIds,
}

/// Ids for requests, by which their log lines are found.
pub struct RequestIds {
    /// The first half, so that the ids of two runs never collide.
    run: String,
    requests: AtomicU64,
}

impl RequestIds {
    pub fn new(run: u32) -> RequestIds {
        RequestIds { run: format!("{run:08x}-"), requests: AtomicU64::new(0) }
    }

    /// Differs from run to run.
    pub fn run(&self) -> &str {
        self.run.trim_end_matches('-')
    }

    pub fn next(&self) -> String {
        let mut id = String::with_capacity(32);
        id.push_str(&self.run);
        let _ = write!(id, "{:x}", self.requests.fetch_add(1, Ordering::Relaxed));
        id
    }
}

impl App {
    /// The address, if entries about refusals are to have it.
    pub fn origin_in_ledger(&self, address: Address) -> Option<Address> {
        Some(address).filter(|_| self.origin == config::Origin::LogAndLedger)
    }

    /// From then on `/readyz` reports not ready, so that load balancers go elsewhere while the last requests are
    /// answered.
    pub fn is_draining(&self) -> bool {
        *self.stop.borrow()
    }
}
