//! Rate limits: how often an actor may read and write, and how often an address may call without a valid credential.
//!
//! Each budget is a leaky bucket stored as one number, the time at which it is full again (GCRA). The buckets are in a
//! table of fixed size, so that a million addresses cost no more memory than one.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU32, Ordering};

use http::Method;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use pilot_core::actor::ActorId;
use pilot_core::limits::{RATE_ACTORS_MAX, RATE_ADDRESSES_MAX};

use pilot_setup::config::RateLimits;
use pilot_wire::clock::Stopwatch;
use pilot_wire::peer::{Address, origin};

mod table;

use table::Table;

const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATELIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const WINDOW_SECONDS: u64 = 60;

/// What a request is charged to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// GET and HEAD of one actor.
    Reads,
    /// Everything else of one actor.
    Writes,
    /// Requests of one address under `/v1` without a credential.
    Anonymous,
    /// Requests of one address with a credential that is not valid.
    Failed,
}

impl Budget {
    pub const ALL: [Budget; 4] = [Budget::Reads, Budget::Writes, Budget::Anonymous, Budget::Failed];

    pub const fn as_str(self) -> &'static str {
        match self {
            Budget::Reads => "reads",
            Budget::Writes => "writes",
            Budget::Anonymous => "anonymous",
            Budget::Failed => "failed",
        }
    }

    fn of(method: &Method) -> Budget {
        if matches!(*method, Method::GET | Method::HEAD) { Budget::Reads } else { Budget::Writes }
    }
}

/// The state of a budget after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    pub budget: Budget,
    per_minute: u32,
    pub remaining: u64,
    /// Seconds until the budget is full again.
    whole_in: u64,
    /// Seconds to wait, if the request was one too many.
    pub retry_after: Option<u64>,
}

impl Standing {
    /// The fields of the IETF draft `ratelimit-headers`.
    pub fn write(&self, headers: &mut HeaderMap) {
        let Standing { budget, per_minute, remaining, whole_in, .. } = self;
        let name = budget.as_str();
        let policy = format!("\"{name}\";q={per_minute};w={WINDOW_SECONDS}");
        let standing = format!("\"{name}\";r={remaining};t={whole_in}");
        for (name, value) in [(RATELIMIT_POLICY, policy), (RATELIMIT, standing)] {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(name, value);
            }
        }
    }
}

/// One kind of budget, for everyone it applies to.
struct Kept {
    budget: Budget,
    per_minute: u32,
    /// Microseconds in which one request is earned.
    interval: u64,
    /// How many microseconds' worth may be used at once.
    burst: u64,
    table: Table,
}

impl Kept {
    fn new(budget: Budget, limits: &RateLimits, places: usize) -> Kept {
        let per_minute = match budget {
            Budget::Reads => limits.reads_per_minute,
            Budget::Writes => limits.writes_per_minute,
            Budget::Anonymous => limits.anonymous_per_minute,
            Budget::Failed => limits.failed_per_minute,
        }
        .get();
        let interval = WINDOW_SECONDS * 1_000_000 / u64::from(per_minute);
        let at_once = u64::from(per_minute) * u64::from(limits.burst_seconds.get()) / WINDOW_SECONDS;
        Kept { budget, per_minute, interval, burst: at_once.max(1) * interval, table: Table::new(places) }
    }

    /// What a request costs and how much may be used at once, in microseconds, if so many nodes share the budget.
    fn part(&self, nodes: u32) -> (u64, u64) {
        let interval = self.interval * u64::from(nodes);
        (interval, self.burst.max(interval))
    }

    fn is_used_up(&self, key: u64, now: u64, nodes: u32) -> bool {
        let (interval, burst) = self.part(nodes);
        self.table.owed(key, now) + interval > burst
    }

    fn take(&self, key: u64, now: u64, nodes: u32) -> Standing {
        let (interval, burst) = self.part(nodes);
        let owed = self.table.take(key, now, interval, burst);
        let whole_in = owed.unwrap_or_else(|owed| owed).div_ceil(1_000_000);
        let (remaining, retry_after) = match owed {
            Ok(owed) => ((burst - owed) / interval, None),
            Err(owed) => (0, Some((owed + interval - burst).div_ceil(1_000_000).max(1))),
        };
        let per_minute = self.per_minute.div_ceil(nodes);
        Standing { budget: self.budget, per_minute, remaining, whole_in, retry_after }
    }
}

pub struct Limits {
    started: Stopwatch,
    /// A new key in every run, so that nobody can choose addresses that collide.
    hasher: RandomState,
    reads: Kept,
    writes: Kept,
    anonymous: Kept,
    failed: Kept,
    /// How many nodes callers are spread over: each allows its part.
    nodes: AtomicU32,
}

impl Limits {
    pub fn new(limits: &RateLimits) -> Limits {
        Limits {
            started: Stopwatch::start(),
            hasher: RandomState::new(),
            reads: Kept::new(Budget::Reads, limits, RATE_ACTORS_MAX),
            writes: Kept::new(Budget::Writes, limits, RATE_ACTORS_MAX),
            anonymous: Kept::new(Budget::Anonymous, limits, RATE_ADDRESSES_MAX),
            failed: Kept::new(Budget::Failed, limits, RATE_ADDRESSES_MAX),
            nodes: AtomicU32::new(1),
        }
    }

    /// Divides the budgets among so many nodes.
    pub fn share_among(&self, nodes: usize) {
        self.nodes.store(u32::try_from(nodes).unwrap_or(u32::MAX).max(1), Ordering::Relaxed);
    }

    fn nodes(&self) -> u32 {
        self.nodes.load(Ordering::Relaxed)
    }

    /// Charges a request to its actor.
    pub fn take_of_actor(&self, actor: &ActorId, method: &Method) -> Standing {
        self.take(Budget::of(method), self.hasher.hash_one(actor.as_str()), self.started.micros())
    }

    /// Charges a request to its address.
    pub fn take_of_address(&self, budget: Budget, address: Address) -> Standing {
        self.take(budget, self.hasher.hash_one(place_of(address)), self.started.micros())
    }

    /// Whether an address has called too often without a valid credential. Charges nothing.
    pub fn is_used_up(&self, address: Address) -> bool {
        let (key, now) = (self.hasher.hash_one(place_of(address)), self.started.micros());
        [&self.anonymous, &self.failed].into_iter().any(|kept| kept.is_used_up(key, now, self.nodes()))
    }

    fn take(&self, budget: Budget, key: u64, now: u64) -> Standing {
        let kept = match budget {
            Budget::Reads => &self.reads,
            Budget::Writes => &self.writes,
            Budget::Anonymous => &self.anonymous,
            Budget::Failed => &self.failed,
        };
        kept.take(key, now, self.nodes())
    }
}

/// What is charged together: with IPv6 the first half of the address, because subscribers can choose the second half
/// themselves.
fn place_of(address: Address) -> Address {
    match address {
        Address::Ip(address) => origin(Address::Ip(address.to_canonical())),
        Address::User(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    const SECOND: u64 = 1_000_000;

    fn limits(text: &str) -> Limits {
        Limits::new(&toml::from_str(text).unwrap())
    }

    /// `r=9 t=6`, or `wait 6`.
    fn take(limits: &Limits, budget: Budget, key: u64, now: u64) -> String {
        let standing = limits.take(budget, key, now);
        match standing.retry_after {
            None => format!("r={} t={}", standing.remaining, standing.whole_in),
            Some(seconds) => format!("wait {seconds}"),
        }
    }

    #[test]
    fn nodes_that_share_a_budget_allow_their_part_of_it() {
        let limits = limits("reads_per_minute = 600\nburst_seconds = 60");
        let allowed =
            |key: u64| (0..2_000).take_while(|_| limits.take(Budget::Reads, key, 0).retry_after.is_none()).count();
        assert_eq!(allowed(1), 600);
        limits.share_among(3);
        assert_eq!(allowed(2), 200);
        limits.share_among(10_000);
        assert_eq!(allowed(3), 1, "never nothing at all");
        limits.share_among(0);
        assert_eq!(allowed(4), 600);
    }

    #[test]
    fn a_minutes_worth_may_come_at_once_and_comes_back_evenly() {
        let limits = limits("reads_per_minute = 3");
        let take = |now| take(&limits, Budget::Reads, 7, now);
        assert_eq!([take(0), take(0), take(0), take(0)], ["r=2 t=20", "r=1 t=40", "r=0 t=60", "wait 20"]);
        assert_eq!([take(19 * SECOND), take(20 * SECOND), take(20 * SECOND)], ["wait 1", "r=0 t=60", "wait 20"]);
        assert_eq!(take(1_000 * SECOND), "r=2 t=20", "it never holds more than a minute's worth");
    }

    #[test]
    fn whoever_waits_as_long_as_told_is_served() {
        for per_minute in [1, 7, 59, 60, 61, 1_200, 1_000_000] {
            let limits = limits(&format!("reads_per_minute = {per_minute}\nburst_seconds = 1"));
            let mut now = 0;
            for _ in 0..100 {
                match limits.take(Budget::Reads, 7, now).retry_after {
                    None => {}
                    Some(seconds) => {
                        now += seconds * SECOND;
                        let again = limits.take(Budget::Reads, 7, now);
                        assert_eq!(again.retry_after, None, "{per_minute} per minute at {now}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_refused_request_costs_nothing() {
        let limits = limits("reads_per_minute = 1");
        assert_eq!(take(&limits, Budget::Reads, 7, 0), "r=0 t=60");
        for _ in 0..1_000 {
            assert_eq!(take(&limits, Budget::Reads, 7, SECOND), "wait 59");
        }
    }

    #[test]
    fn budgets_and_keys_do_not_touch_each_other() {
        let limits =
            limits("reads_per_minute = 1\nwrites_per_minute = 1\nanonymous_per_minute = 1\nfailed_per_minute = 1");
        for budget in Budget::ALL {
            for key in [7, 8] {
                assert_eq!(take(&limits, budget, key, 0), "r=0 t=60");
                assert_eq!(take(&limits, budget, key, 0), "wait 60");
            }
        }
    }

    #[test]
    fn a_burst_is_never_less_than_one_request() {
        let limits = limits("reads_per_minute = 3\nburst_seconds = 1");
        let take = |now| take(&limits, Budget::Reads, 7, now);
        assert_eq!([take(0), take(0), take(20 * SECOND)], ["r=0 t=20", "wait 20", "r=0 t=20"]);
    }

    #[test]
    fn addresses_of_one_subscriber_share_a_budget() {
        let place = |text: &str| place_of(text.parse().unwrap());
        assert_eq!(place("2001:db8:0:1::1"), place("2001:db8:0:1:ffff::2"));
        assert_ne!(place("2001:db8:0:1::1"), place("2001:db8:0:2::1"));
        assert_eq!(place("::ffff:192.0.2.1"), place("192.0.2.1"));
        assert_ne!(place("192.0.2.1"), place("192.0.2.2"));
    }

    #[test]
    fn a_million_addresses_take_no_more_room_and_do_not_hide_a_flooder() {
        let limits = limits("failed_per_minute = 20");
        let room = limits.failed.table.places();
        assert_eq!(room, RATE_ADDRESSES_MAX);
        let flooder = limits.hasher.hash_one(place_of("192.0.2.1".parse().unwrap()));
        while limits.take(Budget::Failed, flooder, 0).retry_after.is_none() {}
        for number in 0..1_000_000_u32 {
            let address = Address::Ip(IpAddr::from(number.to_be_bytes()));
            limits.take(Budget::Failed, limits.hasher.hash_one(place_of(address)), 0);
        }
        assert_eq!(limits.failed.table.places(), room);
        assert!(limits.failed.table.used() <= room);
        assert!(limits.take(Budget::Failed, flooder, 0).retry_after.is_some(), "the flooder was forgotten");
    }

    #[test]
    fn the_fields_are_those_of_the_draft() {
        let mut headers = HeaderMap::new();
        limits("").take(Budget::Writes, 7, 0).write(&mut headers);
        assert_eq!(headers[RATELIMIT_POLICY], "\"writes\";q=240;w=60");
        assert_eq!(headers[RATELIMIT], "\"writes\";r=239;t=1");
    }
}
