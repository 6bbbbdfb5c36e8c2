//! Attestations: what a pipeline gets, and what it can check with and without Pilot.

use std::fs;
use std::process::{Command, Stdio};

use data_encoding::BASE64;
use pilot_evidence::attestation::Envelope;
use pilot_evidence::note::NoteKey;
use serde_json::{Value, json};

use crate::operations::second_place::verifier_key;
use crate::permits::download::started;
use crate::permits::readers::{python, scripts};
use crate::permits::scene::sha256;
use crate::support::harness::{Finished, Installation, Server, finish};
use crate::support::team::{payload, person, team, token};

const MEDIA_TYPE: &str = "application/vnd.dsse.envelope.v1+json";

struct Pipeline {
    installation: Installation,
    server: Server,
    id: String,
    key: String,
}

impl Pipeline {
    /// An item whose operation is under way, with an approved artifact.
    fn new() -> Pipeline {
        let installation = team();
        let server = installation.serve();
        installation.write("app.tar", "the build");
        let mut artifacts =
            vec![json!({"name": "app.tar", "sha256": sha256(b"the build")}), json!({"name": "no digest"})];
        artifacts.extend((1..120).map(|number| json!({"name": format!("part {number}"), "sha256": "0".repeat(64)})));
        let id = started(&server, &json!({"argv": ["/bin/true"], "artifacts": artifacts}));
        let key = verifier_key(&installation).to_string();
        Pipeline { installation, server, id, key }
    }

    fn get(&self) -> Vec<u8> {
        let answer = person(&self.server, "ada").get(&format!("/v1/items/{}/attestation", self.id));
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(MEDIA_TYPE)), "{}", answer.text());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        answer.body
    }

    fn verify(&self, more: &[&str]) -> Finished {
        let arguments = ["attestation", "verify", "attestation.json", "--key", &self.key];
        self.installation.pilot(&[&arguments[..], more].concat())
    }

    fn download(&self) {
        let arguments = ["attestation", "get", &self.id, "--out", "attestation.json", "--url", &self.server.url()]
            .map(str::to_owned);
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        self.installation.pilot_as(&token("eli"), &arguments).expect(0);
    }
}

#[test]
fn an_attestation_names_the_item_its_people_and_what_was_approved() {
    let pipeline = Pipeline::new();
    let envelope: Value = serde_json::from_slice(&pipeline.get()).unwrap();
    let signed = BASE64.decode(envelope["payload"].as_str().unwrap().as_bytes()).unwrap();
    let statement: Value = serde_json::from_slice(&signed).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "urn:pilot:outcome:v1");
    let item = person(&pipeline.server, "ada").item(&pipeline.id);
    let content = item["content_digest"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let subjects = statement["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), 1 + 100, "the content and as many artifacts as there may be");
    assert_eq!(
        json!(subjects[..2]),
        json!([
            {"name": format!("item/{}", pipeline.id), "digest": {"sha256": content}},
            {"name": "app.tar", "digest": {"sha256": sha256(b"the build")}},
        ]),
        "an artifact without a digest is not a subject"
    );
    let outcome = &statement["predicate"];
    assert_eq!(
        (&outcome["state"], &outcome["final"], &outcome["held"]),
        (&json!("executing"), &json!(false), &json!(false))
    );
    assert_eq!(outcome["workflow"], item["workflow"]);
    assert_eq!(outcome["votes"], json!([{"actor_id": "ben", "action": "approve"}]));
    let people: Vec<_> =
        outcome["people"].as_array().unwrap().iter().map(|one| one["actor_id"].as_str().unwrap()).collect();
    assert_eq!(people, ["ana", "ben", "eli", "sol"]);
    assert!(outcome["log"]["size"].as_u64().unwrap() >= 5, "{outcome}");
    // What nobody has approved is not named: it would look as if someone had.
    let artifacts = json!([{"name": "app.tar", "sha256": sha256(b"the build")}]);
    let mut draft = payload("low");
    draft["operation"] = json!({"argv": ["/bin/true"], "artifacts": artifacts});
    let id = person(&pipeline.server, "ana").creates("controlled-operation", &draft);
    let answer = person(&pipeline.server, "ana").get(&format!("/v1/items/{id}/attestation"));
    let envelope: Value = serde_json::from_slice(&answer.body).unwrap();
    let payload = BASE64.decode(envelope["payload"].as_str().unwrap().as_bytes()).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(
        (statement["subject"].as_array().unwrap().len(), &statement["predicate"]["state"]),
        (1, &json!("draft"))
    );
    let unknown = person(&pipeline.server, "ada").get("/v1/items/01890a5d-ac96-774b-bcce-b302099a8057/attestation");
    assert_eq!(unknown.verdict(), "404 not_found");
    pipeline.server.stop().expect(0);
}

#[test]
fn what_a_pipeline_requires_is_compared_and_a_changed_statement_is_refused() {
    let pipeline = Pipeline::new();
    pipeline.download();
    let table = pipeline.verify(&[]).expect(0).stdout;
    for words in [&pipeline.id, "controlled-operation v2", "executing, since", "ben (approver)", "app.tar sha256:"] {
        assert!(table.contains(words), "{words}: {table}");
    }
    pipeline.installation.write("other.tar", "another build");
    let required =
        ["--state", "executing", "--workflow", "controlled-operation", "--artifact", "app.tar", "--max-age", "1h"];
    pipeline.verify(&required).expect(0);
    for (required, words) in [
        (["--state", "closed"], "the item is in the state executing, and closed is required"),
        (["--workflow", "emergency-operation"], "emergency-operation is required"),
        (["--state=executing", "--artifact=other.tar"], "other.tar is not among its artifacts"),
    ] {
        pipeline.verify(&required).expect(1).says(&[words]);
    }
    assert_eq!(pipeline.verify(&["--output", "json"]).expect(0).json()["predicate"]["item"], pipeline.id);
    assert_eq!(
        person(&pipeline.server, "sol").acts(&pipeline.id, &json!({"action": "hold", "comment": "wait"})).status,
        201
    );
    pipeline.download();
    pipeline.verify(&["--state", "executing"]).expect(1).says(&["the item is held; --allow-held accepts that"]);
    pipeline.verify(&["--state", "executing", "--allow-held"]).expect(0);
    assert_eq!(
        person(&pipeline.server, "sol").acts(&pipeline.id, &json!({"action": "release", "comment": "go"})).status,
        201
    );
    pipeline.download();
    pipeline.verify(&["--artifact", "app.tar"]).expect(2).says(&["--state <STATE>"]);
    let mut envelope: Value = serde_json::from_str(&pipeline.installation.read("attestation.json")).unwrap();
    let key = NoteKey::parse(&pipeline.installation.read("data/log.key")).unwrap();
    let mut old = Envelope::open(envelope.to_string().as_bytes(), &key.verifier()).unwrap();
    old.predicate.attested_at = "2026-01-01T00:00:00Z".parse().unwrap();
    pipeline.installation.write("attestation.json", &json!(Envelope::sign(&old, &key).unwrap()).to_string());
    pipeline.verify(&[]).expect(0);
    pipeline.verify(&["--max-age", "24h"]).expect(1).says(&["it was made at 2026-01-01", "longer ago than 24h"]);
    let payload = BASE64.decode(envelope["payload"].as_str().unwrap().as_bytes()).unwrap();
    let forged = String::from_utf8(payload).unwrap().replace("executing", "closed");
    envelope["payload"] = json!(BASE64.encode(forged.as_bytes()));
    pipeline.installation.write("attestation.json", &envelope.to_string());
    pipeline.verify(&["--state", "closed"]).expect(1).says(&["it has no valid signature by"]);
    pipeline.installation.write("attestation.json", "{}");
    pipeline.verify(&[]).expect(1).says(&["this is not a DSSE envelope"]);
    pipeline.server.stop().expect(0);
}

#[test]
fn other_tools_check_it_with_the_public_key_as_pem() {
    let pipeline = Pipeline::new();
    let pem = pipeline.installation.pilot(&["log", "key", "--config", "pilot.toml", "--pem"]).expect(0).stdout;
    pipeline.installation.write("log.pem", &pem);
    let envelope = String::from_utf8(pipeline.get()).unwrap();
    let read = |envelope: &str| {
        let mut command = Command::new(python());
        command.arg(scripts().join("attestation.py")).arg(pipeline.installation.path("log.pem"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(command, Some(envelope))
    };
    let statement: Value = serde_json::from_str(&read(&envelope).expect(0).stdout).unwrap();
    assert_eq!(statement["predicate"]["item"], pipeline.id);
    let mut forged: Value = serde_json::from_str(&envelope).unwrap();
    forged["payload"] = json!(BASE64.encode(b"{}"));
    read(&forged.to_string()).expect(1).says(&["VerificationError"]);
    // And with openssl, as the specification of DSSE says what is signed.
    let parsed: Value = serde_json::from_str(&envelope).unwrap();
    let bytes = |member: &Value| BASE64.decode(member.as_str().unwrap().as_bytes()).unwrap();
    let payload = bytes(&parsed["payload"]);
    let signed = [format!("DSSEv1 28 application/vnd.in-toto+json {} ", payload.len()).as_bytes(), &payload].concat();
    fs::write(pipeline.installation.path("signed"), signed).unwrap();
    fs::write(pipeline.installation.path("signature"), bytes(&parsed["signatures"][0]["sig"])).unwrap();
    let mut openssl = pipeline.installation.prepare(Command::new("openssl"));
    openssl.args("pkeyutl -verify -pubin -inkey log.pem -rawin -in signed -sigfile signature".split(' '));
    assert!(finish(openssl, None).expect(0).stdout.contains("Signature Verified Successfully"));
    pipeline.server.stop().expect(0);
}
