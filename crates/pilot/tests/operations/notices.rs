//! Notices: people are told in a chat and by mail, by a service that may be killed at any time.

#[path = "../../../pilot-notices/tests/server.rs"]
mod mail_server;

use std::thread;

use pilot_notices::mail::MailTls;

use self::mail_server::Server as MailServer;
use crate::operations::webhooks::receiver::{Arrived, Mood, Receiver};
use crate::support::harness::{Installation, PATIENCE, Port, Server, now};
use crate::support::team::{payload, person, team};

const SECRET_PATH: &str = "services/T00000000/B00000000/abcdefghijklmnopqrstuvwx";
const PASSWORD: &str = "correct horse";

fn chat(installation: &Installation, name: &str, kind: &str, receiver: &Receiver) -> String {
    let address = receiver.address;
    installation.write(&format!("{name}.url"), &format!("http://{address}/{SECRET_PATH}\n"));
    format!(
        "[[notices]]\nname = '{name}'\nkind = '{kind}'\nurl_file = '{name}.url'\nallow_addresses = ['127.0.0.1/32']\n\
         allow_ports = [{}]\nallow_http = true\n",
        address.port()
    )
}

fn mail(installation: &Installation, server: &MailServer) -> String {
    let settings = server.settings(MailTls::StartTls);
    let (user, password) = settings.login.unwrap();
    installation.write("mail.password", &password);
    installation
        .write("contacts.toml", "[ben]\nmail = 'ben@example.com'\nslack = 'U024BE7LH'\nteams = 'ben@example.com'\n");
    format!(
        "[[notices]]\nname = 'mail'\nkind = 'mail'\nserver = '{}:{}'\nuser = '{user}'\n\
         password_file = 'mail.password'\nfrom = '{}'\nca_file = '{}'\n",
        settings.host,
        settings.port,
        settings.from,
        settings.ca_file.unwrap().display()
    )
}

fn configure(installation: &Installation, ops: &Port, notices: &[String]) {
    let text = format!(
        "listen = '127.0.0.1:0'\npublic_url = 'https://pilot.example.com'\ncontacts_file = 'contacts.toml'\n\
         [ops]\nlisten = '{}'\n{}",
        ops.address(),
        notices.join("")
    );
    installation.write("pilot.toml", &text);
}

/// A message is counted when its receiver has said that it has it, which takes a moment.
fn until(ops: &Port, is_so: impl Fn(&str) -> bool) -> String {
    let begun = now();
    loop {
        let metrics = ops.metrics();
        if is_so(&metrics) {
            return metrics;
        }
        assert!(begun.elapsed() < PATIENCE, "never: {metrics}");
        thread::yield_now();
    }
}

/// So many deliveries, as soon as there are.
fn deliveries(receiver: &Receiver, count: usize) -> Vec<Arrived> {
    receiver.until(&format!("{count} deliveries"), |arrived| arrived.len() >= count);
    receiver.arrived()
}

fn submit(server: &Server, title: &str) -> String {
    let mut ana = person(server, "ana");
    let body = serde_json::json!({ "workflow": "controlled-operation", "title": title, "payload": payload("high") });
    let item = ana.post("/v1/items", &body).json()["id"].as_str().unwrap().to_owned();
    assert_eq!(ana.decides(&item, "submit").status, 201);
    item
}

#[test]
fn a_chat_a_card_and_a_mail_say_what_waits_and_nothing_that_is_secret_gets_out() {
    let (installation, ops) = (team(), Port::reserve());
    let (slack, teams) = (Receiver::start(), Receiver::start());
    let mut mailbox = MailServer::start("starttls");
    let notices = [
        chat(&installation, "ops", "slack", &slack),
        chat(&installation, "cards", "teams", &teams),
        mail(&installation, &mailbox),
    ];
    configure(&installation, &ops, &notices);
    let checked = installation.pilot(&["check-config", "--offline"]).expect(0).stdout;
    assert!(checked.contains("`ops` tells people at 127.0.0.1"), "{checked}");
    let server = installation.serve();
    let item = submit(&server, "Rotate <!channel> the *keys*");
    let link = format!("https://pilot.example.com/console/items/{item}");

    let message = deliveries(&slack, 1)[0].event();
    let blocks = message["blocks"].to_string();
    assert!(
        blocks.contains("\"type\":\"header\"") && blocks.contains("<@U024BE7LH>") && blocks.contains(&link),
        "{message}"
    );
    assert!(!blocks.contains("<!channel>"), "{message}");

    let card = deliveries(&teams, 1)[0].event();
    let content = &card["attachments"][0];
    assert_eq!(content["contentType"], "application/vnd.microsoft.card.adaptive");
    assert_eq!((&card["type"], &content["content"]["type"]), (&"message".into(), &"AdaptiveCard".into()));
    assert!(content["content"]["body"].to_string().contains(&link), "{card}");
    assert!(!content.to_string().contains("Action.Submit"), "{card}");

    let letter = mailbox.accepted();
    assert!(letter.to_string().contains("ben@example.com") && letter.to_string().contains(&item), "{letter}");

    let delivered = |name: &str| format!("pilot_notice_messages_total{{notice=\"{name}\",outcome=\"delivered\"}} 1\n");
    let metrics = until(&ops, |metrics| ["ops", "cards", "mail"].iter().all(|name| metrics.contains(&delivered(name))));
    let log = server.stop().expect(0).stderr;
    for secret in [SECRET_PATH, "abcdefghijklmnopqrstuvwx", PASSWORD, "ben@example.com"] {
        assert!(!log.contains(secret) && !metrics.contains(secret) && !checked.contains(secret), "{secret}");
    }
}

#[test]
fn nobody_is_left_out_by_a_chat_that_fails_and_a_service_that_is_killed() {
    let (installation, ops) = (team(), Port::reserve());
    let slack = Receiver::start();
    installation.write("contacts.toml", "");
    configure(&installation, &ops, &[chat(&installation, "ops", "slack", &slack)]);
    let server = installation.serve();
    slack.will(&[Mood::Status(503)]);
    let first = submit(&server, "first");
    deliveries(&slack, 1);
    drop(server);
    let _server = installation.serve();
    let arrived = deliveries(&slack, 2);
    assert!(!arrived[0].is_accepted && arrived[1].is_accepted);
    assert!(arrived[1].event().to_string().contains(&first), "the next start tells it");
}

#[test]
fn a_trial_message_arrives_and_a_faulty_configuration_says_what_to_do() {
    let (installation, ops) = (team(), Port::reserve());
    let slack = Receiver::start();
    let mut mailbox = MailServer::start("starttls");
    let notices = [chat(&installation, "ops", "slack", &slack), mail(&installation, &mailbox)];
    configure(&installation, &ops, &notices);
    let said = installation.pilot(&["notice", "test", "ops", "--to", "ben"]).expect(0).stderr;
    assert!(said.contains("took the message") && !said.contains(SECRET_PATH), "{said}");
    assert!(deliveries(&slack, 1)[0].event().to_string().contains("This is a trial"));
    installation.pilot(&["notice", "test", "mail", "--to", "ben"]).expect(0);
    assert!(mailbox.accepted().to_string().contains("This is a trial"));
    for (arguments, why) in [
        (
            ["notice", "test", "nothing", "--to", "ben"],
            "there is no notice with the name `nothing`; there is `ops`, `mail`",
        ),
        (["notice", "test", "mail", "--to", "cat"], "the contacts file has no mail address of `cat`"),
    ] {
        let said = installation.pilot(&arguments).expect(2).stderr;
        assert!(said.contains(why), "{said}");
    }
    installation.write("mail.password", "wrong");
    let said = installation.pilot(&["notice", "test", "mail", "--to", "ben"]).expect(3).stderr;
    assert!(!said.contains("wrong") && !said.contains("ben@example.com"), "{said}");
    installation.write("contacts.toml", "[ben]\nmail = 'nobody'\n");
    let said = installation.pilot(&["check-config", "--offline"]).expect(2).stdout;
    assert!(said.contains("[ben].mail: is not an address"), "{said}");
}
