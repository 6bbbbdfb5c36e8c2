//! Over TLS: whom a node believes, and how it proves who it is.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use pilot_core::time::Time;
use pilot_store::postgres::{Access, Identity, Postgres};
use pilot_store::{Result, Store, StoreError};
use pilot_testing::postgres::{self, CERTIFIED, Cluster, ServerKey, Settings, until};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Those whose signatures name a hash.
const BINDING: [ServerKey; 2] = [ServerKey::Rsa, ServerKey::Ecdsa];

/// One for each kind of key, started when it is first needed.
fn cluster(key: ServerKey) -> &'static Cluster {
    static CLUSTERS: [OnceLock<Cluster>; 3] = [const { OnceLock::new() }; 3];
    let start = || Cluster::start(&Settings { access: postgres::Access::Tls(key), ..Settings::default() });
    CLUSTERS[key as usize].get_or_init(start)
}

/// With a password in a file, which goes with what is returned first.
fn with_password(cluster: &Cluster, options: &str) -> (TempDir, Access) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("password");
    fs::write(&path, format!("{}\n", cluster.password())).unwrap();
    let access = Access { password_file: Some(path), ..anonymous(cluster, "postgres", options) };
    (directory, access)
}

fn with_certificate(cluster: &Cluster, options: &str) -> Access {
    let files = cluster.tls();
    let (client_certificate, client_key) = (Some(files.certificate), Some(files.key));
    Access { client_certificate, client_key, ..anonymous(cluster, CERTIFIED, options) }
}

/// Verifies the server, and shows nothing to it.
fn anonymous(cluster: &Cluster, user: &str, options: &str) -> Access {
    let url = cluster.url_for(user, cluster.fresh_database().name());
    Access { url: format!("{url}{options}"), ca_file: Some(cluster.tls().ca), ..Access::default() }
}

fn open(access: &Access) -> Result<Postgres> {
    Postgres::open(
        access,
        Identity { name: "node".into(), build: "test".into() },
        Arc::new(|| Time::EPOCH),
        Arc::new(|_| {}),
    )
}

#[track_caller]
fn refused(access: &Access, expected: &str) {
    let error = open(access).map(drop).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

fn is_encrypted(cluster: &Cluster, access: &Access) -> bool {
    let database = access.url.split(['/', '?']).nth(3).unwrap();
    let shown = "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)";
    cluster.sql("postgres", &format!("{shown} WHERE application_name = 'pilot' AND datname = '{database}'")) == "t"
}

#[test]
fn a_password_is_bound_to_the_connection() {
    for key in BINDING {
        let (_directory, access) = with_password(cluster(key), "?channel_binding=require");
        let store = open(&access).unwrap();
        assert!(is_encrypted(cluster(key), &access), "{key:?}");
        drop(store);
        let (_directory, access) = with_password(cluster(key), "");
        open(&Access { binds_channel: true, ..access }).unwrap();
    }
}

#[test]
fn a_server_in_between_cannot_pass_a_bound_password_on() {
    for key in BINDING {
        let cluster = cluster(key);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let between = runtime.block_on(listen_between(cluster));
        let (_directory, direct) = with_password(cluster, "?channel_binding=");
        let by_way_of_it = |binding: &str| {
            let url = direct.url.replace(&cluster.port().to_string(), &between.port().to_string());
            Access { url: format!("{url}{binding}"), ..direct.clone() }
        };
        // All that an impostor needs is a certificate: a client that binds nothing notices nothing.
        open(&by_way_of_it("disable")).unwrap();
        refused(&by_way_of_it("require"), "SCRAM channel binding check failed");
        refused(&by_way_of_it("prefer"), "SCRAM channel binding check failed");
    }
}

#[test]
fn a_certificate_is_enough_without_a_password() {
    for key in [ServerKey::Rsa, ServerKey::Ecdsa, ServerKey::Ed25519] {
        let access = with_certificate(cluster(key), "");
        let store = open(&access).unwrap();
        assert!(is_encrypted(cluster(key), &access), "{key:?}");
        drop(store);
        refused(&anonymous(cluster(key), CERTIFIED, ""), "connection requires a valid client certificate");
    }
}

#[test]
fn nothing_is_bound_by_a_signature_without_a_hash() {
    let cluster = cluster(ServerKey::Ed25519);
    let (_directory, access) = with_password(cluster, "");
    open(&access).unwrap();
    let strict = Access { binds_channel: true, ..access };
    refused(&strict, "channel binding");
    open(&Access { url: format!("{}?channel_binding=disable", strict.url), ..strict }).unwrap();
}

#[test]
fn a_server_with_another_issuer_is_refused() {
    let [rsa, ecdsa] = BINDING.map(cluster);
    let (_directory, access) = with_password(rsa, "");
    refused(&Access { ca_file: Some(ecdsa.tls().ca), ..access.clone() }, "invalid peer certificate");
    // Nor does the system trust the issuer of the test.
    let url = format!("{}?sslmode=require", access.url);
    let error = open(&Access { ca_file: None, url, ..access }).map(drop).unwrap_err().to_string();
    assert!(error.contains("invalid peer certificate") || error.contains("the system has none"), "{error}");
}

#[test]
fn a_server_with_another_name_is_refused() {
    for key in BINDING {
        let (_directory, access) = with_password(cluster(key), "?hostaddr=127.0.0.1");
        let called = |name: &str| Access { url: access.url.replace("@127.0.0.1", name), ..access.clone() };
        open(&called("@localhost")).unwrap();
        refused(&called("@db.example"), "certificate not valid for name");
        refused(&called("@127.0.0.2"), "certificate not valid for name");
    }
}

#[test]
fn without_tls_there_is_no_connection_if_either_side_wants_it() {
    let (_directory, access) = with_password(cluster(ServerKey::Rsa), "?sslmode=disable");
    refused(&Access { ca_file: None, ..access.clone() }, "no encryption");
    let plain = Cluster::shared();
    let url = format!("{}?sslmode=require", plain.url("postgres"));
    refused(&Access { url, ..access }, "server does not support TLS");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_password_is_used_without_a_restart() {
    let cluster = cluster(ServerKey::Rsa);
    cluster.sql("postgres", "CREATE ROLE rotating SUPERUSER LOGIN PASSWORD 'first'");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    fs::write(&file, "first").unwrap();
    let access = Access { password_file: Some(file.clone()), ..anonymous(cluster, "rotating", "") };
    let store = open(&access).unwrap();
    store.fact("nothing").await.unwrap();

    let end_connections = || {
        cluster.sql("postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'rotating'");
    };
    cluster.sql("postgres", "ALTER ROLE rotating PASSWORD 'second'");
    end_connections();
    let ask = || tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(store.fact("nothing")));
    let fails = |why: &str| ask().err().filter(|error| error.to_string().contains(why));
    until("the old password to be refused", || fails("password authentication failed"));
    fs::write(&file, "second\n").unwrap();
    until("the new password to be used", || ask().ok());

    fs::remove_file(&file).unwrap();
    ask().unwrap();
    end_connections();
    let error = until("the password to be missed", || fails("password missing"));
    assert!(matches!(error, StoreError::Unavailable(_)), "{error}");
}

/// Answers as the server would, with a certificate of the same issuer for the same name, and passes everything on.
async fn listen_between(cluster: &'static Cluster) -> SocketAddr {
    let ca = cluster.tls().ca;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let acceptor = acceptor(&ca);
    let connector = connector(&ca);
    tokio::spawn(async move {
        loop {
            let (mut client, _) = listener.accept().await.unwrap();
            let (acceptor, connector) = (acceptor.clone(), connector.clone());
            tokio::spawn(async move {
                let mut request = [0; 8];
                client.read_exact(&mut request).await?;
                client.write_all(b"S").await?;
                let mut client = acceptor.accept(client).await?;
                let mut server = TcpStream::connect(("127.0.0.1", cluster.port())).await?;
                server.write_all(&request).await?;
                assert_eq!(server.read_u8().await?, b'S');
                let name = ServerName::try_from("127.0.0.1").unwrap();
                let mut server = connector.connect(name, server).await?;
                copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    address
}

fn connector(ca: &Path) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn acceptor(ca: &Path) -> TlsAcceptor {
    let directory = tempfile::tempdir().unwrap();
    let [certificate, key] = ["impostor.pem", "impostor.key"].map(|name| directory.path().join(name));
    issue(ca, &certificate, &key);
    let chain = vec![CertificateDer::from_pem_file(&certificate).unwrap()];
    let key = PrivateKeyDer::from_pem_file(&key).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    TlsAcceptor::from(Arc::new(builder.with_no_client_auth().with_single_cert(chain, key).unwrap()))
}

fn issue(ca: &Path, certificate: &Path, key: &Path) {
    let ca_key: PathBuf = ca.with_extension("key");
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-noenc", "-days", "2", "-newkey", "rsa:2048", "-subj", "/CN=impostor"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.arg("-CA").arg(ca).arg("-CAkey").arg(ca_key).arg("-out").arg(certificate).arg("-keyout").arg(key);
    assert!(openssl.output().unwrap().status.success());
}
