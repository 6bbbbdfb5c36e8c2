//! Metrics for Prometheus. Counting costs one atomic addition; the text is generated on request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pilot_core::time::Time;
use pilot_wire::exposition::{Exposition, Kind};
use pilot_wire::traffic::Traffic;

use crate::identity::Unknown;
use crate::rate::Budget;

/// The statuses that the service uses; anything else is counted under the last one, 0.
const STATUSES: [u16; 25] = [
    200, 201, 202, 204, 206, 304, 400, 401, 403, 404, 405, 406, 408, 409, 412, 413, 414, 415, 422, 429, 431, 500, 501,
    503, 0,
];
/// Upper bounds of the request time's buckets, in microseconds.
const BUCKETS: [u64; 12] = [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 1_000_000, 5_000_000];

pub struct Metrics {
    /// One for each operation of the route table, and a last one for requests that reached none.
    operations: Vec<Operation>,
    authentication_failures: [AtomicU64; Unknown::ALL.len()],
    tokens_in_url: AtomicU64,
    rate_limited: [AtomicU64; Budget::ALL.len()],
    /// Certificate replacements that were applied, and those that could not be used.
    certificate_reloads: [AtomicU64; 2],
    /// In seconds since 1970; 0 without TLS.
    certificate_expires: AtomicU64,
    pub traffic: Traffic,
}

struct Operation {
    name: &'static str,
    statuses: [AtomicU64; STATUSES.len()],
    buckets: [AtomicU64; BUCKETS.len() + 1],
    micros: AtomicU64,
}

impl Metrics {
    pub fn new(mut operations: Vec<&'static str>) -> Metrics {
        operations.push("none");
        let operation = |name| Operation {
            name,
            statuses: [const { AtomicU64::new(0) }; STATUSES.len()],
            buckets: [const { AtomicU64::new(0) }; BUCKETS.len() + 1],
            micros: AtomicU64::new(0),
        };
        Metrics {
            operations: operations.into_iter().map(operation).collect(),
            authentication_failures: [const { AtomicU64::new(0) }; Unknown::ALL.len()],
            tokens_in_url: AtomicU64::new(0),
            rate_limited: [const { AtomicU64::new(0) }; Budget::ALL.len()],
            certificate_reloads: [const { AtomicU64::new(0) }; 2],
            certificate_expires: AtomicU64::new(0),
            traffic: Traffic::default(),
        }
    }

    pub fn answered(&self, operation: Option<usize>, status: u16, micros: u64) {
        let Some(operation) = operation.map_or(self.operations.last(), |index| self.operations.get(index)) else {
            return;
        };
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        add(operation.statuses.get(status), 1);
        add(operation.buckets.get(BUCKETS.partition_point(|bound| *bound < micros)), 1);
        operation.micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub fn authentication_failed(&self, reason: Unknown) {
        add(self.authentication_failures.get(reason as usize), 1);
    }

    pub fn token_in_url(&self) {
        self.tokens_in_url.fetch_add(1, Ordering::Relaxed);
    }

    pub fn rate_limited(&self, budget: Budget) {
        add(self.rate_limited.get(budget as usize), 1);
    }

    pub fn certificate_loaded(&self, not_after: Time) {
        let seconds = u64::try_from(not_after.unix_micros() / 1_000_000).unwrap_or(0);
        self.certificate_expires.store(seconds, Ordering::Relaxed);
    }

    pub fn certificate_reloaded(&self, taken_up: bool) {
        add(self.certificate_reloads.get(usize::from(!taken_up)), 1);
    }

    pub fn write(&self, ledger_entries: u64, clock_behind: Duration, text: &mut Exposition) {
        text.family("pilot_build_info", Kind::Gauge, "The version of the running program.");
        text.sample("pilot_build_info", &[("version", &env!("CARGO_PKG_VERSION"))], 1);
        text.gauge("pilot_ledger_entries", "Entries in the ledger.", ledger_entries);
        // In whole milliseconds: any smaller difference only shows how long reading them takes.
        let millis = u64::try_from(clock_behind.as_millis()).unwrap_or(u64::MAX / 1000);
        let help = "How far the machine's clock is behind the ledger's time.";
        text.gauge("pilot_clock_behind_seconds", help, seconds(millis.saturating_mul(1000)));
        self.write_requests(text);
        let name = "pilot_authentication_failures_total";
        text.family(name, Kind::Counter, "Requests answered 401, by reason.");
        for (reason, count) in Unknown::ALL.iter().zip(&self.authentication_failures) {
            text.sample(name, &[("reason", &reason.as_str())], read(count));
        }
        let help = "Requests refused because their URL contained a live token.";
        text.counter("pilot_tokens_in_url_total", help, read(&self.tokens_in_url));
        text.gauge("pilot_connections_open", "Connections open now.", self.traffic.open());
        text.counter("pilot_connections_total", "Connections accepted.", self.traffic.total());
        let help = "Connections closed because the peer was too slow.";
        text.counter("pilot_connections_expired_total", help, self.traffic.expired());
        self.write_limits(text);
        if read(&self.certificate_expires) > 0 {
            self.write_tls(text);
        }
    }

    fn write_limits(&self, text: &mut Exposition) {
        let name = "pilot_rate_limited_total";
        text.family(name, Kind::Counter, "Requests answered 429, by the budget that was used up.");
        for (budget, count) in Budget::ALL.iter().zip(&self.rate_limited) {
            text.sample(name, &[("budget", &budget.as_str())], read(count));
        }
        let name = "pilot_caps_reached_total";
        text.family(name, Kind::Counter, "How often a limit was reached, by limit.");
        for (cap, times) in self.traffic.caps.counts() {
            text.sample(name, &[("cap", &cap)], times);
        }
    }

    fn write_tls(&self, text: &mut Exposition) {
        let failed = self.traffic.handshakes_failed();
        text.counter("pilot_tls_handshakes_failed_total", "TLS handshakes that failed.", failed);
        let name = "pilot_tls_reloads_total";
        text.family(name, Kind::Counter, "Certificate reloads, by whether the new certificate could be used.");
        for (outcome, count) in ["used", "refused"].iter().zip(&self.certificate_reloads) {
            text.sample(name, &[("outcome", outcome)], read(count));
        }
        let help = "When the certificate in use expires, in seconds since 1970.";
        text.gauge("pilot_tls_certificate_expires_seconds", help, read(&self.certificate_expires));
    }

    fn write_requests(&self, text: &mut Exposition) {
        let name = "pilot_requests_total";
        text.family(name, Kind::Counter, "Requests answered, by operation and status.");
        for operation in &self.operations {
            for (status, count) in STATUSES.iter().zip(&operation.statuses).filter(|(_, count)| read(count) > 0) {
                text.sample(name, &[("operation", &operation.name), ("status", status)], read(count));
            }
        }
        let help = "Time from the end of the headers to the answer.";
        text.family("pilot_request_seconds", Kind::Histogram, help);
        for operation in &self.operations {
            operation.write_histogram(text);
        }
    }
}

impl Operation {
    fn write_histogram(&self, text: &mut Exposition) {
        let total: u64 = self.buckets.iter().map(read).sum();
        if total == 0 {
            return;
        }
        let (bucket, name) = ("pilot_request_seconds_bucket", &self.name);
        let mut below = 0;
        for (bound, count) in BUCKETS.iter().zip(&self.buckets) {
            below += read(count);
            text.sample(bucket, &[("operation", name), ("le", &seconds(*bound))], below);
        }
        text.sample(bucket, &[("operation", name), ("le", &"+Inf")], total);
        text.sample("pilot_request_seconds_sum", &[("operation", name)], seconds(read(&self.micros)));
        text.sample("pilot_request_seconds_count", &[("operation", name)], total);
    }
}

fn seconds(micros: u64) -> String {
    let text = format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn add(counter: Option<&AtomicU64>, amount: u64) {
    if let Some(counter) = counter {
        counter.fetch_add(amount, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_text_counts_requests_by_operation_and_status() {
        let metrics = Metrics::new(vec!["get_session"]);
        metrics.answered(Some(0), 200, 120);
        metrics.answered(Some(0), 200, 90);
        metrics.answered(None, 401, 6_000_000);
        metrics.authentication_failed(Unknown::Malformed);
        metrics.traffic.connection_opened();
        let mut text = Exposition::default();
        metrics.write(7, Duration::from_micros(3_600_250_001), &mut text);
        let text = text.into_text();
        let shown: Vec<_> =
            text.lines().filter(|line| !line.starts_with('#') && !line.contains("build_info")).collect();
        expect![[r#"
            pilot_ledger_entries 7
            pilot_clock_behind_seconds 3600.25
            pilot_requests_total{operation="get_session",status="200"} 2
            pilot_requests_total{operation="none",status="401"} 1
            pilot_request_seconds_bucket{operation="get_session",le="0.0001"} 1
            pilot_request_seconds_bucket{operation="get_session",le="0.00025"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.0005"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.001"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.0025"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.005"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.01"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.025"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.1"} 2
            pilot_request_seconds_bucket{operation="get_session",le="0.5"} 2
            pilot_request_seconds_bucket{operation="get_session",le="1"} 2
            pilot_request_seconds_bucket{operation="get_session",le="5"} 2
            pilot_request_seconds_bucket{operation="get_session",le="+Inf"} 2
            pilot_request_seconds_sum{operation="get_session"} 0.00021
            pilot_request_seconds_count{operation="get_session"} 2
            pilot_request_seconds_bucket{operation="none",le="0.0001"} 0
            pilot_request_seconds_bucket{operation="none",le="0.00025"} 0
            pilot_request_seconds_bucket{operation="none",le="0.0005"} 0
            pilot_request_seconds_bucket{operation="none",le="0.001"} 0
            pilot_request_seconds_bucket{operation="none",le="0.0025"} 0
            pilot_request_seconds_bucket{operation="none",le="0.005"} 0
            pilot_request_seconds_bucket{operation="none",le="0.01"} 0
            pilot_request_seconds_bucket{operation="none",le="0.025"} 0
            pilot_request_seconds_bucket{operation="none",le="0.1"} 0
            pilot_request_seconds_bucket{operation="none",le="0.5"} 0
            pilot_request_seconds_bucket{operation="none",le="1"} 0
            pilot_request_seconds_bucket{operation="none",le="5"} 0
            pilot_request_seconds_bucket{operation="none",le="+Inf"} 1
            pilot_request_seconds_sum{operation="none"} 6
            pilot_request_seconds_count{operation="none"} 1
            pilot_authentication_failures_total{reason="missing"} 0
            pilot_authentication_failures_total{reason="malformed"} 1
            pilot_authentication_failures_total{reason="unrecognised"} 0
            pilot_authentication_failures_total{reason="not_yet"} 0
            pilot_authentication_failures_total{reason="expired"} 0
            pilot_authentication_failures_total{reason="revoked"} 0
            pilot_authentication_failures_total{reason="doubted"} 0
            pilot_authentication_failures_total{reason="undecided"} 0
            pilot_tokens_in_url_total 0
            pilot_connections_open 1
            pilot_connections_total 1
            pilot_connections_expired_total 0
            pilot_rate_limited_total{budget="reads"} 0
            pilot_rate_limited_total{budget="writes"} 0
            pilot_rate_limited_total{budget="anonymous"} 0
            pilot_rate_limited_total{budget="failed"} 0
            pilot_caps_reached_total{cap="connections"} 0
            pilot_caps_reached_total{cap="connections_of_an_address"} 0
            pilot_caps_reached_total{cap="new_connections_of_an_address"} 0
            pilot_caps_reached_total{cap="feeds_of_an_actor"} 0
            pilot_caps_reached_total{cap="feeds"} 0
            pilot_caps_reached_total{cap="held_bytes"} 0
            pilot_caps_reached_total{cap="long_tasks_of_a_caller"} 0
            pilot_caps_reached_total{cap="http2_requests"} 0"#]]
        .assert_eq(&shown.join("\n"));
    }
}
