//! The credential file from a real Vault-compatible server.

use serde_json::{Value, json};

use crate::production::vault_server::VaultServer;
use crate::support::authority::{Authority, IDENTITY, MESH, RATE_LIMITS, configure, installation};
use crate::support::harness::{Finished, Installation, TOKEN};

/// An installation whose credentials are in the secret manager alone, and what they are.
fn emptied() -> (Installation, Authority, String) {
    let (installation, authority) = installation("production", &[]);
    let file = installation.read("credentials.json");
    std::fs::remove_file(installation.path("credentials.json")).unwrap();
    (installation, authority, file)
}

fn configure_vault(installation: &Installation, lines: &str) {
    let credentials = format!("[credentials]\nrole_map = 'role-map.json'\n[credentials.vault]\n{lines}\n");
    configure(installation, "production", &[MESH, RATE_LIMITS, IDENTITY, &credentials]);
}

/// The start and the check say the same, and neither a secret.
#[track_caller]
fn both_refuse(installation: &Installation, code: i32, words: &[&str], secret: &str) -> Finished {
    let checked = installation.pilot(&["check-config", "--output", "json"]).expect(code);
    for word in words {
        assert!(checked.stdout.contains(word), "{word:?} is missing in {checked:#?}");
    }
    let refused = installation.serve_in_vain().expect(code);
    refused.says(words);
    for finished in [&checked, &refused] {
        finished.never_says(secret);
    }
    refused
}

#[test]
fn ana_signs_in_with_a_credential_that_was_read_by_app_role_over_tls() {
    let (installation, authority, file) = emptied();
    let pair = authority.issue(&["127.0.0.1"], 7);
    let vault = VaultServer::start(Some((&pair, &authority.pem)));
    vault.put("secret/pilot", &json!({"credentials": file}));
    let (role_id, secret_id) = vault.make_role();
    installation.write("secret-id", &format!("{secret_id}\n"));
    let address = format!("url = '{}'\npath = 'secret/pilot'\n", vault.url);
    let approle = format!("[credentials.vault.approle]\nrole_id = '{role_id}'\nsecret_id_file = 'secret-id'\n");
    configure_vault(&installation, &format!("{address}ca_file = 'ca.pem'\n{approle}"));

    let checked = installation.pilot(&["check-config"]).expect(0).stdout;
    let found = format!("2 credential(s) from `credentials` in secret/pilot at {}; all agree", vault.url);
    assert!(checked.contains(&found), "{checked}");
    let server = installation.serve();
    assert_eq!(server.session(TOKEN).json(), json!({"actor_id": "ana", "role": "initiator"}));
    assert_eq!(server.session(&"x".repeat(40)).status, 401);
    server.stop().expect(0).never_says(&secret_id);

    // Whom it does not know it tells nothing.
    configure_vault(&installation, &format!("{address}{approle}"));
    both_refuse(&installation, 2, &["is not trusted", "set ca_file to its issuer's certificate"], &secret_id);
    // A secret_id of nobody's.
    installation.write("secret-id", "11111111-2222-3333-4444-555555555555");
    configure_vault(&installation, &format!("{address}ca_file = 'ca.pem'\n{approle}"));
    let words = ["does not accept the AppRole (400: invalid secret id)", "secret_id_file"];
    both_refuse(&installation, 2, &words, "11111111-2222");
    configure_vault(&installation, &format!("{address}ca_file = 'ca.pem'\n{approle}mount = 'elsewhere'\n"));
    both_refuse(&installation, 2, &["does not accept the AppRole", "check role_id and mount"], "11111111-2222");
}

#[test]
fn what_a_token_may_read_is_read_as_text_or_as_an_object_and_everything_else_is_refused_with_its_place() {
    let (installation, _, file) = emptied();
    let vault = VaultServer::start(None);
    let object: Value = serde_json::from_str(&file).unwrap();
    vault.put("secret/pilot", &json!({"credentials": file, "object": object, "number": 1, "wrong": "{}"}));
    let token = vault.root_token.clone();
    installation.write("vault-token", &token);
    let with = |path: &str, more: &str| {
        let lines = format!("url = '{}'\npath = '{path}'\ntoken_file = 'vault-token'\n{more}", vault.url);
        configure_vault(&installation, &lines);
    };
    for field in ["", "field = 'object'"] {
        with("secret/pilot", field);
        let server = installation.serve();
        assert_eq!(server.session(TOKEN).status, 200);
        server.stop().expect(0).never_says(&token);
    }
    // What commands read, they read there too; what they change, they do not.
    let checked = installation.pilot(&["credential", "check"]).expect(0);
    assert!(checked.stdout.contains("2 credential(s), no fault; agrees with the role map"), "{checked:#?}");
    assert!(installation.pilot(&["credential", "list"]).expect(0).stdout.contains("ana-1"));

    for (path, more, words) in [
        ("secret/other", "", ["has nothing at secret/other (404)", "KV version 2 has `data/`"]),
        ("nowhere/pilot", "", ["has nothing at nowhere/pilot (404: Router mount not found.)", "write it there"]),
        ("secret/pilot", "field = 'none'", ["has no field `none` at secret/pilot", "vault kv put"]),
        ("secret/pilot", "field = 'number'", ["has `number` at secret/pilot, but it is neither", "text"]),
        ("secret/pilot", "field = 'wrong'", ["`wrong` in secret/pilot at http://", "/schema_version: is missing"]),
    ] {
        with(path, more);
        both_refuse(&installation, 2, &words, &token);
    }
    with("secret/pilot", "");
    installation.write("vault-token", "of-nobody");
    both_refuse(&installation, 2, &["denies reading secret/pilot (403: Permission denied.)", "policy"], &token);
    installation.write("vault-token", "of\nnobody");
    both_refuse(&installation, 2, &["vault-token: must contain exactly one line"], "nobody");
    crate::support::harness::set_mode(&installation.write("vault-token", &token), 0o640);
    both_refuse(&installation, 2, &["vault-token: others can read it (mode 0640)"], &token);
}

#[test]
fn a_server_that_is_sealed_or_gone_is_the_environments_fault_and_a_running_service_does_not_miss_it() {
    let (installation, _, file) = emptied();
    let mut vault = VaultServer::start(None);
    vault.put("secret/pilot", &json!({"credentials": file}));
    let token = vault.root_token.clone();
    installation.write("vault-token", &token);
    let lines = format!("url = '{}'\npath = 'secret/pilot'\ntoken_file = 'vault-token'", vault.url);
    configure_vault(&installation, &lines);
    let server = installation.serve();
    vault.seal();
    both_refuse(&installation, 3, &["is not ready (503: RustyVault is sealed.)", "unseal"], &token);
    assert!(installation.pilot(&["credential", "check"]).expect(3).stderr.contains("sealed"));
    vault.unseal();
    installation.pilot(&["check-config"]).expect(0);
    vault.stop();
    both_refuse(&installation, 3, &["cannot be reached", "check url and that the secret manager is running"], &token);
    // It was read once, at the start.
    assert_eq!(server.session(TOKEN).status, 200);
    server.stop().expect(0);
}
