//! `--edit`: a page in an editor, opened again while something is wrong, and never lost.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use super::desk::Desk;
use crate::support::harness::{Finished, finish, mode};

/// An editor that runs these lines of shell, the n-th of them the n-th time; `$1` is the page.
fn with_editor(desk: &Desk, mut command: Command, rounds: &[&str]) -> Finished {
    let cases: Vec<_> = rounds.iter().enumerate().map(|(round, lines)| format!("{}) {lines};;", round + 1)).collect();
    let script = format!(
        "n=$(($(cat rounds 2>/dev/null || echo 0) + 1)); echo $n > rounds; cp \"$1\" page-$n.toml\ncase $n in\n{}\n*) exit 9;;\nesac\n",
        cases.join("\n")
    );
    let path = desk.installation.write("editor.sh", &script);
    let _ = std::fs::remove_file(desk.installation.path("rounds"));
    command.env("EDITOR", format!("sh {}", path.display())).env("PATH", "/usr/bin:/bin");
    command.env("XDG_STATE_HOME", desk.installation.path("state"));
    finish(command, None)
}

fn drafts(desk: &Desk) -> Vec<PathBuf> {
    let directory = std::fs::read_dir(desk.installation.path("state/pilot/drafts")).unwrap();
    directory.map(|entry| entry.unwrap().path()).collect()
}

const FILL: &str = r#"sed -i 's/^title = ""/title = "Rotate"/; s/^purpose = ""/purpose = """\nold\nkey"""/; s/^risk = ""/risk = "low"/; s/^operation = ""/operation = "rotate"/; s/^rollback_plan = ""/rollback_plan = "old key"/' "$1""#;

#[test]
fn a_page_made_from_the_schema_is_filled_in_and_sent() {
    let desk = Desk::new();
    let new = desk.command("ana", &["item", "new", "--edit", "--submit", "--fields", "id"]);
    let id = with_editor(&desk, new, &[FILL]).expect(0).stdout.trim().to_owned();
    let item = desk.json("ana", &["item", "show", &id]);
    let payload = json!({"purpose": "old\nkey", "operation": "rotate", "risk": "low", "rollback_plan": "old key"});
    assert_eq!((&item["title"], &item["payload"], &item["state"]), (&json!("Rotate"), &payload, &json!("submitted")));
    let page = desk.installation.read("page-1.toml");
    assert!(page.contains("# high asks for a second approver; required: low, medium, high\nrisk = \"\"\n"), "{page}");
    assert_eq!(drafts(&desk).len(), 0, "what was sent need not be kept");
}

#[test]
fn what_is_wrong_is_written_into_the_page_until_it_is_right() {
    let desk = Desk::new();
    let new = desk.command("ana", &["item", "new", "--edit", "--submit", "--title", "Rotate", "--fields", "id"]);
    let rounds = [
        r#"sed -i 's/^risk = ""/risk = "extreme"/' "$1""#,
        r#"echo 'broken = [' >> "$1""#,
        r#"sed -i '/broken/d; s/^risk.*/risk = "low"/' "$1""#,
        FILL,
    ];
    let id = with_editor(&desk, new, &rounds).expect(0).stdout.trim().to_owned();
    let second = desk.installation.read("page-2.toml");
    let above = second
        .lines()
        .collect::<Vec<_>>()
        .windows(2)
        .any(|lines| lines[0].starts_with("#! /payload/risk: ") && lines[1] == "risk = \"extreme\"");
    assert!(above, "{second}");
    assert!(desk.installation.read("page-3.toml").contains("#! "), "the line that is not TOML");
    assert_eq!(desk.json("ana", &["item", "show", &id])["payload"]["risk"], "low");
}

#[test]
fn a_draft_that_was_not_sent_is_kept_and_can_be_gone_on_with() {
    let desk = Desk::new();
    // Another role may not create items: the service refuses, and the text is not lost.
    let refused = with_editor(&desk, desk.command("ben", &["item", "new", "--edit"]), &[FILL]).expect(1);
    refused.says(&["403 role_forbidden", "your draft is kept in", "--edit"]);
    let [draft] = drafts(&desk).try_into().unwrap();
    assert_eq!(mode(&draft), 0o600);
    let path = draft.display().to_string();
    let again = desk.command("ana", &["item", "new", "--payload", &path, "--fields", "id,title"]);
    assert!(with_editor(&desk, again, &[]).expect(0).stdout.ends_with("\tRotate\n"));
    let again = desk.command("ana", &["item", "new", "--edit", "--payload", &path, "--fields", "title"]);
    let sent = with_editor(&desk, again, &[r#"sed -i 's/Rotate/Rotate again/' "$1""#]).expect(0);
    assert_eq!(sent.stdout, "Rotate again\n");
    // An editor that fails keeps the draft too.
    let failed =
        with_editor(&desk, desk.command("ana", &["item", "new", "--edit"]), &["sed -i 's/\"\"/\"x\"/' \"$1\"; exit 3"]);
    failed.expect(3).says(&["exit status: 3"]);
}

#[test]
fn who_changes_nothing_has_sent_nothing() {
    let desk = Desk::new();
    let left = with_editor(&desk, desk.command("ana", &["item", "new", "--edit"]), &["true"]).expect(1);
    left.says(&["nothing was changed, so nothing was sent"]);
    assert_eq!(drafts(&desk).len(), 0, "nobody wrote anything");
    let rounds = [r#"sed -i 's/^risk = ""/risk = 3/' "$1""#, "true"];
    let left = with_editor(&desk, desk.command("ana", &["item", "new", "--edit"]), &rounds).expect(1);
    left.says(&["nothing was sent", "your draft is kept in"]);
    assert_eq!(desk.json("ana", &["item", "list"])["items"], json!([]));
    let mut without = desk.command("ana", &["item", "new", "--edit"]);
    without.env("XDG_STATE_HOME", desk.installation.path("state"));
    finish(without, None).expect(2).says(&["VISUAL or EDITOR"]);
}

#[test]
fn an_item_is_edited_in_the_editor_and_the_editor_never_sees_the_token() {
    let desk = Desk::new();
    let id = desk.item("Rotate", &[]);
    let edit = desk.command("ana", &["item", "edit", &id, "--edit", "--fields", "version,payload.purpose"]);
    let round = r#"env > seen; sed -i 's/^purpose.*/purpose = "newer"/; s/^# targets.*/targets = ["a", "b"]/' "$1""#;
    assert_eq!(with_editor(&desk, edit, &[round]).expect(0).stdout, "2\tnewer\n");
    let seen = desk.installation.read("seen");
    assert!(seen.contains("PILOT_URL=") && !seen.contains("PILOT_TOKEN"), "{seen}");
    assert_eq!(desk.json("ana", &["item", "show", &id])["payload"]["targets"], json!(["a", "b"]));
}
