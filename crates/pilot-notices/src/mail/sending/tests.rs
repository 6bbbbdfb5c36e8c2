use super::super::letter;
use super::*;
use crate::samples;

fn server() -> MailServer {
    MailServer {
        host: "127.0.0.1".to_owned(),
        port: 25,
        tls: MailTls::Off,
        login: None,
        from: "Pilot <pilot@example.com>".to_owned(),
        ca_file: None,
    }
}

fn why_not(server: &MailServer) -> String {
    Mailer::open(server).err().unwrap().to_string()
}

#[test]
fn only_a_server_on_this_machine_may_go_without_tls() {
    for host in ["localhost", "127.0.0.1", "127.8.8.8", "::1"] {
        assert!(Mailer::open(&MailServer { host: host.to_owned(), ..server() }).is_ok(), "{host}");
    }
    for host in ["mail.example.com", "10.0.0.1", "localhost.example.com", "0.0.0.0", ""] {
        let why = why_not(&MailServer { host: host.to_owned(), ..server() });
        assert_eq!(why, format!("mail to `{host}` has to use TLS: only a server on this machine may go without"));
    }
}

#[test]
fn a_sender_is_a_mail_address() {
    for from in
        ["", "pilot", "a@b.example\r\nBcc: c@d.example", "P\nBcc: x@y.example <a@b.example>", "P\u{202e} <a@b.example>"]
    {
        let why = why_not(&MailServer { from: from.to_owned(), ..server() });
        assert_eq!(why, "the sender is not a mail address such as `Pilot <pilot@example.com>`");
    }
}

#[test]
fn a_file_of_issuers_has_to_contain_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ca.pem");
    let server = MailServer { tls: MailTls::Implicit, ca_file: Some(path.clone()), ..server() };
    assert!(why_not(&server).contains("No such file"), "{}", why_not(&server));
    for (content, why) in
        [("", "it contains no PEM certificate"), ("-----BEGIN CERTIFICATE-----\nxx", "invalid certificates")]
    {
        std::fs::write(&path, content).unwrap();
        assert!(why_not(&server).ends_with(why), "{}", why_not(&server));
    }
}

#[test]
fn nobodys_text_becomes_a_header() {
    let mailer = Mailer::open(&server()).unwrap();
    let to: Address = "ben@example.com".parse().unwrap();
    for message in samples::hostile() {
        let (envelope, bytes) = mailer.written(&to, &letter(&message), "1.2@pilot.example").unwrap();
        let mail = String::from_utf8(bytes).unwrap();
        let (head, _) = mail.split_once("\r\n\r\n").unwrap();
        let names: Vec<_> = head
            .split("\r\n")
            .filter(|line| !line.starts_with([' ', '\t']))
            .map(|line| line.split(':').next().unwrap())
            .collect();
        let ours = [
            "From",
            "To",
            "Subject",
            "Message-ID",
            "Date",
            "Auto-Submitted",
            "X-Auto-Response-Suppress",
            "MIME-Version",
            "Content-Type",
        ];
        assert_eq!(names, ours, "{head}");
        assert_eq!(envelope.to(), std::slice::from_ref(&to));
        assert!(head.is_ascii(), "{head}");
    }
}

#[test]
fn a_subject_made_elsewhere_is_one_line_too() {
    let mailer = Mailer::open(&server()).unwrap();
    let to: Address = "ben@example.com".parse().unwrap();
    let letter =
        Letter { subject: "a\r\nBcc: c@d.example\r\n\r\nx".to_owned(), text: String::new(), html: String::new() };
    let (_, bytes) = mailer.written(&to, &letter, "1@pilot.example").unwrap();
    assert!(!String::from_utf8(bytes).unwrap().contains("\nBcc"));
}

#[tokio::test]
async fn an_address_or_an_id_that_is_not_one_is_refused_before_a_connection() {
    let mailer = Mailer::open(&server()).unwrap();
    let letter = letter(&samples::waiting());
    for to in [
        "",
        "ben",
        "ben@example.com\r\nBcc: c@d.example",
        "ben@example.com>\r\nRCPT TO:<c@d.example",
        "a@b.example, c@d.example",
        "\"a\r\nRCPT TO:<c@d.example>\"@b.example",
        "\"a b\"@example.com",
        "ben@example.com\0",
    ] {
        let sent = mailer.send(to, &letter, "1@pilot.example", Duration::from_secs(9)).await;
        assert_eq!(sent, Err(MailError::Refused("the recipient's address is not a mail address".to_owned())), "{to}");
    }
    for id in ["", "x", "a@", "@b", "a@b>\r\nBcc: x@y", "a b@c", "a@b@c"] {
        let sent = mailer.send("ben@example.com", &letter, id, Duration::from_secs(9)).await;
        assert_eq!(sent, Err(MailError::Refused("the message id is not of the form left@right".to_owned())), "{id}");
    }
}
