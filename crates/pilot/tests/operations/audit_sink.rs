//! The audit sink: every entry arrives, in order and at least once, whatever is killed, full, renamed or restored.

mod syslog;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::durability::SmallDisk;
use crate::operations::second_place::{copy_database, work};
use crate::operations::witnesses::begun;
use crate::support::harness::{Finished, Installation, PATIENCE, Server, mode, now};
use crate::support::team::{payload, person, team, token};

/// A running `pilot log follow` of the auditor.
struct Follower {
    child: Child,
    stderr: Arc<Mutex<String>>,
}

fn command(installation: &Installation, url: &str, more: &[&str]) -> Command {
    let mut command = installation.command(&["log", "follow", "--state", "sink", "--url", url]);
    command.args(more).env("PILOT_TOKEN", token("ada"));
    command
}

impl Follower {
    fn start(installation: &Installation, server: &Server, more: &[&str]) -> Follower {
        let mut child = command(installation, &server.url(), more).spawn().unwrap();
        let stderr = Arc::new(Mutex::new(String::new()));
        let (mut from, to) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&stderr));
        thread::spawn(move || {
            let mut line = String::new();
            while from.read_line(&mut line).is_ok_and(|length| length > 0) {
                to.lock().unwrap().push_str(&line);
                line.clear();
            }
        });
        Follower { child, stderr }
    }

    fn says(&self, words: &str) -> bool {
        self.stderr.lock().unwrap().contains(words)
    }

    /// SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// SIGTERM; gives the exit code, if there is one.
    fn stop(mut self) -> Option<i32> {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("the follower said: {}", self.stderr.lock().unwrap());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until it is so.
#[track_caller]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        thread::yield_now();
    }
}

/// How a follower ends that does not go on.
fn ends(installation: &Installation, url: &str, more: &[&str]) -> Finished {
    let finished = crate::support::harness::finish(command(installation, url, more), None);
    finished.never_says(&token("ada"));
    finished
}

fn ledger_size(server: &Server) -> u64 {
    let note = person(server, "ada").get("/v1/log/checkpoint").text();
    note.lines().nth(1).unwrap().parse().unwrap()
}

fn read(installation: &Installation, name: &str) -> String {
    fs::read_to_string(installation.path(name)).unwrap_or_default()
}

fn index(line: &str) -> u64 {
    serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"))["index"].as_u64().unwrap()
}

/// Every entry from `first` to the end of the ledger is there. An entry comes again only after it has come, and none
/// comes before its predecessor.
#[track_caller]
fn all_in_order(indices: &[u64], first: u64, size: u64) {
    let mut next = first;
    for index in indices {
        assert!((first..=next).contains(index), "{index} came when {next} was expected: {indices:?}");
        next = next.max(index + 1);
    }
    assert_eq!(next, size, "{indices:?}");
}

fn indices(text: &str) -> Vec<u64> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is incomplete");
    text.lines().map(index).collect()
}

fn has_all(text: &str, size: u64) -> bool {
    text.ends_with('\n') && text.lines().last().is_some_and(|line| index(line) + 1 >= size)
}

#[test]
fn a_follower_that_is_killed_again_and_again_leaves_every_entry_in_the_file() {
    let installation = team();
    let server = installation.serve();
    let is_over = Mutex::new(false);
    thread::scope(|scope| {
        let mut ana = person(&server, "ana");
        let is_over = &is_over;
        scope.spawn(move || {
            while !*is_over.lock().unwrap() {
                ana.creates("controlled-operation", &payload("low"));
            }
        });
        for round in 0..20 {
            let before = read(&installation, "entries.jsonl").len();
            let follower = Follower::start(&installation, &server, &["--to-file", "entries.jsonl"]);
            // Sometimes at once, sometimes in the middle of a batch.
            until("the file grows", || {
                round % 5 == 0 || read(&installation, "entries.jsonl").len() > before + round * 300
            });
            follower.kill();
        }
        *is_over.lock().unwrap() = true;
    });
    // As a power cut in the middle of a line leaves it.
    let mut file = fs::OpenOptions::new().append(true).open(installation.path("entries.jsonl")).unwrap();
    std::io::Write::write_all(&mut file, b"{\"action\":\"appr").unwrap();
    let follower = Follower::start(&installation, &server, &["--to-file", "entries.jsonl"]);
    let size = ledger_size(&server);
    until("everything is there", || has_all(&read(&installation, "entries.jsonl"), size));
    follower.kill();
    let text = read(&installation, "entries.jsonl");
    let found = indices(&text);
    all_in_order(&found, 0, size);
    let distinct: BTreeSet<_> = text.lines().collect();
    assert_eq!(distinct.len() as u64, size, "a repeated entry has the same bytes");
    println!("{size} entries, {} lines", found.len());
    let shown = person(&server, "ada").get("/v1/events?limit=200").text();
    assert!(text.lines().take(100).all(|line| shown.contains(line)), "the bytes are those of the ledger");
    assert_eq!(mode(&installation.path("entries.jsonl")) & 0o137, 0, "not for everyone");
    assert!(!text.contains(&token("ada")) && !text.contains(&token("ana")));
}

#[test]
fn a_file_that_is_renamed_is_created_again_and_nothing_is_lost_between() {
    let installation = team();
    let server = installation.serve();
    let follower = Follower::start(&installation, &server, &["--to-file", "entries.jsonl"]);
    let mut names = Vec::new();
    for turn in 0..5 {
        work(&server, 10);
        let size = ledger_size(&server);
        until("everything is there", || has_all(&read(&installation, "entries.jsonl"), size));
        let name = format!("entries.{turn}");
        fs::rename(installation.path("entries.jsonl"), installation.path(&name)).unwrap();
        names.push(name);
    }
    drop(follower);
    let whole: String = names.iter().map(|name| read(&installation, name)).collect();
    let found = indices(&whole);
    assert_eq!(found, (0..found.len() as u64).collect::<Vec<_>>(), "each once");
}

#[test]
fn a_full_disk_loses_nothing_and_the_file_has_whole_lines() {
    let installation = team();
    let server = installation.serve();
    let disk = SmallDisk::mount_at(installation.path("small"), "64k");
    let metrics = ["--metrics", "follow.prom"];
    let file = ["--to-file", "small/entries.jsonl"];
    let follower = Follower::start(&installation, &server, &[file, metrics].concat());
    work(&server, 5);
    until("five are there", || has_all(&read(&installation, "small/entries.jsonl"), 5));
    let filler = disk.fill_up_to(0);
    work(&server, 40);
    until("it says so", || follower.says("No space left on device"));
    let is_up = |up: u8| {
        let figures = read(&installation, "follow.prom");
        figures.lines().any(|line| line.starts_with("pilot_follow_up{") && line.ends_with(&format!(" {up}")))
    };
    until("monitoring hears of it", || is_up(0));
    indices(&read(&installation, "small/entries.jsonl"));
    fs::remove_file(filler).unwrap();
    let size = ledger_size(&server);
    until("it goes on", || has_all(&read(&installation, "small/entries.jsonl"), size));
    all_in_order(&indices(&read(&installation, "small/entries.jsonl")), 0, size);
    until("monitoring hears of that too", || is_up(1));
    assert_eq!(mode(&installation.path("follow.prom")), 0o644, "another user's program reads it");
}

#[test]
fn a_service_that_is_restarted_is_waited_for_and_a_first_run_may_begin_now() {
    let installation = begun();
    let port = crate::support::harness::Port::reserve();
    installation.write("pilot.toml", &format!("listen = \"{}\"\n", port.address()));
    let server = installation.serve();
    let first = ledger_size(&server);
    let follower = Follower::start(&installation, &server, &["--to-file", "entries.jsonl", "--from", "now"]);
    until("it has begun", || installation.path("entries.jsonl").exists());
    work(&server, 3);
    server.stop().expect(0);
    until("it says so", || follower.says("cannot be reached"));
    let server = installation.serve();
    work(&server, 3);
    let size = ledger_size(&server);
    until("everything is there", || has_all(&read(&installation, "entries.jsonl"), size));
    all_in_order(&indices(&read(&installation, "entries.jsonl")), first, size);
    // A second one with the same directory would overwrite the cursor.
    ends(&installation, &server.url(), &["--to-stdout"]).expect(2).says(&["is in use by another"]);
    follower.kill();
}

#[test]
fn a_pipe_gets_every_line_and_a_reader_who_is_gone_ends_the_follower() {
    let installation = team();
    let server = installation.serve();
    work(&server, 20);
    let mut follower = Follower::start(&installation, &server, &["--to-stdout"]);
    let mut lines = BufReader::new(follower.child.stdout.take().unwrap()).lines();
    let first: Vec<_> = lines.by_ref().take(10).map(|line| index(&line.unwrap())).collect();
    assert_eq!(first, (0..10).collect::<Vec<_>>());
    let size = ledger_size(&server);
    until("they count as delivered", || read(&installation, "sink/cursor.json").contains(&format!("\"next\":{size}")));
    drop(lines);
    work(&server, 1);
    let code = follower.child.wait().unwrap().code();
    assert_eq!(code, Some(3), "{}", follower.stderr.lock().unwrap());
    drop(follower);
    let mut again = Follower::start(&installation, &server, &["--to-stdout"]);
    let mut from = BufReader::new(again.child.stdout.take().unwrap());
    let mut line = String::new();
    from.read_line(&mut line).unwrap();
    assert_eq!(index(&line), size, "the entry that nobody read comes again");
    again.kill();
    let _ = from.read_to_string(&mut line);
}

#[test]
fn a_ledger_that_does_not_continue_what_was_passed_on_is_refused() {
    let (installation, twin) = (begun(), begun());
    copy_database(&installation.path("data"), &twin.path("data"));
    for name in ["log.key", "log.checkpoint"] {
        fs::copy(installation.path("data").join(name), twin.path("data").join(name)).unwrap();
    }
    let (server, fork) = (installation.serve(), twin.serve());
    work(&server, 5);
    let size = ledger_size(&server);
    let follower = Follower::start(&installation, &server, &["--to-file", "entries.jsonl"]);
    until("everything counts", || read(&installation, "sink/cursor.json").contains(&format!("\"next\":{size}")));
    follower.kill();
    let before = read(&installation, "entries.jsonl");
    let refused = |words: &[&str]| {
        let refused = ends(&installation, &fork.url(), &["--to-file", "entries.jsonl"]).expect(1);
        refused.says(words);
        refused.says(&["ledger.restored", "--from"]);
        assert_eq!(read(&installation, "entries.jsonl"), before, "nothing of another history is written");
    };
    refused(&["5 are missing"]);
    work(&fork, 30);
    refused(&["does not continue the", "seen before"]);
    let cursor = read(&installation, "sink/cursor.json");
    installation.write("sink/cursor.json", &cursor.replace(&format!("\"size\":{size}"), "\"size\":0"));
    refused(&["entry", "is not the one that was passed on"]);
    let stranger = begun().serve();
    ends(&installation, &stranger.url(), &["--to-file", "entries.jsonl"]).expect(1);
    installation.write("sink/cursor.json", &cursor.replacen("\"log\":\"", "\"log\":\"not-", 1));
    ends(&installation, &server.url(), &["--to-file", "entries.jsonl"])
        .expect(1)
        .says(&["the state directory belongs"]);
    installation.write("sink/cursor.json", "{}");
    ends(&installation, &server.url(), &["--to-file", "entries.jsonl"]).expect(2).says(&["is not a cursor"]);
}

#[test]
fn those_who_see_less_are_refused_and_so_are_options_that_cannot_be() {
    let installation = team();
    let server = installation.serve();
    let url = server.url();
    let arguments = ["log", "follow", "--state", "sink", "--url", &url, "--to-stdout"];
    let refused = installation.pilot_as(&token("ana"), &arguments).expect(1);
    refused.says(&["does not see every entry", "auditor"]);
    refused.never_says(&token("ana"));
    ends(&installation, &url, &[]).expect(2);
    ends(&installation, &url, &["--to-stdout", "--to-file", "x"]).expect(2);
    ends(&installation, &url, &["--to-syslog", "syslog.example"]).expect(2);
    ends(&installation, &url, &["--to-stdout", "--from", "1000"]).expect(2).says(&["has only"]);
    ends(&installation, &url, &["--to-file", "no/such/place"]).expect(3);
    installation.write("letter.txt", "Dear friend,");
    ends(&installation, &url, &["--to-file", "letter.txt"]).expect(2).says(&["not part of an entry"]);
    assert_eq!(installation.read("letter.txt"), "Dear friend,");
}
