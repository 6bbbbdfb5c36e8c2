//! Entries sent to a syslog server: one in the test that can be made to fail, and a real one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{Follower, all_in_order, ends, index, indices, ledger_size, read, until};
use crate::operations::second_place::work;
use crate::support::authority::{Authority, Pair};
use crate::support::harness::Installation;
use crate::support::team::{team, token};

/// What a receiver does with a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    Reads,
    /// Reads a little, forgets it, and is gone.
    Breaks,
    /// Accepts, and never reads.
    Hangs,
}

/// A syslog server that treats each connection as it is told, and the last of these for all that follow.
struct Receiver {
    address: SocketAddr,
    messages: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

fn server_config(pair: &Pair) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
}

impl Receiver {
    fn start(pair: &Pair, manners: &'static [Manner]) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let receiver =
            Receiver { address: listener.local_addr().unwrap(), messages: Arc::default(), connections: Arc::default() };
        let (messages, connections) = (Arc::clone(&receiver.messages), Arc::clone(&receiver.connections));
        let config = server_config(pair);
        thread::spawn(move || {
            let mut held = Vec::new();
            for (number, socket) in listener.incoming().enumerate() {
                let manner = *manners.get(number).or(manners.last()).unwrap();
                let stream = StreamOwned::new(ServerConnection::new(Arc::clone(&config)).unwrap(), socket.unwrap());
                *connections.lock().unwrap() += 1;
                let messages = Arc::clone(&messages);
                match manner {
                    Manner::Hangs => held.push(shake_hands(stream)),
                    Manner::Reads | Manner::Breaks => drop(thread::spawn(move || take(stream, manner, &messages))),
                }
            }
        });
        receiver
    }

    fn indices(&self) -> Vec<u64> {
        let messages = self.messages.lock().unwrap();
        messages.iter().map(|message| index(message.split_once("] ").unwrap().1)).collect()
    }

    fn has_all(&self, size: u64) -> bool {
        self.messages.lock().unwrap().last().is_some_and(|last| last.contains(&format!(" index=\"{}\" ", size - 1)))
    }
}

fn shake_hands(mut stream: StreamOwned<ServerConnection, TcpStream>) -> StreamOwned<ServerConnection, TcpStream> {
    while stream.conn.is_handshaking() && stream.conn.complete_io(&mut stream.sock).is_ok() {}
    stream
}

fn take(mut stream: StreamOwned<ServerConnection, TcpStream>, manner: Manner, messages: &Mutex<Vec<String>>) {
    let (mut pending, mut buffer) = (Vec::new(), [0; 700]);
    loop {
        let Ok(length) = stream.read(&mut buffer) else { return };
        if length == 0 {
            stream.conn.send_close_notify();
            let _ = stream.flush();
            return;
        }
        if manner == Manner::Breaks {
            return;
        }
        pending.extend_from_slice(&buffer[..length]);
        while let Some(message) = framed(&mut pending) {
            messages.lock().unwrap().push(message);
        }
    }
}

/// The first message, if it is complete: its length, a space and so many bytes.
fn framed(pending: &mut Vec<u8>) -> Option<String> {
    let space = pending.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&pending[..space]).unwrap().parse().unwrap();
    let end = space + 1 + length;
    let message = pending.get(space + 1..end)?.to_vec();
    pending.drain(..end);
    Some(String::from_utf8(message).unwrap())
}

/// An installation with the authority of a syslog server that is at 127.0.0.1.
fn with_authority() -> (Installation, Pair) {
    let (installation, authority) = (team(), Authority::new("Syslog Authority"));
    installation.write("syslog-ca.pem", &authority.pem);
    (installation, authority.issue(&["127.0.0.1"], 1))
}

const CA: [&str; 2] = ["--syslog-ca-file", "syslog-ca.pem"];

#[test]
fn every_entry_reaches_a_syslog_server_that_breaks_off_in_the_middle() {
    let (installation, pair) = with_authority();
    let server = installation.serve();
    work(&server, 60);
    let receiver =
        Receiver::start(&pair, &[Manner::Breaks, Manner::Reads, Manner::Breaks, Manner::Breaks, Manner::Reads]);
    let address = receiver.address.to_string();
    let to = ["--to-syslog", &address, "--metrics", "follow.prom"];
    let follower = Follower::start(&installation, &server, &[&to[..], &CA].concat());
    for _ in 0..3 {
        work(&server, 20);
        let size = ledger_size(&server);
        until("everything has arrived", || receiver.has_all(size));
        until("and counts", || read(&installation, "sink/cursor.json").contains(&format!("\"next\":{size}")));
    }
    assert!(*receiver.connections.lock().unwrap() > 4, "it was broken off");
    follower.kill();
    work(&server, 5);
    let follower = Follower::start(&installation, &server, &[&to[..], &CA].concat());
    let size = ledger_size(&server);
    until("everything has arrived", || receiver.has_all(size));
    assert_eq!(follower.stop(), Some(0), "a stop ends the connection first");
    assert!(read(&installation, "sink/cursor.json").contains(&format!("\"next\":{size}")), "so that everything counts");
    all_in_order(&receiver.indices(), 0, size);
    let messages = receiver.messages.lock().unwrap();
    assert!(
        messages[0].starts_with("<109>1 20")
            && messages[0].contains(" pilot - service.started [pilot@32473 index=\"0\"")
    );
    let created = messages.iter().find(|message| message.contains(" item.created ")).unwrap();
    assert!(
        created.starts_with("<110>1 ") && created.contains(" actor=\"ana\" role=\"initiator\" log=\""),
        "{created}"
    );
    assert!(messages.iter().all(|message| !message.contains(&token("ada"))));
    println!("{size} entries, {} messages", messages.len());
}

#[test]
fn a_syslog_server_that_hangs_is_noticed_and_gets_everything_later() {
    let (installation, pair) = with_authority();
    let server = installation.serve();
    work(&server, 5);
    let receiver = Receiver::start(&pair, &[Manner::Hangs, Manner::Reads]);
    let address = receiver.address.to_string();
    let follower = Follower::start(&installation, &server, &[&["--to-syslog", &address][..], &CA].concat());
    until("it is noticed", || follower.says("does not answer the end of the connection"));
    assert!(read(&installation, "sink/cursor.json").contains("\"next\":0"), "nothing of it counts");
    let size = ledger_size(&server);
    until("everything has arrived", || receiver.has_all(size));
    all_in_order(&receiver.indices(), 0, size);
}

#[test]
fn a_syslog_server_that_cannot_prove_who_it_is_gets_nothing() {
    let (installation, pair) = with_authority();
    let server = installation.serve();
    installation.write("other-ca.pem", &Authority::new("Somebody Else").pem);
    let receiver = Receiver::start(&pair, &[Manner::Reads]);
    let address = receiver.address.to_string();
    let to = ["--to-syslog", &address, "--syslog-ca-file", "other-ca.pem"];
    ends(&installation, &server.url(), &to).expect(3).says(&["not trusted here", "--syslog-ca-file"]);
    let elsewhere = format!("localhost:{}", receiver.address.port());
    let to = ["--to-syslog", &elsewhere, CA[0], CA[1]];
    ends(&installation, &server.url(), &to).expect(3);
    let plain = server.address.to_string();
    ends(&installation, &server.url(), &["--to-syslog", &plain, CA[0], CA[1]]).expect(3).says(&["does not speak TLS"]);
    assert!(receiver.messages.lock().unwrap().is_empty());
}

/// rsyslog with a configuration and files of its own, run by the user who runs the tests.
struct Rsyslog(Child);

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const RSYSLOG: &str = r#"
global(workDirectory="DIR" maxMessageSize="68k" defaultNetstreamDriver="gtls"
       defaultNetstreamDriverCAFile="DIR/syslog-ca.pem"
       defaultNetstreamDriverCertFile="DIR/syslog.pem" defaultNetstreamDriverKeyFile="DIR/syslog.key")
module(load="imtcp" streamDriver.name="gtls" streamDriver.mode="1" streamDriver.authMode="anon")
input(type="imtcp" address="127.0.0.1" port="0" listenPortFileName="DIR/syslog.port")
template(name="entry" type="string" string="%msg%\n")
template(name="header" type="string" string="%pri% %timereported:::date-rfc3339% %app-name% %msgid% %structured-data%\n")
action(type="omfile" file="DIR/received.jsonl" template="entry")
action(type="omfile" file="DIR/received.headers" template="header")
"#;

fn rsyslog(installation: &Installation) -> Rsyslog {
    let directory = installation.path("");
    let text = RSYSLOG.replace("DIR", directory.to_str().unwrap().trim_end_matches('/'));
    installation.write("rsyslog.conf", &text);
    let mut command = Command::new("/usr/sbin/rsyslogd");
    command.arg("-n").arg("-f").arg(installation.path("rsyslog.conf")).arg("-i").arg(installation.path("rsyslog.pid"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let install =
        "rsyslogd is missing; install it with `apt-get install rsyslog rsyslog-gnutls`, as `cargo xtask check` does";
    Rsyslog(command.spawn().unwrap_or_else(|error| panic!("{install}: {error}")))
}

#[test]
fn rsyslog_receives_every_entry_and_reads_its_header() {
    let (installation, pair) = with_authority();
    installation.write("syslog.pem", &pair.certificate);
    installation.write("syslog.key", &pair.key);
    let server = installation.serve();
    work(&server, 50);
    let running = rsyslog(&installation);
    until("rsyslog listens (it needs the package rsyslog-gnutls)", || {
        read(&installation, "syslog.port").trim().parse::<u16>().is_ok()
    });
    let address = format!("127.0.0.1:{}", read(&installation, "syslog.port").trim());
    let to = ["--to-syslog", &address, "--app-name", "ledger", "--facility", "local3"];
    let follower = Follower::start(&installation, &server, &[&to[..], &CA].concat());
    work(&server, 50);
    let size = ledger_size(&server);
    until("rsyslog's answer counts", || read(&installation, "sink/cursor.json").contains(&format!("\"next\":{size}")));
    assert_eq!(follower.stop(), Some(0));
    until("rsyslog has written them", || read(&installation, "received.jsonl").lines().count() as u64 >= size);
    until("and their headers", || read(&installation, "received.headers").lines().count() as u64 >= size);
    all_in_order(&indices(&read(&installation, "received.jsonl")), 0, size);
    let headers = read(&installation, "received.headers");
    let first = headers.lines().next().unwrap();
    assert!(
        first.starts_with("157 20") && first.contains(" ledger service.started [pilot@32473 index=\"0\""),
        "{first}"
    );
    drop(running);
}
