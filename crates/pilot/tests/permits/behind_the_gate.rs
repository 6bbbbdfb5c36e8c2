//! What a command behind the gate is, sees and gets: what was approved, whatever happens to the files meanwhile.

use std::ffi::OsString;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::permits::hostile::make_pipe;
use crate::permits::scene::{Scene, Until};
use crate::support::harness::finish;

#[test]
fn what_was_approved_runs_with_its_arguments_and_its_exit_code_is_the_gates() {
    let scene = Scene::new();
    let done = scene.run().expect(0);
    assert_eq!(fs::read_to_string(scene.path("ran")).unwrap(), format!("ran: {}\n", scene.text("ran")));
    assert!(done.stderr.contains("without --spent"), "{done:#?}");

    let mut scene = Scene::new();
    scene.spent();
    scene.write("tool", b"#!/bin/sh\nexit 7\n");
    scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")]});
    let done = scene.run().expect(7);
    assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""));
}

#[test]
fn files_without_a_command_line_can_be_approved_and_so_can_a_command_line_without_files() {
    let mut scene = Scene::new();
    scene.write("tool", format!("#!/bin/sh\necho ran > {}\n", scene.text("ran")).as_bytes());
    scene.operation = json!({"files": [scene.file("tool")]});
    scene.command.truncate(1);
    scene.run().expect(0);
    assert!(scene.has_run());

    let mut scene = Scene::new();
    scene.operation = json!({"argv": scene.argv()});
    scene.run().expect(0);
    assert!(scene.has_run());
}

#[test]
fn a_compiled_program_runs_from_its_checked_copy() {
    let mut scene = Scene::new();
    fs::copy(fs::canonicalize("/bin/cp").unwrap(), scene.path("copy")).unwrap();
    scene.write("data", b"approved");
    let argv = [scene.text("copy"), scene.text("data"), scene.text("ran")];
    scene.operation = json!({"argv": argv, "files": [scene.file("copy"), scene.file("data")]});
    scene.command = argv.map(OsString::from).to_vec();
    scene.run().expect(0);
    assert_eq!(fs::read(scene.path("ran")).unwrap(), b"approved");
}

#[test]
fn a_roll_back_runs_what_was_approved_for_it() {
    let mut scene = Scene::new();
    scene.until = Until::RolledBack;
    scene.rollback_operation = Some(scene.operation.clone());
    scene.operation = json!({"argv": ["/bin/false"]});
    // The window binds what it was set for, not the way back.
    scene.age = 60;
    scene.window = 40;
    scene.run().expect(0);
    assert!(scene.has_run());
}

/// The command says that it has begun and waits; meanwhile the files it was given are changed in every way.
#[test]
fn files_that_are_swapped_or_overwritten_while_the_command_runs_do_not_matter() {
    for overwrite in [true, false] {
        let mut scene = Scene::new();
        let (begun, go) = (scene.text("begun"), scene.text("go"));
        let tool = format!("#!/bin/sh\necho x > {begun}\nread x < {go}\ncat \"$2\" > \"$1\"\necho end >> \"$1\"\n");
        scene.write("tool", tool.as_bytes());
        scene.write("data", b"approved\n");
        make_pipe(&scene, "begun");
        make_pipe(&scene, "go");
        let argv = [scene.argv(), vec![scene.text("data")]].concat();
        scene.operation = json!({"argv": argv, "files": [scene.file("tool"), scene.file("data")]});
        scene.command = argv.into_iter().map(OsString::from).collect();
        let gate = scene.gate();
        let running = std::thread::spawn(move || finish(gate, None));
        fs::File::open(scene.path("begun")).unwrap().read_to_end(&mut Vec::new()).unwrap();
        for name in ["tool", "data"] {
            if !overwrite {
                fs::remove_file(scene.path(name)).unwrap();
            }
            // As long as before, so that a shell that reads its script bit by bit would go on in the other one.
            scene.write(name, "echo evil > /dev/null\n".repeat(40).as_bytes());
        }
        fs::File::options().write(true).open(scene.path("go")).unwrap().write_all(b"go\n").unwrap();
        running.join().unwrap().expect(0);
        assert_eq!(fs::read_to_string(scene.path("ran")).unwrap(), "approved\nend\n");
    }
}

#[test]
fn not_even_the_command_itself_can_change_its_checked_copy() {
    let mut scene = Scene::new();
    scene.write("tool", b"#!/bin/sh\necho evil 2>/dev/null > \"$2\" || echo sealed > \"$1\"\ncat \"$2\" >> \"$1\"\n");
    scene.write("data", b"approved\n");
    let argv = [scene.argv(), vec![scene.text("data")]].concat();
    scene.operation = json!({"argv": argv, "files": [scene.file("tool"), scene.file("data")]});
    scene.command = argv.into_iter().map(OsString::from).collect();
    scene.run().expect(0);
    assert_eq!(fs::read_to_string(scene.path("ran")).unwrap(), "sealed\napproved\n");
}

#[test]
fn the_environment_is_cleared_and_standard_input_is_empty() {
    let mut scene = Scene::new();
    scene.write("tool", b"#!/bin/sh\n{ /usr/bin/env; pwd; cat; } > \"$1\"\n");
    scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")]});
    scene.flags.extend(["--env-allow".into(), "REGION".into()]);
    for (name, value) in [
        ("REGION", "north"),
        ("SECRET", "hidden"),
        ("PATH", "/tmp/evil"),
        ("LD_PRELOAD", "/tmp/evil.so"),
        ("BASH_ENV", "/tmp/evil"),
        ("ENV", "/tmp/evil"),
        ("PYTHONPATH", "/tmp/evil"),
        ("TZ", ":/tmp/evil"),
        ("HOME", "/srv/deploy"),
        ("PILOT_TOKEN", "0123456789abcdef0123456789abcdef"),
    ] {
        scene.environment.push((name, value.into()));
    }
    // The loader acts before any of our code runs; what is set for the gate itself is not its concern.
    scene.environment.retain(|(name, _)| *name != "LD_PRELOAD");
    let mut gate = scene.gate();
    gate.stdin(std::process::Stdio::piped());
    finish(gate, Some("rm -rf everything\n")).expect(0);
    let seen = fs::read_to_string(scene.path("ran")).unwrap();
    for line in ["REGION=north", "PILOT_ATTEMPT=1", "PILOT_WORKFLOW=controlled-operation"] {
        assert!(seen.lines().any(|found| found == line), "{line} is missing in {seen}");
    }
    assert!(seen.contains("\nHOME=/") || seen.starts_with("HOME=/"), "{seen}");
    assert!(seen.contains("PATH=/usr/local/sbin:") && seen.contains("PILOT_CONTENT_DIGEST=sha256:"), "{seen}");
    assert!(seen.lines().any(|line| line == "/"), "{seen}");
    for absent in ["evil", "hidden", "/srv/deploy", "0123456789abcdef", "rm -rf", "TZ="] {
        assert!(!seen.contains(absent), "{absent} is in {seen}");
    }
}

#[test]
fn the_approved_directory_is_where_the_command_runs() {
    let mut scene = Scene::new();
    scene.write("tool", b"#!/bin/sh\npwd > \"$1\"\n");
    let cwd = scene.text("spent");
    scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")], "cwd": cwd});
    scene.run().expect(0);
    assert_eq!(fs::read_to_string(scene.path("ran")).unwrap().trim(), cwd);
}

#[test]
fn of_many_gates_with_one_permit_one_runs() {
    let mut scene = Scene::new();
    scene.spent();
    let gates: Vec<_> = (0..12).map(|_| scene.gate()).collect();
    let running: Vec<_> = gates.into_iter().map(|gate| std::thread::spawn(move || finish(gate, None))).collect();
    let codes: Vec<_> = running.into_iter().map(|gate| gate.join().unwrap().code).collect();
    assert_eq!(codes.iter().filter(|code| **code == 0).count(), 1, "{codes:?}");
    assert_eq!(codes.iter().filter(|code| **code == 1).count(), 11, "{codes:?}");
    assert_eq!(fs::read_to_string(scene.path("ran")).unwrap().lines().count(), 1);
}

#[test]
fn a_program_that_cannot_be_run_is_said_and_the_attempt_counts_as_used() {
    let mut scene = Scene::new();
    scene.spent();
    scene.write("tool", b"#!/no/such/interpreter\n");
    scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")]});
    scene.run().expect(3).says(&["cannot be run", "the attempt counts as used"]);
    scene.run().expect(1).says(&["was already used here"]);
    let marks: Vec<_> = fs::read_dir(scene.path("spent")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(marks.len(), 1);
    assert_eq!(fs::metadata(&marks[0]).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&marks[0]).unwrap().contains("\"executor\":\"eve\""));
}

#[test]
fn the_attempt_is_on_disk_as_used_before_the_command_begins() {
    let mut scene = Scene::new();
    scene.spent();
    let gate = scene.gate();
    let mut traced = std::process::Command::new("strace");
    traced.args(["-e", "trace=openat,fsync,execve", "-y", "-o"]).arg(scene.path("trace"));
    traced.arg(gate.get_program()).args(gate.get_args()).current_dir(gate.get_current_dir().unwrap());
    traced.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    finish(traced, None).expect(0);
    let trace = fs::read_to_string(scene.path("trace")).unwrap();
    let spent = scene.text("spent");
    let order = [
        ("the mark is made", "O_EXCL", "openat("),
        ("the mark is synced", &*format!("{spent}/"), "fsync("),
        ("its directory is synced", &*format!("{spent}>)"), "fsync("),
        ("the command begins", "\"/proc/self/fd/", "execve("),
    ];
    let mut lines = trace.lines();
    for (what, part, call) in order {
        let found = lines.any(|line| line.starts_with(call) && line.contains(part) && !line.contains("= -1"));
        assert!(found, "{what}: not in this order in {trace}");
    }
}
