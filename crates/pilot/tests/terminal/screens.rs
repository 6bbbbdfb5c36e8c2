//! The screens in the guide are what the program prints.

use expect_test::expect_file;

use super::desk::Desk;
use crate::support::harness::{Finished, finish};
use crate::support::pty::Terminal;
use crate::support::team::payload;

const GUIDE: &str = include_str!("../../../../docs/guide/terminal.md");

/// What differs from run to run, replaced by what does not.
struct Plain {
    id: String,
    digest: String,
    url: String,
}

impl Plain {
    fn text(&self, text: &str) -> String {
        let text =
            text.replace(&self.id, "01890a5d-ac96-774b-bcce-b302099a8057").replace(&self.url, "http://127.0.0.1:7450");
        let text = text.replace(&self.digest, &format!("sha256:{}", "967a324b".repeat(8)));
        let text = text.replace(&self.digest["sha256:".len()..][..8], "967a324b");
        text.lines().map(|line| folded(&plain_line(line))).collect()
    }
}

/// Times and places in the ledger.
fn plain_line(line: &str) -> String {
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    for at in 0..words.len() {
        let digits = |word: &str, shape: &str| {
            word.len() == shape.len()
                && word
                    .chars()
                    .zip(shape.chars())
                    .all(|(letter, like)| if like == '0' { letter.is_ascii_digit() } else { letter == like })
        };
        if digits(&words[at], "0000-00-00") {
            words[at] = "2026-11-15".into();
        } else if digits(&words[at], "00:00:00") {
            words[at] = "09:30:00".into();
        } else if at > 0 && words[at - 1] == "(entry" {
            words[at] = "7)".into();
        }
    }
    words.join(" ")
}

/// A message has one line, however long; here it goes on in the next.
fn folded(line: &str) -> String {
    if line.chars().count() <= 80 {
        return format!("{line}\n");
    }
    let at = line.char_indices().take(78).filter(|(_, letter)| *letter == ' ').last().unwrap().0;
    format!("{}\n{}", &line[..at], folded(&format!("  {}", line[at..].trim_start())))
}

/// A command and what it printed.
fn shown(line: &str, finished: &Finished) -> String {
    let code = if finished.code == 0 { String::new() } else { format!("(exit code {})\n", finished.code) };
    format!("$ {line}\n{}{}{code}", finished.stdout, finished.stderr)
}

/// The guide with this screen in its place.
fn with_screen(guide: &str, name: &str, screen: &str) -> String {
    let mark = format!("<!-- screen: {name} -->\n```console\n");
    let (before, rest) = guide.split_once(&mark).unwrap_or_else(|| panic!("the guide has no screen {name}"));
    let (_, after) = rest.split_once("```\n").unwrap();
    for line in screen.lines() {
        assert!(line.chars().count() <= 80, "wider than 80 columns: {line}");
    }
    format!("{before}{mark}{screen}```\n{after}")
}

#[test]
fn the_guide_shows_what_the_program_prints() {
    let desk = Desk::new();
    desk.installation.write("rotate.json", &payload("low").to_string());
    let command = |who: &str, line: &str, id: &str, digest: &str| {
        let line = line.replace("ID", id).replace("DIGEST", digest);
        let words: Vec<String> = line.split('|').map(str::to_owned).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        finish(desk.command(who, &words), None)
    };
    let new = command("ana", "item|new|--title|Rotate the signing key|--payload|rotate.json|--submit", "", "");
    let id = new.stdout.lines().next().unwrap().to_owned();
    let digest = desk.digest(&id);
    let plain = Plain { id: id.clone(), digest: digest.clone(), url: desk.server.url() };
    let run = |who: &str, line: &str| command(who, line, &id, &digest);
    let mut guide = with_screen(
        GUIDE,
        "new",
        &plain.text(&shown(
            "pilot item new --title 'Rotate the signing key' \\\n    --payload rotate.json --submit",
            &new,
        )),
    );
    let mut place = |name: &str, screen: &str| guide = with_screen(&guide, name, &plain.text(screen));
    place("list", &shown("pilot item list --state submitted", &run("ben", "item|list|--state|submitted")));
    place("show", &shown("pilot item show $ID", &run("ben", "item|show|ID")));
    let refused = run("eli", "item|act|ID|approve|--digest|DIGEST").expect(1);
    place("refused", &shown("pilot item act $ID approve --digest $DIGEST", &refused));
    let waited = run("ana", "item|wait|ID|--for|cleared|--timeout|0s");
    place("wait", &shown("pilot item wait $ID --for cleared --timeout 0s", &waited));
    let mut ben = Terminal::run({
        let mut inbox = desk.command("ben", &["inbox"]);
        inbox.env("NO_COLOR", "1");
        inbox
    });
    let list = ben.shows("or q to leave: ");
    ben.types("1");
    ben.shows("What you can do now\n");
    let actions = ben.shows("nothing to go back: ");
    ben.types("approve");
    let ask = ben.shows("digest: ");
    ben.types(&digest["sha256:".len()..][..8]);
    let end = ben.shows("Nothing waits for you.\n");
    assert_eq!(ben.ends().0, 0);
    place("inbox", &format!("$ pilot inbox\n{list}1\n…\nWhat you can do now\n{actions}{ask}{end}"));
    expect_file!["../../../../docs/guide/terminal.md"].assert_eq(&guide);
}
