//! A log whose key is in no file: in a real PKCS #11 token (SoftHSM), and with a program that does everything wrong that it
//! can.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::operations::second_place::{verifier_key, work};
use crate::support::harness::{Finished, Installation, PATIENCE, Server, now, set_mode};
use crate::support::team::{payload, person, submitted, team, token};

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "123456";
const NAME: &str = "log.example.org";

/// A token with a key in it.
struct Token<'i> {
    installation: &'i Installation,
}

impl Token<'_> {
    fn new(installation: &Installation) -> Token<'_> {
        installation.make_private_directory("tokens");
        let tokens = installation.path("tokens");
        let config = format!("directories.tokendir = {}\nobjectstore.backend = file\n", tokens.display());
        installation.write("softhsm2.conf", &config);
        installation.write("pin", &format!("{PIN}\n"));
        let token = Token { installation };
        token.run("softhsm2-util", &["--init-token", "--free", "--label", "pilot", "--pin", PIN, "--so-pin", "654321"]);
        token
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        succeed(Command::new(program).args(arguments).env("SOFTHSM2_CONF", self.installation.path("softhsm2.conf")));
    }

    /// A key that never was outside of the token.
    fn make_key(&self, label: &str) {
        let login = ["--module", MODULE, "--token-label", "pilot", "--login", "--pin", PIN];
        let make = ["--keypairgen", "--key-type", "EC:edwards25519", "--label", label];
        self.run("pkcs11-tool", &[&login[..], &make[..]].concat());
    }

    fn import(&self, label: &str, pem: &str) {
        let pem = self.installation.path(pem);
        let pem = pem.to_str().unwrap();
        self.run("softhsm2-util", &["--import", pem, "--token", "pilot", "--label", label, "--id", "02", "--pin", PIN]);
    }

    /// The configuration that signs with a key of this token.
    fn signs(&self, name: &str, key: &str) {
        self.signs_with_pin(name, key, "pin");
    }

    fn signs_with_pin(&self, name: &str, key: &str, pin: &str) {
        let path = |name: &str| self.installation.path(name).display().to_string();
        // The copy is the tests' own: the checkout may belong to someone else.
        let helper = self
            .installation
            .write("pilot-signer-pkcs11", include_str!("../../../../deploy/signer/pilot-signer-pkcs11"));
        set_mode(&helper, 0o700);
        let environment = format!("SOFTHSM2_CONF={}", path("softhsm2.conf"));
        let command = [
            "/usr/bin/env".into(),
            environment,
            helper.display().to_string(),
            MODULE.into(),
            "pilot".into(),
            key.into(),
            path(pin),
        ];
        configure(self.installation, name, &command, 5);
    }
}

/// A program that has to succeed.
fn succeed(command: &mut Command) {
    let done = command.output().unwrap();
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn configure(installation: &Installation, name: &str, command: &[String], timeout: u64) {
    let base = installation.read("pilot.toml");
    let base = base.split("[log.signer]").next().unwrap().trim_end().to_owned();
    let command = json!(command);
    let signer = format!("[log.signer]\nname = \"{name}\"\ncommand = {command}\ntimeout_seconds = {timeout}\n");
    installation.write("pilot.toml", &format!("{base}\n{signer}"));
}

fn configure_nothing(installation: &Installation) {
    let base = installation.read("pilot.toml");
    installation.write("pilot.toml", base.split("[log.signer]").next().unwrap());
}

fn pilot(installation: &Installation, words: &str) -> Finished {
    let words: Vec<_> = words.split(' ').chain(["--config", "pilot.toml"]).collect();
    installation.pilot(&words)
}

fn prints(finished: &Finished, words: &[&str]) {
    for word in words {
        assert!(finished.stdout.contains(word), "{word:?} is missing in {finished:?}");
    }
}

/// The log is served under this key, and everything that carries its signature verifies.
fn is_signed(installation: &Installation, server: &Server, key: &str) {
    let id = submitted(server, "low");
    let url = server.url();
    let as_ada = |arguments: &[&str]| installation.pilot_as(&token("ada"), arguments).expect(0);
    as_ada(&["log", "checkpoint", "--url", &url, "--key", key]);
    let _ = fs::remove_file(installation.path("item.zip"));
    let _ = fs::remove_file(installation.path("item.att"));
    as_ada(&["evidence", "export", "--url", &url, "--item", &id, "--out", "item.zip"]);
    installation.pilot(&["evidence", "verify", "item.zip", "--key", key]).expect(0);
    as_ada(&["attestation", "get", &id, "--url", &url, "--out", "item.att"]);
    installation.pilot(&["attestation", "verify", "item.att", "--key", key]).expect(0);
}

#[test]
fn a_log_whose_key_is_in_a_token_is_served_verified_backed_up_and_restored() {
    let installation = team();
    let hsm = Token::new(&installation);
    hsm.make_key("log");
    hsm.signs(NAME, "log");
    prints(
        &pilot(&installation, "check-config").expect(0),
        &["log.pub will be created at the start", "signs for log.example.org+"],
    );
    let server = installation.serve();
    let key = verifier_key(&installation).to_string();
    assert!(key.starts_with("log.example.org+"), "{key}");
    assert!(!installation.path("data/log.key").exists(), "no private key is written");
    is_signed(&installation, &server, &key);
    server.stop().expect(0);

    pilot(&installation, "log fsck").expect(0);
    pilot(&installation, "backup --with-key --out with-key").expect(2).says(&["the log's key is in no file"]);
    pilot(&installation, "backup --out b1").expect(0);
    let kept = installation.read("data/log.checkpoint");
    let before = installation.path("data");
    fs::rename(&before, installation.path("lost")).unwrap();
    installation.write("kept.checkpoint", &kept);
    prints(&pilot(&installation, "restore b1 --checkpoint kept.checkpoint").expect(0), &["Nothing is missing"]);
    let server = installation.serve();
    assert_eq!(verifier_key(&installation).to_string(), key, "the log continues under its key");
    is_signed(&installation, &server, &key);
    server.stop().expect(0);
}

#[test]
fn a_key_moves_from_a_file_into_a_token_and_back_and_the_log_continues() {
    let installation = team();
    let hsm = Token::new(&installation);
    pilot(&installation, "log key").expect(2);
    let server = installation.serve();
    work(&server, 2);
    server.stop().expect(0);
    let key = verifier_key(&installation);
    pilot(&installation, "log key --private-pem log.pem").expect(0);
    assert_eq!(crate::support::harness::mode(&installation.path("log.pem")), 0o600);
    pilot(&installation, "log key --private-pem log.pem").expect(3);
    hsm.import("log", "log.pem");

    hsm.signs(&key.name, "log");
    let server = installation.serve();
    server.wait_for_log("is no longer used: log.signer has the key");
    is_signed(&installation, &server, &key.to_string());
    server.stop().expect(0);
    let private = installation.read("data/log.key");
    fs::remove_file(installation.path("data/log.key")).unwrap();
    let server = installation.serve();
    is_signed(&installation, &server, &key.to_string());
    server.stop().expect(0);

    configure_nothing(&installation);
    installation
        .serve_in_vain()
        .expect(2)
        .says(&["the log's key is held by a program", "configure log.signer, or put the key back"]);
    prints(&pilot(&installation, "log fsck").expect(1), &["log key"]);
    installation.pilot(&["init", "other"]).expect(0);
    installation.write("data/log.key", &installation.read("other/data/log.key"));
    installation.serve_in_vain().expect(2).says(&["is not the key of this log", "log.pub"]);
    installation.write("data/log.key", &private);
    let server = installation.serve();
    is_signed(&installation, &server, &key.to_string());
    server.stop().expect(0);
}

#[test]
fn a_signer_with_another_key_another_name_or_a_wrong_pin_does_not_start() {
    let installation = team();
    let hsm = Token::new(&installation);
    hsm.make_key("log");
    hsm.make_key("other");
    hsm.signs(NAME, "log");
    let server = installation.serve();
    work(&server, 1);
    server.stop().expect(0);
    let refused = |words: &[&str]| {
        installation.serve_in_vain().expect(2).says(words);
        prints(&pilot(&installation, "check-config").expect(2), words);
    };
    hsm.signs(NAME, "other");
    refused(&["log.signer: the program has a different key from this log.", "another key would begin another log"]);
    hsm.signs("log.example.com", "log");
    refused(&["log.signer.name: the log is named log.example.org", "its name cannot be changed"]);
    installation.write("wrong-pin", "000000\n");
    hsm.signs_with_pin(NAME, "log", "wrong-pin");
    refused(&["the token pilot did not accept the PIN: CKR_PIN_INCORRECT"]);
    hsm.signs(NAME, "nothing");
    installation.serve_in_vain().expect(3).says(&["0 private Ed25519 keys are labelled nothing; there must be one"]);
    hsm.signs(NAME, "log");
    fs::remove_file(installation.path("data/log.pub")).unwrap();
    let missing = "log.pub: the log's public key is missing, but the ledger is not empty";
    installation.serve_in_vain().expect(2).says(&[missing]);
    prints(&pilot(&installation, "check-config").expect(2), &["log.pub: is missing, but the store exists"]);
}

#[test]
fn a_restore_with_loss_needs_a_new_key_in_the_token_and_says_so() {
    let installation = team();
    let hsm = Token::new(&installation);
    hsm.make_key("log");
    hsm.signs(NAME, "log");
    let server = installation.serve();
    work(&server, 1);
    pilot(&installation, "backup --out b1").expect(0);
    work(&server, 1);
    server.stop().expect(0);
    let restore = |why: &[&str]| {
        let base = ["restore", "--config", "pilot.toml", "b1", "--replace"];
        installation.pilot(&[&base[..], why].concat())
    };
    let with_loss = ["--accept-loss", "the disk is gone"];
    restore(&[]).expect(1).says(&["acknowledged entries are missing"]);
    // It chooses a name that no log ever had, and stays with it.
    let next = name_to_set(&restore(&with_loss).expect(1));
    assert!(next.starts_with("log.example.org.r2-") && next.len() == 27, "{next}");
    hsm.make_key("next");
    for (name, key) in [(NAME, "next"), ("log.example.org.r2", "next"), (&next, "log")] {
        hsm.signs(name, key);
        assert_eq!(name_to_set(&restore(&with_loss).expect(1)), next, "{name} {key}");
    }
    assert!(!installation.path("data/pilot.db.restoring.db").exists(), "nothing is left of the attempts");
    hsm.signs(&next, "next");
    prints(&restore(&with_loss).expect(0), &["THE LOG HAS A NEW KEY", &format!("{next}+")]);
    let key = verifier_key(&installation).to_string();
    assert!(key.starts_with(&format!("{next}+")), "{key}");
    // Credentials older than the loss are in doubt, and would be refused.
    pilot(&installation, "credential trust --all --why tested").expect(0);
    let server = installation.serve();
    is_signed(&installation, &server, &key);
    server.stop().expect(0);

    // Another machine with the same configuration and the same old backup: the same key must not begin a second history
    // under the name of the first.
    fs::rename(installation.path("data"), installation.path("first")).unwrap();
    let again = name_to_set(&restore(&with_loss).expect(1));
    assert!(again.starts_with("log.example.org.r2-") && again != next, "{again}");
    // Without any word of which key the log had, nothing is certain.
    fs::rename(installation.path("first"), installation.path("data")).unwrap_or_else(|_| {
        fs::remove_dir_all(installation.path("data")).unwrap();
        fs::rename(installation.path("first"), installation.path("data")).unwrap();
    });
    fs::remove_file(installation.path("data/log.pub")).unwrap();
    let unknown = ["restore", "--config", "pilot.toml", "--accept-loss", "no idea"];
    installation.pilot(&unknown).expect(1).says(&["log.pub is missing", "run this again"]);
}

/// The name that a refused restore tells its operator to set.
fn name_to_set(refused: &Finished) -> String {
    refused.says(&["make another Ed25519 key there", "then run this again"]);
    let (_, rest) = refused.stderr.split_once("name = \"").expect("a name");
    rest.split('"').next().unwrap().to_owned()
}

/// A program that signs with openssl, unless the file `mode` says otherwise, and counts how often it was started.
const DOUBLE: &str = r#"#!/usr/bin/python3
import base64, json, os, subprocess, sys, time
home = os.path.dirname(os.path.abspath(__file__))
path = lambda name: os.path.join(home, name)
with open(path("starts"), "a") as starts: starts.write("x")
def openssl(*words): return subprocess.run(["openssl", *words], capture_output=True, check=True).stdout
def sign(key, message):
    with open(path("message"), "wb") as file: file.write(message)
    return openssl("pkeyutl", "-sign", "-rawin", "-inkey", path(key), "-in", path("message"))
for line in sys.stdin:
    request = json.loads(line)
    mode = open(path("mode")).read()
    while mode == "is slow": mode = open(path("mode")).read()
    if mode == "refuses": print(json.dumps({"refused": "the PIN is wrong"}), flush=True)
    elif mode == "errs": print(json.dumps({"error": "the token is away"}), flush=True)
    elif mode == "dies": sys.exit("something broke")
    elif mode == "hangs": time.sleep(600)
    elif mode == "babbles": print("what?", flush=True)
    elif mode == "floods": print("x" * 100000, flush=True)
    elif mode == "answers something else" and "sign" in request: print(json.dumps({"public_key": "AAAA"}), flush=True)
    elif "sign" in request:
        key = "other.pem" if mode == "signs with another key" else "key.pem"
        answer = {"signature": base64.b64encode(sign(key, base64.b64decode(request["sign"]))).decode()}
        print(json.dumps(answer), flush=True)
        if mode == "says too much": print(json.dumps(answer), flush=True)
    else:
        key = "other.pem" if mode == "has another key" else "key.pem"
        der = openssl("pkey", "-in", path(key), "-pubout", "-outform", "DER")
        print(json.dumps({"public_key": base64.b64encode(der[-32:]).decode()}), flush=True)
"#;

struct Double<'i>(&'i Installation);

impl Double<'_> {
    fn new(installation: &Installation) -> Double<'_> {
        let program = installation.write("double.py", DOUBLE);
        set_mode(&program, 0o700);
        for key in ["key.pem", "other.pem"] {
            let path = installation.path(key);
            succeed(Command::new("openssl").args(["genpkey", "-algorithm", "ed25519", "-out"]).arg(path));
        }
        installation.write("mode", "signs");
        configure(installation, NAME, &[program.display().to_string()], 2);
        Double(installation)
    }

    fn mode(&self, mode: &str) {
        // In one step: the program may be reading it.
        let new = self.0.write("mode.new", mode);
        fs::rename(new, self.0.path("mode")).unwrap();
    }

    fn starts(&self) -> usize {
        self.0.read("starts").len()
    }
}

fn is_accepted(server: &Server) -> bool {
    let mut ana = person(server, "ana");
    let body = json!({"workflow": "controlled-operation", "title": "t", "payload": payload("low")});
    let response = ana.post("/v1/items", &body);
    match response.status {
        201 => true,
        503 => {
            assert_eq!(response.code(), "unavailable");
            false
        }
        other => panic!("{other}: {}", response.text()),
    }
}

fn wait_until(server: &Server, what: &str, is_so: impl Fn() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}: never; the service's last lines:\n{}", server.last_lines());
        std::thread::yield_now();
    }
}

#[test]
fn while_a_signer_fails_nothing_is_accepted_and_when_it_recovers_everything_is() {
    let installation = team();
    let double = Double::new(&installation);
    let server = installation.serve();
    let key = verifier_key(&installation).to_string();
    for (mode, said) in [
        ("errs", "the token is away"),
        ("signs with another key", "what it answered is not a signature by the log's key"),
        ("answers something else", "its answer does not match the request"),
        ("dies", "ended with exit code 1; it reported: something broke"),
        ("babbles", "its answer is not a line of JSON"),
        ("floods", "its answer is longer than 4096 bytes"),
        ("hangs", "did not answer within 2 s and was killed"),
        ("has another key", "it has a different key from the one at the start"),
    ] {
        if mode == "has another key" {
            // It is noticed when the program is started again.
            double.mode("dies");
            wait_until(&server, "refused", || !is_accepted(&server));
        }
        double.mode(mode);
        wait_until(&server, mode, || !is_accepted(&server));
        server.wait_for_log(said);
        double.mode("signs");
        wait_until(&server, "accepted again", || is_accepted(&server));
    }
    double.mode("says too much");
    wait_until(&server, "accepted, although it talks", || is_accepted(&server));
    double.mode("signs");
    is_signed(&installation, &server, &key);
    server.stop().expect(0);
    pilot(&installation, "log fsck").expect(0);
}

#[test]
fn a_signature_that_takes_long_stops_writes_before_it_has_failed() {
    let installation = team();
    let double = Double::new(&installation);
    let program = installation.path("double.py").display().to_string();
    configure(&installation, NAME, &[program], 10);
    let server = installation.serve();
    let starts = double.starts();
    double.mode("is slow");
    wait_until(&server, "refused", || !is_accepted(&server));
    double.mode("signs");
    wait_until(&server, "accepted again", || is_accepted(&server));
    assert_eq!(double.starts(), starts, "the program was asked once, and answered in time");
    server.stop().expect(0);
}

#[test]
fn a_signer_that_refuses_is_not_asked_again_until_the_service_restarts() {
    let installation = team();
    let double = Double::new(&installation);
    let server = installation.serve();
    double.mode("refuses");
    wait_until(&server, "refused", || !is_accepted(&server));
    server.wait_for_log("the PIN is wrong; it is not asked again until the service is restarted");
    let starts = double.starts();
    double.mode("signs");
    for _ in 0..50 {
        assert!(!is_accepted(&server), "the token would lock itself");
    }
    assert_eq!(double.starts(), starts);
    server.stop().expect(0);
    let server = installation.serve();
    assert!(is_accepted(&server));
    server.stop().expect(0);
    double.mode("refuses");
    let starts = double.starts();
    installation.serve_in_vain().expect(2).says(&["log.signer", "the PIN is wrong"]);
    assert_eq!(double.starts(), starts + 1);
}

#[test]
fn a_signer_ends_with_the_service_even_if_that_is_killed() {
    let installation = team();
    let program = installation
        .write("signer.sh", "#!/bin/sh\necho $$ > \"$(dirname \"$0\")/id\"\nexec \"$(dirname \"$0\")/double.py\"\n");
    set_mode(&program, 0o700);
    let _double = Double::new(&installation);
    configure(&installation, NAME, &[program.display().to_string()], 2);
    let server = installation.serve();
    let id: u32 = installation.read("id").trim().parse().unwrap();
    let process = PathBuf::from(format!("/proc/{id}"));
    assert!(process.exists());
    server.signal(rustix::process::Signal::KILL);
    let begun = now();
    while process.exists() {
        assert!(begun.elapsed() < PATIENCE, "the signer goes on without the service");
        std::thread::yield_now();
    }
}
