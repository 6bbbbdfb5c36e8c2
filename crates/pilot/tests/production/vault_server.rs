//! A real server that speaks Vault's protocol: RustyVault, in a directory of its own, with a root token.

use std::fs;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use http::header::HeaderName;
use http::{HeaderValue, Method};
use pilot_wire::outgoing::{Outgoing, request};
use serde_json::{Value, json};

use crate::support::authority::Pair;
use crate::support::harness::{Installation, PATIENCE, Port, now};

pub struct VaultServer {
    place: Installation,
    port: Port,
    child: Option<Child>,
    pub url: String,
    outgoing: Outgoing,
    unseal_key: String,
    pub root_token: String,
}

/// `cargo xtask vault` puts it beside what cargo builds.
fn program() -> PathBuf {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_pilot"));
    let program = built.parent().unwrap().parent().unwrap().join("tools/bin/rvault");
    assert!(program.exists(), "{} is missing: run `cargo xtask vault`, which builds it", program.display());
    program
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

impl VaultServer {
    /// Initialised and unsealed; with TLS when it is given a pair and who issued it.
    pub fn start(tls: Option<(&Pair, &str)>) -> VaultServer {
        let (place, port) = (Installation::bare(), Port::reserve());
        let mut listener = json!({"address": port.address().to_string(), "tls_disable": "true"});
        let mut ca_file = None;
        if let Some((pair, ca)) = tls {
            let (certificate, key) = (place.write("v.pem", &pair.certificate), place.write("v.key", &pair.key));
            listener = json!({"address": port.address().to_string(), "tls_disable": "false", "tls_cert_file": certificate, "tls_key_file": key, "tls_disable_client_certs": "true"});
            ca_file = Some(place.write("ca.pem", ca));
        }
        fs::create_dir(place.path("store")).unwrap();
        let config = json!({
            "storage": {"file": {"path": place.path("store")}},
            "listener": {"tcp": listener},
            "log_level": "error",
            "daemon": false,
            "pid_file": place.path("pid"),
            "work_dir": place.path(""),
        });
        place.write("config.json", &config.to_string());
        let url = format!("{}://{}", if tls.is_some() { "https" } else { "http" }, port.address());
        let outgoing = Outgoing::new(tls.is_some(), ca_file.as_deref()).unwrap();
        let (unseal_key, root_token) = (String::new(), String::new());
        let mut server = VaultServer { place, port, child: None, url, outgoing, unseal_key, root_token };
        server.run();
        let made = server.call(Method::PUT, "sys/init", &json!({"secret_shares": 1, "secret_threshold": 1}));
        server.unseal_key = text(&made["keys"][0]);
        server.root_token = text(&made["root_token"]);
        server.unseal();
        server
    }

    fn run(&mut self) {
        let mut command = Command::new(program());
        command.args(["server", "--config"]).arg(self.place.path("config.json"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        let began = now();
        while TcpStream::connect(self.port.address()).is_err() {
            assert!(began.elapsed() < PATIENCE, "the secret manager does not listen");
            std::thread::yield_now();
        }
    }

    pub fn unseal(&self) {
        let answer = self.call(Method::PUT, "sys/unseal", &json!({"key": self.unseal_key}));
        assert_eq!(answer["sealed"], false, "{answer}");
    }

    pub fn seal(&self) {
        self.call(Method::PUT, "sys/seal", &json!({}));
    }

    pub fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// As root; what is not answered with a success ends the test.
    pub fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let uri = format!("{}/v1/{path}", self.url).parse().unwrap();
        let token = (HeaderName::from_static("x-vault-token"), HeaderValue::from_str(&self.root_token).unwrap());
        let asked = self.outgoing.ask(request(method, &uri, &[token], body.to_string()), PATIENCE);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let reply = runtime.block_on(asked).unwrap();
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(matches!(reply.status, 200 | 204), "{path}: {} {text}", reply.status);
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Writes a secret of version 1.
    pub fn put(&self, path: &str, fields: &Value) {
        self.call(Method::POST, path, fields);
    }

    /// An AppRole: its role_id, and a secret_id for it.
    pub fn make_role(&self) -> (String, String) {
        self.call(Method::POST, "sys/auth/approle", &json!({"type": "approle"}));
        self.call(Method::POST, "auth/approle/role/pilot", &json!({"token_ttl": "60s"}));
        let role = self.call(Method::GET, "auth/approle/role/pilot/role-id", &json!({}));
        let secret = self.call(Method::POST, "auth/approle/role/pilot/secret-id", &json!({}));
        (text(&role["data"]["role_id"]), text(&secret["data"]["secret_id"]))
    }
}

impl Drop for VaultServer {
    fn drop(&mut self) {
        self.stop();
    }
}
