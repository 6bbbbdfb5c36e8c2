use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use pilot_evidence::note::NoteKey;

use super::*;

/// Writes each request to `asked`, and answers from the files that are named after what is to be signed; the first one only
/// when there is a line in `gate`.
const GATED: &str = r#"#!/bin/sh
home=$(dirname "$0")
while read -r request; do
    echo "$request" >> "$home/asked"
    test -n "$go" || read -r go < "$home/gate"
    message=${request#*:?}
    cat "$home/$(echo "${message%??}" | tr -d =)"
done
"#;

fn key() -> NoteKey {
    NoteKey::generate("log.example", &[7; 32]).unwrap()
}

fn helper_in(directory: &Path, messages: &[String]) -> Arc<Helper> {
    let program = directory.join("signer");
    fs::write(&program, GATED).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(directory.join("asked"), "").unwrap();
    for message in messages {
        let signature = BASE64.encode(&key().sign_bytes(message.as_bytes()));
        let name = BASE64.encode(message.as_bytes()).replace('=', "");
        fs::write(directory.join(name), format!("{{\"signature\":\"{signature}\"}}\n")).unwrap();
    }
    assert!(std::process::Command::new("mkfifo").arg(directory.join("gate")).status().unwrap().success());
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let exec = Exec { program, arguments: Vec::new(), timeout: Duration::from_mins(1), environment };
    let running = Running::start(&exec).unwrap();
    Arc::new(Helper {
        exec,
        verifier: key().verifier(),
        line: tokio::sync::Mutex::new(Line::Up(Box::new(running))),
        turn: Arc::default(),
        waiting: Arc::new(Semaphore::new(SIGNATURES_WAITING_MAX)),
    })
}

fn asked(directory: &Path) -> Vec<String> {
    let message = |line: &str| {
        let encoded = line.trim_start_matches("{\"sign\":\"").trim_end_matches("\"}");
        String::from_utf8(BASE64.decode(encoded.as_bytes()).unwrap()).unwrap()
    };
    fs::read_to_string(directory.join("asked")).unwrap().lines().map(message).collect()
}

#[tokio::test]
async fn a_checkpoint_waits_for_one_signature_at_most_and_so_many_others_may_wait_though_they_are_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let others: Vec<_> = (0..SIGNATURES_WAITING_MAX).map(|at| format!("other {at:02}")).collect();
    let helper = helper_in(directory.path(), &[&others[..], &["checkpoint".to_owned()]].concat());
    let sign = |message: String, haste: Haste| {
        let helper = Arc::clone(&helper);
        tokio::spawn(async move { helper.sign(message.as_bytes(), haste).await })
    };
    let waiting: Vec<_> = others.iter().map(|message| sign(message.clone(), Haste::CanWait)).collect();
    while asked(directory.path()).is_empty() {
        tokio::task::yield_now().await;
    }
    // Callers who went away hold their places until it is their turn.
    for given_up in waiting.iter().skip(1).step_by(2) {
        given_up.abort();
    }
    tokio::task::yield_now().await;
    let one_more = helper.sign(b"one more", Haste::CanWait).await.unwrap_err();
    assert!(one_more.to_string().ends_with("too many signatures are waiting for it"), "{one_more}");
    let checkpoint = sign("checkpoint".to_owned(), Haste::Checkpoint);
    // On one thread its task has run, and waits in the line, once this one has had its turn again.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    let gate = directory.path().join("gate");
    let opened = tokio::task::spawn_blocking(move || fs::write(&gate, "go\n").unwrap());
    assert_eq!(checkpoint.await.unwrap(), Ok(key().sign_bytes(b"checkpoint")));
    for (message, signed) in others.iter().zip(waiting).step_by(2) {
        assert_eq!(signed.await.unwrap(), Ok(key().sign_bytes(message.as_bytes())));
    }
    opened.await.unwrap();
    while asked(directory.path()).len() < SIGNATURES_WAITING_MAX + 1 {
        tokio::task::yield_now().await;
    }
    let asked = asked(directory.path());
    assert_eq!(asked.get(1).map(String::as_str), Some("checkpoint"), "{asked:?}");
    assert_eq!(asked.len(), SIGNATURES_WAITING_MAX + 1);
}

#[test]
fn what_a_signer_says_is_repeated_without_what_could_be_a_secret() {
    for (said, repeated) in [
        ("the PIN 8f7e6d5c4b3a29180716a5b4 is wrong", "the PIN (withheld) is wrong"),
        ("token=s.abcdefghijklmnopqrstuvwx", "(withheld)"),
        ("CKR_OPERATION_NOT_INITIALIZED (0x00000091)", "CKR_OPERATION_NOT_INITIALIZED (0x00000091)"),
        ("/usr/lib/softhsm/libsofthsm2.so: cannot be loaded", "/usr/lib/softhsm/libsofthsm2.so: cannot be loaded"),
        ("a\u{1b}[31m bell\u{7}", "a[31m bell"),
    ] {
        assert_eq!(remark(said), repeated);
    }
}
