//! Manual pages and completions, as a package would have them.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::support::harness::{Finished, Installation, finish};

/// Every command that the help names, each as its words.
fn commands(installation: &Installation, words: &[String], found: &mut Vec<Vec<String>>) {
    let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
    arguments.push("--help");
    let help = installation.pilot(&arguments).expect(0).stdout;
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    // Descriptions that go on in a second line are indented further than names.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|line| !line.starts_with(' ')));
    for name in names.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        let words = [words, &[name.to_owned()]].concat();
        commands(installation, &words, found);
        found.push(words);
    }
}

#[test]
fn every_command_has_a_manual_page_and_no_page_is_of_none() {
    let installation = Installation::bare();
    installation.pilot(&["help-pages", "share"]).expect(0);
    let mut commands_found = vec![Vec::new()];
    commands(&installation, &[], &mut commands_found);
    assert!(commands_found.len() > 30, "{commands_found:?}");
    let expected: BTreeSet<_> = commands_found
        .iter()
        .map(|words| format!("{}.1", [&["pilot".to_owned()], &words[..]].concat().join("-")))
        .collect();
    let pages = fs::read_dir(installation.path("share/man/man1")).unwrap();
    let pages: BTreeSet<_> = pages.map(|page| page.unwrap().file_name().into_string().unwrap()).collect();
    assert_eq!(pages, expected);
    for page in &pages {
        let text = installation.read(&format!("share/man/man1/{page}"));
        let title = page.trim_end_matches(".1");
        assert!(text.contains(&format!(".TH {title} 1 \" \" \"pilot ")), "{text}");
        assert!(text.contains(".SH NAME") && text.contains(".SH SYNOPSIS"), "{text}");
    }
    let witness = installation.read("share/man/man1/pilot-log-witness.1");
    assert!(witness.contains("TLS\\-terminating proxy"), "{witness}");
}

/// What bash would offer after these words.
fn offered(installation: &Installation, words: &[&str]) -> Finished {
    let last = words.last().unwrap();
    let before = words.get(words.len().wrapping_sub(2)).unwrap_or(&"");
    let script = format!(
        "source share/bash-completion/completions/pilot\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_pilot pilot '{last}' '{before}'\necho \"${{COMPREPLY[@]}}\"\n",
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" "),
        words.len() - 1,
    );
    let mut bash = Command::new("/bin/bash");
    bash.args(["--norc", "--noprofile", "-c", &script]);
    finish(installation.prepare(bash), None).expect(0)
}

#[test]
fn bash_completes_commands_options_and_values() {
    let installation = Installation::bare();
    installation.pilot(&["help-pages", "share"]).expect(0);
    for (words, offer) in [
        (&["pilot", "cred"][..], "credential"),
        (&["pilot", "credential", "n"], "new"),
        (&["pilot", "log", "w"], "witness"),
        (&["pilot", "serve", "--log-f"], "--log-format"),
        (&["pilot", "serve", "--log-format", "j"], "json"),
    ] {
        assert_eq!(offered(&installation, words).stdout.trim(), offer, "{words:?}");
    }
}

#[test]
fn zsh_and_fish_know_every_first_command() {
    let installation = Installation::bare();
    installation.pilot(&["help-pages", "share"]).expect(0);
    let zsh = installation.read("share/zsh/vendor-completions/_pilot");
    let fish = installation.read("share/fish/vendor_completions.d/pilot.fish");
    assert!(zsh.starts_with("#compdef pilot"), "{zsh}");
    for name in ["serve", "check-config", "credential", "rotation", "evidence", "log", "backup"] {
        assert!(zsh.contains(&format!("({name})")), "{name}");
        assert!(fish.contains(&format!("-a \"{name}\"")), "{name}");
    }
}

#[test]
fn pages_that_cannot_be_written_end_with_3() {
    let installation = Installation::bare();
    installation.write("taken", "");
    installation.pilot(&["help-pages", "taken"]).expect(3).says(&["taken"]);
}
