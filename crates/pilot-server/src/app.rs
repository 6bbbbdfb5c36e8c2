//! What every request shares: built once at start, never changed.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use pilot_core::leak::LeakGuard;
use pilot_store::sqlite::Sqlite;

use crate::clock::Clock;
use crate::identity::Identity;
use crate::metrics::Metrics;
use crate::openapi;
use crate::routes::{FaultyTable, Router, table};

pub struct App {
    pub router: Router,
    pub identity: Identity,
    pub guard: Arc<LeakGuard>,
    pub metrics: Metrics,
    pub clock: Clock,
    pub store: Sqlite,
    pub openapi: Bytes,
    pub docs: Bytes,
    draining: AtomicBool,
    /// The first half of every request id, so that ids of two runs do not meet.
    run: String,
    requests: AtomicU64,
}

impl App {
    pub fn new(
        identity: Identity,
        guard: Arc<LeakGuard>,
        store: Sqlite,
        clock: Clock,
        run: u32,
    ) -> Result<App, FaultyTable> {
        let router = Router::new(table())?;
        let metrics = Metrics::new(router.routes().iter().map(|route| route.operation).collect());
        let openapi = openapi::document(router.routes());
        let docs = openapi::page(router.routes());
        Ok(App {
            openapi: Bytes::from(serde_json::to_vec_pretty(&openapi).unwrap_or_default()),
            docs: Bytes::from(docs),
            router,
            identity,
            guard,
            metrics,
            clock,
            store,
            draining: AtomicBool::new(false),
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

    /// From now on `/readyz` says no, so that load balancers look elsewhere while the last requests are answered.
    pub fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
