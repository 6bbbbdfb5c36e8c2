//! Requests the service makes itself, against a server that speaks TLS, lies, or says nothing.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Uri;
use pilot_testing::Scratch;
use pilot_wire::outgoing::{Outgoing, OutgoingError, Reach, Receipt, Target, TrustError};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// Far beyond what loopback needs.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers each connection with these bytes, behind a certificate for `localhost`; gives its address and certificate.
async fn server(answer: String) -> (Uri, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/add-checkpoint", listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            // A client that does not trust us goes away in the middle.
            let Ok(mut stream) = acceptor.accept(socket).await else { continue };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    (url.parse().unwrap(), made.cert.pem())
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn a_server_is_trusted_by_its_certificate_authority_alone() {
    let scratch = Scratch::new();
    let (url, certificate) = server(answer("200 OK", "", "hello")).await;
    let file = scratch.write("trusted", &certificate);
    let reply = Outgoing::new(true, Some(&file)).unwrap().post(&url, "x".into(), PATIENCE).await.unwrap();
    assert_eq!((reply.status, &reply.body[..]), (200, &b"hello"[..]));
    // By an address that is not in the certificate, and by a stranger's authority.
    let other: Uri = url.to_string().replace("localhost", "127.0.0.1").parse().unwrap();
    let refused = Outgoing::new(true, Some(&file)).unwrap().post(&other, "x".into(), PATIENCE).await;
    assert!(refused.err().unwrap().to_string().contains("certificate"));
    let stranger = scratch.write("stranger", &server(String::new()).await.1);
    let refused = Outgoing::new(true, Some(&stranger)).unwrap().post(&url, "x".into(), PATIENCE).await;
    assert!(refused.err().unwrap().to_string().contains("certificate"));
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let scratch = Scratch::new();
    let (url, certificate) = server(answer("302 Found", "Location: http://127.0.0.1:1/\r\n", "")).await;
    let file = scratch.write("redirect", &certificate);
    let reply = Outgoing::new(true, Some(&file)).unwrap().post(&url, "x".into(), PATIENCE).await.unwrap();
    assert_eq!(reply.status, 302);
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_never_comes_is_given_up() {
    let scratch = Scratch::new();
    let (url, certificate) = server(answer("200 OK", "", &"x".repeat(300 * 1024))).await;
    let file = scratch.write("long", &certificate);
    let outgoing = Outgoing::new(true, Some(&file)).unwrap();
    assert!(matches!(outgoing.post(&url, "x".into(), PATIENCE).await, Err(OutgoingError::Failed(_))));
    // Accepted by the kernel, answered by nobody.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Uri = format!("https://localhost:{}/", silent.local_addr().unwrap().port()).parse().unwrap();
    let given_up = outgoing.post(&url, "x".into(), Duration::from_millis(50)).await;
    assert!(matches!(given_up, Err(OutgoingError::TooSlow(_))));
}

#[test]
fn a_file_without_certificates_is_refused_by_name() {
    let scratch = Scratch::new();
    for (name, text) in [("empty", ""), ("text", "no certificate"), ("cut", "-----BEGIN CERTIFICATE-----\nAAAA\n")] {
        let file = scratch.write(name, text);
        let Err(error) = Outgoing::new(true, Some(&file)) else { panic!("{name} was taken") };
        assert!(matches!(error, TrustError::Unusable { .. }) && error.to_string().contains(name), "{error}");
    }
    assert!(matches!(Outgoing::new(true, Some("no/such/file".as_ref())), Err(TrustError::Unreadable { .. })));
}

/// Opens this machine, and one port of it.
fn this_machine(port: u16) -> Reach {
    Reach { allows: Box::new(|address| address.is_loopback()), ports: vec![port], http: false }
}

async fn deliver(outgoing: &Outgoing, url: &str, reach: &Reach) -> Result<Receipt, String> {
    let target = Target::parse(url, reach).map_err(|error| error.to_string())?;
    let sent = outgoing.deliver(&target, reach, &[], Bytes::from_static(b"{}"), PATIENCE).await;
    sent.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_delivery_goes_over_tls_to_what_was_opened_and_follows_no_redirect() {
    let scratch = Scratch::new();
    let headers = "Location: http://127.0.0.1:1/\r\nRetry-After: 7\r\n";
    let (url, certificate) = server(answer("307 Temporary Redirect", headers, &"x".repeat(100_000))).await;
    let (text, port) = (url.to_string(), url.port_u16().unwrap());
    let trusting = Outgoing::new(true, Some(&scratch.write("trusted", &certificate))).unwrap();
    let receipt = deliver(&trusting, &text, &this_machine(port)).await;
    assert_eq!(receipt, Ok(Receipt { status: 307, retry_after: Some(Duration::from_secs(7)) }));
    // A name that leads to this machine, which is not opened; and a certificate of nobody who is trusted.
    let closed = Reach { ports: vec![port], ..Reach::public() };
    let refused = deliver(&trusting, &text, &closed).await.unwrap_err();
    assert!(refused.contains("which is not allowed: loopback"), "{refused}");
    let stranger = Outgoing::new(true, Some(&scratch.write("stranger", &server(String::new()).await.1))).unwrap();
    assert!(deliver(&stranger, &text, &this_machine(port)).await.unwrap_err().contains("certificate"));
}

#[tokio::test]
async fn a_delivery_to_someone_who_says_nothing_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let reach = Reach { http: true, ..this_machine(port) };
    let target = Target::parse(&format!("http://127.0.0.1:{port}/"), &reach).unwrap();
    let patience = Duration::from_millis(200);
    let sent = Outgoing::plain().deliver(&target, &reach, &[], Bytes::new(), patience).await;
    assert!(matches!(sent, Err(OutgoingError::TooSlow(_))));
}

/// Says what it is given to say, and then neither goes on nor ends.
async fn unfinished(said: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        stream.write_all(said.as_bytes()).await.unwrap();
        // Until the other side has gone.
        while stream.read(&mut [0; 4096]).await.is_ok_and(|read| read > 0) {}
    });
    port
}

#[tokio::test]
async fn a_status_that_arrived_stands_whatever_becomes_of_the_body() {
    let long = "x".repeat(100_000);
    for said in [
        // Its body never comes, comes in part, is cut off, or is too long.
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nnot a chunk\r\n",
        &format!("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{long}"),
    ] {
        let port = unfinished(said.to_owned()).await;
        let reach = Reach { http: true, ..this_machine(port) };
        let target = Target::parse(&format!("http://127.0.0.1:{port}/"), &reach).unwrap();
        // Less than the body is waited for.
        let patience = Duration::from_millis(500);
        let sent = Outgoing::plain().deliver(&target, &reach, &[], Bytes::new(), patience).await;
        assert_eq!(sent.unwrap().status, 200, "{}", said.get(..60).unwrap_or(said));
    }
}
