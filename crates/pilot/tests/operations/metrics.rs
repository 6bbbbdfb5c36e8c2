//! What monitoring is told.

use serde_json::json;

use crate::permits::download::started;
use crate::support::harness::{PATIENCE, Port, now};
use crate::support::team::{person, team};
use crate::support::wire::Wire;

/// The metrics, once they have this line.
fn with(port: &Port, line: &str) -> String {
    let begun = now();
    loop {
        let metrics = port.metrics();
        if metrics.lines().any(|there| there == line) {
            return metrics;
        }
        assert!(begun.elapsed() < PATIENCE, "no {line:?} in {metrics}");
    }
}

fn value(metrics: &str, name: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

#[test]
fn monitoring_sees_what_waits_how_long_decisions_took_and_when_the_last_backup_was() {
    let (installation, port) = (team(), Port::reserve());
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{}'\n", port.address()));
    let server = installation.serve();
    started(&server, &json!("rotate"));
    let metrics = with(&port, "pilot_items{state=\"executing\"} 1");
    let since = value(&metrics, "pilot_items_oldest_since_seconds{state=\"executing\"}");
    let began = value(&metrics, "process_start_time_seconds");
    assert!(since >= began && since < began + PATIENCE.as_secs_f64(), "{since} {began}");
    assert!(value(&metrics, "pilot_decision_seconds_count") >= 1.0, "{metrics}");
    assert!(metrics.contains("pilot_decision_seconds_bucket{le=\"+Inf\"} "), "{metrics}");
    assert!(!metrics.contains("pilot_backup_last_success_seconds"), "there was none yet");
    for (name, at_least) in [
        ("pilot_ready", 1.0),
        ("pilot_log_lines_dropped_total", 0.0),
        ("process_cpu_seconds_total", 0.01),
        ("process_resident_memory_bytes", 1e6),
        ("process_open_fds", 5.0),
        ("process_max_fds", 64.0),
    ] {
        assert!(value(&metrics, name) >= at_least, "{name}: {metrics}");
    }
    let backup = installation.pilot(&["backup", "--out", "backup", "--output", "json"]).expect(0).json();
    let made_at: pilot_core::time::Time = backup["made_at"].as_str().unwrap().parse().unwrap();
    with(&port, &format!("pilot_backup_last_success_seconds {}", made_at.unix_micros() / 1_000_000));
    // One that fails is none.
    installation.pilot(&["backup", "--out", "backup"]).expect(2);
    with(&port, &format!("pilot_backup_last_success_seconds {}", made_at.unix_micros() / 1_000_000));
    assert_eq!(person(&server, "ada").get("/v1/session").status, 200);
}

#[test]
fn head_on_the_ops_listener_has_the_headers_of_get() {
    let (installation, port) = (team(), Port::reserve());
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{}'\n", port.address()));
    let server = installation.serve();
    for path in ["/healthz", "/readyz", "/metrics"] {
        let mut wire = Wire::connect(port.address());
        wire.request(&format!("HEAD {path} HTTP/1.1"), &[]);
        let head = wire.response_without_body().unwrap();
        assert_eq!(head.status, 200, "{path}");
        assert_ne!(head.header("content-length"), Some("0"), "{path}");
    }
    let mut wire = Wire::connect(port.address());
    wire.request("POST /metrics HTTP/1.1", &[]);
    let refused = wire.response().unwrap();
    assert_eq!((refused.status, refused.header("allow")), (405, Some("GET, HEAD")));
    server.stop().expect(0);
}
