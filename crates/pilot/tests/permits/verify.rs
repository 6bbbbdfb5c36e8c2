//! `pilot permit verify`, with permits of a real service.

use std::fs;

use serde_json::json;

use crate::operations::witnesses::{Witness, begun, configure};
use crate::permits::download::{permit, policy, started};
use crate::permits::scene::sha256;
use crate::support::harness::{Finished, Installation, Server};
use crate::support::team::{person, team, token};

struct Target {
    installation: Installation,
    server: Server,
    id: String,
}

impl Target {
    fn new(operation: &serde_json::Value) -> Target {
        let installation = team();
        let server = installation.serve();
        let id = started(&server, operation);
        installation.write("policy", &policy(&installation));
        let target = Target { installation, server, id };
        target.download();
        target
    }

    fn download(&self) {
        fs::write(self.installation.path("permit.zip"), permit(&self.server, &self.id)).unwrap();
    }

    fn verify(&self, arguments: &[&str]) -> Finished {
        let all = [&["permit", "verify", "permit.zip", "--policy", "policy"], arguments].concat();
        self.installation.pilot_as(&token("ada"), &all)
    }
}

#[test]
fn a_permit_is_shown_as_a_table_and_as_json() {
    let target = Target::new(&json!({"argv": ["/bin/true"]}));
    let table = target.verify(&[]).expect(0);
    for word in ["The permit holds.", "start by eli", "executing", "by the log's own clock"] {
        assert!(table.stdout.contains(word), "{word}: {table:#?}");
    }
    let shown = target.verify(&["--output", "json"]).expect(0).json();
    assert_eq!(shown["item"]["id"], target.id);
    assert_eq!(shown["operation"], json!({"argv": ["/bin/true"]}));
    assert_eq!((&shown["begun"]["action"], &shown["vouched_by"]), (&json!("start"), &json!("log")));
    let piped = target.installation.command(&["permit", "verify", "-", "--policy", "policy"]);
    let mut piped = piped;
    piped.stdin(fs::File::open(target.installation.path("permit.zip")).unwrap());
    crate::support::harness::finish(piped, None).expect(0);
    target.server.stop().expect(0);
}

#[test]
fn the_holder_of_the_lease_downloads_a_permit_at_the_terminal() {
    let target = Target::new(&json!({"argv": ["/bin/true"]}));
    let url = target.server.url();
    let get = |who: &str| {
        let arguments = ["permit", "get", &target.id, "--out", "mine.zip", "--url", &url];
        target.installation.pilot_as(&token(who), &arguments)
    };
    get("eva").expect(1).says(&["403 not_owner"]);
    assert!(!target.installation.path("mine.zip").exists());
    for _ in 0..2 {
        get("eli").expect(0);
        target.installation.pilot(&["permit", "verify", "mine.zip", "--policy", "policy"]).expect(0);
    }
    assert_eq!(crate::support::harness::mode(&target.installation.path("mine.zip")), 0o600);
}

#[test]
fn the_operation_is_compared_byte_for_byte() {
    let target = Target::new(&json!("rotate --slot 2"));
    let compare = |bytes: &str| {
        target.installation.write("operation", bytes);
        target.verify(&["--operation", "operation"])
    };
    compare("rotate --slot 2").expect(0);
    for other in ["rotate --slot 2\n", "rotate --slot 3", "", "\"rotate --slot 2\""] {
        compare(other).expect(1).says(&["is not what was approved"]);
    }
    compare(&"x".repeat(70_000)).expect(1).says(&["is larger than anything that can be approved"]);
    let target = Target::new(&json!({"b": 1, "a": [1.0, "é"]}));
    target.installation.write("operation", "{\"a\":[1,\"é\"],\"b\":1}");
    target.verify(&["--operation", "operation"]).expect(0);
    target.installation.write("operation", "{\"b\":1,\"a\":[1,\"é\"]}");
    target.verify(&["--operation", "operation"]).expect(1).says(&["is not what was approved"]);
}

#[test]
fn an_artifact_is_compared_by_its_name_and_digest() {
    let plan = b"create 3, destroy 0\n";
    let artifacts = json!([{"name": "plan", "sha256": sha256(plan)}, {"name": "twice", "sha256": "a"}, {"name": "twice", "sha256": "b"}]);
    let target = Target::new(&json!({"argv": ["/bin/true"], "artifacts": artifacts}));
    fs::write(target.installation.path("plan"), plan).unwrap();
    target.installation.write("other", "create 0, destroy 3\n");
    target.verify(&["--artifact", "plan=plan"]).expect(0);
    target.verify(&["--artifact", "plan=plan", "--artifact", "plan=other"]).expect(1).says(&["was approved"]);
    target.verify(&["--artifact", "notes=plan"]).expect(1).says(&["no operation.artifacts entry with the name"]);
    target.verify(&["--artifact", "twice=plan"]).expect(1).says(&["approved twice"]);
    target.verify(&["--artifact", "plan"]).expect(2).says(&["NAME=FILE"]);
    target.verify(&["--artifact", "plan=nowhere"]).expect(3);
}

#[test]
fn a_permit_is_spent_once_and_only_if_everything_else_holds() {
    let target = Target::new(&json!("rotate"));
    target.installation.make_private_directory("spent");
    target.installation.write("operation", "destroy");
    target.verify(&["--spent", "spent", "--operation", "operation"]).expect(1).says(&["is not what was approved"]);
    target.verify(&["--spent", "spent"]).expect(0);
    target.verify(&["--spent", "spent"]).expect(1).says(&["was already used here"]);
    target.verify(&[]).expect(0);
}

#[test]
fn the_service_knows_what_a_permit_cannot() {
    let target = Target::new(&json!("rotate"));
    let (server, id, url) = (&target.server, target.id.as_str(), target.server.url());
    let fresh = || target.verify(&["--fresh", &url]);
    fresh().expect(0);
    person(server, "sol").must(id, &json!({"action": "hold", "comment": "stop"}));
    target.verify(&[]).expect(0);
    fresh().expect(1).says(&["the service says that the item is held"]);
    person(server, "sol").must(id, &json!({"action": "release", "comment": "go"}));
    fresh().expect(0);
    let mut eli = person(server, "eli");
    eli.must(id, &json!({"action": "fail"}));
    fresh().expect(1).says(&["the item is now failed, not executing"]);
    eli.decides(id, "retry");
    fresh().expect(1).says(&["another attempt is under way since"]);
    target.verify(&[]).expect(0);
    target.download();
    fresh().expect(0);
    eli.must(id, &json!({"action": "fail"}));
    person(server, "eva").decides(id, "retry");
    fresh().expect(1).says(&["another attempt is under way"]);
    let all = ["permit", "verify", "permit.zip", "--policy", "policy", "--fresh", &url];
    target.installation.pilot_as("0123456789abcdef0123456789abcdef", &all).expect(1).says(&["credential_required"]);
}

#[test]
fn a_real_witness_vouches_for_a_permit_and_is_missed_when_it_is_gone() {
    let installation = begun();
    let witness = Witness::make(&installation, "w1");
    configure(&installation, &[&witness], 1);
    let running = witness.start();
    let server = installation.serve();
    let id = started(&server, &json!("rotate"));
    let text = format!("log {}\nwitness one {}\nquorum one\n", witness.log(), witness.key);
    installation.write("policy", &text);
    let verify = || {
        fs::write(installation.path("permit.zip"), permit(&server, &id)).unwrap();
        installation.pilot(&["permit", "verify", "permit.zip", "--policy", "policy", "--output", "json"])
    };
    let shown = verify().expect(0).json();
    assert_eq!((&shown["vouched_by"], &shown["cosigned"][0]["witness"]), (&json!("witnesses"), &json!("w1.example")));
    running.stop().expect(0);
    person(&server, "eli").must(&id, &json!({"action": "heartbeat"}));
    verify().expect(1).says(&["too few witnesses of the policy have cosigned", "w1.example has not"]);
    server.stop().expect(0);
}

#[test]
fn the_help_says_what_a_permit_cannot_know() {
    let installation = Installation::bare();
    for command in [&["permit", "verify", "--help"][..], &["gate", "--help"]] {
        let help = installation.pilot(command).expect(0).stdout;
        let help: Vec<_> = help.split_whitespace().collect();
        let help = help.join(" ");
        for words in ["It cannot show what came later: a hold", "only the service vouches for it", "--fresh asks it"] {
            assert!(help.contains(words), "{words}: {help}");
        }
    }
}
