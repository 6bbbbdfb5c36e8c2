//! The command line over https.

use crate::support::authority::{Authority, TLS, install, installation};
use crate::support::harness::TOKEN;

#[test]
fn the_client_speaks_https_to_a_service_whose_issuer_it_is_given() {
    let (installation, _) = installation("pilot", &[TLS]);
    let server = installation.serve();
    let session = ["session", "--url", &server.url(), "--output", "json"];
    let with_ca = [&session[..], &["--ca-file", "ca.pem"]].concat();
    let ana = serde_json::json!({"actor_id": "ana", "role": "initiator"});
    assert_eq!(installation.pilot_as(TOKEN, &with_ca).expect(0).json(), ana);
    let mut command = installation.command(&session);
    command.env("PILOT_TOKEN", TOKEN).env("PILOT_CA_FILE", "ca.pem");
    assert_eq!(crate::support::harness::finish(command, None).expect(0).json(), ana);
}

#[test]
fn a_service_that_cannot_prove_itself_gets_no_token() {
    let (installation, _) = installation("pilot", &[TLS]);
    let stranger = Authority::new("Stranger");
    installation.write("stranger.pem", &stranger.pem);
    let server = installation.serve();
    let url = server.url();
    let asked = |arguments: &[&str]| {
        let finished = installation.pilot_as(TOKEN, &[&["session", "--url", &url][..], arguments].concat()).expect(3);
        assert_eq!(finished.stdout, "");
        finished
    };
    asked(&["--ca-file", "stranger.pem"]).says(&["authority that is not trusted", "--ca-file"]);
    asked(&["--ca-file", "missing.pem"]).says(&["missing.pem"]);
    installation.pilot_as(TOKEN, &["session", "--url", &url, "--ca-file", "credentials.json"]).expect(2).says(&["PEM"]);
    // Nobody was let in while asking.
    let log = server.stop().expect(0).stderr;
    assert!(!log.contains("request answered"), "{log}");
}

#[test]
fn an_issuers_own_certificate_is_not_a_services() {
    let (installation, authority) = installation("pilot", &[TLS]);
    install(&installation, &authority.itself());
    let server = installation.serve();
    let asked = ["session", "--url", &server.url(), "--ca-file", "ca.pem"];
    installation.pilot_as(TOKEN, &asked).expect(3).says(&["CA:TRUE", "CA:FALSE"]);
}

#[test]
fn a_certificate_for_another_name_is_refused() {
    let (installation, authority) = installation("pilot", &[TLS]);
    install(&installation, &authority.issue(&["pilot.example"], 2));
    let server = installation.serve();
    let asked = ["session", "--url", &server.url(), "--ca-file", "ca.pem"];
    installation.pilot_as(TOKEN, &asked).expect(3).says(&["not valid for name"]);
}

#[test]
fn https_to_a_plain_service_and_http_to_an_encrypted_one_fail_and_say_so() {
    let (plain, _) = installation("pilot", &[]);
    let server = plain.serve();
    let url = server.url().replace("http://", "https://");
    plain.pilot_as(TOKEN, &["session", "--url", &url, "--ca-file", "ca.pem"]).expect(3).says(&["does not speak TLS"]);
    let (encrypted, _) = installation("pilot", &[TLS]);
    let server = encrypted.serve();
    let url = server.url().replace("https://", "http://");
    encrypted.pilot_as(TOKEN, &["session", "--url", &url]).expect(1).says(&["400", "use https"]);
}
