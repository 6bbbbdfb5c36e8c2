//! Spans of requests for an OpenTelemetry collector (OTLP over HTTP, in JSON). Nothing waits for it: what cannot be sent is
//! dropped and counted.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use data_encoding::HEXLOWER;
use http::{HeaderMap, Uri};
use pilot_core::leak::LeakGuard;
use pilot_core::limits::{SPAN_DEADLINE, SPANS_IN_A_BATCH, SPANS_WAITING_MAX};
use pilot_core::time::Time;
use pilot_setup::{config, random};
use pilot_wire::exposition::Exposition;
use pilot_wire::outgoing::{Outgoing, TrustError};
use serde_json::{Value, json};

const ROUND: Duration = Duration::from_secs(1);
const TRACEPARENT: &str = "traceparent";
/// In OTLP: the span of a request that a server answers, and a status that says that it failed.
const KIND_SERVER: u8 = 2;
const STATUS_ERROR: u8 = 2;

/// The trace that a caller has begun, as W3C's `traceparent` says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parent {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
}

impl Parent {
    /// `None` unless there is exactly one, and it is well-formed.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Parent> {
        let mut given = headers.get_all(TRACEPARENT).iter();
        let (Some(text), None) = (given.next(), given.next()) else { return None };
        Parent::parse(text.to_str().ok()?)
    }

    /// `version-trace-span-flags`. Later versions may have more parts.
    fn parse(text: &str) -> Option<Parent> {
        let mut parts = text.split('-');
        let version = bytes::<1>(parts.next()?)?;
        let (trace, span) = (bytes(parts.next()?)?, bytes(parts.next()?)?);
        let [flags] = bytes(parts.next()?)?;
        let is_valid = version != [0xFF] && (version != [0] || parts.next().is_none());
        let is_named = trace != [0; 16] && span != [0; 8];
        (is_valid && is_named).then_some(Parent { trace, span, is_sampled: flags & 1 == 1 })
    }
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    HEXLOWER.decode(text.as_bytes()).ok()?.try_into().ok()
}

/// A request that was answered. It contains no text of the caller's.
pub(crate) struct Answered<'a> {
    pub parent: Option<Parent>,
    pub begun: Time,
    pub micros: u64,
    pub request_id: &'a str,
    pub method: &'a str,
    /// The operation and its path, as in the table of routes.
    pub route: Option<(&'static str, &'static str)>,
    pub role: Option<&'static str>,
    pub status: u16,
}

pub(crate) struct Spans {
    url: Uri,
    outgoing: Outgoing,
    sample_percent: u8,
    guard: Arc<LeakGuard>,
    resource: Value,
    /// Each as JSON.
    waiting: Mutex<Vec<String>>,
    /// Taken from those that wait, and not sent yet.
    in_flight: AtomicUsize,
    sent: AtomicU64,
    dropped: AtomicU64,
    /// The last attempt failed, and that was said.
    trouble: Mutex<Option<String>>,
}

impl Spans {
    pub(crate) fn new(traces: &config::Traces, node: &str, guard: Arc<LeakGuard>) -> Result<Spans, TrustError> {
        let resource =
            [("service.name", "pilot"), ("service.version", env!("CARGO_PKG_VERSION")), ("service.instance.id", node)];
        Ok(Spans {
            url: traces.url.clone(),
            outgoing: Outgoing::new(traces.url.scheme_str() == Some("https"), traces.ca_file.as_deref())?,
            sample_percent: traces.sample_percent,
            guard,
            resource: json!({ "attributes": resource.map(|(key, value)| text(key, value)) }),
            waiting: Mutex::default(),
            in_flight: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            trouble: Mutex::default(),
        })
    }

    /// Keeps the span for the next batch, if its trace is one of those that are sent.
    pub(crate) fn note(&self, answered: &Answered) {
        // A token that someone sends as the id of a trace must not get out under that name.
        let parent = answered.parent.filter(|parent| {
            let (trace, span) = (HEXLOWER.encode(&parent.trace), HEXLOWER.encode(&parent.span));
            let texts = [&trace, &format!("{trace}{span}")];
            texts.iter().all(|text| self.guard.find(text.as_bytes()).is_none())
        });
        let (Ok(new_trace), Ok(new_span)) = (random::nonce(), random::nonce()) else { return };
        let is_sampled = parent.map_or_else(|| self.is_sampled(new_trace), |parent| parent.is_sampled);
        if !is_sampled {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() + self.in_flight.load(Ordering::Relaxed) < SPANS_WAITING_MAX {
            waiting.push(span(answered, parent, new_trace, new_span).to_string());
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// By the id of the trace, as other samplers decide it.
    fn is_sampled(&self, [.., a, b]: [u8; 16]) -> bool {
        u32::from(u16::from_be_bytes([a, b])) * 100 < u32::from(self.sample_percent) * 0x1_0000
    }

    async fn send(&self) {
        let waiting = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            self.in_flight.store(waiting.len(), Ordering::Relaxed);
            std::mem::take(&mut *waiting)
        };
        for batch in waiting.chunks(SPANS_IN_A_BATCH) {
            let outcome = self.send_batch(batch).await;
            let counter = if outcome.is_ok() { &self.sent } else { &self.dropped };
            counter.fetch_add(batch.len() as u64, Ordering::Relaxed);
            self.in_flight.fetch_sub(batch.len(), Ordering::Relaxed);
            self.tell(outcome);
        }
    }

    async fn send_batch(&self, batch: &[String]) -> Result<(), String> {
        let scope = json!({ "name": "pilot", "version": env!("CARGO_PKG_VERSION") });
        let (resource, spans) = (&self.resource, batch.join(","));
        let body = format!(
            r#"{{"resourceSpans":[{{"resource":{resource},"scopeSpans":[{{"scope":{scope},"spans":[{spans}]}}]}}]}}"#
        );
        if self.guard.find(body.as_bytes()).is_some() {
            return Err("a batch contained a live token and was withheld".to_owned());
        }
        let sending = self.outgoing.post_bytes(&self.url, "application/json", body.into_bytes(), SPAN_DEADLINE);
        match sending.await {
            Ok(reply) if (200..300).contains(&reply.status) => Ok(()),
            Ok(reply) => Err(format!("it answered {}", reply.status)),
            Err(error) => Err(error.to_string()),
        }
    }

    /// What is still waiting when the service stops: sent once more, and not for long.
    pub(crate) async fn send_last(&self) {
        let _ = tokio::time::timeout(SPAN_DEADLINE, self.send()).await;
    }

    /// Says what is wrong once, and when it is over.
    fn tell(&self, outcome: Result<(), String>) {
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        match (outcome, trouble.take()) {
            (Ok(()), None) => {}
            (Ok(()), Some(_)) => tracing::info!("traces are sent again"),
            (Err(cause), before) => {
                if before.as_ref() != Some(&cause) {
                    tracing::warn!(cause, "traces cannot be sent and are dropped");
                }
                *trouble = Some(cause);
            }
        }
    }

    pub(crate) fn metrics(&self, text: &mut Exposition) {
        let (sent, dropped) = (self.sent.load(Ordering::Relaxed), self.dropped.load(Ordering::Relaxed));
        text.counter("pilot_trace_spans_sent_total", "Spans that the collector has accepted.", sent);
        text.counter("pilot_trace_spans_dropped_total", "Spans that were dropped.", dropped);
    }
}

/// Sends what was answered, once a second.
pub(crate) async fn run(spans: Arc<Spans>) {
    loop {
        tokio::time::sleep(ROUND).await;
        spans.send().await;
    }
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

/// In OTLP's JSON: ids in hexadecimal, and 64-bit numbers as text.
fn span(answered: &Answered, parent: Option<Parent>, new_trace: [u8; 16], new_span: [u8; 16]) -> Value {
    let begun = u128::try_from(answered.begun.unix_micros()).unwrap_or_default();
    let ended = begun + u128::from(answered.micros);
    let mut attributes = vec![
        text("http.request.method", answered.method),
        json!({ "key": "http.response.status_code", "value": { "intValue": answered.status.to_string() } }),
        text("pilot.request_id", answered.request_id),
    ];
    let mut name = answered.method.to_owned();
    if let Some((operation, path)) = answered.route {
        name = format!("{name} {path}");
        attributes.extend([text("http.route", path), text("pilot.operation", operation)]);
    }
    attributes.extend(answered.role.map(|role| text("pilot.role", role)));
    let [own, _] = [&new_span[..8], &new_span[8..]];
    let mut span = json!({
        "traceId": HEXLOWER.encode(&parent.map_or(new_trace, |parent| parent.trace)),
        "spanId": HEXLOWER.encode(own),
        "name": name,
        "kind": KIND_SERVER,
        "startTimeUnixNano": (begun * 1_000).to_string(),
        "endTimeUnixNano": (ended * 1_000).to_string(),
        "attributes": attributes,
    });
    if let (Some(parent), Some(span)) = (parent, span.as_object_mut()) {
        span.insert("parentSpanId".into(), HEXLOWER.encode(&parent.span).into());
    }
    if let (500.., Some(span)) = (answered.status, span.as_object_mut()) {
        span.insert("status".into(), json!({ "code": STATUS_ERROR }));
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_traceparent_is_read_as_w3c_says_or_not_at_all() {
        let (trace, span) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let sampled = Parent::parse(&format!("00-{trace}-{span}-01")).unwrap();
        assert_eq!((HEXLOWER.encode(&sampled.trace), HEXLOWER.encode(&sampled.span)), (trace.into(), span.into()));
        assert!(sampled.is_sampled);
        assert!(!Parent::parse(&format!("00-{trace}-{span}-00")).unwrap().is_sampled);
        assert!(Parent::parse(&format!("cc-{trace}-{span}-01-what-the-future-will-be-like")).is_some());
        for wrong in [
            String::new(),
            format!("00-{trace}-{span}-01-more"),
            format!("ff-{trace}-{span}-01"),
            format!("00-{}-{span}-01", "0".repeat(32)),
            format!("00-{trace}-{}-01", "0".repeat(16)),
            format!("00-{}-{span}-01", trace.to_uppercase()),
            format!("00-{trace}-{span}"),
            format!("00-{trace}{trace}-{span}-01"),
            format!("0-{trace}-{span}-01"),
        ] {
            assert_eq!(Parent::parse(&wrong), None, "{wrong}");
        }
        let mut headers = HeaderMap::new();
        for _ in 0..2 {
            headers.append(TRACEPARENT, format!("00-{trace}-{span}-01").parse().unwrap());
        }
        assert_eq!(Parent::read(&headers), None, "there must be one");
    }

    #[test]
    fn as_many_traces_are_sent_as_the_configuration_says() {
        let guard = Arc::new(LeakGuard::for_generated_tokens());
        let url = Uri::from_static("http://127.0.0.1:1/v1/traces");
        let spans = |sample_percent| {
            let traces = config::Traces { url: url.clone(), ca_file: None, sample_percent };
            Spans::new(&traces, "one", Arc::clone(&guard)).unwrap()
        };
        let sampled = |percent| {
            let spans = spans(percent);
            (0..=u16::MAX)
                .filter(|low| {
                    let mut trace = [0; 16];
                    trace[14..].copy_from_slice(&low.to_be_bytes());
                    spans.is_sampled(trace)
                })
                .count()
        };
        assert_eq!((sampled(100), sampled(50), sampled(1)), (65_536, 32_768, 656));
    }

    #[test]
    fn what_cannot_be_sent_fast_enough_is_dropped_and_counted() {
        let traces =
            config::Traces { url: Uri::from_static("http://127.0.0.1:1/"), ca_file: None, sample_percent: 100 };
        let spans = Spans::new(&traces, "one", Arc::new(LeakGuard::for_generated_tokens())).unwrap();
        let answered = Answered {
            parent: None,
            begun: Time::from_unix_micros(0),
            micros: 1,
            request_id: "r",
            method: "GET",
            route: None,
            role: None,
            status: 200,
        };
        for _ in 0..SPANS_WAITING_MAX + 3 {
            spans.note(&answered);
        }
        assert_eq!(spans.waiting.lock().unwrap().len(), SPANS_WAITING_MAX);
        assert_eq!(spans.dropped.load(Ordering::Relaxed), 3);
    }
}
