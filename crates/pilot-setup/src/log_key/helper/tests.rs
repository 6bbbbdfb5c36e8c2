use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;

/// Writes each request to `asked`, and answers the first one when there is a line in `gate`.
const GATED: &str = r#"#!/bin/sh
home=$(dirname "$0")
while read -r request; do
    echo "$request" >> "$home/asked"
    test -n "$go" || read -r go < "$home/gate"
    echo "{\"signature\":\"$go\"}"
done
"#;

fn helper_in(directory: &Path) -> Arc<Helper> {
    let program = directory.join("signer");
    fs::write(&program, GATED).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(directory.join("asked"), "").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(directory.join("gate")).status().unwrap().success());
    let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
    let exec = Exec { program, arguments: Vec::new(), timeout: Duration::from_mins(1), environment };
    let running = Running::start(&exec).unwrap();
    Arc::new(Helper {
        exec,
        verifier: VerifierKey::new("log.example", [7; 32]),
        line: tokio::sync::Mutex::new(Line::Up(Box::new(running))),
        turn: tokio::sync::Mutex::new(()),
        waiting: Semaphore::new(SIGNATURES_WAITING_MAX),
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
async fn a_checkpoint_waits_for_one_signature_at_most_and_so_many_others_may_wait() {
    let directory = tempfile::tempdir().unwrap();
    let helper = helper_in(directory.path());
    let sign = |message: String, haste: Haste| {
        let helper = Arc::clone(&helper);
        tokio::spawn(async move { helper.sign(message.as_bytes(), haste).await })
    };
    let others: Vec<_> = (0..SIGNATURES_WAITING_MAX).map(|at| sign(format!("other {at}"), Haste::CanWait)).collect();
    while asked(directory.path()).is_empty() {
        tokio::task::yield_now().await;
    }
    let one_more = helper.sign(b"one more", Haste::CanWait).await.unwrap_err();
    assert!(one_more.to_string().ends_with("too many signatures are waiting for it"), "{one_more}");
    let checkpoint = sign("checkpoint".to_owned(), Haste::Checkpoint);
    // On one thread its task has run, and waits in the line, once this one has had its turn again.
    for _ in 0..3 {
        tokio::task::yield_now().await;
    }
    let gate = directory.path().join("gate");
    let signature = BASE64.encode(&[9; 64]);
    let opened = tokio::task::spawn_blocking(move || fs::write(&gate, format!("{signature}\n")).unwrap());
    assert_eq!(checkpoint.await.unwrap(), Ok([9; 64]));
    for other in others {
        assert_eq!(other.await.unwrap(), Ok([9; 64]));
    }
    opened.await.unwrap();
    let asked = asked(directory.path());
    assert_eq!(asked.get(1).map(String::as_str), Some("checkpoint"), "{asked:?}");
    assert_eq!(asked.len(), SIGNATURES_WAITING_MAX + 1);
}
