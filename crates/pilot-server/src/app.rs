//! What handlers share: built once at the start, never replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use pilot_core::certain::Certain as _;
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
    /// The first half in hexadecimal, so that the ids of two runs never collide.
    run: [u8; 8],
    requests: AtomicU64,
}

impl RequestIds {
    pub fn new(run: u32) -> RequestIds {
        let mut digits = [b'0'; 8];
        write_hex(u64::from(run), &mut digits);
        RequestIds { run: digits, requests: AtomicU64::new(0) }
    }

    /// Differs from run to run.
    pub fn run(&self) -> &str {
        std::str::from_utf8(&self.run).certain("digits are text")
    }

    pub fn next(&self) -> RequestId {
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let mut text = [b'-'; REQUEST_ID_BYTES_MAX];
        let (run, rest) = text.split_at_mut(self.run.len());
        run.copy_from_slice(&self.run);
        let digits = number.checked_ilog2().map_or(1, |bits| bits as usize / 4 + 1);
        write_hex(number, rest.get_mut(1..=digits).unwrap_or_default());
        RequestId { text, length: self.run.len() + 1 + digits }
    }
}

/// The run, a hyphen and a number, in hexadecimal: made for every request, so without an allocation.
#[derive(Clone, Copy)]
pub struct RequestId {
    text: [u8; REQUEST_ID_BYTES_MAX],
    length: usize,
}

const REQUEST_ID_BYTES_MAX: usize = 8 + 1 + 16;

impl RequestId {
    pub fn as_str(&self) -> &str {
        let text = self.text.get(..self.length).and_then(|text| std::str::from_utf8(text).ok());
        text.certain("digits are text")
    }
}

/// The last digits of a number, as many as there is room for.
fn write_hex(number: u64, room: &mut [u8]) {
    let mut rest = number;
    for digit in room.iter_mut().rev() {
        let value = u8::try_from(rest % 16).certain("a digit is below 16");
        *digit = if value < 10 { b'0' + value } else { b'a' + value - 10 };
        rest /= 16;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_request_is_its_run_and_its_number_in_hexadecimal() {
        let ids = RequestIds::new(0xab);
        assert_eq!((ids.run(), ids.next().as_str(), ids.next().as_str()), ("000000ab", "000000ab-0", "000000ab-1"));
        for number in [9, 0xf, 0x10, 0xabc, u64::MAX] {
            ids.requests.store(number, Ordering::Relaxed);
            assert_eq!(ids.next().as_str(), format!("000000ab-{number:x}"));
        }
    }
}
