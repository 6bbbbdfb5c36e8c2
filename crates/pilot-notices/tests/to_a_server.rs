//! What a real server accepts, and what becomes of what it does not.

use std::time::Duration;

use pilot_notices::mail::{Letter, MailError, MailServer, MailTls, Mailer};
use serde_json::json;

use crate::letter::a_letter;
use crate::server::Server;

/// Only a test that fails waits so long.
const LONG: Duration = Duration::from_mins(1);

async fn send(server: &MailServer, to: &str) -> Result<(), MailError> {
    Mailer::open(server).unwrap().send(to, &a_letter(), "01890a5d.1@pilot.example", LONG).await
}

fn failed(text: &str) -> Result<(), MailError> {
    Err(MailError::Failed(text.to_owned()))
}

#[tokio::test]
async fn a_mail_arrives_over_tls_with_both_parts_and_its_headers() {
    for (mode, tls) in [("implicit", MailTls::Implicit), ("starttls", MailTls::StartTls)] {
        let mut server = Server::start(mode);
        send(&server.settings(tls), "ben@example.com").await.unwrap();
        let mut mail = server.accepted();
        assert!(mail["headers"]["Date"].as_str().unwrap().ends_with("+0000"), "{mail}");
        let kind = mail["headers"]["Content-Type"].as_str().unwrap();
        assert!(kind.starts_with("multipart/alternative"), "{kind}");
        for name in ["Date", "Content-Type"] {
            mail["headers"].as_object_mut().unwrap().remove(name);
        }
        let letter = a_letter();
        let expected = json!({
            "hello": "example.com",
            "login": true,
            "from": "pilot@example.com",
            "to": ["ben@example.com"],
            "headers": {
                "From": "Pilot <pilot@example.com>",
                "To": "ben@example.com",
                "Subject": letter.subject,
                "Message-ID": "<01890a5d.1@pilot.example>",
                "Auto-Submitted": "auto-generated",
                "X-Auto-Response-Suppress": "All",
                "MIME-Version": "1.0",
            },
            "type": "multipart/alternative",
            "parts": [["text/plain", letter.text], ["text/html", letter.html]],
            "defects": [],
        });
        assert_eq!(mail, expected, "{mode}");
    }
}

#[tokio::test]
async fn a_server_on_this_machine_gets_mail_without_tls() {
    let mut server = Server::start("clear");
    let settings = MailServer { login: None, ca_file: None, ..server.settings(MailTls::Off) };
    send(&settings, "ben@example.com").await.unwrap();
    assert_eq!(server.accepted()["to"], json!(["ben@example.com"]));
}

#[tokio::test]
async fn a_wrong_password_is_not_final_and_is_not_repeated_in_the_error() {
    let server = Server::start("starttls");
    let login = Some(("pilot".to_owned(), "wrong battery".to_owned().into()));
    let settings = MailServer { login, ..server.settings(MailTls::StartTls) };
    let error = send(&settings, "ben@example.com").await.unwrap_err();
    assert_eq!(error, MailError::Failed("the server does not accept the login (535)".to_owned()));
    assert!(!error.is_final());
}

#[tokio::test]
async fn a_server_with_a_certificate_of_a_stranger_gets_nothing() {
    for (mode, tls) in [("implicit", MailTls::Implicit), ("starttls", MailTls::StartTls)] {
        let server = Server::start(mode);
        let settings = MailServer { ca_file: None, ..server.settings(tls) };
        let error = send(&settings, "ben@example.com").await.unwrap_err();
        assert!(matches!(&error, MailError::Failed(why) if why.contains("UnknownIssuer")), "{mode}: {error}");
    }
}

#[tokio::test]
async fn a_server_whose_certificate_is_for_another_name_gets_nothing() {
    let server = Server::start("implicit");
    let settings = MailServer { host: "localhost".to_owned(), ..server.settings(MailTls::Implicit) };
    let error = send(&settings, "ben@example.com").await.unwrap_err();
    assert!(matches!(&error, MailError::Failed(why) if why.contains("not valid for name")), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_offer_starttls_gets_neither_login_nor_mail() {
    let server = Server::start("clear");
    let sent = send(&server.settings(MailTls::StartTls), "ben@example.com").await;
    assert_eq!(sent, failed("the server does not offer STARTTLS"));
}

#[tokio::test]
async fn a_reply_about_the_recipient_is_final_and_one_about_the_moment_is_not() {
    let server = Server::start("implicit");
    let settings = server.settings(MailTls::Implicit);
    let error = send(&settings, "unknown@example.com").await.unwrap_err();
    let MailError::Refused(why) = &error else { panic!("{error}") };
    assert!(why.starts_with("permanent error (550): 5.1.1 <recipient>: no such ⟨U+001B⟩[31mrecipient xxx"), "{why}");
    assert_eq!(why.chars().count(), 200, "{why}");
    assert!(error.is_final());
    let sent = send(&settings, "later@example.com").await;
    assert_eq!(sent, failed("transient error (451): 4.3.0 Try again later"));
    let sent = send(&settings, "access@example.com").await;
    assert_eq!(sent, failed("permanent error (530): 5.7.0 Authentication required"));
}

#[tokio::test]
async fn a_message_that_the_server_does_not_want_is_refused() {
    let server = Server::start("implicit");
    let mailer = Mailer::open(&server.settings(MailTls::Implicit)).unwrap();
    let letter = Letter { subject: "Spam".to_owned(), ..a_letter() };
    let sent = mailer.send("ben@example.com", &letter, "1@pilot.example", LONG).await;
    assert_eq!(sent, Err(MailError::Refused("permanent error (554): 5.7.1 Not wanted".to_owned())));
}

#[tokio::test]
async fn an_injected_subject_arrives_as_one_line_and_adds_no_recipient() {
    let mut server = Server::start("implicit");
    let mailer = Mailer::open(&server.settings(MailTls::Implicit)).unwrap();
    let subject = "Rotate\r\nBcc: cara@example.com\r\n\r\nApproved".to_owned();
    let letter = Letter { subject, ..a_letter() };
    mailer.send("ben@example.com", &letter, "1@pilot.example", LONG).await.unwrap();
    let mail = server.accepted();
    assert_eq!(mail["to"], json!(["ben@example.com"]));
    assert_eq!(mail["headers"].get("Bcc"), None);
    let marked = "Rotate⟨U+000D⟩⟨U+000A⟩Bcc: cara@example.com⟨U+000D⟩⟨U+000A⟩⟨U+000D⟩⟨U+000A⟩Approved";
    assert_eq!(mail["headers"]["Subject"], marked);
}
