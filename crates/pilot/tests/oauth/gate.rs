//! What production insists on with this mechanism, and what is refused before anything starts.

use crate::oauth::provider::Provider;
use crate::oauth::stage::{ROLE_MAP, configure, installation, role_map};
use crate::support::authority::{self, Authority, RATE_LIMITS, TLS, install};
use crate::support::harness::{Installation, set_mode};

fn production(sections: &[&str]) -> Installation {
    let installation = Installation::bare();
    // In production, machines are held to more than this is about.
    installation.write("role-map.json", &role_map().replace("machine", "human"));
    let authority = Authority::new("Test Authority");
    installation.write("ca.pem", &authority.pem);
    install(&installation, &authority.issue(&["127.0.0.1"], 1));
    authority::configure(&installation, "production", sections);
    installation
}

#[test]
fn production_starts_with_a_provider_and_needs_no_credential_file() {
    let provider = Provider::start();
    let installation = production(&[TLS, ROLE_MAP, RATE_LIMITS, &provider.section()]);
    let checked = installation.pilot(&["check-config"]).expect(0);
    let said = format!("access tokens of {}; the role map has 5 actor(s)", provider.issuer());
    assert!(checked.stdout.contains(&said), "{}", checked.stdout);
    let warning = "every client of the provider that gets a token for this audience can act";
    assert!(checked.stdout.contains(warning), "{}", checked.stdout);
    let server = installation.serve();
    let url = server.url();
    assert!(url.starts_with("https://"), "{url}");
    let asked = ["session", "--url", &url, "--ca-file", "ca.pem", "--output", "json"];
    let session = installation.pilot_as(&provider.token("ana"), &asked).expect(0).json();
    assert_eq!(session["actor_id"], "ana@pilot.example");
    server.stop().expect(0).says(&[warning]);
    let listed = format!("{}clients = ['ana']\n", provider.section());
    authority::configure(&installation, "production", &[TLS, ROLE_MAP, RATE_LIMITS, &listed]);
    let checked = installation.pilot(&["check-config"]).expect(0);
    assert!(!checked.stdout.contains(warning), "{}", checked.stdout);
    // Without the role map nobody could be anybody.
    authority::configure(&installation, "production", &[TLS, RATE_LIMITS, &provider.section()]);
    installation.serve_in_vain().expect(2).says(&["role map: set [credentials] role_map"]);
}

#[test]
fn faults_of_the_section_are_refused_with_what_to_do() {
    let provider = Provider::absent(600);
    let installation = installation(&[]);
    let refused = |section: &str, words: &[&str]| {
        configure(&installation, &[section]);
        let finished = installation.serve_in_vain().expect(2);
        finished.says(words);
        installation.pilot(&["check-config"]).expect(2);
    };
    let section = provider.section();
    refused("[identity]\nmechanism = 'oauth'\n", &["needs [identity.oauth] with issuer and audience"]);
    refused(&section.replace("'oauth'", "'credential_file'"), &["is for mechanism = \"oauth\""]);
    refused(&section.replace("http://127.0.0.1", "http://id.example"), &["line 7", "https://host/path"]);
    refused(&format!("{section}ca_file = 'missing.pem'\n").replace("http:", "https:"), &["missing.pem"]);
    let with_introspection = provider.section_with_introspection(&installation);
    installation.write("secret", "\n");
    refused(&with_introspection, &["secret: must contain the client's secret on one line"]);
    set_mode(&installation.path("secret"), 0o622);
    refused(&with_introspection, &["secret", "others can write to it"]);
    std::fs::remove_file(installation.path("secret")).unwrap();
    refused(&with_introspection, &["secret: cannot be opened"]);
    assert!(!installation.path("data").exists(), "a refused start leaves nothing behind");
}
