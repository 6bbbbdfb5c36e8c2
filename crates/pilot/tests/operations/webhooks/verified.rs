//! Deliveries as other people's libraries verify them.

use std::path::Path;
use std::process::{Command, Stdio};

use pilot_setup::config::Signing;
use pilot_setup::webhook_key::WebhookKey;
use serde_json::json;

use super::receiver::{Arrived, Receiver};
use super::{configure, endpoint};
use crate::operations::second_place::work;
use crate::permits::readers::{client_python, scripts};
use crate::support::harness::{Finished, Port, finish};
use crate::support::team::team;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Library {
    /// `standardwebhooks` from npm, and from the Python package index. They know `v1` only.
    Npm,
    PyPi,
    /// This repository's.
    Client,
}

fn verify(library: Library, key: &str, arrived: &Arrived, body: &str) -> Finished {
    let mut command = match library {
        Library::Npm => Command::new("node"),
        Library::PyPi | Library::Client => Command::new(client_python()),
    };
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/python");
    match library {
        Library::Npm => command.arg(scripts().join("webhook.mjs")),
        Library::PyPi => command.arg(scripts().join("webhook.py")).arg("standardwebhooks"),
        Library::Client => command.arg(scripts().join("webhook.py")).arg(client),
    };
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let delivery = json!({ "key": key, "headers": arrived.headers, "body": body });
    finish(command, Some(&delivery.to_string()))
}

#[test]
fn other_people_s_libraries_verify_deliveries_with_either_key_and_refuse_a_changed_one() {
    let (installation, ops) = (team(), Port::reserve());
    let (signed, shared) = (Receiver::start(), Receiver::start());
    let more = "signing = 'hmac'\nfrom = 0";
    let two = endpoint(&installation, "shared", &shared, more).replace("['shared.key']", "['old.key', 'new.key']");
    for name in ["old.key", "new.key"] {
        installation.write(name, &WebhookKey::generate(Signing::Hmac).unwrap());
    }
    configure(&installation, &ops, &[endpoint(&installation, "signed", &signed, "from = 0"), two]);
    let server = installation.serve();
    work(&server, 1);
    for receiver in [&signed, &shared] {
        receiver.until("an item", |arrived| !arrived.is_empty());
    }
    let public = WebhookKey::parse(Signing::Ed25519, &installation.read("signed.key")).unwrap().public().unwrap();
    let (old, new) = (installation.read("old.key"), installation.read("new.key"));
    let mut verified = 0;
    for (receiver, key, libraries) in [
        (&signed, &public, &[Library::Client][..]),
        (&shared, &old, &[Library::Npm, Library::PyPi, Library::Client]),
        (&shared, &new, &[Library::Npm, Library::PyPi, Library::Client]),
    ] {
        let arrived = receiver.arrived().remove(0);
        let body = String::from_utf8(arrived.body.clone()).unwrap();
        for library in libraries {
            let event = verify(*library, key.trim(), &arrived, &body).expect(0);
            assert_eq!(event.stdout.trim(), arrived.index().to_string(), "{library:?}");
            verify(*library, key.trim(), &arrived, &body.replace("item.created", "item.edited")).expect(1);
            verified += 1;
        }
    }
    assert_eq!(verified, 7);
}
