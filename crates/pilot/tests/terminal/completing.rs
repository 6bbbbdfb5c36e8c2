//! What a shell offers: items, and the actions that are possible now.

use std::net::TcpListener;
use std::process::Command;

use super::desk::Desk;
use crate::support::harness::{Finished, finish, now};
use crate::support::team::token;

fn offered(desk: &Desk, name: &str, line: &str) -> Vec<String> {
    let finished = desk.run(name, &["complete", line]).expect(0);
    assert_eq!(finished.stderr, "");
    finished.stdout.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn items_and_the_actions_allowed_now_come_from_the_service() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    assert_eq!(offered(&desk, "ben", "pilot item show "), [&*id]);
    assert_eq!(offered(&desk, "ben", &format!("pilot item act {}", &id[..9])), [&*id]);
    assert_eq!(offered(&desk, "ben", "pilot item act ffffffff").len(), 0);
    assert_eq!(offered(&desk, "ben", &format!("pilot item act {id} ")), ["approve", "reject", "return", "hold"]);
    assert_eq!(offered(&desk, "ben", &format!("pilot item act {id} re")), ["reject", "return"]);
    assert_eq!(offered(&desk, "ana", &format!("pilot item act {id} ")), ["withdraw"]);
    assert_eq!(offered(&desk, "ana", "pilot item new --workflow em"), ["emergency-operation"]);
}

#[test]
fn a_service_that_fails_or_does_not_answer_is_passed_over_in_silence() {
    let desk = Desk::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let complete = |url: &str, token: Option<String>| -> Finished {
        let mut command = desk.installation.command(&["complete", "pilot item show "]);
        command.env("PILOT_URL", url).envs(token.map(|token| ("PILOT_TOKEN", token)));
        finish(command, None)
    };
    let started = now();
    for (url, token) in [
        (format!("http://{}", silent.local_addr().unwrap()), Some(token("ben"))),
        ("http://127.0.0.1:1".to_owned(), Some(token("ben"))),
        (desk.server.url(), Some("not-a-token-of-anybody-in-this-team".to_owned())),
        // Nobody is asked for a token in the middle of a line.
        (desk.server.url(), None),
        ("nonsense".to_owned(), Some(token("ben"))),
    ] {
        let finished = complete(&url, token).expect(0);
        assert_eq!((&*finished.stdout, &*finished.stderr), ("", ""), "{url}");
    }
    // Five times 300 ms, and room for a busy machine.
    assert!(started.elapsed().as_secs() < 30);
}

#[test]
fn a_command_that_prints_the_token_is_never_run_for_a_completion() {
    let desk = Desk::new();
    std::fs::create_dir_all(desk.installation.path("config/pilot")).unwrap();
    let profile =
        format!("default = 'work'\n[profile.work]\nurl = '{}'\ntoken_command = ['touch', 'ran']\n", desk.server.url());
    desk.installation.write("config/pilot/profiles.toml", &profile);
    let mut command = desk.installation.command(&["complete", "pilot item show "]);
    command.env("XDG_CONFIG_HOME", desk.installation.path("config")).env("PATH", "/usr/bin:/bin");
    assert_eq!(finish(command, None).expect(0).stdout, "");
    assert!(!desk.installation.path("ran").exists());
    let mut command = desk.installation.command(&["complete", "pilot item show --profile w"]);
    command.env("XDG_CONFIG_HOME", desk.installation.path("config"));
    assert!(finish(command, None).expect(0).stdout.starts_with("work\t"));
}

#[test]
fn bash_offers_what_the_service_knows_and_what_the_program_knows() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &["--submit"]);
    desk.installation.pilot(&["help-pages", "share"]).expect(0);
    let bash = |line: &str| {
        let words: Vec<_> = line.split(' ').map(|word| format!("'{word}'")).collect();
        let (last, before) = (words.last().unwrap(), &words[words.len() - 2]);
        let script = format!(
            "source share/bash-completion/completions/pilot\nPATH=\"$PATH:{}\"\nCOMP_LINE='{line}'\nCOMP_POINT=${{#COMP_LINE}}\n\
             COMP_WORDS=({})\nCOMP_CWORD={}\n$(complete -p pilot | sed 's/.*-F \\([^ ]*\\).*/\\1/') pilot {last} {before}\necho \"${{COMPREPLY[@]}}\"\n",
            std::path::Path::new(env!("CARGO_BIN_EXE_pilot")).parent().unwrap().display(),
            words.join(" "),
            words.len() - 1,
        );
        let mut bash = Command::new("/bin/bash");
        bash.args(["--norc", "--noprofile", "-c", &script]);
        let mut bash = desk.installation.prepare(bash);
        bash.env("PATH", "/usr/bin:/bin").env("PILOT_URL", desk.server.url()).env("PILOT_TOKEN", token("ben"));
        finish(bash, None).expect(0).stdout.trim().to_owned()
    };
    assert_eq!(bash(&format!("pilot item act {id} a")), "approve");
    assert_eq!(bash("pilot item show "), id);
    assert_eq!(bash("pilot item wa"), "wait");
}
