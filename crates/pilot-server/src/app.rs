//! What every request shares: built once at start, never changed.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pilot_core::leak::LeakGuard;
use pilot_store::Store;
use tokio::sync::watch;

use crate::budget::Budget;
use crate::clock::{Clock, ClockKeeper, LedgerClock};
use crate::config;
use crate::evidence::exports::Exports;
use crate::feed::Feeds;
use crate::identity::Identity;
use crate::ids::Ids;
use crate::log::Log;
use crate::metrics::Metrics;
use crate::openapi;
use crate::peer::Edge;
use crate::problem::{Code, Problem};
use crate::rate::Limits;
use crate::refusals::Refusals;
use crate::register::Register;
use crate::reserve::Reserve;
use crate::routes::{FaultyTable, Router, table};
use crate::signer::Signer;
use crate::witnesses::Witnesses;
use crate::workflows::Workflows;
use crate::workshop::Workshop;

pub struct App {
    pub router: Router,
    pub identity: Identity,
    pub register: Arc<Register>,
    /// How often anyone may call; none when that is not limited.
    pub limits: Option<Limits>,
    pub edge: Edge,
    pub guard: Arc<LeakGuard>,
    pub metrics: Metrics,
    /// For what others have dated: credentials.
    pub clock: Clock,
    /// For items and everything else that is compared with the ledger.
    pub ledger_clock: LedgerClock,
    pub clock_keeper: ClockKeeper,
    pub log: Log,
    pub store: Arc<dyn Store>,
    pub workflows: Arc<Workflows>,
    pub signer: Arc<Signer>,
    pub reserve: Reserve,
    pub witnesses: Arc<Witnesses>,
    pub refusals: Refusals,
    /// Who is being sent evidence.
    pub exports: Arc<Exports>,
    /// Bytes held for requests and answers.
    pub budget: Budget,
    pub workshop: Workshop,
    pub feeds: Feeds,
    pub ids: Ids,
    /// Turns true when the service is told to stop.
    pub stop: watch::Receiver<bool>,
    pub openapi: Bytes,
    pub docs: Bytes,
    /// What the console is told before anyone has signed in.
    pub console: config::Console,
    /// The first half of every request id, so that ids of two runs do not meet.
    run: String,
    requests: AtomicU64,
}

/// What an [`App`] is made of.
pub struct Parts {
    pub identity: Identity,
    pub register: Arc<Register>,
    pub limits: Option<Limits>,
    pub edge: Edge,
    pub guard: Arc<LeakGuard>,
    pub clock: Clock,
    pub ledger_clock: LedgerClock,
    pub clock_keeper: ClockKeeper,
    pub log: Log,
    pub store: Arc<dyn Store>,
    pub workflows: Workflows,
    pub signer: Arc<Signer>,
    pub reserve: Reserve,
    pub witnesses: Arc<Witnesses>,
    pub stop: watch::Receiver<bool>,
    pub run: u32,
    pub console: config::Console,
    pub workshop: Workshop,
}

impl App {
    pub fn new(parts: Parts) -> Result<App, FaultyTable> {
        let Parts {
            identity,
            register,
            limits,
            edge,
            guard,
            clock,
            ledger_clock,
            clock_keeper,
            log,
            store,
            workflows,
            signer,
            reserve,
            witnesses,
            stop,
            run,
            console,
            workshop,
        } = parts;
        let router = Router::new(table())?;
        let metrics = Metrics::new(router.routes().iter().map(|route| route.operation).collect());
        let openapi = openapi::document(router.routes());
        let docs = openapi::page(router.routes());
        Ok(App {
            openapi: Bytes::from(serde_json::to_vec_pretty(&openapi).unwrap_or_default()),
            docs: Bytes::from(docs),
            console,
            signer,
            reserve,
            witnesses,
            refusals: Refusals::default(),
            exports: Arc::default(),
            budget: Budget::default(),
            workshop,
            feeds: Feeds::default(),
            ids: Ids::default(),
            router,
            identity,
            register,
            limits,
            edge,
            guard,
            metrics,
            clock,
            ledger_clock,
            clock_keeper,
            log,
            store,
            workflows: Arc::new(workflows),
            stop,
            run: format!("{run:08x}-"),
            requests: AtomicU64::new(0),
        })
    }

    pub fn next_request_id(&self) -> String {
        let mut id = String::with_capacity(32);
        id.push_str(&self.run);
        let _ = write!(id, "{:x}", self.requests.fetch_add(1, Ordering::Relaxed));
        id
    }

    /// Whether anything may be written, or why not.
    pub fn check_writing(&self) -> Result<(), Problem> {
        if let Some(ahead) = self.clock_keeper.doubt() {
            let detail = format!(
                "The machine's clock has jumped {} s ahead. Writes are refused until it is right again or an \
                 operator accepts it; reads still work.",
                ahead.as_secs()
            );
            return Err(Problem::new(Code::Unavailable, detail));
        }
        if self.reserve.is_short() {
            let detail = "The disk is nearly full. Writes are refused until there is space again; reads still work.";
            return Err(Problem::new(Code::Unavailable, detail));
        }
        if self.signer.is_behind() {
            let detail = "The log's checkpoint cannot be saved, so writes are refused until it can; reads still work.";
            return Err(Problem::new(Code::Unavailable, detail));
        }
        Ok(())
    }

    /// From then on `/readyz` says no, so that load balancers look elsewhere while the last requests are answered.
    pub fn is_draining(&self) -> bool {
        *self.stop.borrow()
    }
}
