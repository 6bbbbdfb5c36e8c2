//! TLS at the front door: what is agreed, replacing the certificate, and those who will not shake hands.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use pilot_ledger::clock::Clock;
use rustls::version::{TLS12, TLS13};
use rustls::{NamedGroup, ProtocolVersion};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::production::https::{Https, der};
use crate::support::authority::{Authority, IDENTITY, RATE_LIMITS, ROLE_MAP, TLS, configure, install, installation};
use crate::support::harness::{PATIENCE, Port, TOKEN, now, set_mode};

const MANY: &str = "[rate_limits]\nreads_per_minute = 1000000\nanonymous_per_minute = 1000000\n";

#[tokio::test]
async fn http2_is_agreed_by_alpn_over_tls_1_3_with_the_hybrid_group() {
    let (installation, authority) = installation("production", &[TLS, ROLE_MAP, RATE_LIMITS, IDENTITY]);
    let server = installation.serve();
    let https = Https::new(server.address, &authority.pem, &["h2", "http/1.1"]);
    let (agreed, response) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
    assert_eq!(agreed.version, ProtocolVersion::TLSv1_3);
    assert_eq!(agreed.group, NamedGroup::X25519MLKEM768);
    assert_eq!(agreed.protocol, "h2");
    assert_eq!(response.status(), 200);
    assert_eq!(response.body(), "{\"actor_id\":\"ana\",\"role\":\"initiator\"}");
    assert_eq!(response.headers()["credential-expires-at"], "2090-01-01T00:00:00.000000Z");
    assert_eq!(response.headers()["strict-transport-security"], "max-age=31536000");
    let (_, refused) = https.get("/v1/session", None).await.unwrap();
    assert_eq!(refused.status(), 401);
}

#[tokio::test]
async fn older_clients_get_http_1_and_tls_1_2() {
    let (installation, authority) = installation("pilot", &[TLS]);
    let server = installation.serve();
    for (protocols, versions, expected) in [
        (&["http/1.1"][..], &[&TLS13][..], ("http/1.1", ProtocolVersion::TLSv1_3)),
        (&[], &[&TLS13], ("", ProtocolVersion::TLSv1_3)),
        (&["h2"], &[&TLS12], ("h2", ProtocolVersion::TLSv1_2)),
    ] {
        let https = Https::with(server.address, &authority.pem, protocols, versions, None);
        let (agreed, response) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
        assert_eq!((agreed.protocol.as_str(), agreed.version), expected);
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("strict-transport-security"), "a pilot must not bind a whole host");
    }
}

/// Polls with connections of their own until the service shows this certificate.
async fn wait_for(https: &Https, certificate: &[u8]) {
    let began = now();
    loop {
        let (agreed, response) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
        assert_eq!(response.status(), 200);
        if agreed.certificate == certificate {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "the new certificate was never shown");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replaced_certificate_is_taken_up_under_load_and_no_request_is_dropped() {
    let (installation, authority) = installation("production", &[TLS, ROLE_MAP, MANY, IDENTITY]);
    let server = installation.serve();
    let (address, ca) = (server.address, authority.pem.clone());
    let (stop, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut callers = JoinSet::new();
    for protocol in ["h2", "http/1.1"] {
        let (https, stop, answers) = (Https::new(address, &ca, &[protocol]), Arc::clone(&stop), Arc::clone(&answers));
        callers.spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                let (_, response) = https.get("/v1/session", Some(TOKEN)).await.expect("every request is answered");
                assert_eq!(response.status(), 200);
                answers.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    let https = Https::new(address, &ca, &["h2"]);
    for serial in [2, 3] {
        let new = authority.issue(&["127.0.0.1"], serial);
        install(&installation, &new);
        wait_for(&https, &der(&new.certificate)).await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(caller) = callers.join_next().await {
        caller.unwrap();
    }
    println!("{} requests during two replacements", answers.load(Ordering::Relaxed));
    assert!(answers.load(Ordering::Relaxed) > 0);
    server.wait_for_log("the certificate was replaced");
}

#[tokio::test]
async fn a_new_pair_that_cannot_be_used_leaves_the_old_one_in_force() {
    let (installation, authority) = installation("production", &[TLS, ROLE_MAP, MANY, IDENTITY]);
    let old = der(&installation.read("tls.pem"));
    let server = installation.serve();
    let https = Https::new(server.address, &authority.pem, &["h2"]);
    let new = authority.issue(&["127.0.0.1"], 2);
    installation.write("tls.pem", &new.certificate);
    server.wait_for_log("the previous one stays in force");
    let (agreed, response) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
    assert_eq!((agreed.certificate, response.status().as_u16()), (old.to_vec(), 200));
    // The other half makes it whole, as soon as only its owner can change it.
    installation.write("tls.key.new", &new.key);
    set_mode(&installation.path("tls.key.new"), 0o666);
    std::fs::rename(installation.path("tls.key.new"), installation.path("tls.key")).unwrap();
    server.wait_for_log("tls.key: others can write to it (mode 0666)");
    set_mode(&installation.path("tls.key"), 0o600);
    wait_for(&https, &der(&new.certificate)).await;
    server.signal(rustix::process::Signal::HUP);
    server.wait_for_log("SIGHUP is ignored");
}

#[tokio::test]
async fn a_certificate_that_clients_would_refuse_does_not_replace_one_that_they_accept() {
    let port = Port::reserve();
    let ops = format!("[ops]\nlisten = '{}'\n", port.address());
    let (installation, authority) = installation("production", &[TLS, ROLE_MAP, MANY, IDENTITY, &ops]);
    let old = der(&installation.read("tls.pem"));
    let server = installation.serve();
    let https = Https::new(server.address, &authority.pem, &["h2"]);
    install(&installation, &authority.issue_until(&["127.0.0.1"], 2024));
    server.wait_for_log("tls.pem: the certificate expired at 2024-01-01T00:00:00.000000Z");
    let (agreed, _) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
    assert_eq!(agreed.certificate, old.to_vec());
    let metrics = port.metrics();
    assert!(metrics.contains("pilot_tls_reloads_total{outcome=\"refused\"} "), "{metrics}");
    assert!(!metrics.contains("pilot_tls_reloads_total{outcome=\"refused\"} 0\n"), "{metrics}");
    assert!(metrics.contains("pilot_tls_certificate_expires_seconds 4070908800\n"), "{metrics}");
    // One that was installed too early is used when its time has come, and not before.
    let new = authority.issue_from(&["127.0.0.1"], Clock::System.now().plus(Duration::from_secs(8)));
    install(&installation, &new);
    server.wait_for_log("tls.pem: the certificate is not valid before ");
    wait_for(&https, &der(&new.certificate)).await;
}

#[test]
fn plain_http_is_told_to_use_https_in_an_answer_with_all_its_headers() {
    let (installation, _) = installation("production", &[TLS, ROLE_MAP, RATE_LIMITS, IDENTITY]);
    let server = installation.serve();
    for request in ["GET /v1/session HTTP/1.1\r\nHost: a\r\n\r\n", "GET /v1/session HTTP/1.2\r\nHost: a\r\n\r\n"] {
        let answer = server.send(request);
        assert_eq!(answer.verdict(), "400 invalid_request", "{request:?}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{request:?}");
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"), "{request:?}");
        assert_eq!(answer.header("connection"), Some("close"), "{request:?}");
        assert_eq!(answer.json()["request_id"].as_str(), answer.header("x-request-id"), "{request:?}");
        // A promise to speak TLS counts only when it was made over TLS.
        assert_eq!(answer.header("strict-transport-security"), None, "{request:?}");
    }
}

/// Sends this and waits for the end.
async fn shake_badly(address: SocketAddr, bytes: &[u8]) -> Duration {
    let began = now();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let _ = stream.write_all(bytes).await;
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is let go");
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_nonsensical_handshakes_are_let_go_and_hurt_nobody() {
    let (installation, authority) = installation("production", &[TLS, ROLE_MAP, MANY, IDENTITY]);
    let server = installation.serve();
    let address = server.address;
    // Nothing at all, half a record, a record that promises more, plain HTTP, noise.
    let habits: [&[u8]; 5] = [
        b"",
        b"\x16\x03\x01",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        &[0xff; 64],
    ];
    let mut bad = JoinSet::new();
    for habit in habits {
        for _ in 0..100 {
            bad.spawn(shake_badly(address, habit));
        }
    }
    let https = Https::new(address, &authority.pem, &["h2"]);
    let mut answered = 0;
    while !bad.is_empty() {
        let (_, response) = https.get("/v1/session", Some(TOKEN)).await.unwrap();
        assert_eq!(response.status(), 200);
        answered += 1;
        while let Some(ended) = bad.try_join_next() {
            let lasted = ended.unwrap();
            assert!(lasted.as_secs() < 15, "a bad handshake lasted {lasted:?}");
        }
    }
    println!("{answered} requests were answered while 500 bad handshakes were let go");
    assert!(answered > 10);
}

#[tokio::test]
async fn a_client_certificate_is_verified_when_one_is_shown_and_revoked_ones_are_refused() {
    let clients = Authority::new("Clients");
    let files = format!("{TLS}client_ca = 'clients.pem'\ncrl = 'clients.crl'\n");
    let (installation, authority) = installation("pilot", &[]);
    installation.write("clients.pem", &clients.pem);
    installation.write("clients.crl", &clients.revoke(&[8]));
    configure(&installation, "pilot", &[&files]);
    let server = installation.serve();
    let (good, revoked) = (clients.issue(&["client"], 7), clients.issue(&["client"], 8));
    let stranger = Authority::new("Strangers").issue(&["client"], 7);
    for (own, welcome) in [(None, true), (Some(&good), true), (Some(&revoked), false), (Some(&stranger), false)] {
        let https = Https::with(server.address, &authority.pem, &["http/1.1"], rustls::ALL_VERSIONS, own);
        let answered = https.get("/v1/session", Some(TOKEN)).await;
        assert_eq!(answered.is_ok_and(|(_, response)| response.status() == 200), welcome);
    }
}
