//! A service, and people who run the program against it.

use std::process::{Child, Command};

use serde_json::Value;

use crate::support::harness::{Finished, Installation, Server, finish};
use crate::support::team::{payload, team, token};

pub struct Desk {
    pub installation: Installation,
    pub server: Server,
}

impl Desk {
    pub fn new() -> Desk {
        let installation = team();
        let server = installation.serve();
        Desk { installation, server }
    }

    /// The program as this person runs it.
    pub fn command(&self, name: &str, arguments: &[&str]) -> Command {
        let mut command = self.installation.command(arguments);
        command.env("PILOT_URL", self.server.url()).env("PILOT_TOKEN", token(name));
        command
    }

    pub fn run(&self, name: &str, arguments: &[&str]) -> Finished {
        finish(self.command(name, arguments), None)
    }

    #[track_caller]
    pub fn json(&self, name: &str, arguments: &[&str]) -> Value {
        self.run(name, &[arguments, &["--output", "json"]].concat()).expect(0).json()
    }

    /// In the background.
    pub fn start(&self, name: &str, arguments: &[&str]) -> Child {
        self.command(name, arguments).spawn().unwrap()
    }

    /// An item of `ana`'s, made with the program; gives its id.
    #[track_caller]
    pub fn item(&self, title: &str, more: &[&str]) -> String {
        self.installation.write("payload.json", &payload("low").to_string());
        let new = ["item", "new", "--title", title, "--payload", "payload.json", "--fields", "id"];
        self.run("ana", &[&new, more].concat()).expect(0).stdout.trim().to_owned()
    }

    #[track_caller]
    pub fn digest(&self, id: &str) -> String {
        self.run("ben", &["item", "show", id, "--fields", "content_digest"]).expect(0).stdout.trim().to_owned()
    }

    #[track_caller]
    pub fn approve(&self, id: &str) {
        self.run("ben", &["item", "act", id, "approve", "--digest", &self.digest(id)]).expect(0);
    }

    #[track_caller]
    pub fn clear(&self, id: &str) {
        let digest = self.digest(id);
        self.run("sol", &["item", "act", id, "clear", "--digest", &digest, "--not-after", "2h"]).expect(0);
    }
}
