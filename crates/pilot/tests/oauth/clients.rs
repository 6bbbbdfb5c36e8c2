//! Which clients of the provider may call, and with what.

use crate::oauth::provider::{Provider, claims};
use crate::oauth::stage::installation;
use crate::support::harness::Server;

fn serve(provider: &Provider, lines: &str) -> Server {
    installation(&[&provider.section(), lines]).serve()
}

#[test]
fn only_listed_clients_may_call_and_the_log_names_the_client_of_each_request() {
    let provider = Provider::start();
    let server = serve(&provider, "clients = ['ana', 'ada']\n");
    let (ana, ben) = (provider.token("ana"), provider.token("ben"));
    assert_eq!(claims(&ben)["client_id"], "ben");
    assert_eq!(server.session(&ana).verdict(), "200");
    let refused = server.session(&ben);
    assert_eq!(refused.verdict(), "401 credential_required");
    // The answer does not say which clients there are; the log says what is wrong.
    assert!(!refused.text().contains("client"), "{}", refused.text());
    let log = server.stop().expect(0).stderr;
    let line = |status: &str| log.lines().find(|line| line.contains(status)).unwrap_or_else(|| panic!("{log}"));
    let (answered, denied) = (line("\"status\": 200"), line("\"status\": 401"));
    assert!(answered.contains("\"client_id\": \"ana\""), "{answered}");
    assert!(denied.contains("a client that is not one of identity.oauth.clients"), "{denied}");
    assert!(!denied.contains("client_id"), "{denied}");
    assert!(!log.contains("eyJ"), "{log}");
}

#[test]
fn a_token_without_a_required_scope_is_refused_and_one_with_it_is_not() {
    let provider = Provider::start();
    let server = serve(&provider, "scopes_required = ['pilot']\n");
    assert_eq!(server.session(&provider.token("ana")).verdict(), "401 credential_required");
    let scoped = provider.token_with_scope("ana", "pilot");
    assert_eq!(claims(&scoped)["scope"], "pilot");
    assert_eq!(server.session(&scoped).verdict(), "200");
    let log = server.stop().expect(0).stderr;
    assert!(log.contains("lacks one of identity.oauth.scopes_required"), "{log}");
}
