//! HAProxy, nginx, Caddy and Envoy in front of the service, from the files in `deploy/proxy`: who is let in, and whom no
//! header can impersonate.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use data_encoding::{BASE64, HEXLOWER};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::production::https::der;
use crate::production::mutual_tls::{ANA, House, IDENTITY, MANY, MESH, RUNNER, SAM, SECRET, far, house};
use crate::production::proxy::{Kind, Proxy, Service};
use crate::support::authority::{Authority, Pair, ROLE_MAP, configure};
use crate::support::harness::{Server, finish, set_mode};

const WRONG: &str = "mesh-mesh-mesh-mesh-mesh-mesh-mesh-wrong";
const ORIGINS: &str = "[logging]\norigin = 'log'\n";
/// An address that only a caller could have written.
const CLAIMED: &str = "203.0.113.77";
/// Far below the 15 seconds after which a feed sends a line in any case.
const AT_ONCE: Duration = Duration::from_secs(10);

struct Stage {
    house: House,
    server: Server,
    proxy: Proxy,
    runner: Pair,
    ana: Pair,
}

fn stage(kind: Kind) -> Stage {
    let tls = format!("{MESH}mesh_secret_file = 'mesh-secret'\nclient_certificate = '{}'\n", kind.client_certificate());
    let house = house(&tls);
    configure(&house.installation, "production", &[&tls, ROLE_MAP, MANY, IDENTITY, ORIGINS]);
    house.installation.write("mesh-secret", &format!("{SECRET}\n"));
    let server = house.installation.serve();
    let proxy = Proxy::start(kind, &house, &Service::Address(server.address), SECRET);
    let runner = house.clients.issue_client(&[], Some(RUNNER), 1, far());
    let ana = house.clients.issue_client(&ANA, None, 2, far());
    Stage { house, server, proxy, runner, ana }
}

impl Stage {
    /// curl, as the operators' page shows it.
    fn curl(&self, port: u16, own: Option<&Pair>, arguments: &[&str]) -> Command {
        let mut curl = self.house.installation.prepare(Command::new("curl"));
        curl.args(["-sS", "--max-time", "60", "--cacert", "ca.pem"]);
        curl.args(["--resolve", &format!("pilot.example:{port}:127.0.0.1")]);
        if let Some(pair) = own {
            // One for each caller: requests run at the same time.
            let name = format!("{}.pem", BASE64.encode(&der(&pair.certificate)[20..32]).replace('/', "_"));
            self.house.installation.write(&name, &format!("{}{}", pair.certificate, pair.key));
            curl.args(["--cert", &name]);
        }
        curl.args(arguments);
        curl
    }

    /// Status, version of HTTP and body of `GET /v1/session`, or `refused` if there was no connection.
    fn session(&self, own: Option<&Pair>, arguments: &[&str]) -> String {
        self.session_at(self.proxy.port, own, arguments)
    }

    fn session_at(&self, port: u16, own: Option<&Pair>, arguments: &[&str]) -> String {
        let url = format!("https://pilot.example:{port}/v1/session");
        let shown = ["-w", "\n%{http_code} %{http_version}", &url];
        let finished = finish(self.curl(port, own, &[arguments, &shown].concat()), None);
        match (finished.code, finished.stdout.rsplit_once('\n')) {
            (0, Some((body, status))) => format!("{status} {body}"),
            _ => "refused".to_owned(),
        }
    }
}

/// The same over a Unix socket: the proxy is known by its user, and nobody has a secret.
fn stage_on_socket(kind: Kind, directory: &TempDir) -> Stage {
    set_mode(directory.path(), 0o711);
    let socket = directory.path().join("pilot.sock");
    let user = kind.user();
    let tls = format!(
        "[tls]\ntermination = 'mesh'\ntrusted_users = ['{user}']\nclient_ca = 'clients.pem'\nclient_certificate = '{}'\n",
        kind.client_certificate()
    );
    let house = house(&tls);
    let group = if user.parse::<u32>().is_ok() { String::new() } else { format!("[socket]\ngroup = '{user}'\n") };
    let head = format!("profile = 'production'\nlisten = 'unix:{}'\n{group}", socket.display());
    house.installation.write("pilot.toml", &[&*head, &tls, ROLE_MAP, MANY, IDENTITY, ORIGINS].concat());
    let server = house.installation.serve();
    let proxy = Proxy::start(kind, &house, &Service::Socket(socket), WRONG);
    let runner = house.clients.issue_client(&[], Some(RUNNER), 1, far());
    let ana = house.clients.issue_client(&ANA, None, 2, far());
    Stage { house, server, proxy, runner, ana }
}

fn check_on_socket(kind: Kind) {
    let directory = tempfile::Builder::new().prefix("pilot-socket-").tempdir().unwrap();
    let stage = stage_on_socket(kind, &directory);
    for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        assert_eq!(stage.session(Some(&stage.runner), &[option]), as_runner(version), "{}", stage.proxy.said());
        let nobody = stage.session(None, &[option]);
        assert!(nobody.starts_with(&format!("401 {version} ")), "{nobody}");
        assert_claims_change_nothing(&stage, option, version);
    }
    assert_a_feed_passes_at_once(&stage);
    let Stage { server, proxy, .. } = stage;
    drop(proxy);
    let finished = server.stop().expect(0);
    finished.never_says(CLAIMED);
    assert!(finished.stderr.contains("127.0.0.1"), "the caller's address was recorded");
}

fn as_runner(version: &str) -> String {
    format!("200 {version} {{\"actor_id\":\"{RUNNER}\",\"role\":\"executor\"}}")
}

fn check(kind: Kind) {
    let stage = stage(kind);
    let said = || stage.proxy.said();
    for (option, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        assert_eq!(stage.session(Some(&stage.runner), &[option]), as_runner(version), "{}", said());
        let expected = format!("200 {version} {{\"actor_id\":\"ana\",\"role\":\"initiator\"}}");
        assert_eq!(stage.session(Some(&stage.ana), &[option]), expected, "{}", said());
        let nobody = stage.session(None, &[option]);
        assert!(nobody.starts_with(&format!("401 {version} ")), "{nobody}");
        assert_others_are_refused(&stage, option);
        assert_claims_change_nothing(&stage, option, version);
    }
    stage.server.wait_for_log("no client certificate was presented");
    assert_a_feed_passes_at_once(&stage);
    assert_nothing_passes_without_the_secret(kind, &stage);
    let Stage { server, proxy, .. } = stage;
    drop(proxy);
    let finished = server.stop().expect(0);
    finished.never_says(SECRET);
    finished.never_says(CLAIMED);
    assert!(finished.stderr.contains("127.0.0.1"), "the caller's address was recorded");
}

/// A certificate of another issuer does not get past the proxy; one of ours that the role map does not know gets 401.
fn assert_others_are_refused(stage: &Stage, option: &str) {
    let stranger = Authority::new("Elsewhere").issue_client(&[], Some(RUNNER), 1, far());
    let answer = stage.session(Some(&stranger), &[option]);
    assert!(answer == "refused" || answer.starts_with("400 "), "{answer}");
    let unknown = stage.house.clients.issue_client(&[], Some("spiffe://example.org/other"), 4, far());
    let answer = stage.session(Some(&unknown), &[option]);
    assert!(answer.starts_with("401 "), "{answer}");
}

fn escaped(pair: &Pair) -> String {
    let mut text = String::new();
    for sign in pair.certificate.replace('\r', "").chars() {
        match sign {
            '\n' => text.push_str("%0A"),
            ' ' => text.push_str("%20"),
            '+' => text.push_str("%2B"),
            '/' => text.push_str("%2F"),
            '=' => text.push_str("%3D"),
            sign => text.push(sign),
        }
    }
    text
}

/// Everything a caller could say to be ana, in several spellings, and with the true secret.
fn claims(ana: &Pair) -> Vec<String> {
    let der = der(&ana.certificate);
    let (rfc9440, nginx) = (format!(":{}:", BASE64.encode(&der)), escaped(ana));
    let xfcc = format!("Hash={};Cert=\"{nginx}\"", sha256(&der));
    let mut lines = Vec::new();
    for (name, value) in [
        ("Client-Cert", &*rfc9440),
        ("X-SSL-Client-Cert", &*nginx),
        ("X-Forwarded-Client-Cert", &*xfcc),
        ("Pilot-Mesh-Secret", SECRET),
        ("X-Forwarded-For", CLAIMED),
        ("Forwarded", "for=203.0.113.77"),
        ("X-Real-IP", CLAIMED),
    ] {
        for name in [name.to_owned(), name.to_lowercase(), name.to_uppercase(), name.replace('-', "_")] {
            lines.push(format!("{name}: {value}"));
        }
    }
    lines
}

fn assert_claims_change_nothing(stage: &Stage, option: &str, version: &str) {
    let lines = claims(&stage.ana);
    for name in ["Client-Cert", "X-SSL-Client-Cert", "X-Forwarded-Client-Cert", "Pilot-Mesh-Secret", "X-Forwarded-For"]
    {
        let spelling = |line: &&String| {
            let (found, _) = line.split_once(':').unwrap();
            found.replace('_', "-").eq_ignore_ascii_case(name)
        };
        // As many at once as fit into a request.
        for line in lines.iter().filter(spelling) {
            let spoofed = [option, "-H", line, "-H", "Pilot-Mesh-Secret: guess", "-H", "X-Forwarded-For: 203.0.113.77"];
            let nobody = stage.session(None, &spoofed);
            assert!(nobody.starts_with("401 "), "{name}: {nobody}");
            assert_eq!(stage.session(Some(&stage.runner), &spoofed), as_runner(version), "{name}");
        }
    }
    if option == "--http1.1" {
        let hop = "Connection: keep-alive, Client-Cert, X-SSL-Client-Cert, Pilot-Mesh-Secret";
        assert_eq!(stage.session(Some(&stage.runner), &[option, "-H", hop]), as_runner(version), "taken away");
    }
}

/// Lines of a live feed, as they come.
struct Feed {
    child: Child,
    lines: Receiver<String>,
}

impl Feed {
    fn open(mut curl: Command) -> Feed {
        let mut child = curl.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Feed { child, lines }
    }

    fn until(&self, words: &str) {
        loop {
            let line = self.lines.recv_timeout(AT_ONCE);
            let line = line.unwrap_or_else(|_| panic!("{words:?} did not come through in time"));
            if line.contains(words) {
                return;
            }
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn assert_a_feed_passes_at_once(stage: &Stage) {
    let sam = stage.house.clients.issue_client(&SAM, None, 5, far());
    for (serial, option) in [(6, "--http2"), (7, "--http1.1")] {
        let url = format!("https://pilot.example:{}/v1/events", stage.proxy.port);
        let arguments = [option, "--no-buffer", "-H", "Accept: text/event-stream", &url];
        let feed = Feed::open(stage.curl(stage.proxy.port, Some(&sam), &arguments));
        // The past first, which shows that the feed is open.
        feed.until("credential.first_used");
        let ana = stage.house.clients.issue_client(&ANA, None, serial, far());
        assert!(stage.session(Some(&ana), &[]).starts_with("200 "));
        feed.until(&credential_id(&ana));
    }
}

/// As the ledger names it.
fn credential_id(pair: &Pair) -> String {
    format!("x509:{}", &sha256(&der(&pair.certificate))[..32])
}

fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn assert_nothing_passes_without_the_secret(kind: Kind, stage: &Stage) {
    let impostor = Proxy::start(kind, &stage.house, &Service::Address(stage.server.address), WRONG);
    for path in ["--http2", "--http1.1"] {
        let answer = stage.session_at(impostor.port, Some(&stage.runner), &[path]);
        assert!(answer.starts_with("400 ") && answer.contains("Connect through the mesh"), "{answer}");
    }
}

#[test]
fn behind_haproxy_a_certificate_counts_and_claims_do_not() {
    check(Kind::HaProxy);
}

#[test]
fn behind_nginx_a_certificate_counts_and_claims_do_not() {
    check(Kind::Nginx);
}

#[test]
fn behind_caddy_a_certificate_counts_and_claims_do_not() {
    check(Kind::Caddy);
}

#[test]
fn behind_envoy_a_certificate_counts_and_claims_do_not() {
    check(Kind::Envoy);
}

#[test]
fn over_a_unix_socket_haproxy_is_known_by_its_user_and_needs_no_secret() {
    check_on_socket(Kind::HaProxy);
}

#[test]
fn over_a_unix_socket_nginx_is_known_by_its_user_and_needs_no_secret() {
    check_on_socket(Kind::Nginx);
}

#[test]
fn over_a_unix_socket_caddy_is_known_by_its_user_and_needs_no_secret() {
    check_on_socket(Kind::Caddy);
}

#[test]
fn over_a_unix_socket_envoy_is_known_by_its_user_and_needs_no_secret() {
    check_on_socket(Kind::Envoy);
}
