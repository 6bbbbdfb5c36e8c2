//! Certificates for a server and its clients, made with openssl.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::home::Home;
use super::installation::{give_to_server, output};

/// The role that a client certificate stands for. A superuser without a password.
pub const CERTIFIED: &str = "certified";

pub(super) const ACCESS: &str = "hostssl all certified 127.0.0.1/32 cert\nhostssl all all 127.0.0.1/32 scram-sha-256\n";

/// The keys of the server, of its clients and of the authority that signs their certificates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKey {
    Rsa,
    /// P-384, so that the hash of the signature is not the usual SHA-256.
    Ecdsa,
    /// Its signatures name no hash, so that channel binding is not defined for them (RFC 5929). Neither PostgreSQL nor
    /// its clients can do it: a password works only without it.
    Ed25519,
}

impl ServerKey {
    fn options(self) -> &'static [&'static str] {
        match self {
            ServerKey::Rsa => &["-newkey", "rsa:2048", "-sha256"],
            ServerKey::Ecdsa => &["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-sha384"],
            ServerKey::Ed25519 => &["-newkey", "ed25519"],
        }
    }
}

/// For a client of a server with TLS.
#[derive(Debug)]
pub struct ClientFiles {
    /// The authority that signed the server's certificate, which is for 127.0.0.1 and localhost.
    pub ca: PathBuf,
    /// Of [`CERTIFIED`].
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl ClientFiles {
    pub(super) fn of(home: &Home) -> ClientFiles {
        let directory = directory(home);
        assert!(directory.is_dir(), "this server has no TLS");
        let [ca, certificate, key] = ["ca.pem", "client.pem", "client.key"].map(|name| directory.join(name));
        ClientFiles { ca, certificate, key }
    }
}

/// Inside of the data, so that standbys get a copy.
fn directory(home: &Home) -> PathBuf {
    home.data().join("tls")
}

pub(super) fn prepare(home: &Home, key: ServerKey) {
    let directory = directory(home);
    fs::create_dir(&directory).unwrap();
    create(&directory, "ca", key, &["-subj", "/CN=authority"]);
    let by_ca = ["-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE"];
    let names = ["-subj", "/CN=server", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
    create(&directory, "server", key, &[&by_ca[..], &names].concat());
    create(&directory, "client", key, &[&by_ca[..], &["-subj", &format!("/CN={CERTIFIED}")]].concat());
    for entry in fs::read_dir(&directory).unwrap() {
        give_to_server(&entry.unwrap().path());
    }
    give_to_server(&directory);
    home.configure([
        ("ssl", "on"),
        ("ssl_ca_file", "tls/ca.pem"),
        ("ssl_cert_file", "tls/server.pem"),
        ("ssl_key_file", "tls/server.key"),
    ]);
}

/// `NAME.pem` and `NAME.key`.
fn create(directory: &Path, name: &str, key: ServerKey, options: &[&str]) {
    let mut openssl = Command::new("openssl");
    openssl.current_dir(directory).args(["req", "-x509", "-noenc", "-days", "2"]).args(key.options()).args(options);
    openssl.args(["-out", &format!("{name}.pem"), "-keyout", &format!("{name}.key")]);
    output(&mut openssl);
}
