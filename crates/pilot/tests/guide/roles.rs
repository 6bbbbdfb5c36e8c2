//! The pages for each role, with what their reader would find: a service, items that wait, and a token.

use serde_json::{Value, json};

use super::page::Page;
use super::recorded::Recorder;
use super::shell::Shell;
use crate::support::harness::{Installation, Server, role_map, set_mode};
use crate::support::team::{installation_of, person, token, with_times};

const PEOPLE: [(&str, &str); 6] = [
    ("ana", "initiator"),
    ("amy", "initiator"),
    ("ben", "approver"),
    ("sol", "security_admin"),
    ("eli", "executor"),
    ("ada", "auditor"),
];

fn payload() -> Value {
    json!({
        "purpose": "The key is a year old",
        "operation": {"argv": ["/usr/local/sbin/rotate-key", "--slot", "2"]},
        "risk": "low",
        "rollback_plan": "Activate slot 1 again",
    })
}

struct Desk {
    installation: Installation,
    server: Server,
}

impl Desk {
    fn new() -> Desk {
        let installation = installation_of(&PEOPLE);
        installation.write("pilot.toml", "listen = \"127.0.0.1:0\"\n[credentials]\nrole_map = \"role-map.json\"\n");
        installation.write("role-map.json", &role_map(&PEOPLE));
        let server = installation.serve();
        installation.write("payload.json", &payload().to_string());
        installation.write("carry-out", "#!/bin/sh\necho done\n");
        set_mode(&installation.path("carry-out"), 0o755);
        let key = installation.pilot(&["log", "key", "--config", "pilot.toml"]).expect(0).stdout;
        installation.write("log.pub", &key);
        Desk { installation, server }
    }

    /// An item of this initiator's, moved by these actions.
    fn item(&self, author: &str, actions: &[(&str, &str)]) -> String {
        let id = person(&self.server, author).creates("controlled-operation", &payload());
        let digest = person(&self.server, "ada").item(&id)["content_digest"].clone();
        for (who, action) in [(author, "submit")].iter().chain(actions) {
            let mut body = json!({"action": action});
            if ["approve", "clear", "start"].contains(action) {
                body["content_digest"] = digest.clone();
            }
            if *action == "clear" {
                body["inputs"] = with_times(&json!({"not_after": "in an hour"}), &id);
            }
            person(&self.server, who).must(&id, &body);
        }
        id
    }

    /// The page as this person types it, with the ids of items in variables.
    #[track_caller]
    fn page(&self, name: &str, who: &str, items: &[(&str, String)]) {
        let home = self.installation.path("").canonicalize().unwrap();
        let own = [("PILOT_URL", self.server.url()), ("PILOT_TOKEN", token(who))];
        let variables: Vec<_> = own.iter().chain(items).cloned().collect();
        let mut shell = Shell::start(&home, &variables);
        let page = Page::open(&format!("docs/guide/roles/{name}.md"));
        page.run(&mut shell, &mut Recorder::new(home.to_str().unwrap()));
    }
}

const APPROVED: &[(&str, &str)] = &[("ben", "approve")];
const CLEARED: &[(&str, &str)] = &[("ben", "approve"), ("sol", "clear")];
const DONE: &[(&str, &str)] = &[("ben", "approve"), ("sol", "clear"), ("eli", "start"), ("eli", "succeed")];

#[test]
fn the_page_for_initiators_works_as_it_is_written() {
    let desk = Desk::new();
    let other = desk.item("amy", &[]);
    desk.page("initiator", "ana", &[("OTHER", other)]);
}

#[test]
fn the_page_for_approvers_works_as_it_is_written() {
    let desk = Desk::new();
    let (done, waiting) = (desk.item("amy", DONE), desk.item("ana", &[]));
    desk.page("approver", "ben", &[("ID", waiting), ("DONE", done)]);
}

#[test]
fn the_page_for_security_admins_works_as_it_is_written() {
    let desk = Desk::new();
    let (approved, other) = (desk.item("ana", APPROVED), desk.item("amy", &[]));
    desk.page("security-admin", "sol", &[("ID", approved), ("OTHER", other)]);
}

#[test]
fn the_page_for_executors_works_as_it_is_written() {
    let desk = Desk::new();
    let (cleared, second) = (desk.item("ana", CLEARED), desk.item("amy", CLEARED));
    desk.page("executor", "eli", &[("ID", cleared), ("SECOND", second)]);
}

#[test]
fn the_page_for_auditors_works_as_it_is_written() {
    let desk = Desk::new();
    let closed = desk.item("ana", &[DONE, &[("ben", "accept")]].concat());
    desk.page("auditor", "ada", &[("ID", closed)]);
}
