//! A service that trusts a provider, and what is asked of it.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::oauth::provider::Provider;
use crate::support::harness::{Installation, PATIENCE, Server, bearer, now};
use crate::support::wire::Response;

pub const ROLE_MAP: &str = "[credentials]\nrole_map = 'role-map.json'\n";

/// Four machines that speak for themselves, called otherwise at the provider where that is said; and hugo, a person.
pub fn role_map() -> String {
    let machine = |actor_id: &str, role: &str, subject: Option<&str>| {
        let mut actor = json!({"actor_id": actor_id, "role": role, "kind": "machine"});
        if let Some(subject) = subject {
            actor["subject"] = json!(subject);
        }
        actor
    };
    let actors = [
        machine("ana@pilot.example", "initiator", Some("ana")),
        machine("ben", "approver", None),
        machine("sam", "security_admin", None),
        machine("ada", "auditor", None),
        json!({"actor_id": "hugo", "role": "approver", "kind": "human"}),
    ];
    json!({"schema_version": 1, "approved_by": ["Ina", "Jo"], "actors": actors}).to_string()
}

pub fn installation(sections: &[&str]) -> Installation {
    let installation = Installation::bare();
    installation.write("role-map.json", &role_map());
    configure(&installation, sections);
    installation
}

pub fn configure(installation: &Installation, sections: &[&str]) {
    installation.write("pilot.toml", &format!("listen = '127.0.0.1:0'\n{ROLE_MAP}{}", sections.concat()));
}

pub fn serve(provider: &Provider) -> (Installation, Server) {
    let installation = installation(&[&provider.section()]);
    let server = installation.serve();
    (installation, server)
}

pub fn post(server: &Server, path: &str, token: &str, body: &Value) -> Response {
    let body = body.to_string();
    let head = [bearer(token), "Content-Type: application/json".into(), format!("Content-Length: {}", body.len())];
    let head = head.join("\r\n");
    server.send(format!("POST {path} HTTP/1.1\r\nHost: a\r\n{head}\r\n\r\n{body}"))
}

/// Polls until the answer is this one.
#[track_caller]
pub fn until(verdict: &str, mut ask: impl FnMut() -> Response) -> Response {
    let end = now() + PATIENCE;
    loop {
        let response = ask();
        if response.verdict() == verdict {
            return response;
        }
        assert!(now() < end, "it never became {verdict}: {}", response.text());
        // Not a wait for something to be true, but for the next question: the service has better things to do.
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// A live feed that has said that it is connected.
pub fn open_feed(server: &Server, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // The connection ends with the feed, so that its end can be heard.
    let accept = "Accept: text/event-stream\r\nConnection: close";
    let head = format!("GET /v1/events HTTP/1.1\r\nHost: a\r\n{}\r\n{accept}\r\n\r\n", bearer(token));
    stream.write_all(head.as_bytes()).unwrap();
    let mut seen = Vec::new();
    while !String::from_utf8_lossy(&seen).contains(": connected") {
        let mut part = [0; 4096];
        let length = stream.read(&mut part).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&part[..length]);
    }
    stream
}

/// Everything until the feed ends by itself.
pub fn rest_of(mut feed: TcpStream) -> String {
    let mut rest = Vec::new();
    feed.read_to_end(&mut rest).expect("the feed ends");
    String::from_utf8_lossy(&rest).into_owned()
}

/// The ledger as ada sees it: type and details of each entry.
pub fn ledger(server: &Server, ada: &str) -> Vec<(String, Value)> {
    let events = server.get("/v1/events?limit=200", &[&bearer(ada)]).json();
    let entry = |event: &Value| (event["type"].as_str().unwrap().to_owned(), event["details"].clone());
    events["events"].as_array().unwrap().iter().map(entry).collect()
}
