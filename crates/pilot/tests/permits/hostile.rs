//! Everything a gate refuses. Each case changes one thing about a command that would run, and is refused with a reason.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::note::NoteKey;
use pilot_evidence::sample::ORIGIN;
use serde_json::json;

use crate::permits::scene::{Scene, Until, sha256, witness};

/// What is tried, the exit code, what the refusal says, and what is changed.
type Case = (&'static str, i32, &'static str, fn(&mut Scene));

#[track_caller]
fn all_refused(cases: &[Case]) {
    for (name, code, said, change) in cases {
        let mut scene = Scene::new();
        change(&mut scene);
        let done = scene.run();
        assert_eq!(done.code, *code, "{name}: {done:#?}");
        assert!(done.stderr.contains(said), "{name}: {said:?} is missing in {done:#?}");
        assert!(!scene.has_run(), "{name}: it ran");
    }
}

#[test]
fn another_command_line_than_the_approved_one_is_refused() {
    let not_approved = "was approved; run what was approved";
    all_refused(&[
        ("another argument", 1, not_approved, |scene| scene.command[1] = scene.path("other").into()),
        ("one argument less", 1, "has 1 words, and 2 were approved", |scene| scene.command.truncate(1)),
        ("one argument more", 1, "has 3 words, and 2 were approved", |scene| scene.command.push("-f".into())),
        ("an empty argument more", 1, "has 3 words, and 2 were approved", |scene| scene.command.push("".into())),
        ("another program", 1, not_approved, |scene| scene.command[0] = "/bin/rm".into()),
        ("the program by another path", 1, not_approved, |scene| {
            scene.command[0] = format!("{}/./tool", scene.text("")).replace("//", "/").into();
        }),
        ("the arguments in another order", 1, not_approved, |scene| scene.command.swap(0, 1)),
        ("a trailing space", 1, not_approved, |scene| scene.command[1].push(" ")),
        ("a trailing line end", 1, not_approved, |scene| scene.command[1].push("\n")),
        ("another letter case", 1, not_approved, |scene| scene.command[1] = scene.text("RAN").into()),
        ("bytes that are not text", 1, not_approved, |scene| {
            scene.command[1] = OsString::from_vec([scene.text("ran").as_bytes(), b"\xff"].concat());
        }),
        ("two arguments as one", 1, "has 1 words, and 2 were approved", |scene| {
            let joined = format!("{} {}", scene.text("tool"), scene.text("ran"));
            scene.command = vec![joined.into()];
        }),
        ("nothing at all", 2, "required", |scene| scene.command.clear()),
    ]);
}

#[test]
fn a_file_whose_bytes_were_not_approved_is_refused() {
    let other_bytes = "its bytes are not those that were approved";
    all_refused(&[
        ("changed", 1, other_bytes, |scene| scene.write("tool", b"#!/bin/sh\necho evil > \"$1\"\n")),
        ("cut off", 1, other_bytes, |scene| scene.write("tool", b"#!/bin/sh\n")),
        ("emptied", 1, other_bytes, |scene| scene.write("tool", b"")),
        ("one line end more", 1, other_bytes, |scene| {
            let longer = [fs::read(scene.path("tool")).unwrap(), b"\n".to_vec()].concat();
            scene.write("tool", &longer);
        }),
        ("a hard link to something else", 1, other_bytes, |scene| {
            scene.write("other", b"#!/bin/sh\necho evil > \"$1\"\n");
            fs::remove_file(scene.path("tool")).unwrap();
            fs::hard_link(scene.path("other"), scene.path("tool")).unwrap();
        }),
        ("the second of two files", 1, "data: its bytes are not those", |scene| {
            scene.write("data", b"approved");
            let argv = [scene.argv(), vec![scene.text("data")]].concat();
            scene.operation = json!({"argv": argv, "files": [scene.file("tool"), scene.file("data")]});
            scene.command = argv.into_iter().map(OsString::from).collect();
            scene.write("data", b"swapped");
        }),
        ("gone", 1, "does not exist; put the approved file there", |scene| {
            fs::remove_file(scene.path("tool")).unwrap();
        }),
        ("approved, but nothing that can be run", 1, "is neither a program nor a script", |scene| {
            scene.write("tool", b"echo evil > \"$1\"\n");
            scene.operation = json!({"argv": scene.argv(), "files": [scene.file("tool")]});
        }),
        ("the digest of other bytes approved", 1, other_bytes, |scene| {
            scene.operation["files"][0]["sha256"] = sha256(b"other").into();
        }),
    ]);
}

#[test]
fn what_is_not_a_plain_regular_file_is_refused() {
    let link = "a part of the path is a symbolic link";
    all_refused(&[
        ("a symbolic link to the approved bytes", 1, link, |scene| {
            fs::rename(scene.path("tool"), scene.path("real")).unwrap();
            symlink(scene.path("real"), scene.path("tool")).unwrap();
        }),
        ("a dangling symbolic link", 1, link, |scene| {
            fs::remove_file(scene.path("tool")).unwrap();
            symlink("nowhere", scene.path("tool")).unwrap();
        }),
        ("a directory behind a symbolic link", 1, link, |scene| {
            fs::create_dir(scene.path("real")).unwrap();
            fs::copy(scene.path("tool"), scene.path("real/tool")).unwrap();
            symlink(scene.path("real"), scene.path("bin")).unwrap();
            let argv = [scene.text("bin/tool"), scene.text("ran")];
            scene.operation = json!({"argv": argv, "files": [scene.file("bin/tool")]});
            scene.command = argv.map(OsString::from).to_vec();
        }),
        ("a magic link of the kernel", 1, link, |scene| {
            let argv = ["/proc/self/exe".to_owned(), scene.text("ran")];
            scene.operation = json!({"argv": argv, "files": [{"path": argv[0], "sha256": sha256(b"")}]});
            scene.command = argv.map(OsString::from).to_vec();
        }),
        ("a pipe", 1, "is not a regular file", |scene| {
            fs::remove_file(scene.path("tool")).unwrap();
            make_pipe(scene, "tool");
        }),
        ("a directory", 1, "is not a regular file", |scene| {
            fs::remove_file(scene.path("tool")).unwrap();
            fs::create_dir(scene.path("tool")).unwrap();
        }),
        ("a device", 1, "is not a regular file", |scene| {
            let argv = ["/dev/null".to_owned(), scene.text("ran")];
            scene.operation = json!({"argv": argv, "files": [{"path": argv[0], "sha256": sha256(b"")}]});
            scene.command = argv.map(OsString::from).to_vec();
        }),
        ("a socket", 1, "is not a regular file", |scene| {
            fs::remove_file(scene.path("tool")).unwrap();
            std::os::unix::net::UnixListener::bind(scene.path("tool")).unwrap();
        }),
        ("a file of a terabyte", 1, "more than 256 MiB", |scene| {
            fs::File::options().write(true).open(scene.path("tool")).unwrap().set_len(1 << 40).unwrap();
        }),
        ("an endless file", 1, "is not a regular file", |scene| {
            let argv = ["/dev/zero".to_owned(), scene.text("ran")];
            scene.operation = json!({"argv": argv, "files": [{"path": argv[0], "sha256": sha256(b"")}]});
            scene.command = argv.map(OsString::from).to_vec();
        }),
    ]);
}

pub fn make_pipe(scene: &Scene, name: &str) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, scene.path(name), rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn an_operation_that_cannot_be_enforced_is_refused() {
    all_refused(&[
        ("a text", 1, "is a text, which only people can compare", |scene| {
            scene.operation = "run the tool".into();
        }),
        ("neither argv nor files", 1, "has neither argv nor files", |scene| {
            scene.operation = json!({"description": "the tool"});
        }),
        ("a member that nobody enforces", 1, "unknown field `user`", |scene| {
            scene.operation = json!({"argv": scene.argv(), "user": "nobody"});
        }),
        ("a misspelt member", 1, "unknown field `file`", |scene| {
            scene.operation = json!({"argv": scene.argv(), "file": [scene.file("tool")]});
        }),
        ("argv without a word", 1, "argv is empty", |scene| scene.operation = json!({"argv": []})),
        ("argv as a text", 1, "cannot be enforced", |scene| scene.operation = json!({"argv": "tool ran"})),
        ("argv with a number", 1, "cannot be enforced", |scene| scene.operation["argv"][1] = 7.into()),
        ("a program found by PATH", 1, "is not an absolute path", |scene| {
            scene.operation["argv"][0] = "tool".into();
            scene.command[0] = "tool".into();
        }),
        ("a program with .. in its path", 1, "has a part that is empty, . or ..", |scene| {
            let odd = format!("{}/../tool", scene.text("spent"));
            scene.operation = json!({"argv": [odd, scene.text("ran")]});
            scene.command[0] = odd.into();
        }),
        ("a file with .. in its path", 1, "has a part that is empty, . or ..", |scene| {
            let odd = format!("{}/../tool", scene.text("spent"));
            scene.operation["files"][0]["path"] = odd.into();
        }),
        ("a file with a doubled slash", 1, "has a part that is empty, . or ..", |scene| {
            scene.operation["files"][0]["path"] = format!("/{}", scene.text("tool")).into();
        }),
        ("a relative file", 1, "is not an absolute path", |scene| {
            scene.operation["files"][0]["path"] = "tool".into();
        }),
        ("a digest in capitals", 1, "64 lowercase hexadecimal", |scene| {
            scene.operation["files"][0]["sha256"] = "A".repeat(64).into();
        }),
        ("a digest that is too short", 1, "64 lowercase hexadecimal", |scene| {
            scene.operation["files"][0]["sha256"] = "0".repeat(63).into();
        }),
        ("a file listed twice", 1, "is listed twice", |scene| {
            let file = scene.file("tool");
            scene.operation["files"] = json!([file, file]);
        }),
        ("a file that the command line does not name", 1, "is not a word of the command line", |scene| {
            scene.write("data", b"approved");
            scene.operation["files"] = json!([scene.file("tool"), scene.file("data")]);
        }),
        ("a file inside another word", 1, "have the path approved as a word of its own", |scene| {
            scene.write("data", b"approved");
            let argv = [scene.argv(), vec![format!("--from={}", scene.text("data"))]].concat();
            scene.operation = json!({"argv": argv, "files": [scene.file("tool"), scene.file("data")]});
            scene.command = argv.into_iter().map(OsString::from).collect();
        }),
        ("files without argv, and an argument", 1, "nothing else may be on the command line", |scene| {
            scene.operation = json!({"files": [scene.file("tool")]});
        }),
        ("a working directory that is not absolute", 1, "is not an absolute path", |scene| {
            scene.operation["cwd"] = "here".into();
        }),
        ("a roll-back without an approved one", 1, "has no rollback_operation", |scene| {
            scene.until = Until::RolledBack;
        }),
        ("the operation during its roll-back", 1, "was approved; run what was approved", |scene| {
            scene.until = Until::RolledBack;
            scene.rollback_operation = Some(json!({"argv": [scene.text("tool"), scene.text("undone")]}));
        }),
    ]);
}

fn flip(mut permit: Vec<u8>, at: usize) -> Vec<u8> {
    permit[at] ^= 1;
    permit
}

/// The place of the first of these bytes.
fn place(permit: &[u8], of: &[u8]) -> usize {
    permit.windows(of.len()).position(|window| window == of).unwrap()
}

#[test]
fn a_permit_that_was_changed_is_refused() {
    all_refused(&[
        ("empty", 1, "it is not a permit", |scene| scene.change = |_| Vec::new()),
        ("a text", 1, "it is not a permit", |scene| scene.change = |_| b"yes, run it\n".to_vec()),
        ("cut off", 1, "it is not a permit", |scene| {
            scene.change = |mut permit| {
                permit.truncate(permit.len() / 2);
                permit
            }
        }),
        ("without its last byte", 1, "it is not a permit", |scene| {
            scene.change = |mut permit| {
                permit.pop();
                permit
            }
        }),
        ("one byte more", 1, "it is not a permit", |scene| {
            scene.change = |mut permit| {
                permit.push(0);
                permit
            }
        }),
        ("one bit of an entry", 1, "its bytes were changed", |scene| {
            scene.change = |permit| {
                let at = place(&permit, b"\"actor_id\":\"eve\"") + 12;
                flip(permit, at)
            }
        }),
        ("one bit of the approved command line", 1, "its bytes were changed", |scene| {
            scene.change = |permit| {
                let at = place(&permit, b"\"argv\"") + 12;
                flip(permit, at)
            }
        }),
        ("one bit of the manifest", 1, "does NOT hold", |scene| {
            scene.change = |permit| {
                let at = place(&permit, b"scope item") + 12;
                flip(permit, at)
            }
        }),
        ("one bit of a definition", 1, "its bytes were changed", |scene| {
            scene.change = |permit| {
                let at = place(&permit, b"schema_version = 1") + 17;
                flip(permit, at)
            }
        }),
        ("without what people wrote", 4, "documents were left out of it", |scene| {
            scene.change = |permit| redact(&permit, &Redaction::All).unwrap().0;
        }),
        ("evidence of a period", 1, "a permit is about one item", |scene| scene.permit = Some(scene.period_bundle())),
        ("started without approval", 1, "does NOT hold", |scene| scene.until = Until::Forged),
    ]);
}

#[test]
fn a_permit_of_the_wrong_log_time_or_state_is_refused() {
    all_refused(&[
        ("another log", 1, "a log that the policy does not know", |scene| {
            let other = NoteKey::generate("other.example", &[1; 32]).unwrap().verifier();
            scene.policy = format!("log {other}\nquorum none\n");
        }),
        ("another key under the same name", 1, "a log that the policy does not know", |scene| {
            let other = NoteKey::generate(ORIGIN, &[1; 32]).unwrap().verifier();
            scene.policy = format!("log {other}\nquorum none\n");
        }),
        ("no cosignature", 1, "w.example has not", |scene| scene.ask_witness(1)),
        ("a cosignature by someone else under that name", 1, "w.example has not", |scene| {
            scene.ask_witness(1);
            scene.cosigned_by = Some(2);
        }),
        ("a cosignature of other bytes", 1, "does NOT hold", |scene| {
            scene.ask_witness(1);
            scene.cosigned_by = Some(1);
            scene.change = |permit| {
                let (mut permit, at) = (permit.clone(), place(&permit, "\u{2014} w.example ".as_bytes()) + 40);
                // Still base64: another signature, not another format.
                permit[at] = if permit[at] == b'A' { b'B' } else { b'A' };
                permit
            }
        }),
        ("too old by its witness", 1, "by the witnesses' cosignatures, and at most 600 s are accepted", |scene| {
            scene.ask_witness(1);
            scene.cosigned_by = Some(1);
            scene.age = 700;
        }),
        ("too old by the log", 1, "by the log's own clock, and at most 600 s are accepted", |scene| scene.age = 700),
        ("too old for the caller", 1, "and at most 30 s are accepted", |scene| {
            scene.age = 60;
            scene.flags.extend(["--max-age".into(), "30s".into()]);
        }),
        ("from the future by its witness", 1, "which is in the future", |scene| {
            scene.ask_witness(1);
            scene.cosigned_by = Some(1);
            scene.age = -3_600;
        }),
        ("from the future by the log", 1, "which is in the future", |scene| scene.age = -3_600),
        ("after the window", 1, "start is allowed only from", |scene| {
            scene.age = 60;
            scene.window = 40;
        }),
        ("not started", 1, "the item is cleared, and nothing may be executed", |scene| scene.until = Until::Cleared),
        ("failed", 1, "the item is failed, and nothing may be executed", |scene| scene.until = Until::Failed),
        ("succeeded", 1, "the item is succeeded, and nothing may be executed", |scene| scene.until = Until::Succeeded),
        ("held", 1, "the item was held", |scene| scene.until = Until::Held),
        ("another item's permit", 1, "run what was approved", |scene| {
            let mut other = Scene::new();
            other.operation = json!({"argv": ["/bin/true", "x"]});
            scene.permit = Some(other.permit());
        }),
    ]);
}

#[test]
fn a_gate_that_is_set_up_wrongly_runs_nothing() {
    all_refused(&[
        ("a policy that others can write", 2, "others can write to it", |scene| {
            scene.write("policy", scene.policy.as_bytes());
            fs::set_permissions(scene.path("policy"), fs::Permissions::from_mode(0o666)).unwrap();
        }),
        ("a policy that is a pipe", 2, "is not a regular file", |scene| make_pipe(scene, "policy")),
        ("a policy without a quorum", 2, "no quorum line", |scene| {
            scene.policy = scene.policy.replace("quorum none\n", "");
        }),
        ("a policy without a log", 2, "no log line", |scene| scene.policy = "quorum none\n".into()),
        ("a policy that asks for a witness it does not have", 2, "line 2: no witness or group", |scene| {
            scene.policy = scene.policy.replace("none", "w");
        }),
        ("a permit that is a pipe", 2, "is not a regular file", |scene| make_pipe(scene, "permit")),
        ("a permit that is a directory", 2, "is not a regular file", |scene| {
            fs::create_dir(scene.path("permit")).unwrap();
        }),
        ("a permit of a terabyte", 1, "is larger than 64 MiB", |scene| {
            fs::File::create(scene.path("permit")).unwrap().set_len(1 << 40).unwrap();
        }),
        ("no directory for what is spent", 2, "does not exist; create it", |scene| {
            scene.flags.extend(["--spent".into(), scene.text("nowhere")]);
        }),
        ("a file in its place", 2, "is not a directory", |scene| {
            scene.flags.extend(["--spent".into(), scene.text("tool")]);
        }),
        ("a symbolic link in its place", 2, "symbolic link", |scene| {
            symlink(scene.path("spent"), scene.path("link")).unwrap();
            scene.flags.extend(["--spent".into(), scene.text("link")]);
        }),
        ("a symbolic link on the way to it", 2, "symbolic link", |scene| {
            fs::create_dir(scene.path("spent/inner")).unwrap();
            symlink(scene.path("spent"), scene.path("link")).unwrap();
            scene.flags.extend(["--spent".into(), scene.text("link/inner")]);
        }),
        ("a directory that others can write", 2, "others can write to it", |scene| {
            scene.spent();
            fs::set_permissions(scene.path("spent"), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a directory where nothing can be written", 3, "cannot be recorded, so nothing is run", |scene| {
            scene.flags.extend(["--spent".into(), "/sys/kernel".into()]);
        }),
        ("a variable for the loader", 2, "never passed on", |scene| {
            scene.flags.extend(["--env-allow".into(), "LD_PRELOAD".into()]);
        }),
        ("the token", 2, "never passed on", |scene| scene.flags.extend(["--env-allow".into(), "PILOT_TOKEN".into()])),
        ("a service that cannot be reached", 3, "the service cannot be reached", |scene| {
            scene.flags.extend(["--fresh".into(), "http://127.0.0.1:1".into()]);
            scene.environment.push(("PILOT_TOKEN", "0123456789abcdef0123456789abcdef".into()));
        }),
        ("an age that is not one", 2, "a duration is written as", |scene| {
            scene.flags.extend(["--max-age".into(), "soon".into()]);
        }),
    ]);
}

#[test]
fn an_attempt_that_was_used_is_refused_and_so_is_an_earlier_one() {
    let mut scene = Scene::new();
    scene.spent();
    scene.run().expect(0);
    assert!(scene.has_run());
    fs::remove_file(scene.path("ran")).unwrap();
    scene.run().expect(1).says(&["was already used here", "retry the item"]);
    assert!(!scene.has_run());

    let mut scene = Scene::new();
    scene.spent();
    let earlier = scene.permit();
    scene.until = Until::Retried;
    scene.run().expect(0);
    fs::remove_file(scene.path("ran")).unwrap();
    scene.write("permit", &earlier);
    scene.run().expect(1).says(&["is older than another attempt that was already used here"]);
    assert!(!scene.has_run());
}

#[test]
fn a_witness_that_cosigned_is_enough_and_its_absence_is_named() {
    let mut scene = Scene::new();
    scene.ask_witness(1);
    scene.cosigned_by = Some(1);
    scene.run().expect(0);
    assert!(scene.has_run());
    assert_eq!(witness(1).verifier().name, "w.example");
}
