//! Somebody else's mail server, and certificates for it. The tests of the program have it too.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use pilot_notices::mail::{MailServer, MailTls};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    port: u16,
    directory: TempDir,
}

impl Server {
    /// `mode` is `implicit`, `starttls` or `clear`.
    pub(crate) fn start(mode: &str) -> Server {
        let directory = tempfile::tempdir().unwrap();
        write_certificates(directory.path());
        let mut command = Command::new(python());
        command.args(["-W", "ignore"]);
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../pilot-notices/tests/readers/server.py")).arg(mode);
        command.args(["tls.pem", "tls.key"].map(|name| directory.path().join(name)));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        Server { child, lines, port, directory }
    }

    /// How Pilot would be told about it, with the right password.
    pub(crate) fn settings(&self, tls: MailTls) -> MailServer {
        MailServer {
            host: "127.0.0.1".to_owned(),
            port: self.port,
            tls,
            login: Some(("pilot".to_owned(), "correct horse".to_owned().into())),
            from: "Pilot <pilot@example.com>".to_owned(),
            ca_file: Some(self.directory.path().join("ca.pem")),
        }
    }

    /// The next mail it has accepted.
    pub(crate) fn accepted(&mut self) -> Value {
        serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Where `cargo xtask notices` puts the mail server.
fn python() -> PathBuf {
    let built = std::env::current_exe().unwrap();
    let target = built.ancestors().nth(3).unwrap();
    let python = target.join("tools/notices-1/bin/python3");
    assert!(python.exists(), "{} is missing: run `cargo xtask notices`, which installs it", python.display());
    python
}

fn write_certificates(directory: &Path) {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let key = KeyPair::generate().unwrap();
    let write = |name: &str, content: String| std::fs::write(directory.join(name), content).unwrap();
    write("ca.pem", authority.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(authority, key);
    let mut server = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().unwrap();
    write("tls.pem", server.signed_by(&key, &issuer).unwrap().pem());
    write("tls.key", key.serialize_pem());
}
