use super::super::Config;
use super::*;
use expect_test::{Expect, expect};

fn check(text: &str, environment: &[(&str, &str)], expected: &Expect) {
    let environment: Vec<_> =
        environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
        Ok(mut config) => {
            config.resolve(Path::new("/etc/pilot"));
            config.credentials.look_around(&environment);
            format!("{:?}", config.credentials.source)
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&verdict);
}

const TOKEN: &str = "url = 'https://v:8200/'\npath = 'secret/pilot'\ntoken_file = 't'";

#[test]
fn a_file_is_the_default_and_any_one_source_may_stand_in_its_place() {
    check("", &[], &expect![[r#"File("/etc/pilot/credentials.json")"#]]);
    check("[credentials]\nfile = 'c.json'", &[], &expect![[r#"File("/etc/pilot/c.json")"#]]);
    check(
        "[credentials.systemd]\nname = 'pilot-credentials'",
        &[("CREDENTIALS_DIRECTORY", "/run/credentials/pilot.service")],
        &expect![[
            r#"Systemd(Systemd { name: "pilot-credentials", directory: Some("/run/credentials/pilot.service") })"#
        ]],
    );
    check(
        "[credentials.systemd]\nname = 'pilot-credentials'",
        &[("CREDENTIALS_DIRECTORY", "")],
        &expect![[r#"Systemd(Systemd { name: "pilot-credentials", directory: None })"#]],
    );
    check(
        "[credentials.exec]\ncommand = ['/bin/fetch', '--env', 'prod']",
        &[("PATH", "/bin"), ("HOME", "/root"), ("AWS_SECRET_ACCESS_KEY", "x"), ("PILOT_LISTEN", "127.0.0.1:1")],
        &expect![[
            r#"Exec(Exec { program: "/bin/fetch", arguments: ["--env", "prod"], timeout: 10s, environment: [("PATH", "/bin"), ("HOME", "/root")] })"#
        ]],
    );
    check(
        &format!("[credentials.vault]\n{TOKEN}"),
        &[],
        &expect![[
            r#"Vault(Vault { url: "https://v:8200", path: "secret/pilot", field: "credentials", namespace: None, ca_file: None, login: Token { file: "/etc/pilot/t" }, timeout: 10s })"#
        ]],
    );
    check(
        "[credentials.vault]\nurl = 'http://127.0.0.1:8200'\npath = 'kv/data/pilot'\nfield = 'file'\nnamespace = 'team/a'\nca_file = 'ca.pem'\ntimeout_seconds = 2\n[credentials.vault.approle]\nrole_id = 'r'\nsecret_id_file = '/s'\nmount = 'machines'",
        &[("PILOT_CREDENTIALS__VAULT__TIMEOUT_SECONDS", "3")],
        &expect![[
            r#"Vault(Vault { url: "http://127.0.0.1:8200", path: "kv/data/pilot", field: "file", namespace: Some("team/a"), ca_file: Some("/etc/pilot/ca.pem"), login: AppRole { mount: "machines", role_id: "r", secret_id_file: "/s" }, timeout: 3s })"#
        ]],
    );
}

#[test]
fn the_sample_configurations_have_the_sources_they_are_named_after() {
    let sample = |text: &str| Config::parse(Path::new("pilot.toml"), text, &[]).unwrap().credentials.source;
    let vault = sample(include_str!("../../../../../deploy/production-vault.toml"));
    let systemd = sample(include_str!("../../../../../deploy/production-systemd.toml"));
    assert!(matches!(&vault, Source::Vault(Vault { login: Login::AppRole { .. }, .. })), "{vault:?}");
    assert!(matches!(&systemd, Source::Systemd(_)), "{systemd:?}");
}

#[test]
fn two_sources_at_once_are_refused_wherever_they_are_named() {
    check(
        "[credentials]\nfile = 'c'\n[credentials.systemd]\nname = 'n'",
        &[],
        &expect![
            "pilot.toml, line 1, column 1: [credentials] has more than one of file, systemd, exec and vault; choose one"
        ],
    );
    check(
        &format!("[credentials.exec]\ncommand = ['/f']\n[credentials.vault]\n{TOKEN}"),
        &[],
        &expect![
            "pilot.toml, line 1, column 2: [credentials] has more than one of file, systemd, exec and vault; choose one"
        ],
    );
    check(
        "[credentials.systemd]\nname = 'n'",
        &[("PILOT_CREDENTIALS__FILE", "c")],
        &expect![
            "the environment overrides the configuration with an invalid value: [credentials] has more than one of file, systemd, exec and vault; choose one (set by PILOT_CREDENTIALS__FILE)"
        ],
    );
}

#[test]
fn a_fault_in_a_source_has_its_line_and_a_remedy() {
    check(
        "[credentials.vault]\nurl = 'https://v'\npath = 'a/b'",
        &[],
        &expect![
            "pilot.toml, line 1, column 2: [credentials.vault] needs token_file, or a section [credentials.vault.approle]"
        ],
    );
    check(
        &format!("[credentials.vault]\n{TOKEN}\n[credentials.vault.approle]\nrole_id = 'r'\nsecret_id_file = 's'"),
        &[],
        &expect!["pilot.toml, line 1, column 2: [credentials.vault] has both token_file and approle; choose one"],
    );
    check(
        &format!("[credentials.vault]\n{TOKEN}\ntoken = 'x'"),
        &[],
        &expect![
            "pilot.toml, line 5, column 1: unknown field `token`, expected one of `url`, `path`, `field`, `namespace`, `ca_file`, `token_file`, `approle`, `timeout_seconds`"
        ],
    );
    check(
        "[credentials.vault.approle]\nrole_id = 'r'\nsecret_id = 's'",
        &[],
        &expect![[r#"
            pilot.toml, line 1, column 1: missing field `secret_id_file`
            pilot.toml, line 3, column 1: unknown field `secret_id`, expected one of `role_id`, `secret_id_file`, `mount`"#]],
    );
    check(
        "[credentials.exec]\ncommand = ['fetch']",
        &[],
        &expect![[
            r#"pilot.toml, line 2, column 11: must begin with the full path of a program, such as "/usr/local/bin/fetch"; it is not run by a shell"#
        ]],
    );
    check(
        "[credentials.exec]\ncommand = []",
        &[],
        &expect![[
            r#"pilot.toml, line 2, column 11: must begin with the full path of a program, such as "/usr/local/bin/fetch"; it is not run by a shell"#
        ]],
    );
    check(
        "[credentials.exec]\ncommand = '/bin/fetch'",
        &[],
        &expect!["pilot.toml, line 2, column 11: has the wrong type, expected a sequence"],
    );
    check(
        "[credentials.exec]\ncommand = ['/f']\ntimeout_seconds = 61",
        &[],
        &expect!["pilot.toml, line 3, column 19: must be a whole number from 1 to 60"],
    );
    for name in ["", "a/b", "..", "a b"] {
        let text = format!("[credentials.systemd]\nname = '{name}'");
        check(
            &text,
            &[],
            &expect![
                "pilot.toml, line 2, column 8: is not the name of a systemd credential: give the NAME in LoadCredential=NAME:PATH, without a slash"
            ],
        );
    }
}

#[test]
fn a_secret_manager_is_asked_over_tls_unless_it_is_on_this_machine() {
    let at = |url: &str| format!("[credentials.vault]\nurl = '{url}'\npath = 'a/b'\ntoken_file = 't'");
    for here in ["http://localhost:8200", "http://127.0.0.1:8200", "http://[::1]:8200", "https://v.example/vault"] {
        assert!(Config::parse(Path::new("pilot.toml"), &at(here), &[]).is_ok(), "{here}");
    }
    check(
        &at("http://v.example:8200"),
        &[],
        &expect![
            "pilot.toml, line 2, column 7: must begin with https://, because over plain HTTP anyone could read and change the credentials; http:// is allowed only for this machine"
        ],
    );
    for wrong in ["v.example", "ftp://v.example", "https://user:pw@v.example", "https://v.example/?a", "https://v/#a"] {
        check(
            &at(wrong),
            &[],
            &expect![
                "pilot.toml, line 2, column 7: is not the address of a secret manager: give it as https://host:8200, without a user, a query or a fragment"
            ],
        );
    }
}

#[test]
fn a_path_holds_nothing_that_a_url_would_read_otherwise() {
    let at = |path: &str| format!("[credentials.vault]\nurl = 'https://v'\npath = '{path}'\ntoken_file = 't'");
    for path in ["", "/secret/pilot", "secret/", "secret/../sys", "v1/secret/pilot", "a?b", "a%2fb", "a b", "a#b"] {
        check(
            &at(path),
            &[],
            &expect![[
                r#"pilot.toml, line 3, column 8: is not the path of a secret: give what follows /v1/ in the API, such as "secret/data/pilot" (KV version 2) or "secret/pilot" (version 1)"#
            ]],
        );
    }
}
