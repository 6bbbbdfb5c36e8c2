//! What the real server at hand does not do, from a double that answers as Vault's documentation says: version 2 of the
//! store, policies, revocation, and servers that do not behave.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::authority::{IDENTITY, MESH, RATE_LIMITS, configure, installation};
use crate::support::harness::{Finished, Installation, TOKEN, now};

const VAULT_TOKEN: &str = "hvs.double-of-a-token";
const SECRET_ID: &str = "0a0b0c0d-double-of-a-secret-id";

type Reply = Option<(u16, String)>;

/// Answers each request as told, and remembers what it was asked. No reply means silence.
struct Double {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Double {
    fn start(tell: impl Fn(&str) -> Reply + Send + 'static) -> Double {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, is_over) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicBool::new(false)));
        let (heard, over) = (Arc::clone(&asked), Arc::clone(&is_over));
        let thread = thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let mut stream = stream.unwrap();
                let request = read_request(&mut stream);
                let line = request.lines().next().unwrap_or_default().to_owned();
                heard.lock().unwrap().push(request);
                match tell(&line) {
                    None => silent.push(stream),
                    Some((status, body)) => {
                        let answer = format!(
                            "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                            body.len()
                        );
                        // A client that has read enough hangs up.
                        let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
                    }
                }
            }
        });
        Double { address, asked, is_over, thread: Some(thread) }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
        bytes.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    head + &String::from_utf8_lossy(&body)
}

/// An installation that asks the double with a token, and the credential file it should have.
fn asking(double: &Double, more: &str) -> Installation {
    let (installation, _) = installation("production", &[]);
    installation.write("vault-token", VAULT_TOKEN);
    installation.write("secret-id", SECRET_ID);
    let login = if more.contains("approle") { "" } else { "token_file = 'vault-token'\n" };
    let vault = format!(
        "[credentials]\nrole_map = 'role-map.json'\n[credentials.vault]\nurl = 'http://{}'\npath = 'secret/data/pilot'\ntimeout_seconds = 1\n{login}{more}\n",
        double.address
    );
    configure(&installation, "production", &[MESH, RATE_LIMITS, IDENTITY, &vault]);
    installation
}

fn file() -> String {
    let entries = [("ana", "initiator", TOKEN)];
    crate::support::harness::expiring_credential_file(&entries, "2090-01-01T00:00:00Z")
}

fn second_version(fields: &Value) -> String {
    json!({
        "request_id": "a", "lease_id": "", "renewable": false, "lease_duration": 0,
        "data": {"data": fields, "metadata": {"created_time": "2026-01-01T00:00:00Z", "deletion_time": "", "destroyed": false, "version": 3}},
        "wrap_info": null, "warnings": null, "auth": null,
    })
    .to_string()
}

/// What a start says to one answer, whatever is asked.
#[track_caller]
fn refused_with(code: i32, status: u16, body: &str, words: &[&str]) -> Finished {
    let body = body.to_owned();
    let double = Double::start(move |_| Some((status, body.clone())));
    let refused = asking(&double, "").serve_in_vain().expect(code);
    refused.says(words);
    refused.never_says(VAULT_TOKEN);
    refused
}

#[test]
fn version_2_of_the_store_is_read_as_text_and_as_an_object() {
    let object: Value = serde_json::from_str(&file()).unwrap();
    for fields in [json!({"credentials": file()}), json!({"credentials": object})] {
        let double = Double::start(move |_| Some((200, second_version(&fields))));
        let installation = asking(&double, "namespace = 'team/a'");
        let server = installation.serve();
        assert_eq!(server.session(TOKEN).status, 200);
        server.stop().expect(0);
        let asked = double.asked();
        assert_eq!(asked.len(), 1, "read once: {asked:?}");
        for line in ["get /v1/secret/data/pilot http/1.1", "x-vault-namespace: team/a", "x-vault-request: true"] {
            assert!(asked[0].contains(line), "{line:?} is missing in {asked:?}");
        }
    }
}

#[test]
fn the_token_of_an_app_role_is_revoked_as_soon_as_it_has_served_even_when_it_could_read_nothing() {
    for (status, code) in [(200, 0), (403, 2)] {
        let double = Double::start(move |line| {
            Some(match line {
                line if line.contains("/login") => (200, json!({"auth": {"client_token": VAULT_TOKEN}}).to_string()),
                line if line.contains("revoke-self") => (204, String::new()),
                _ => (status, second_version(&json!({"credentials": file()}))),
            })
        });
        let approle = "[credentials.vault.approle]\nrole_id = 'r'\nsecret_id_file = 'secret-id'\nmount = 'machines'\n";
        let installation = asking(&double, approle);
        installation.pilot(&["check-config"]).expect(code).never_says(VAULT_TOKEN);
        let asked = double.asked();
        let lines: Vec<_> = asked.iter().map(|request| request.lines().next().unwrap()).collect();
        let expected = ["post /v1/auth/machines/login", "get /v1/secret/data/pilot", "post /v1/auth/token/revoke-self"];
        assert_eq!(lines, expected.map(|line| format!("{line} http/1.1")));
        assert!(asked[0].ends_with(&json!({"role_id": "r", "secret_id": SECRET_ID}).to_string()), "{asked:?}");
        assert!(asked[2].contains(&format!("x-vault-token: {VAULT_TOKEN}")), "{asked:?}");
    }
}

#[test]
fn a_denial_is_repeated_without_the_secrets_in_it() {
    let errors = json!({"errors": ["1 error occurred:\n\t* permission denied", format!("no {VAULT_TOKEN}!")]});
    let words =
        ["denies reading secret/data/pilot (403: 1 error occurred: * permission denied; no (withheld)!)", "policy"];
    refused_with(2, 403, &errors.to_string(), &words);
    let other = "b".repeat(40);
    refused_with(2, 403, &json!({"errors": [format!("a={other}")]}).to_string(), &["(403: (withheld))"])
        .never_says(&other);
    let deleted = json!({"data": {"data": null, "metadata": {"deletion_time": "2026-01-01T00:00:00Z", "version": 2}}});
    refused_with(2, 404, &deleted.to_string(), &["has nothing at secret/data/pilot (404)"]);
}

#[test]
fn an_answer_that_is_not_what_it_should_be_starts_nothing() {
    let cannot = ["as Vault does; check url"];
    for body in ["", "hello", "[]", "{}", "{\"data\":null}", "{\"data\":{},\"data\":{}}", &"[".repeat(100)] {
        refused_with(2, 200, body, &cannot);
    }
    refused_with(2, 418, "{}", &["does not answer (418) as Vault does"]);
    refused_with(2, 307, "", &["answers with a redirect, which is not followed"]);
    let twice =
        second_version(&json!({"credentials": 0})).replace(":0}", ":{\"schema_version\":2,\"schema_version\":1}}");
    refused_with(2, 200, &twice, &cannot);
    refused_with(
        2,
        200,
        &second_version(&json!({"credentials": file().replace("initiator", "emperor")})),
        &["`credentials` in secret/data/pilot at http://", "/credentials/0/roles"],
    );
    let digest = "e".repeat(64);
    refused_with(2, 200, &second_version(&json!({ "credentials": digest })), &["is not valid JSON"])
        .never_says(&digest);
    for status in [429, 500, 503] {
        refused_with(
            3,
            status,
            "{\"errors\":[\"Vault is sealed\"]}",
            &[&format!("is not ready ({status}: Vault is sealed)")],
        );
    }
}

#[test]
fn an_answer_without_end_and_one_that_never_comes_are_given_up() {
    refused_with(2, 200, &" ".repeat(33 * 1024 * 1024), &["answered more than 32 MiB"]);
    let large = second_version(&json!({"credentials": "x".repeat(17 * 1024 * 1024)}));
    refused_with(2, 200, &large, &["has more than 16 MiB in `credentials` at secret/data/pilot"]);
    let double = Double::start(|_| None);
    let installation = asking(&double, "");
    let began = now();
    installation.serve_in_vain().expect(3).says(&["cannot be reached", "no answer within 1 s"]);
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}
