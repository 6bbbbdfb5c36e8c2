//! Client certificates as identity: the role map says whom one means, and time, a revocation list or a security_admin
//! end it, also on a connection that stays open.

use std::process::Command;
use std::time::Duration;

use http_body_util::BodyExt;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use rcgen::DnType;
use serde_json::{Value, json};

use crate::production::https::{Https, Open, der};
use crate::support::authority::{Authority, Pair, ROLE_MAP, configure, install};
use crate::support::harness::{Installation, PATIENCE, Port, TOKEN, finish, now};

const CLIENTS: &str =
    "[tls]\ncertificate = 'tls.pem'\nkey = 'tls.key'\nclient_ca = 'clients.pem'\ncrl = 'clients.crl'\n";
pub const MESH: &str =
    "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\nclient_ca = 'clients.pem'\ncrl = 'clients.crl'\n";
pub const SECRET: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-1";
pub const MANY: &str = "[rate_limits]\nreads_per_minute = 1000000\nwrites_per_minute = 1000000\nanonymous_per_minute = 1000000\nfailed_per_minute = 1000000\n";
pub const IDENTITY: &str = "[identity]\nmechanism = 'mutual_tls'\n";
pub const RUNNER: &str = "spiffe://example.org/pilot/runner";
pub const ANA: [(DnType, &str); 2] = [(DnType::OrganizationName, "Example"), (DnType::CommonName, "ana")];
pub const SAM: [(DnType, &str); 2] = [(DnType::OrganizationName, "Example"), (DnType::CommonName, "sam")];

/// An issuer of clients beside the issuer of the service; ana and sam by their subjects, a runner by its SPIFFE ID.
pub struct House {
    pub installation: Installation,
    pub services: Authority,
    pub clients: Authority,
}

pub fn house(tls: &str) -> House {
    let (services, clients) = (Authority::new("Services"), Authority::new("Clients"));
    let installation = Installation::with(&[]);
    let actors = json!([
        {"actor_id": "ana", "role": "initiator", "subject": "CN=ana,O=Example"},
        {"actor_id": "sam", "role": "security_admin", "subject": "CN=sam,O=Example"},
        {"actor_id": "eve", "role": "executor", "subject": "CN=eve,O=Example"},
        {"actor_id": RUNNER, "role": "executor", "kind": "machine", "operated_by": "eve"},
    ]);
    let map = json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": actors});
    installation.write("role-map.json", &map.to_string());
    std::fs::remove_file(installation.path("credentials.json")).unwrap();
    installation.write("clients.pem", &clients.pem);
    installation.write("clients.crl", &clients.revoke(&[]));
    installation.write("ca.pem", &services.pem);
    install(&installation, &services.issue(&["127.0.0.1"], 1));
    configure(&installation, "production", &[tls, ROLE_MAP, MANY, IDENTITY]);
    House { installation, services, clients }
}

pub fn far() -> Time {
    "2090-01-01T00:00:00Z".parse().unwrap()
}

fn in_seconds(seconds: u64) -> Time {
    Clock::System.now().plus(Duration::from_secs(seconds))
}

impl House {
    fn https(&self, address: std::net::SocketAddr, protocol: &str, pair: Option<&Pair>) -> Https {
        Https::with(address, &self.services.pem, &[protocol], rustls::ALL_VERSIONS, pair)
    }
}

async fn session(https: &Https) -> String {
    match https.get("/v1/session", None).await {
        Ok((_, response)) => format!("{} {}", response.status().as_u16(), String::from_utf8_lossy(response.body())),
        Err(_) => "no connection".to_owned(),
    }
}

/// The runner's feed, and its end.
async fn open_feed(connection: &mut Open) -> hyper::body::Incoming {
    let response = connection.begin("GET", "/v1/events", &[("accept", "text/event-stream")]).await;
    assert_eq!(response.status(), 200);
    response.into_body()
}

async fn ends(feed: hyper::body::Incoming) {
    tokio::time::timeout(PATIENCE, feed.collect()).await.expect("the feed must end by itself").unwrap();
}

async fn becomes(connection: &mut Open, expected: u16) {
    let end = now() + PATIENCE;
    while connection.status("/v1/session").await != expected {
        assert!(now() < end, "never {expected}");
    }
}

async fn ledger(connection: &mut Open) -> Vec<String> {
    let text = connection.text("GET", "/v1/events?limit=200").await;
    let events: Value = serde_json::from_str(text.strip_prefix("200 ").unwrap()).unwrap();
    let about = |event: &&Value| event["type"].as_str().unwrap().starts_with("credential.");
    let told = |event: &Value| {
        let details = &event["details"];
        let why = details["reason"].as_str().or(details["cause"].as_str()).unwrap_or("");
        format!("{} {} {why}", event["type"], details["credential"]["actor_id"]).replace('"', "").trim().to_owned()
    };
    events["events"].as_array().unwrap().iter().filter(about).map(told).collect()
}

/// The ledger, once it has so many lines: a credential counts no longer a moment before that is written down.
async fn ledger_with(connection: &mut Open, count: usize) -> Vec<String> {
    let end = now() + PATIENCE;
    loop {
        let lines = ledger(connection).await;
        if lines.len() >= count {
            return lines;
        }
        assert!(now() < end, "{lines:#?}");
    }
}

#[tokio::test]
async fn a_certificate_means_the_actor_the_role_map_says_and_nobody_else_comes_in() {
    let house = house(CLIENTS);
    house.installation.pilot(&["check-config"]).expect(0);
    let server = house.installation.serve();
    let ana = house.clients.issue_client(&ANA, None, 1, far());
    let runner = house.clients.issue_client(&[], Some(RUNNER), 2, far());
    for protocol in ["h2", "http/1.1"] {
        let shown = |pair: Option<&Pair>| house.https(server.address, protocol, pair);
        assert_eq!(session(&shown(Some(&ana))).await, "200 {\"actor_id\":\"ana\",\"role\":\"initiator\"}");
        let expected = format!("200 {{\"actor_id\":\"{RUNNER}\",\"role\":\"executor\"}}");
        assert_eq!(session(&shown(Some(&runner))).await, expected);
        assert!(session(&shown(None)).await.starts_with("401 "));
    }
    let h1 = |pair: &Pair| house.https(server.address, "http/1.1", Some(pair));
    for (stranger, why) in [
        (house.clients.issue_client(&[(DnType::CommonName, "ana")], None, 3, far()), "not the whole subject"),
        (house.clients.issue_client(&ANA, Some("spiffe://example.org/other"), 4, far()), "its SPIFFE ID counts"),
        (house.clients.issue(&["ana"], 5), "a host's name is no subject of ours"),
    ] {
        assert!(session(&h1(&stranger)).await.starts_with("401 "), "{why}");
    }
    let elsewhere = Authority::new("Elsewhere").issue_client(&ANA, None, 1, far());
    assert_eq!(session(&h1(&elsewhere)).await, "no connection");
    let expired = house.clients.issue_client(&ANA, None, 6, "2024-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(session(&h1(&expired)).await, "no connection");
    let (_, with_token) = house.https(server.address, "h2", None).get("/v1/session", Some(TOKEN)).await.unwrap();
    assert_eq!(with_token.status(), 401, "one mechanism alone is in force");
    let (_, open) = house.https(server.address, "h2", None).get("/healthz", None).await.unwrap();
    assert_eq!(open.status(), 200, "health needs no certificate");
}

#[tokio::test]
async fn a_certificate_counts_for_nothing_when_a_page_of_another_site_made_the_browser_show_it() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let sam = house.clients.issue_client(&SAM, None, 1, far());
    let https = house.https(server.address, "http/1.1", Some(&sam));
    let mut connection = https.open().await.unwrap();
    let settings = connection.text("GET", "/console.json").await;
    assert!(settings.contains("\"mechanism\":\"mutual_tls\""), "{settings}");
    // What a page elsewhere can send without being asked for permission: no body, and no header of its own.
    let path = "/v1/credentials/x509:00112233445566778899aabbccddeeff/revocation";
    for (site, status) in [
        (Some("cross-site"), 401),
        (Some("same-site"), 401),
        (Some("same-origin"), 201),
        (Some("none"), 201),
        (None, 201),
    ] {
        let headers: Vec<_> = site.map(|site| ("sec-fetch-site", site)).into_iter().collect();
        let response = connection.begin("POST", path, &headers).await;
        assert_eq!(response.status(), status, "{site:?}");
        response.into_body().collect().await.unwrap();
    }
}

#[tokio::test]
async fn the_name_of_a_certificate_may_be_percent_encoded_in_a_path() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let sam = house.clients.issue_client(&SAM, None, 1, far());
    let mut connection = house.https(server.address, "http/1.1", Some(&sam)).open().await.unwrap();
    let mut revoke = async |id: &str| connection.text("POST", &format!("/v1/credentials/{id}/revocation")).await;
    let plain = revoke("x509:00112233445566778899aabbccddeeff").await;
    assert!(plain.starts_with("201 "), "{plain}");
    assert_eq!(revoke("x509%3A00112233445566778899aabbccddeeff").await, plain);
    for malformed in ["x509%3", "x509%zz00112233445566778899aabbccddeeff", "x509%253A00112233445566778899aabbccddeeff"]
    {
        let answer = revoke(malformed).await;
        assert!(answer.starts_with("404 "), "{malformed}: {answer}");
    }
}

#[tokio::test]
async fn a_certificate_that_expires_while_connected_is_refused_and_its_feed_ends() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let runner = house.clients.issue_client(&[], Some(RUNNER), 1, in_seconds(4));
    let https = house.https(server.address, "http/1.1", Some(&runner));
    let (mut connection, mut watching) = (https.open().await.unwrap(), https.open().await.unwrap());
    assert_eq!(connection.status("/v1/session").await, 200);
    let feed = open_feed(&mut watching).await;
    becomes(&mut connection, 401).await;
    ends(feed).await;
    let sam = house.clients.issue_client(&SAM, None, 2, far());
    let mut sam = house.https(server.address, "http/1.1", Some(&sam)).open().await.unwrap();
    let expected = [
        format!("credential.first_used {RUNNER}"),
        format!("credential.expired {RUNNER}"),
        format!("credential.refused {RUNNER} expired"),
        "credential.first_used sam".to_owned(),
    ];
    assert_eq!(ledger_with(&mut sam, expected.len()).await, expected);
}

#[tokio::test]
async fn a_replaced_revocation_list_acts_on_open_connections_and_stays_in_force() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let runner = house.clients.issue_client(&[], Some(RUNNER), 7, far());
    let sam = house.clients.issue_client(&SAM, None, 8, far());
    let https = house.https(server.address, "http/1.1", Some(&runner));
    let (mut connection, mut watching) = (https.open().await.unwrap(), https.open().await.unwrap());
    assert_eq!(connection.status("/v1/session").await, 200);
    let feed = open_feed(&mut watching).await;
    house.installation.write("clients.crl", "nonsense");
    server.wait_for_log("the new client_ca or crl cannot be used");
    assert_eq!(connection.status("/v1/session").await, 200, "the list before stays in force");
    house.installation.write("clients.crl", &house.clients.revoke(&[7]));
    becomes(&mut connection, 401).await;
    ends(feed).await;
    let mut of_sam = house.https(server.address, "http/1.1", Some(&sam)).open().await.unwrap();
    let lines = ledger_with(&mut of_sam, 4).await;
    assert!(lines.contains(&format!("credential.revoked {RUNNER} revocation_list")), "{lines:#?}");
    drop(of_sam);
    server.stop().expect(0);
    house.installation.write("clients.crl", &house.clients.revoke(&[]));
    let server = house.installation.serve();
    let again = house.https(server.address, "http/1.1", Some(&runner));
    assert!(session(&again).await.starts_with("401 "), "what was revoked stays so");
}

#[tokio::test]
async fn a_revocation_list_that_is_forged_older_or_missing_locks_nobody_out() {
    let port = Port::reserve();
    let house = house(CLIENTS);
    let ops = format!("[ops]\nlisten = '{}'\n", port.address());
    configure(&house.installation, "production", &[CLIENTS, ROLE_MAP, MANY, IDENTITY, &ops]);
    let server = house.installation.serve();
    let runner = house.clients.issue_client(&[], Some(RUNNER), 7, far());
    let https = house.https(server.address, "http/1.1", Some(&runner));
    let mut connection = https.open().await.unwrap();
    assert_eq!(connection.status("/v1/session").await, 200);
    let (namesake, other) = (Authority::new("Clients"), Authority::new("Others"));
    for (list, said) in [
        (namesake.revoke(&[7]), "is not signed with that issuer's key"),
        (house.clients.revoke_in(2023, &[7]), "was made at 2023-01-01T00:00:00.000000Z, before the one in force"),
        (other.revoke(&[7]), "so all certificates of this issuer would be refused"),
    ] {
        house.installation.write("clients.crl", &list);
        server.wait_for_log(said);
        assert_eq!(connection.status("/v1/session").await, 200, "{said}");
        assert!(session(&https).await.starts_with("200 "), "a new handshake: {said}");
    }
    // A certificate that is replaced meanwhile is not held up by it.
    install(&house.installation, &house.services.issue(&["127.0.0.1"], 2));
    server.wait_for_log("the certificate was replaced");
    let metrics = port.metrics();
    let refused = metrics
        .lines()
        .find_map(|line| line.strip_prefix("pilot_tls_client_trust_reloads_total{outcome=\"refused\"} "));
    assert!(refused.unwrap().parse::<u64>().unwrap() >= 3, "it is tried again: {metrics}");
    assert!(metrics.contains("pilot_tls_crl_next_update_seconds 4070908800\n"), "{metrics}");
    assert!(metrics.contains("pilot_tls_client_ca_expires_seconds "), "{metrics}");
    house.installation.write("clients.crl", &house.clients.revoke_in(2025, &[7]));
    becomes(&mut connection, 401).await;
}

#[tokio::test]
async fn an_issuer_names_only_those_whom_the_role_map_lets_it_name() {
    let house = house(CLIENTS);
    let partner = Authority::new("Partner");
    let both = house.clients.pem.clone() + &partner.pem;
    let lists = house.clients.revoke(&[]) + &partner.revoke(&[]);
    house.installation.write("clients.pem", &both);
    house.installation.write("clients.crl", &lists);
    let any =
        "has 2 issuers, and any of them could issue a certificate for ana, sam, eve, spiffe://example.org/pilot/runner";
    let checked = house.installation.pilot(&["check-config"]).expect(2);
    assert!(checked.stdout.contains(any), "{}", checked.stdout);
    house.installation.serve_in_vain().expect(2).says(&[any, "CN=Clients", "CN=Partner"]);
    let issued = |issuer: &str| {
        json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": [
            {"actor_id": "ana", "role": "initiator", "subject": "CN=ana,O=Example", "issuer": issuer},
            {"actor_id": "sam", "role": "security_admin", "subject": "CN=sam,O=Example", "issuer": "CN=Clients"},
        ]})
    };
    house.installation.write("role-map.json", &issued("CN=Partner").to_string());
    let server = house.installation.serve();
    let says = async |by: &Authority, name: &[(DnType, &str)]| {
        session(&house.https(server.address, "h2", Some(&by.issue_client(name, None, 3, far())))).await
    };
    assert!(says(&partner, &ANA).await.starts_with("200 "));
    assert!(says(&house.clients, &SAM).await.starts_with("200 "));
    assert!(says(&partner, &SAM).await.starts_with("401 "), "a partner's authority is not ours");
    assert!(says(&house.clients, &ANA).await.starts_with("401 "));
    server.wait_for_log("or another issuer names that actor");
    server.stop().expect(0);
    // A second issuer that comes later is not let in either.
    house.installation.write("clients.pem", &house.clients.pem);
    house.installation.write("clients.crl", &house.clients.revoke(&[]));
    let mut open = issued("CN=Clients");
    open["actors"][0].as_object_mut().unwrap().remove("issuer");
    house.installation.write("role-map.json", &open.to_string());
    let server = house.installation.serve();
    house.installation.write("clients.pem", &both);
    house.installation.write("clients.crl", &lists);
    server.wait_for_log("any of them could issue a certificate for ana;");
    let ana = partner.issue_client(&ANA, None, 4, far());
    assert_eq!(session(&house.https(server.address, "h2", Some(&ana))).await, "no connection");
}

#[tokio::test]
async fn an_issuer_that_is_gone_shuts_its_clients_out_and_one_that_is_back_lets_them_in() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let runner = house.clients.issue_client(&[], Some(RUNNER), 1, far());
    let https = house.https(server.address, "http/1.1", Some(&runner));
    let (mut connection, mut watching) = (https.open().await.unwrap(), https.open().await.unwrap());
    assert_eq!(connection.status("/v1/session").await, 200);
    let feed = open_feed(&mut watching).await;
    let (other, mistaken) = (Authority::new("Clients"), house.installation.path("clients.crl"));
    std::fs::write(mistaken, other.revoke(&[])).unwrap();
    house.installation.write("clients.pem", &other.pem);
    becomes(&mut connection, 401).await;
    ends(feed).await;
    house.installation.write("clients.crl", &house.clients.revoke(&[]));
    house.installation.write("clients.pem", &house.clients.pem);
    becomes(&mut connection, 200).await;
}

#[tokio::test]
async fn a_security_admin_revokes_a_certificate_by_its_name() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let [ana, sam] = [(&ANA, 1), (&SAM, 2)].map(|(subject, serial)| {
        let pair = house.clients.issue_client(subject, None, serial, far());
        house.https(server.address, "http/1.1", Some(&pair))
    });
    let (mut ana, mut sam) = (ana.open().await.unwrap(), sam.open().await.unwrap());
    assert_eq!(ana.status("/v1/session").await, 200);
    let listed = sam.text("GET", "/v1/credentials").await;
    let listed: Value = serde_json::from_str(listed.strip_prefix("200 ").unwrap()).unwrap();
    let of_ana = listed["credentials"].as_array().unwrap().iter().find(|shown| shown["actor_id"] == "ana").unwrap();
    assert_eq!((&of_ana["state"], &of_ana["expires_at"]), (&json!("live"), &json!("2090-01-01T00:00:00.000000Z")));
    let id = of_ana["credential_id"].as_str().unwrap();
    assert!(sam.text("POST", &format!("/v1/credentials/{id}/revocation")).await.starts_with("201 "));
    assert_eq!(ana.status("/v1/session").await, 401);
    assert!(sam.text("POST", "/v1/credentials/ana/revocation").await.starts_with("404 "));
    let unseen = format!("/v1/credentials/x509:{}/revocation", "0".repeat(32));
    assert!(sam.text("POST", &unseen).await.starts_with("201 "), "also before it is shown");
}

#[test]
fn behind_a_mesh_the_certificate_it_hands_on_is_judged_once_more() {
    let house = house(&format!("{MESH}mesh_secret_file = 'mesh-secret'\n"));
    house.installation.write("mesh-secret", &format!("{SECRET}\n"));
    let server = house.installation.serve();
    let mesh = &*format!("Pilot-Mesh-Secret: {SECRET}");
    let header = |pair: &Pair| format!("Client-Cert: :{}:", data_encoding::BASE64.encode(&der(&pair.certificate)));
    let runner = house.clients.issue_client(&[], Some(RUNNER), 1, far());
    let answer = server.get("/v1/session", &[mesh, &header(&runner)]);
    assert_eq!(answer.json(), json!({"actor_id": RUNNER, "role": "executor"}));
    let elsewhere = Authority::new("Elsewhere").issue_client(&[], Some(RUNNER), 1, far());
    let expired = house.clients.issue_client(&[], Some(RUNNER), 2, "2024-01-01T00:00:00Z".parse().unwrap());
    for wrong in [header(&elsewhere), header(&expired), "Client-Cert: :MAA=:".into(), "X-Client-Cert: a".into()] {
        assert_eq!(server.get("/v1/session", &[mesh, &wrong]).verdict(), "401 credential_required");
    }
    let both = [header(&runner), header(&runner)];
    assert_eq!(server.get("/v1/session", &[mesh, &both[0], &both[1]]).status, 401, "two are none");
    server.wait_for_log("Client-Cert was sent more than once");
    assert_eq!(server.get("/v1/session", &[mesh, "X-Forwarded-Client-Cert: Hash=5eed"]).status, 401);
    server.wait_for_log("no Client-Cert, but X-Forwarded-Client-Cert: set client_certificate = ");
    // Certificates are public. A process at the mesh's address that has one, and not the secret, is nobody.
    for wrong in [&[][..], &["Pilot-Mesh-Secret: mesh-mesh-mesh-mesh-mesh-mesh-mesh-2"], &[mesh, mesh]] {
        let certificate = header(&runner);
        let lines = [wrong, &[&*certificate]].concat();
        assert_eq!(server.get("/v1/session", &lines).verdict(), "400 invalid_request", "{wrong:?}");
    }
    let finished = server.stop().expect(0);
    finished.never_says(SECRET);
    finished.never_says("5eed");
}

#[test]
fn behind_a_mesh_that_is_known_by_its_address_only_certificates_stop_the_start_in_production() {
    let house = house(MESH);
    let said = "certificates are public, and any process at a trusted address could present another actor's";
    house.installation.serve_in_vain().expect(2).says(&["mesh: ", said, "mesh_secret_file"]);
    assert!(house.installation.pilot(&["check-config"]).expect(2).stdout.contains(said));
    configure(&house.installation, "pilot", &[MESH, ROLE_MAP, IDENTITY]);
    let server = house.installation.serve();
    server.wait_for_log(said);
    server.stop().expect(0);
    let with_secret = format!("{MESH}mesh_secret_file = 'mesh-secret'\n");
    configure(&house.installation, "production", &[&with_secret, ROLE_MAP, MANY, IDENTITY]);
    house.installation.serve_in_vain().expect(2).says(&["mesh-secret: cannot be opened"]);
    house.installation.write("mesh-secret", "guess-me");
    house.installation.serve_in_vain().expect(2).says(&["mesh-secret: must contain one to four secrets"]);
    house.installation.write("mesh-secret", SECRET);
    crate::support::harness::set_mode(&house.installation.path("mesh-secret"), 0o644);
    house.installation.serve_in_vain().expect(2).says(&["mesh-secret: others can read it"]);
}

#[test]
fn curl_and_the_command_line_show_their_certificates() {
    let house = house(CLIENTS);
    let server = house.installation.serve();
    let ana = house.clients.issue_client(&ANA, None, 1, far());
    house.installation.write("ana.pem", &ana.certificate);
    house.installation.write("ana.key", &ana.key);
    let url = server.url();
    let shown = ["--ca-file", "ca.pem", "--client-cert", "ana.pem", "--client-key", "ana.key"];
    let session = [&["session", "--url", &url, "--output", "json"][..], &shown].concat();
    assert_eq!(house.installation.pilot(&session).expect(0).json()["actor_id"], "ana");
    house.installation.pilot(&session[..session.len() - 2]).expect(2).says(&["--client-key"]);
    let wrong = [&session[..session.len() - 1], &["ca.pem"]].concat();
    house.installation.pilot(&wrong).expect(2).says(&["ca.pem", "no unencrypted PEM private key"]);
    let mut curl = house.installation.prepare(Command::new("curl"));
    curl.args(["-sS", "--cacert", "ca.pem", "--cert", "ana.pem", "--key", "ana.key", &format!("{url}/v1/session")]);
    assert_eq!(finish(curl, None).expect(0).json(), json!({"actor_id": "ana", "role": "initiator"}));
    let mut openssl = house.installation.prepare(Command::new("openssl"));
    openssl.args(["x509", "-noout", "-subject", "-nameopt", "RFC2253,-esc_msb,utf8", "-in", "ana.pem"]);
    assert_eq!(finish(openssl, None).expect(0).stdout, "subject=CN=ana,O=Example\n");
}

#[test]
fn a_subject_of_any_script_is_what_openssl_prints() {
    let house = house(CLIENTS);
    let subject = [(DnType::OrganizationName, "Beispiel, \"Söhne\"; & Co=1"), (DnType::CommonName, "Ana\\Müller")];
    let ana = house.clients.issue_client(&subject, None, 1, far());
    house.installation.write("ana.pem", &ana.certificate);
    house.installation.write("ana.key", &ana.key);
    let mut openssl = house.installation.prepare(Command::new("openssl"));
    openssl.args(["x509", "-in", "ana.pem", "-noout", "-subject", "-nameopt", "RFC2253,-esc_msb,utf8"]);
    let printed = finish(openssl, None).expect(0).stdout;
    let name = printed.trim_end().strip_prefix("subject=").unwrap();
    let actors = json!([{"actor_id": "ana", "role": "initiator", "subject": name}]);
    let map = json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": actors});
    house.installation.write("role-map.json", &map.to_string());
    let server = house.installation.serve();
    let url = server.url();
    let shown = ["--ca-file", "ca.pem", "--client-cert", "ana.pem", "--client-key", "ana.key"];
    let session = [&["session", "--url", &url, "--output", "json"][..], &shown].concat();
    assert_eq!(house.installation.pilot(&session).expect(0).json()["actor_id"], "ana");
}

#[test]
fn what_certificates_need_is_named_when_it_is_missing() {
    let house = house(CLIENTS);
    let plain = "[tls]\ncertificate = 'tls.pem'\nkey = 'tls.key'\n";
    for (profile, sections, said) in [
        ("production", &[plain, ROLE_MAP, MANY, IDENTITY][..], "client certificates: set [tls] client_ca"),
        ("pilot", &[plain, ROLE_MAP, IDENTITY], "client certificates: set [tls] client_ca"),
        ("pilot", &[CLIENTS, IDENTITY], "role map: set [credentials] role_map"),
    ] {
        configure(&house.installation, profile, sections);
        house.installation.serve_in_vain().expect(2).says(&[said]);
        let checked = house.installation.pilot(&["check-config"]).expect(2);
        assert!(checked.stdout.contains(said), "{checked:#?}");
    }
    let foreign = "[identity]\nmechanism = 'credential_file'\n[identity.mutual_tls]\n";
    configure(&house.installation, "production", &[CLIENTS, ROLE_MAP, MANY, foreign]);
    house.installation.serve_in_vain().expect(2).says(&["identity.mutual_tls: is for mechanism"]);
    configure(&house.installation, "production", &[CLIENTS, ROLE_MAP, MANY, IDENTITY]);
    house.installation.write("clients.pem", "nothing");
    house.installation.serve_in_vain().expect(2).says(&["clients.pem", "contains no certificate"]);
}
