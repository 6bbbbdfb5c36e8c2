//! Webhooks: every entry arrives at every endpoint, in order and at least once, whatever receivers do and whatever is
//! killed.

pub mod receiver;
mod verified;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pilot_setup::config::Signing;
use pilot_setup::webhook_key::{WebhookKey, signed_text};
use serde_json::{Value, json};

use self::receiver::{Arrived, Mood, Receiver};
use crate::operations::second_place::work;
use crate::support::harness::{Installation, PATIENCE, Port, Server, mode, now};
use crate::support::team::{Person, payload, person, team, token};

/// An endpoint on this machine: its address is opened, and plain HTTP too.
pub fn endpoint(installation: &Installation, name: &str, receiver: &Receiver, more: &str) -> String {
    installation.write(&format!("{name}.key"), &WebhookKey::generate(Signing::Ed25519).unwrap());
    let address = receiver.address;
    format!(
        "[[webhooks]]\nname = '{name}'\nurl = 'http://{address}/hooks/{name}'\nsecret_files = ['{name}.key']\n\
         allow_addresses = ['127.0.0.1/32']\nallow_ports = [{}]\nallow_http = true\n{more}\n",
        address.port()
    )
}

fn configure(installation: &Installation, ops: &Port, endpoints: &[String]) {
    let text = format!("listen = '127.0.0.1:0'\n[ops]\nlisten = '{}'\n{}", ops.address(), endpoints.join(""));
    installation.write("pilot.toml", &text);
}

fn ledger_size(server: &Server) -> u64 {
    let note = person(server, "ada").get("/v1/log/checkpoint").text();
    note.lines().nth(1).unwrap().parse().unwrap()
}

/// Every entry is there, and none comes before its predecessor was accepted.
#[track_caller]
pub fn all_in_order(arrived: &[Arrived], size: u64) {
    let mut next = 0;
    for arrived in arrived {
        let index = arrived.index();
        assert!(index <= next, "{index} came when {next} was expected");
        if arrived.is_accepted && index == next {
            next += 1;
        }
    }
    assert!(next >= size, "{next} of {size} were accepted");
}

fn signed_by(arrived: &Arrived, key: &str) {
    let key = WebhookKey::parse(Signing::Ed25519, key).unwrap();
    let header = |name: &str| arrived.headers[name].as_str();
    let timestamp = header("webhook-timestamp").parse().unwrap();
    let text = signed_text(header("webhook-id"), timestamp, &arrived.body);
    assert!(header("webhook-signature").split(' ').any(|signature| signature == key.sign(&text)));
}

fn standing(server: &Server, name: &str) -> Value {
    let list = person(server, "sol").get("/v1/webhooks").json();
    list["webhooks"].as_array().unwrap().iter().find(|webhook| webhook["name"] == name).unwrap().clone()
}

/// What is seen is what was saved, which takes a moment.
#[track_caller]
fn until(server: &Server, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let begun = now();
    loop {
        let standing = standing(server, name);
        if is_so(&standing) {
            return standing;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {standing}");
        thread::yield_now();
    }
}

#[test]
fn every_entry_arrives_in_order_at_every_endpoint_whatever_receivers_do_and_however_often_the_service_is_killed() {
    let (installation, ops) = (team(), Port::reserve());
    let (steady, moody) = (Receiver::start(), Receiver::start());
    let everything = "from = 0\nrestricted = true";
    let endpoints = [("steady", &steady), ("moody", &moody)]
        .map(|(name, receiver)| endpoint(&installation, name, receiver, everything));
    configure(&installation, &ops, &endpoints);
    let bad_days = [
        Mood::Status(500),
        Mood::Hang,
        Mood::Redirect("/hooks/elsewhere"),
        Mood::Late(Duration::from_millis(500)),
        Mood::Talk,
        Mood::Status(404),
    ];
    let mut size = 0;
    for mood in bad_days {
        let server = installation.serve();
        work(&server, 20);
        size = ledger_size(&server);
        // One that hangs or fails does not delay the other.
        steady.until_accepted(size - 1);
        moody.until_accepted(size - 1);
        moody.will(&[mood]);
        let is_over = AtomicBool::new(false);
        let before = moody.arrived().len();
        thread::scope(|scope| {
            let (mut ana, is_over) = (person(&server, "ana"), &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::SeqCst) {
                    ana.creates("controlled-operation", &payload("low"));
                }
            });
            moody.until("it got the next one", |arrived| arrived.len() > before);
            let at = steady.arrived().len();
            steady.until("the other goes on meanwhile", |arrived| arrived.len() > at + 50);
            is_over.store(true, Ordering::SeqCst);
        });
        size = ledger_size(&server).max(size);
        // SIGKILL, in the middle of deliveries. The next service tries at once what failed.
        drop(server);
    }
    let server = installation.serve();
    size = size.max(ledger_size(&server));
    for (name, receiver) in [("steady", &steady), ("moody", &moody)] {
        receiver.until_accepted(size - 1);
        let arrived = receiver.arrived();
        all_in_order(&arrived, size);
        assert!(arrived.iter().all(|arrived| arrived.path == format!("/hooks/{name}")), "no redirect is followed");
        let key = installation.read(&format!("{name}.key"));
        for arrived in &arrived {
            signed_by(arrived, &key);
        }
        let repeated = arrived.len() as u64 - size;
        println!("{name}: {size} entries, {repeated} deliveries more");
    }
    let finished = server.stop().expect(0);
    finished.never_says("/hooks/");
    for name in ["steady", "moody"] {
        finished.never_says(installation.read(&format!("{name}.key")).trim());
    }
}

#[test]
fn an_orderly_stop_saves_the_place_and_nothing_comes_twice() {
    let (installation, ops, receiver) = (team(), Port::reserve(), Receiver::start());
    configure(&installation, &ops, &[endpoint(&installation, "all", &receiver, "from = 0\nrestricted = true")]);
    for _ in 0..3 {
        let server = installation.serve();
        work(&server, 5);
        receiver.until_accepted(ledger_size(&server) - 1);
        server.stop().expect(0);
    }
    let indices = receiver.indices();
    assert_eq!(indices, (0..indices.len() as u64).collect::<Vec<_>>());
}

#[test]
fn who_oversees_the_service_sees_endpoints_without_secrets_and_moves_them() {
    let (installation, ops, receiver) = (team(), Port::reserve(), Receiver::start());
    configure(&installation, &ops, &[endpoint(&installation, "chat", &receiver, "")]);
    let server = installation.serve();
    until(&server, "chat", |standing| !standing["next"].is_null());
    work(&server, 3);
    let (mut sol, mut ada, mut ana) = (person(&server, "sol"), person(&server, "ada"), person(&server, "ana"));
    receiver.until("three items", |arrived| arrived.len() >= 3);
    let first = receiver.indices()[0];
    assert_eq!(receiver.indices(), [first, first + 1, first + 2], "a new endpoint begins with what is new");
    assert!(receiver.arrived().iter().all(|arrived| arrived.event()["type"] == "item.created"), "only about items");
    for person in [&mut sol, &mut ada] {
        let listed = person.get("/v1/webhooks");
        assert_eq!(listed.status, 200);
        let text = listed.text();
        assert!(text.contains(&receiver.address.to_string()) && !text.contains("hooks/"), "{text}");
        assert_eq!(listed.json()["webhooks"][0]["state"], "delivering");
    }
    assert_eq!(ana.get("/v1/webhooks").status, 403);
    let replay =
        |person: &mut Person, name: &str, body: &Value| person.post(&format!("/v1/webhooks/{name}/replay"), body);
    assert_eq!(replay(&mut ada, "chat", &json!({ "from": 0 })).status, 403);
    assert_eq!(replay(&mut sol, "nobody", &json!({ "from": 0 })).status, 404);
    for wrong in [json!({}), json!({ "from": -1 }), json!({ "from": "0" }), json!({ "from": 0, "to": 1 })] {
        assert_eq!(replay(&mut sol, "chat", &wrong).status, 422, "{wrong}");
    }
    let next = until(&server, "chat", |standing| standing["next"].as_u64() > Some(first + 2))["next"].as_u64().unwrap();
    // Entries about the service may come meanwhile, but not so many.
    for ahead in [next + 100, next + 1_000_000] {
        let refused = replay(&mut sol, "chat", &json!({ "from": ahead }));
        let said = refused.text();
        assert!(refused.status == 422 && said.contains("/from"), "{said}");
        assert!(said.contains("must be at most ") && said.contains("a new name in the configuration"), "{said}");
    }
    assert_eq!(receiver.indices().len(), 3, "and nothing is left out or repeated");
    let moved = replay(&mut sol, "chat", &json!({ "from": first + 1 }));
    assert_eq!((moved.status, &moved.json()["next"]), (200, &json!(first + 1)));
    receiver.until("two of them again", |arrived| arrived.len() >= 5);
    assert_eq!(receiver.indices()[3..], [first + 1, first + 2]);
    let ids: Vec<_> = receiver.arrived().iter().map(|arrived| arrived.headers["webhook-id"].clone()).collect();
    assert_eq!((&ids[3], &ids[4]), (&ids[1], &ids[2]), "by their ids a receiver knows that it has them");
}

#[test]
fn an_endpoint_that_is_gone_is_paused_and_seen_and_resumed() {
    let (installation, ops, receiver) = (team(), Port::reserve(), Receiver::start());
    configure(&installation, &ops, &[endpoint(&installation, "chat", &receiver, "from = 0")]);
    receiver.will(&[Mood::Status(410)]);
    let server = installation.serve();
    work(&server, 1);
    server.wait_for_log("the webhook `chat` is paused");
    let paused = until(&server, "chat", |standing| standing["state"] == "paused");
    assert_eq!(paused["last_answer"], "answered 410");
    assert!(ops.metrics().contains("pilot_webhook_paused{endpoint=\"chat\"} 1"), "{}", ops.metrics());
    drop(server);
    let server = installation.serve();
    work(&server, 1);
    assert_eq!(standing(&server, "chat")["state"], "paused", "a restart changes nothing");
    let index = receiver.indices()[0];
    assert_eq!(person(&server, "sol").post("/v1/webhooks/chat/replay", &json!({ "from": index })).status, 200);
    receiver.until("both items", |arrived| arrived.iter().filter(|arrived| arrived.is_accepted).count() >= 2);
    assert_eq!(standing(&server, "chat")["paused_because"], Value::Null);
}

#[test]
fn a_secret_of_an_endpoint_is_refused_in_content_and_a_forbidden_address_at_the_start() {
    let (installation, ops, receiver) = (team(), Port::reserve(), Receiver::start());
    let sound = endpoint(&installation, "chat", &receiver, "");
    configure(&installation, &ops, std::slice::from_ref(&sound));
    let server = installation.serve();
    let mut body = payload("low");
    body["purpose"] = format!("sign with {}", installation.read("chat.key").trim()).into();
    let body = json!({ "workflow": "controlled-operation", "title": "x", "payload": body });
    let refused = person(&server, "ana").post("/v1/items", &body);
    assert!(refused.status == 422 && refused.text().contains("token_in_content"), "{}", refused.text());
    drop(server);
    let checked = installation.pilot(&["check-config"]).expect(0);
    let told = format!("`chat` is told at {}", receiver.address);
    assert!(checked.stdout.contains(&told) && checked.stdout.contains("whpk_"), "{}", checked.stdout);
    checked.never_says("/hooks/");
    // What has to be sent to support is searched for the same secrets.
    let key = installation.read("chat.key");
    installation.write("service.log", &format!("signed with {}\n", key.trim()));
    installation.pilot(&["support-bundle", "--out", "bundle.txt", "--log-file", "service.log", "--no-fsck"]).expect(0);
    let bundle = installation.read("bundle.txt");
    assert!(bundle.contains("signed with [token withheld]") && !bundle.contains(key.trim()), "{bundle}");
    configure(&installation, &ops, &[format!("{sound}workflows = ['controlled-operation', 'controled-operation']\n")]);
    let checked = installation.pilot(&["check-config"]);
    let warned = "`chat`: workflows: there is no definition named `controled-operation`";
    assert!(
        checked.stdout.contains(warned) && !checked.stdout.contains("`controlled-operation`"),
        "{}",
        checked.stdout
    );
    configure(
        &installation,
        &ops,
        &[sound.replace("allow_addresses = ['127.0.0.1/32']", "allow_addresses = ['10.0.0.0/8']")],
    );
    let refused = installation.serve_in_vain().expect(2);
    refused.says(&["webhooks[0].url: leads to 127.0.0.1, which is not allowed: loopback"]);
    refused.never_says(&token("sol"));
}

#[test]
fn the_command_line_makes_keys_shows_endpoints_and_replays() {
    let (installation, ops, receiver) = (team(), Port::reserve(), Receiver::start());
    let made = installation.pilot(&["webhook", "key", "--out", "chat.key"]).expect(0);
    let public = made.stdout.trim();
    assert!(public.starts_with("whpk_") && public.lines().count() == 1, "{public}");
    let key = installation.read("chat.key");
    assert_eq!(mode(&installation.path("chat.key")) & 0o777, 0o600);
    made.never_says(key.trim());
    assert_eq!(WebhookKey::parse(Signing::Ed25519, &key).unwrap().public().unwrap(), public);
    installation.pilot(&["webhook", "key", "--out", "chat.key"]).expect(3);
    assert_eq!(installation.read("chat.key"), key, "an existing key is not replaced");
    installation.pilot(&["webhook", "key", "--out", "shared.key", "--signing", "hmac"]).expect(0);
    assert!(installation.read("shared.key").starts_with("whsec_"));

    configure(&installation, &ops, &[endpoint(&installation, "chat", &receiver, "from = 0")]);
    let server = installation.serve();
    work(&server, 2);
    receiver.until("two items", |arrived| arrived.len() >= 2);
    let url = server.url();
    let list = installation.pilot_as(&token("ada"), &["webhook", "list", "--url", &url]).expect(0);
    let host = receiver.address.to_string();
    assert!(list.stdout.contains(&host) && list.stdout.contains("delivering"), "{}", list.stdout);
    let from = receiver.indices()[1];
    until(&server, "chat", |standing| standing["next"].as_u64() > Some(from));
    let from = from.to_string();
    let replay = ["webhook", "replay", "chat", "--from", &from, "--url", &url];
    installation.pilot_as(&token("ada"), &replay).expect(1);
    installation.pilot_as(&token("sol"), &replay).expect(0);
    receiver.until("one of them again", |arrived| arrived.len() >= 3);
    assert_eq!(receiver.indices()[2], receiver.indices()[1]);
}
