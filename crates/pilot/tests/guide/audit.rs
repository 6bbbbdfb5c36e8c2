//! docs/audit/auditors-guide.md, from the key that someone handed over to the signed opinion.

use std::process::Command;

use pilot_core::time::Time;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, EMERGENCY_OPERATION};
use pilot_wire::clock::since_1970;
use serde_json::{Value, json};

use super::page::Page;
use super::recorded::Recorder;
use super::shell::Shell;
use crate::operations::witnesses::{Witness, cosigned_by};
use crate::support::harness::{Installation, Server, role_map};
use crate::support::team::{emergency, installation_of, payload, person, token, with_times};

const PEOPLE: [(&str, &str); 7] = [
    ("ana", "initiator"),
    ("amy", "initiator"),
    ("ben", "approver"),
    ("bea", "approver"),
    ("sol", "security_admin"),
    ("eli", "executor"),
    ("ada", "auditor"),
];

fn present() -> String {
    Time::from_unix_micros(i64::try_from(since_1970().unwrap().as_micros()).unwrap()).to_string()
}

/// An item, moved by these actions.
fn item(server: &Server, workflow: &str, author: &str, payload: &Value, actions: &[(&str, &str)]) -> String {
    let id = person(server, author).creates(workflow, payload);
    let digest = person(server, "ada").item(&id)["content_digest"].clone();
    for (who, action) in actions {
        let mut body = json!({"action": action});
        match *action {
            "approve" | "start" => body["content_digest"] = digest.clone(),
            "clear" => {
                body["content_digest"] = digest.clone();
                body["inputs"] = with_times(&json!({"not_after": "in an hour"}), &id);
            }
            "hold" => body["comment"] = "The change freeze begins tonight".into(),
            "release" => body["comment"] = "It was postponed".into(),
            _ => {}
        }
        person(server, who).must(&id, &body);
    }
    id
}

const CLEARED: [(&str, &str); 3] = [("ana", "submit"), ("ben", "approve"), ("sol", "clear")];
const DONE: [(&str, &str); 3] = [("eli", "start"), ("eli", "succeed"), ("bea", "accept")];

/// What happened in November: an operation, one that was held and then withdrawn, a refused attempt, and an emergency.
fn november(server: &Server) {
    let risk = payload("low");
    item(server, "controlled-operation", "ana", &risk, &[CLEARED, DONE].concat());
    let held = [("amy", "submit"), ("ben", "approve"), ("sol", "hold"), ("sol", "release"), ("amy", "withdraw")];
    let id = item(server, "controlled-operation", "amy", &risk, &held);
    let urgent = [("ana", "submit"), ("sol", "clear"), ("eli", "start"), ("eli", "succeed")];
    item(server, "emergency-operation", "ana", &emergency(), &urgent);
    // The last thing that happens: when it is written down is up to the service.
    assert_eq!(person(server, "eli").acts(&id, &json!({"action": "approve"})).verdict(), "403 role_forbidden");
}

fn configure(installation: &Installation, witnesses: &str) {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[credentials]\nrole_map = \"role-map.json\"\n[log]\nwitnesses = [{witnesses}]\n"
    );
    installation.write("pilot.toml", &text);
}

#[test]
fn the_page_for_an_audit_works_as_it_is_written() {
    let found = Command::new("ssh-keygen").arg("-?").output();
    assert!(found.is_ok(), "ssh-keygen is missing: install it (on Debian: apt-get install openssh-client)");
    let installation = installation_of(&PEOPLE);
    installation.write("role-map.json", &role_map(&PEOPLE));
    configure(&installation, "");
    installation.serve().stop().expect(0);
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &witness.listed());
    let running = witness.start();
    let server = installation.serve();
    item(&server, "controlled-operation", "ana", &payload("low"), &[CLEARED, DONE].concat());
    let middle = present();
    let earlier = ["evidence", "export", "--from", "1970-01-01T00:00:00Z", "--to", &middle, "--out", "october.zip"];
    installation.pilot_as(&token("ada"), &[&earlier[..], &["--url", &server.url()]].concat()).expect(0);
    november(&server);
    // What was refused is written down when the service stops.
    server.stop().expect(0);
    let server = installation.serve();
    cosigned_by(&server, &witness);
    let (key, cosigner) = (witness.log(), &witness.key);
    installation.write("log.pub", &format!("{key}\n"));
    installation.write("policy.txt", &format!("log {key}\nwitness partner {cosigner}\nquorum partner\n"));
    installation.write("controlled-operation.toml", CONTROLLED_OPERATION);
    installation.write("emergency-operation.toml", EMERGENCY_OPERATION);
    let home = installation.path("").canonicalize().unwrap();
    let variables = [("PILOT_URL", server.url()), ("PILOT_TOKEN", token("ada")), ("FROM", middle), ("TO", present())];
    let mut shell = Shell::start(&home, &variables);
    Page::open("docs/audit/auditors-guide.md")
        .run(&mut shell, &mut Recorder::new(home.to_str().unwrap()).with_files("22"));
    server.stop().expect(0);
    running.stop().expect(0);
}
