//! Profiles: which service, and where its token comes from.

use std::process::Command;

use super::desk::Desk;
use crate::support::harness::{Finished, Port, finish, set_mode};
use crate::support::team::token;

impl Desk {
    /// The program without a token or an address of its own, but with these profiles.
    fn with_profiles(&self, text: &str, arguments: &[&str]) -> Command {
        let directory = self.installation.path("config/pilot");
        std::fs::create_dir_all(&directory).unwrap();
        self.installation.write("config/pilot/profiles.toml", text);
        let mut command = self.installation.command(arguments);
        command.env("XDG_CONFIG_HOME", self.installation.path("config"));
        command.env("PATH", "/usr/bin:/bin");
        command
    }

    fn session(&self, text: &str, more: &[&str]) -> Finished {
        finish(self.with_profiles(text, &[&["session"], more].concat()), None)
    }

    fn profile(&self, name: &str, more: &str) -> String {
        format!("[profile.{name}]\nurl = \"{}\"\n{more}\n", self.server.url())
    }
}

#[test]
fn a_token_comes_from_a_file_a_command_or_the_keyring() {
    let desk = Desk::new();
    desk.installation.write("config-token", &token("ana"));
    let by_file = desk.profile("work", "token_file = \"../../config-token\"");
    assert!(desk.session(&by_file, &["--profile", "work"]).expect(0).stdout.contains("ana"));
    let path = desk.installation.write("a token", &format!("{}\n", token("ben")));
    let by_command = desk.profile("work", &format!("token_command = [\"cat\", {:?}]", path.display().to_string()));
    assert!(desk.session(&by_command, &["--profile", "work"]).expect(0).stdout.contains("ben"));
    let by_default = format!("default = \"work\"\n{by_command}");
    assert!(desk.session(&by_default, &[]).expect(0).stdout.contains("ben"));
    let mut by_variable = desk.with_profiles(&by_command, &["session"]);
    by_variable.env("PILOT_CLIENT_PROFILE", "work");
    assert!(finish(by_variable, None).expect(0).stdout.contains("ben"));
}

#[test]
fn flag_environment_and_profile_win_in_this_order() {
    let desk = Desk::new();
    desk.installation.write("ana", &token("ana"));
    desk.installation.write("ben", &token("ben"));
    let profiles = format!("default = \"work\"\n{}", desk.profile("work", "token_file = \"../../ben\""));
    assert!(desk.session(&profiles, &[]).expect(0).stdout.contains("ben"));
    let mut both = desk.with_profiles(&profiles, &["session"]);
    both.env("PILOT_TOKEN", token("eli"));
    assert!(finish(both, None).expect(0).stdout.contains("eli"));
    let mut all = desk.with_profiles(&profiles, &["session", "--token-file", "ana"]);
    all.env("PILOT_TOKEN", token("eli"));
    assert!(finish(all, None).expect(0).stdout.contains("ana"));
}

#[test]
fn the_token_of_one_service_is_never_sent_to_another() {
    let desk = Desk::new();
    let other = Port::reserve();
    desk.installation.write("ben", &token("ben"));
    let profile = format!("[profile.work]\nurl = \"http://{}\"\ntoken_file = \"../../ben\"\n", other.address());
    let url = desk.server.url();
    desk.session(&profile, &["--profile", "work", "--url", &url]).expect(2).says(&["the profile work is not for"]);
    // A default that was not asked for gives way.
    let default = format!("default = \"work\"\n{profile}");
    desk.session(&default, &["--url", &url]).expect(2).says(&["no token"]);
    let mut by_variable = desk.with_profiles(&default, &["session"]);
    by_variable.env("PILOT_URL", &url);
    finish(by_variable, None).expect(2).says(&["no token"]);
}

#[test]
fn a_file_that_others_can_read_or_that_has_faults_is_refused() {
    let desk = Desk::new();
    let good = desk.profile("work", "token_file = \"../../ben\"");
    desk.installation.write("ben", &token("ben"));
    let command = desk.with_profiles(&good, &["session", "--profile", "work"]);
    set_mode(&desk.installation.path("config/pilot/profiles.toml"), 0o640);
    finish(command, None).expect(2).says(&["profiles.toml: others can read it", "chmod 600"]);
    desk.installation.write("open", &token("ben"));
    set_mode(&desk.installation.path("open"), 0o644);
    let open = desk.profile("work", "token_file = \"../../open\"");
    let command = desk.with_profiles(&open, &["session", "--profile", "work"]);
    set_mode(&desk.installation.path("config/pilot/profiles.toml"), 0o600);
    finish(command, None).expect(2).says(&["open: others can read it"]);
    let secret = token("ben");
    for (text, words) in [
        (desk.profile("work", &format!("token = \"{secret}\"")), &["line 3", "unknown field `token`"][..]),
        (desk.profile("work", &format!("keyring = \"{secret}\"")), &["line 3", "session"]),
        (desk.profile("work", "token_file = \"a\"\ntoken_command = [\"b\"]"), &["exclude each other"]),
        (desk.profile("home", ""), &["--profile", "it has home"]),
        ("nonsense".to_owned(), &["line 1"]),
    ] {
        let refused = desk.session(&text, &["--profile", "work"]).expect(2);
        refused.says(words);
        refused.never_says(&secret);
    }
}

#[test]
fn a_command_that_hangs_fails_or_talks_too_much_is_ended_and_named() {
    let desk = Desk::new();
    for (argv, words) in [
        (r#"["sh", "-c", "exit 3"]"#, &["token_command: sh", "exit status: 3"][..]),
        (r#"["no-such-program"]"#, &["no-such-program", "cannot be started"]),
        (r#"["head", "-c", "20000", "/dev/zero"]"#, &["more than 16 KiB"]),
        (r#"["sh", "-c", "sleep 1000 & sleep 1000"]"#, &["did not finish within 10 s"]),
    ] {
        let profile = desk.profile("work", &format!("token_command = {argv}"));
        desk.session(&profile, &["--profile", "work"]).expect(3).says(words);
    }
    let profile = desk.profile("work", r#"token_command = ["printenv", "PILOT_TOKEN"]"#);
    let mut command = desk.with_profiles(&profile, &["profile", "check", "work"]);
    command.env("PILOT_TOKEN", token("ana"));
    finish(command, None).expect(3).says(&["printenv"]);
}
