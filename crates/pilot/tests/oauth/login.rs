//! `pilot login` and `pilot logout`: the device grant at a real provider, and the keyring.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};

use crate::oauth::provider::Provider;
use crate::oauth::stage;
use crate::support::harness::{Finished, Installation, Port, Server, TOKEN, finish};
use crate::support::pty::Terminal;

/// A service that is called as its tokens say, since a client asks for a token for the address it calls.
struct Stage {
    installation: Installation,
    server: Server,
    provider: Provider,
    _port: Port,
}

impl Stage {
    fn new(provider: Provider) -> Stage {
        let port = Port::reserve();
        let url = format!("http://{}", port.address());
        let section = provider.section().replace(crate::oauth::provider::AUDIENCE, &url);
        let installation = stage::installation(&[&section]);
        let text = installation.read("pilot.toml").replace("127.0.0.1:0", &port.address().to_string());
        installation.write("pilot.toml", &text);
        let server = installation.serve();
        profile(&installation, &server.url());
        Stage { installation, server, provider, _port: port }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        at_home(&self.installation, arguments)
    }

    fn run(&self, arguments: &[&str]) -> Finished {
        finish(self.command(arguments), None)
    }

    /// Signs in up to the code; gives the process and the code.
    fn begin(&self) -> (Child, String, impl Iterator<Item = String>) {
        let mut login = self.command(&["login"]).spawn().unwrap();
        let mut said = BufReader::new(login.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(said.next().unwrap().starts_with(&format!("open {}/device", self.provider.issuer())));
        let code = said.next().unwrap().strip_prefix("and type ").unwrap().to_owned();
        (login, code, said)
    }
}

fn profile(installation: &Installation, url: &str) {
    std::fs::create_dir_all(installation.path("config/pilot")).unwrap();
    let text = format!("default = 'work'\n[profile.work]\nurl = '{url}'\nkeyring = 'session'\n");
    installation.write("config/pilot/profiles.toml", &text);
}

fn at_home(installation: &Installation, arguments: &[&str]) -> Command {
    let mut command = installation.command(arguments);
    command.env("XDG_CONFIG_HOME", installation.path("config")).env("XDG_STATE_HOME", installation.path("state"));
    command
}

#[test]
fn a_person_signs_in_with_a_code_works_renews_and_signs_out() {
    // The service accepts no token for longer; ours is renewed before each command, since it is always about to expire.
    let stage = Stage::new(Provider::renewing(20));
    stage.run(&["session"]).expect(2).says(&["no token is kept for the profile work", "pilot login --profile work"]);
    let (login, code, _said) = stage.begin();
    stage.provider.decide_on_device(&code, Some("hugo"));
    let finished = login.wait_with_output().unwrap();
    assert!(finished.status.success());
    let said = String::from_utf8(finished.stdout).unwrap();
    assert_eq!(said, format!("signed in to {} as hugo (approver)\n", stage.server.url()));
    let knocks = stage.provider.knocks();
    assert!(stage.run(&["session"]).expect(0).stdout.contains("hugo"));
    assert!(stage.provider.knocks() > knocks, "the token was renewed");
    assert!(stage.run(&["session"]).expect(0).stdout.contains("hugo"), "and what was renewed was kept");
    let out = stage.run(&["logout"]).expect(0);
    // A provider cannot take back a token that it signed, only what renews it.
    let ends = "signed out; the refresh token was revoked, and the access token ends when it expires\n";
    assert_eq!(out.stdout, ends);
    stage.run(&["session"]).expect(2).says(&["no token is kept"]);
    assert_eq!(stage.run(&["logout"]).expect(0).stdout, "no token is kept for the profile work\n");
}

#[test]
fn a_sign_in_that_is_denied_keeps_nothing() {
    let stage = Stage::new(Provider::start());
    let (login, code, mut said) = stage.begin();
    stage.provider.decide_on_device(&code, None);
    assert!(said.any(|line| line.contains("the sign-in was denied")));
    assert_eq!(login.wait_with_output().unwrap().status.code(), Some(1));
    stage.run(&["session"]).expect(2).says(&["no token is kept"]);
}

#[test]
fn a_service_that_asks_for_tokens_of_another_gets_none() {
    let provider = Provider::start();
    let (installation, server) = stage::serve(&provider);
    profile(&installation, &server.url());
    let refused = finish(at_home(&installation, &["login"]), None).expect(1);
    refused.says(&["asks for tokens for https://pilot.example, which is another address"]);
}

#[test]
fn without_a_provider_the_token_is_asked_for_and_kept_in_the_keyring() {
    let installation = Installation::with_ana();
    let server = installation.serve();
    profile(&installation, &server.url());
    // A password is asked for at the controlling terminal.
    let pilot = at_home(&installation, &["login"]);
    let mut login = Command::new("setsid");
    login.args(["--ctty", "--wait"]).arg(pilot.get_program()).args(pilot.get_args());
    login
        .env_clear()
        .envs(pilot.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .env("PATH", "/usr/bin:/bin");
    login.current_dir(installation.path(""));
    let mut terminal = Terminal::run(login);
    terminal.shows("Token: ");
    terminal.types_in_secret(TOKEN);
    terminal.shows("as ana (initiator)");
    let (code, screen) = terminal.ends();
    assert_eq!((code, screen.contains(TOKEN)), (0, false), "{screen}");
    assert!(finish(at_home(&installation, &["session"]), None).expect(0).stdout.contains("ana"));
    let out = finish(at_home(&installation, &["logout"]), None).expect(0);
    assert!(out.stdout.contains("signed out here; the token itself is still valid"), "{out:?}");
    finish(at_home(&installation, &["session"]), None).expect(2);
}
