//! A real timestamping authority, made with openssl: what it signs dates the entries, and anyone can check it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pilot_evidence::bundle::zip::read;

use crate::operations::second_place::{verifier_key, work};
use crate::support::harness::{Finished, Installation, PATIENCE, Port, Server, now};
use crate::support::team::{team, token};

const CONFIGURATION: &str = "\
[tsa]
default_tsa = here
[here]
serial = serial
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
ess_cert_id_alg = sha256
";

/// What the authority answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    Timestamps,
    /// The reply to another request.
    TheSameAgain,
    TooMuch,
    Nothing,
}

struct Tsa {
    directory: PathBuf,
    address: SocketAddr,
    answers: Arc<Mutex<Answers>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

fn openssl(directory: &Path, arguments: &str) -> String {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output();
    let output = output.expect("openssl is needed (Debian's package openssl)");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "openssl {arguments}: {}\n{said}", output.status);
    said
}

impl Tsa {
    /// A CA, a certificate for timestamps, and a server that answers each request with `openssl ts`.
    fn start(installation: &Installation, name: &str) -> Tsa {
        let directory = installation.path(name);
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(directory.join("tsa.cnf"), CONFIGURATION).unwrap();
        std::fs::write(directory.join("serial"), "01\n").unwrap();
        let purpose =
            "extendedKeyUsage=critical,timeStamping\nkeyUsage=critical,digitalSignature\nbasicConstraints=CA:FALSE\n";
        std::fs::write(directory.join("purpose"), purpose).unwrap();
        let ec = "-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes";
        openssl(&directory, &format!("req -x509 {ec} -keyout ca.key -out ca.pem -subj /CN={name} -days 3650"));
        openssl(&directory, "req -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.csr -subj /CN=clock");
        openssl(&directory, "x509 -req -in tsa.csr -CA ca.pem -CAkey ca.key -days 365 -extfile purpose -out tsa.pem");
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (answers, is_over) = (Arc::new(Mutex::new(Answers::Timestamps)), Arc::new(AtomicBool::new(false)));
        let (told, over, place) = (Arc::clone(&answers), Arc::clone(&is_over), directory.clone());
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let answers = *told.lock().unwrap();
                answer(&mut stream.unwrap(), &place, answers);
            }
        });
        Tsa { directory, address, answers, is_over, thread: Some(thread) }
    }

    fn now_answers(&self, answers: Answers) {
        *self.answers.lock().unwrap() = answers;
    }

    fn certificate(&self) -> String {
        self.directory.join("ca.pem").display().to_string()
    }
}

impl Drop for Tsa {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
        let _ = self.thread.take().unwrap().join();
    }
}

fn answer(stream: &mut TcpStream, directory: &Path, answers: Answers) {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    assert!(head.contains("content-type: application/timestamp-query"), "{head}");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok()).unwrap();
    let mut query = vec![0; length];
    stream.read_exact(&mut query).unwrap();
    let status = if answers == Answers::Nothing { "503 Away" } else { "200 OK" };
    if answers == Answers::Timestamps {
        std::fs::write(directory.join("query"), query).unwrap();
        openssl(directory, "ts -reply -config tsa.cnf -queryfile query -out reply");
    }
    let reply = match answers {
        Answers::TooMuch => vec![0; 17 * 1024],
        _ => std::fs::read(directory.join("reply")).unwrap_or_default(),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/timestamp-reply\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        reply.len()
    );
    // A service that is being stopped hangs up.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&reply));
}

fn configure(installation: &Installation, tsa: &Tsa, ops: &Port) {
    let (url, ops) = (format!("http://{}/tsr", tsa.address), ops.address());
    installation.write(
        "pilot.toml",
        &format!("listen = \"127.0.0.1:0\"\n[log.timestamps]\nurl = \"{url}\"\n[ops]\nlisten = \"{ops}\"\n"),
    );
}

fn metric(ops: &Port, name: &str) -> u64 {
    let text = ops.metrics();
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).trim().parse().unwrap()
}

#[track_caller]
fn wait_for(ops: &Port, name: &str, at_least: u64) {
    let begun = now();
    while metric(ops, name) < at_least {
        assert!(begun.elapsed() < PATIENCE, "{name} stays below {at_least}");
        thread::yield_now();
    }
}

fn export(installation: &Installation, server: &Server, bundle: &str) {
    let span = ["--from", "2020-01-01T00:00:00Z", "--to", "2100-01-01T00:00:00Z"];
    let url = server.url();
    let arguments = [&["evidence", "export", "--url", &url, "--out", bundle][..], &span].concat();
    installation.pilot_as(&token("ada"), &arguments).expect(0);
}

#[test]
fn timestamps_of_a_real_authority_are_in_the_evidence_and_date_its_entries() {
    let installation = team();
    let (tsa, other, ops) = (Tsa::start(&installation, "tsa"), Tsa::start(&installation, "other"), Port::reserve());
    configure(&installation, &tsa, &ops);
    let server = installation.serve();
    wait_for(&ops, "pilot_timestamped_entries", 1);
    work(&server, 3);
    server.stop().expect(0);
    // A start asks at once.
    let server = installation.serve();
    wait_for(&ops, "pilot_timestamped_entries", 5);
    assert_eq!(metric(&ops, "pilot_timestamps_up"), 1);
    export(&installation, &server, "all.zip");
    server.stop().expect(0);
    let key = verifier_key(&installation).to_string();
    let verify =
        |more: &[&str]| installation.pilot(&[&["evidence", "verify", "all.zip", "--key", &key][..], more].concat());
    let times = |finished: Finished| {
        finished.stdout.lines().find(|line| line.starts_with("times  ")).unwrap_or_default().to_owned()
    };
    let dated = times(verify(&["--tsa", &tsa.certificate()]).expect(0));
    assert_eq!(dated, "times         ✓ holds        every entry fits the times of 2 timestamps");
    verify(&["--tsa", &other.certificate(), "--tsa", &tsa.certificate()]).expect(0);
    assert!(times(verify(&[]).expect(0)).starts_with("times         – not checked"));
    // Anyone could have answered in the authority's place: what nobody trusted has signed says nothing.
    let untrusted = times(verify(&["--tsa", &other.certificate()]).expect(0));
    assert!(untrusted.starts_with("times         – not checked"), "{untrusted}");
    assert!(untrusted.contains("its certificate is not trusted for timestamps at 20"), "{untrusted}");
    assert!(untrusted.ends_with("UnknownIssuer"), "{untrusted}");
    verify(&["--tsa", "pilot.toml"]).expect(2).says(&["--tsa: pilot.toml: it has no certificate"]);
    // Without Pilot.
    let bundle = std::fs::read(installation.path("all.zip")).unwrap();
    let stamps: Vec<_> =
        read(&bundle).unwrap().into_iter().filter(|file| file.path.starts_with("timestamps/")).collect();
    assert_eq!(stamps.len(), 4, "two checkpoints and two replies");
    for pair in stamps.chunks(2) {
        std::fs::write(tsa.directory.join("checkpoint"), pair[0].bytes).unwrap();
        std::fs::write(tsa.directory.join("checkpoint.tsr"), pair[1].bytes).unwrap();
        let said = openssl(&tsa.directory, "ts -verify -data checkpoint -in checkpoint.tsr -CAfile ca.pem");
        assert!(said.contains("Verification: OK"), "{said}");
    }
}

#[test]
fn an_authority_that_is_away_or_answers_something_else_delays_nobody_and_is_named() {
    let installation = team();
    let (tsa, ops) = (Tsa::start(&installation, "tsa"), Port::reserve());
    configure(&installation, &tsa, &ops);
    let server = installation.serve();
    wait_for(&ops, "pilot_timestamped_entries", 1);
    server.stop().expect(0);
    for (answers, words) in [
        (Answers::Nothing, "it answered 503"),
        (Answers::TheSameAgain, "it is a timestamp of something else"),
        (Answers::TooMuch, "it cannot be reached: length limit exceeded"),
    ] {
        tsa.now_answers(answers);
        let server = installation.serve();
        work(&server, 1);
        wait_for(&ops, "pilot_timestamp_failures_total", 1);
        assert_eq!(metric(&ops, "pilot_timestamps_up"), 0);
        server.wait_for_log("the timestamping authority has not timestamped the log");
        export(&installation, &server, &format!("{answers:?}.zip"));
        server.stop().expect(0).says(&[words]);
    }
    let key = verifier_key(&installation).to_string();
    let arguments = ["evidence", "verify", "Nothing.zip", "--key", &key, "--tsa", &tsa.certificate()];
    let verdict = installation.pilot(&arguments).expect(0).stdout;
    assert!(
        verdict.contains("the entries before 1 fit; nobody who is trusted has dated those after them\n"),
        "{verdict}"
    );
}
