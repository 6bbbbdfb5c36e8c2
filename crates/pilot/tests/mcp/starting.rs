//! How the command begins and ends.

use std::process::Stdio;

use serde_json::json;

use super::agent::Agent;
use crate::support::harness::{Port, finish};
use crate::support::team::{team, token};
use crate::work::Cable;

#[test]
fn a_refused_credential_a_missing_service_and_a_wrong_argument_have_their_exit_codes() {
    let installation = team();
    let server = installation.serve();
    let refused = installation.pilot_as(&token("nobody"), &["mcp", "--url", &server.url()]).expect(1);
    refused.says(&["401 credential_required"]);
    refused.never_says(&token("nobody"));
    let port = Port::reserve();
    let missing = installation.pilot_as(&token("ana"), &["mcp", "--url", &format!("http://{}", port.address())]);
    missing.expect(3).says(&["the service cannot be reached"]);
    let wrong = installation.pilot_as(&token("ana"), &["mcp", "--token-file", "-"]).expect(2);
    wrong.says(&["standard input carries the protocol"]);
    assert_eq!(installation.pilot_as(&token("ana"), &["mcp", "--approve"]).expect(2).stdout, "");
}

#[test]
fn an_input_that_ends_before_it_began_is_not_an_error() {
    let installation = team();
    let server = installation.serve();
    let mut command = installation.command(&["mcp", "--url", &server.url()]);
    command.env("PILOT_TOKEN", token("ana")).stdin(Stdio::null());
    assert_eq!(finish(command, None).expect(0).stdout, "");
}

#[test]
fn lines_that_are_not_messages_are_not_answered_and_the_next_call_is() {
    let installation = team();
    let server = installation.serve();
    let mut agent = Agent::new(&installation, &server.url(), "ana");
    for line in ["", "not JSON", &"[".repeat(500), &"x".repeat(5 * 1024 * 1024)] {
        agent.write(line);
    }
    agent.must("whoami", &json!({}));
    let errors = agent.leaves();
    assert!(errors.starts_with("serving ana (initiator) for http://127.0.0.1:"), "{errors}");
    assert!(!errors.contains(&token("ana")), "{errors}");
}

#[test]
fn the_server_outlives_a_service_that_is_away() {
    let installation = team();
    let server = installation.serve();
    let cable = Cable::to(&server);
    let mut agent = Agent::new(&installation, &cable.url(), "ana");
    cable.cut();
    let said = agent.fails("whoami", &json!({}));
    assert!(said.starts_with("The service cannot be reached"), "{said}");
    cable.mend(&server);
    agent.must("whoami", &json!({}));
    agent.leaves();
}
