//! Witnesses over loopback, with real processes: what they cosign, what they refuse, and what the service does about it.

use std::fs;

use pilot_core::time::Time;
use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::cosignature::CosignerVerifier;
use pilot_evidence::note::Note;
use pilot_wire::clock::since_1970;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::operations::machine::Machine;
use crate::operations::second_place::{copy_database, verifier_key, work};
use crate::support::harness::{Installation, PATIENCE, Port, Server, now};
use crate::support::team::{JSON, Person, cleared, person, submitted, team, with_times};

/// A witness on a port of its own, so that it can go and come back.
pub struct Witness<'i> {
    installation: &'i Installation,
    state: &'static str,
    port: Port,
    log: String,
    pub key: CosignerVerifier,
}

impl<'i> Witness<'i> {
    pub fn make(installation: &'i Installation, state: &'static str) -> Witness<'i> {
        let name = format!("{state}.example");
        let arguments = ["log", "witness", "--state", state, "--name", &name, "--print-key"];
        let printed = installation.pilot(&arguments).expect(0).stdout;
        let key = CosignerVerifier::parse(printed.trim()).unwrap();
        Witness { installation, state, port: Port::reserve(), log: verifier_key(installation).to_string(), key }
    }

    pub fn log(&self) -> &str {
        &self.log
    }

    /// As a configuration lists it.
    pub fn listed(&self) -> String {
        format!("{{ url = \"http://{}\", key = \"{}\" }}", self.port.address(), self.key)
    }

    pub fn start(&self) -> Server {
        let listen = self.port.address().to_string();
        let arguments = ["log", "witness", "--listen", &listen, "--state", self.state, "--log", &self.log];
        self.installation.start(self.installation.command(&arguments))
    }
}

/// A configuration with these witnesses.
pub fn configure(installation: &Installation, witnesses: &[&Witness<'_>], required: usize) {
    let list: Vec<_> = witnesses.iter().map(|witness| witness.listed()).collect();
    let ops = "[ops]\nlisten = \"127.0.0.1:0\"\n";
    let log = format!("[log]\nwitnesses = [{}]\nrequire_witnesses = {required}\n", list.join(", "));
    installation.write("pilot.toml", &format!("listen = \"127.0.0.1:0\"\n{log}{ops}"));
}

/// A team's installation whose log has a key.
pub fn begun() -> Installation {
    let installation = team();
    installation.serve().stop().expect(0);
    installation
}

fn served(server: &Server, query: &str) -> String {
    String::from_utf8(person(server, "ada").get(&format!("/v1/log/checkpoint{query}")).body).unwrap()
}

/// Waits until the newest checkpoint has the witness's cosignature, and gives its size.
#[track_caller]
pub fn cosigned_by(server: &Server, witness: &Witness<'_>) -> u64 {
    let begun = now();
    loop {
        let note = served(server, "?cosignatures=any");
        let parsed = Note::parse(&note).unwrap();
        if witness.key.verify(&parsed).is_ok() {
            return Checkpoint::parse(parsed.text).unwrap().size;
        }
        assert!(begun.elapsed() < PATIENCE, "never cosigned: {note}");
        std::thread::yield_now();
    }
}

#[test]
fn checkpoints_are_cosigned_and_a_restarted_or_killed_witness_goes_on_where_it_was() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 0);
    let running = witness.start();
    let server = installation.serve();
    work(&server, 2);
    let first = cosigned_by(&server, &witness);
    running.signal(Signal::KILL);
    running.ends();
    work(&server, 3);
    assert!(served(&server, "").lines().count() == 5, "without a witness there is the log's own signature alone");
    let running = witness.start();
    let second = cosigned_by(&server, &witness);
    assert!(second >= first + 3, "{first} {second}");
    running.stop().expect(0);
    let running = witness.start();
    work(&server, 1);
    assert!(cosigned_by(&server, &witness) > second);
    let printed = installation.pilot_as(
        &crate::support::team::token("ada"),
        &["log", "checkpoint", "--url", &server.url(), "--key", &witness.log, "--witness", &witness.key.to_string()],
    );
    assert_eq!(printed.expect(0).stdout, served(&server, ""));
    let other = Witness::make(&installation, "w2").key.to_string();
    let arguments = ["log", "checkpoint", "--config", "pilot.toml", "--witness", &other];
    installation.pilot(&arguments).expect(1).says(&["witness w2.example"]);
    server.stop().expect(0);
    running.stop().expect(0);
}

#[test]
fn with_one_of_two_required_effects_go_on_and_with_two_they_wait_for_both() {
    let installation = begun();
    let (one, two) = (Witness::make(&installation, "w1"), Witness::make(&installation, "w2"));
    let first = one.start();
    configure(&installation, &[&one, &two], 1);
    let server = installation.serve();
    let id = cleared(&server);
    let started = person(&server, "eli").decides(&id, "start");
    assert_eq!(started.status, 201, "{}", started.text());
    let note = served(&server, "");
    let entry = started.json()["entry"].as_u64().unwrap();
    let parsed = Note::parse(&note).unwrap();
    assert!(one.key.verify(&parsed).is_ok(), "{note}");
    assert!(Checkpoint::parse(parsed.text).unwrap().size >= entry, "what led to the effect was cosigned");
    server.stop().expect(0);

    configure(&installation, &[&one, &two], 2);
    let server = installation.serve();
    let id = cleared(&server);
    let mut eli = person(&server, "eli");
    let refused = eli.decides(&id, "start");
    assert_eq!(refused.verdict(), "503 unavailable", "{}", refused.text());
    assert_eq!(refused.header("retry-after"), Some("5"));
    for word in ["2 of 2 witnesses", "but 1 have", "w2.example", "it cannot be reached"] {
        assert!(refused.text().contains(word), "{word}: {}", refused.text());
    }
    assert_eq!(eli.item(&id)["state"], "cleared", "a refusal moves nothing");
    // Nothing else waits for a witness, and who would be refused anyway is so at once.
    assert_eq!(person(&server, "ana").decides(&id, "start").verdict(), "403 role_forbidden");
    assert_eq!(person(&server, "sol").acts(&id, &json!({"action": "hold", "comment": "wait"})).status, 201);
    assert_eq!(eli.decides(&id, "start").verdict(), "409 item_held");
    assert_eq!(person(&server, "sol").acts(&id, &json!({"action": "release", "comment": "go"})).status, 201);
    let second = two.start();
    let started = eli.decides(&id, "start");
    assert_eq!(started.status, 201, "{}", started.text());
    assert_eq!(eli.acts(&id, &json!({"action": "heartbeat"})).status, 201, "an effect under way waits for nobody");
    assert_eq!(server.stop().expect(0).code, 0);
    for running in [first, second] {
        running.stop().expect(0);
    }
}

fn starts(eli: &mut Person, id: &str, digest: &Value, key: Option<&str>) -> String {
    let body = json!({"action": "start", "content_digest": digest}).to_string();
    let key: Vec<_> = key.map(|key| format!("Idempotency-Key: {key}")).into_iter().collect();
    let headers: Vec<_> = key.iter().map(String::as_str).chain([JSON]).collect();
    eli.call(&format!("POST /v1/items/{id}/transitions"), &headers, body.as_bytes()).verdict()
}

#[test]
fn an_effect_sent_while_its_clearance_is_being_committed_waits_for_witnesses() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 1);
    let machine = Machine::of(&installation);
    let server = machine.serve();
    let approved: Vec<_> = (0..15)
        .map(|_| {
            let id = submitted(&server, "low");
            person(&server, "ben").decides(&id, "approve");
            id
        })
        .collect();
    // No witness runs, and every commit takes long enough for whatever follows it to be on its way.
    machine.syncs_take(300);
    let verdicts: Vec<_> = std::thread::scope(|scope| {
        let attempts: Vec<_> = approved
            .iter()
            .enumerate()
            .map(|(number, id)| {
                let (mut sol, mut eli, key) = (person(&server, "sol"), person(&server, "eli"), format!("k{number}"));
                scope.spawn(move || {
                    let digest = sol.item(id)["content_digest"].clone();
                    let inputs = with_times(&json!({"not_after": "in an hour"}), id);
                    let body = json!({"action": "clear", "content_digest": digest, "inputs": inputs}).to_string();
                    sol.send(&format!("POST /v1/items/{id}/transitions"), &[JSON], body.as_bytes());
                    let key = (number % 2 == 0).then_some(&*key);
                    // Sent until the item is cleared; this is the first answer after that.
                    let begun = now();
                    let first = loop {
                        let verdict = starts(&mut eli, id, &digest, key);
                        if verdict != "409 state_conflict" || begun.elapsed() > PATIENCE {
                            break verdict;
                        }
                    };
                    assert_eq!(sol.answer().status, 201);
                    // Asked again in the same words: still nothing was begun, so there is nothing to repeat.
                    [first, starts(&mut eli, id, &digest, key)]
                })
            })
            .collect();
        attempts.into_iter().flat_map(|attempt| attempt.join().unwrap()).collect()
    });
    assert_eq!(verdicts, vec!["503 unavailable"; 30], "no effect without a witness");
    machine.syncs_take(0);
    for id in &approved {
        assert_eq!(person(&server, "eli").item(id)["state"], "cleared");
    }
    let running = witness.start();
    let begun = person(&server, "eli").decides(&approved[0], "start");
    assert_eq!(begun.status, 201, "{}", begun.text());
    server.stop().expect(0);
    running.stop().expect(0);
}

#[test]
fn a_witness_or_a_checkpoint_that_ends_before_a_backup_cannot_say_that_nothing_is_missing() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 0);
    // The witness sees a little, and is gone when there is more.
    let running = witness.start();
    let server = installation.serve();
    work(&server, 1);
    cosigned_by(&server, &witness);
    running.stop().expect(0);
    fs::copy(installation.path("data/log.checkpoint"), installation.path("early.checkpoint")).unwrap();
    let seen = installation.read("w1/witness.json");
    work(&server, 3);
    installation.pilot(&["backup", "--out", "old", "--with-key"]).expect(0);
    work(&server, 21);
    server.stop().expect(0);

    // Another machine has the key and the backup, and asks a witness that has seen less than the backup has.
    let running = witness.start();
    let other = team();
    configure(&other, &[&witness], 0);
    let from = installation.path("old").display().to_string();
    let restore = |arguments: &[&str]| other.pilot(&[&["restore", &from], arguments].concat());
    let refused = restore(&[]).expect(1);
    refused.says(&["nothing was restored", "witness w1.example has seen", "shows nothing about later ones"]);
    assert_eq!(installation.read("w1/witness.json"), seen, "asking moves no witness");
    // An old checkpoint cannot say it either, wherever it is put.
    let early = installation.path("early.checkpoint");
    let refused = restore(&["--checkpoint", early.to_str().unwrap()]).expect(1);
    refused.says(&["nothing was restored", "shows nothing about later entries"]);
    fs::copy(&early, other.path("data/log.checkpoint")).unwrap();
    restore(&[]).expect(1).says(&["nothing was restored", "shows nothing about later entries"]);
    fs::remove_file(other.path("data/log.checkpoint")).unwrap();
    // The newest one there is knows better.
    let newest = installation.path("data/log.checkpoint");
    let refused = restore(&["--checkpoint", newest.to_str().unwrap()]).expect(1);
    refused.says(&["21 acknowledged entries are missing"]);

    // A witness that has seen all of a backup is enough.
    let server = installation.serve();
    let size = cosigned_by(&server, &witness);
    server.stop().expect(0);
    installation.pilot(&["backup", "--out", "new", "--with-key"]).expect(0);
    let from = installation.path("new").display().to_string();
    let restored = other.pilot(&["restore", &from]).expect(0);
    let word = format!("witness w1.example has seen these {size} entries and no more");
    assert!(restored.stdout.contains(&word), "{restored:#?}");
    running.stop().expect(0);
}

#[test]
fn witnesses_date_the_entries_of_a_bundle_and_see_where_a_period_ends() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 1);
    let running = witness.start();
    let server = installation.serve();
    work(&server, 2);
    let early = cosigned_by(&server, &witness);
    work(&server, 3);
    cosigned_by(&server, &witness);
    let (url, key, cosigner) = (server.url(), witness.log.clone(), witness.key.to_string());
    let token = crate::support::team::token("ada");
    let export = |name: &str, more: &[&str]| {
        // The log has not grown since it was cosigned: the witness is asked again.
        let to = Time::from_unix_micros(i64::try_from(since_1970().unwrap().as_micros()).unwrap()).to_string();
        let from = ["evidence", "export", "--url", &url, "--from", "1970-01-01T00:00:00Z", "--to", &to, "--out", name];
        installation.pilot_as(&token, &[&from, more].concat()).expect(0);
    };
    export("period.zip", &[]);
    let verify = |name: &str, more: &[&str]| {
        let given = ["evidence", "verify", name, "--key", &key, "--witness-key", &cosigner];
        installation.pilot(&[&given, more].concat())
    };
    let said = verify("period.zip", &[]).expect(0).stdout;
    for word in ["witnesses saw the log end there at", "times         ✓ holds", "credentials        ✓ holds"] {
        assert!(said.contains(word), "{word} is missing in {said}");
    }
    installation.write("kept.txt", &served(&server, ""));
    work(&server, 2);
    cosigned_by(&server, &witness);
    let size = Checkpoint::parse(Note::parse(&served(&server, "")).unwrap().text).unwrap().size;
    export("later.zip", &["--kept", &early.to_string()]);
    verify("later.zip", &["--checkpoint", "kept.txt"]).expect(0);
    let arguments =
        ["evidence", "export", "--url", &url, "--from", "1970-01-01T00:00:00Z", "--to", "1970-01-02T00:00:00Z"];
    let too_long = (size + 1_000).to_string();
    let refused = installation.pilot_as(&token, &[&arguments[..], &["--kept", &too_long, "--out", "no.zip"]].concat());
    refused.expect(1).says(&["is newer than the ledger"]);
    server.stop().expect(0);
    running.stop().expect(0);
}

#[test]
fn a_second_history_under_the_same_key_is_refused_by_the_witness_and_the_service_says_so() {
    let (installation, twin) = (begun(), begun());
    // The same key and the same beginning, then two lives: what a copied machine does.
    copy_database(&installation.path("data"), &twin.path("data"));
    for name in ["log.key", "log.checkpoint"] {
        fs::copy(installation.path("data").join(name), twin.path("data").join(name)).unwrap();
    }
    let witness = Witness::make(&installation, "w1");
    let running = witness.start();
    for installation in [&installation, &twin] {
        configure(installation, &[&witness], 1);
    }
    let server = installation.serve();
    work(&server, 3);
    cosigned_by(&server, &witness);
    // Shorter than what the witness knows: 409 with its size. Longer: 422 for the proof.
    let fork = twin.serve();
    work(&fork, 1);
    fork.wait_for_log("A DIFFERENT HISTORY");
    fork.wait_for_log("entries are missing here");
    work(&fork, 9);
    let id = cleared(&fork);
    let refused = person(&fork, "eli").decides(&id, "start");
    assert_eq!(refused.verdict(), "503 unavailable");
    fork.wait_for_log("this log has forked");
    assert_eq!(fork.get("/readyz", &[]).status, 200, "one witness alone cannot take the service down");
    running.wait_for_log("does not continue its earlier one");
    assert!(fs::read_dir(installation.path("w1/conflicts")).unwrap().count() > 0, "the proof is kept");
    work(&server, 1);
    cosigned_by(&server, &witness);
    drop((server, fork));
    running.stop().expect(0);
}

#[test]
fn the_witness_answers_as_the_specification_says() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    let running = witness.start();
    let note = installation.read("data/log.checkpoint");
    let size = Checkpoint::parse(Note::parse(&note).unwrap().text).unwrap().size;
    let post = |body: &str| {
        let head = format!("POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let answer = running.send(head);
        (
            answer.status,
            answer.header("content-type").unwrap_or_default().to_owned(),
            String::from_utf8(answer.body).unwrap(),
        )
    };
    let other = begun();
    assert_eq!(post(&format!("old 0\n\n{}", other.read("data/log.checkpoint"))).0, 404, "another log");
    let unsigned = note.replacen("\n1\n", "\n2\n", 1);
    assert_eq!(post(&format!("old 0\n\n{unsigned}")).0, 403, "a signature that does not fit");
    for malformed in ["", "old\n\n", "old 00\n\n", &format!("old 0\n{note}"), &format!("old 0\nx\n\n{note}")] {
        assert_eq!(post(malformed).0, 400, "{malformed:?}");
    }
    assert_eq!(post(&format!("old 9\n\n{note}")).0, 400, "an old size above the new one");
    let (status, kind, body) = post(&format!("old 0\n\n{note}"));
    assert_eq!((status, kind.as_str()), (200, "text/plain; charset=utf-8"));
    assert!(witness.key.verify(&Note::parse(&format!("{note}{body}")).unwrap()).is_ok(), "{body}");
    let (status, kind, body) = post(&format!("old 0\n\n{note}"));
    assert_eq!((status, kind.as_str(), body), (409, "text/x.tlog.size", format!("{size}\n")));
    let hash = "PlRNCrwHpqhGrupue0L7gxbjbMiKA9temvuZZDDpkaw=";
    assert_eq!(post(&format!("old {size}\n{hash}\n\n{note}")).0, 422, "a proof where none belongs");
    assert_eq!(post(&format!("old {size}\n\n{note}")).0, 200, "the same once more");
    let large = "x".repeat(70_000);
    assert_eq!(post(&large).0, 413);
    assert_eq!(running.get("/add-checkpoint", &[]).status, 405);
    assert_eq!(running.get("/", &[]).status, 404);
    drop(running);
    // A witness that lost its memory is not one any more.
    fs::remove_file(installation.path("w1/witness.json")).unwrap();
    let arguments = ["log", "witness", "--listen", "127.0.0.1:0", "--state", "w1", "--log", &witness.log];
    installation.pilot(&arguments).expect(2).says(&["it has forgotten what it cosigned"]);
    installation.write("w1/witness.json", "{}");
    installation.pilot(&arguments).expect(2).says(&["is damaged"]);
}
