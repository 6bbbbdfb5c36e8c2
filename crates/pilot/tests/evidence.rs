//! `pilot evidence`, as an auditor runs it: no service, no configuration, no network.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use expect_test::expect;
use pilot_core::visible::is_hidden;
use pilot_evidence::report::assemble_with_report;
use pilot_evidence::sample::{Ledger, actor, key, payload, small_ledger};
use pilot_evidence::verify::Trust;
use tempfile::TempDir;

struct Scratch(TempDir);

impl Scratch {
    /// A directory with a bundle, the log's key, and the bundle with one byte changed.
    fn new() -> Scratch {
        let ledger = small_ledger();
        let parts = ledger.period_parts(0, ledger.size());
        let mut bundle = assemble_with_report(&parts, &key(), &Trust::log(key().verifier())).unwrap();
        let scratch = Scratch(tempfile::tempdir().unwrap());
        fs::write(scratch.path("whole.zip"), &bundle).unwrap();
        bundle.swap(200, 201);
        fs::write(scratch.path("changed.zip"), &bundle).unwrap();
        fs::write(scratch.path("log.pub"), key().verifier().to_string() + "\n").unwrap();
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Exit code, standard output and standard error.
    fn run(&self, line: &str) -> (i32, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pilot"));
        let done =
            command.arg("evidence").args(line.split(' ')).current_dir(self.0.path()).env_clear().output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
    }
}

#[test]
fn a_whole_bundle_ends_with_0_and_a_changed_one_with_1() {
    let scratch = Scratch::new();
    let (code, out, err) = scratch.run("verify whole.zip --key log.pub");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("The evidence holds. Not checked: witnesses, complete, times, as pinned.\n"), "{out}");
    let (code, out, err) = scratch.run("verify changed.zip --key log.pub");
    assert_eq!((code, err.as_str()), (1, "pilot: the evidence does not hold\n"));
    assert!(out.contains("The evidence does NOT hold"), "{out}");
    let (code, out, _) = scratch.run("verify whole.zip --key log.pub --output json");
    let verdict: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, verdict.pointer("/holds")), (0, Some(&true.into())));
    assert_eq!(verdict.pointer("/about/size"), Some(&21.into()));
}

#[test]
fn usage_and_missing_files_have_their_own_exit_codes() {
    let scratch = Scratch::new();
    for (code, line, said) in [
        (2, "verify whole.zip", "--key"),
        (2, "verify whole.zip --key a+b+c", "--key: "),
        (2, "verify whole.zip --key log.pub --witnesses 2", "2 are required, but 0 keys are given"),
        (2, "verify whole.zip --policy nowhere.txt", "--policy: neither a policy nor a readable file"),
        (2, "verify whole.zip --policy log.pub", "--policy: log.pub: line 1"),
        (2, "verify whole.zip --key log.pub --definition log.pub", "--definition: log.pub is not a definition"),
        (2, "verify whole.zip --key log.pub --role-map nowhere", "--role-map: neither a digest"),
        (2, "verify whole.zip --key log.pub --checkpoint log.pub", "is not a checkpoint of this log"),
        (3, "verify whole.zip --key log.pub --after nowhere.zip", "nowhere.zip"),
        (1, "verify whole.zip --key log.pub --after changed.zip", "changed.zip: The evidence does NOT hold"),
        (2, "redact whole.zip --out x.zip", "--document"),
        (2, "redact whole.zip --out x.zip --document sha256:1", "sha256"),
        (3, "verify nowhere.zip --key log.pub", "nowhere.zip"),
        (2, "verify whole.zip --key xx", "--key: neither a key"),
        (2, "verify whole.zip --key nowhere.pub", "nowhere.pub"),
        (3, "verify whole.zip --key /", "--key: "),
        (3, "report whole.zip --key log.pub --out no/where.html", "no/where.html"),
        (1, "redact changed.zip --out x.zip --all-documents", "pilot: "),
        (1, "report changed.zip --key log.pub", "The evidence does NOT hold"),
    ] {
        let (ended, _, err) = scratch.run(line);
        assert_eq!(ended, code, "{line}: {err}");
        assert!(err.contains(said), "{line}: {err}");
    }
    assert!(!scratch.path("x.zip").exists());
}

#[test]
fn what_is_given_to_compare_with_is_compared_and_strict_asks_for_all_of_it() {
    let scratch = Scratch::new();
    let (_, out, _) = scratch.run("verify whole.zip --key log.pub --output json");
    let about = serde_json::from_str::<serde_json::Value>(&out).unwrap()["about"].clone();
    let definition = about["definitions"][0]["digest"].as_str().unwrap().to_owned();
    let role_map = about["role_maps"][0].as_str().unwrap().to_owned();
    let given = format!("verify whole.zip --key log.pub --definition {definition} --role-map {role_map}");
    let (code, out, _) = scratch.run(&given);
    assert_eq!(code, 0);
    assert!(out.contains("definitions, role maps as given") && out.contains(&definition), "{out}");
    let (code, _, err) = scratch.run(&format!("{given} --strict"));
    assert_eq!(code, 4, "{err}");
    assert!(err.contains("not everything was checked, and --strict requires it"), "{err}");
    let other = format!("sha256:{}", "0".repeat(64));
    for (option, rule) in [("--definition", "[pinned_definition]"), ("--role-map", "[pinned_role_map]")] {
        let (code, out, _) = scratch.run(&format!("verify whole.zip --key log.pub {option} {other}"));
        assert_eq!(code, 1);
        assert!(out.contains(rule), "{out}");
    }
    let key = fs::read_to_string(scratch.path("log.pub")).unwrap();
    fs::write(scratch.path("policy.txt"), format!("log {}\nquorum none\n", key.trim())).unwrap();
    assert_eq!(scratch.run("verify whole.zip --policy policy.txt").0, 0);
}

#[test]
fn a_redacted_bundle_still_holds_and_nothing_is_written_over() {
    let scratch = Scratch::new();
    let (code, out, err) = scratch.run("redact whole.zip --out public.zip --all-documents");
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("report.html left out\n") && out.ends_with("the log's signature stays valid\n"), "{out}");
    let (code, out, err) = scratch.run("verify public.zip --key log.pub");
    assert_eq!(code, 4);
    assert!(err.contains("not everything could be checked: documents were erased or left out (--allow-left-out accepts missing documents)"), "{err}");
    assert!(out.contains("content left out") && out.contains("AS FAR AS IT COULD BE CHECKED"), "{out}");
    let (code, out, _) = scratch.run("verify public.zip --key log.pub --output json");
    let verdict: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, verdict.pointer("/verdict")), (4, Some(&"holds_as_far_as_checked".into())));
    assert_eq!(verdict.pointer("/unasked/0/question"), Some(&"content".into()));
    assert_eq!(scratch.run("verify public.zip --key log.pub --allow-left-out").0, 0);
    assert_eq!(scratch.run("verify changed.zip --key log.pub --allow-left-out").0, 1);
    let (code, page, _) = scratch.run("report public.zip --key log.pub");
    assert_eq!(code, 4);
    assert!(
        page.contains("What was not checked") && page.contains("open question") && page.contains("verdict not_checked"),
        "{page}"
    );
    let mode = fs::metadata(scratch.path("public.zip")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(scratch.run("redact whole.zip --out public.zip --all-documents").0, 3);
    assert_eq!(scratch.run("redact whole.zip --out whole.zip --all-documents").0, 3);
}

#[test]
fn a_report_is_a_page_of_its_own() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("report whole.zip --key log.pub --out page.html").0, 0);
    let page = fs::read_to_string(scratch.path("page.html")).unwrap();
    assert!(page.contains("Rotate the signing key") && !page.contains("<script"));
    let (code, out, _) = scratch.run("report whole.zip --key log.pub");
    assert_eq!((code, out == page), (0, true));
}

#[test]
fn tables_go_into_a_new_directory_that_nobody_else_can_read() {
    let scratch = Scratch::new();
    let (code, out, err) = scratch.run("report whole.zip --key log.pub --csv tables --sample 2 --seed dice-426");
    assert_eq!((code, err.as_str()), (0, ""));
    expect![[r#"
        FILE                   ROWS
        tables/checks.csv      19
        tables/exceptions.csv  1
        tables/items.csv       3
        tables/moves.csv       19
        tables/access.csv      14
        tables/samples.csv     2
        seed dice-426
        The evidence holds. Not checked: witnesses, complete, times, as pinned.
    "#]]
    .assert_eq(&out);
    let mode = |name: &str| fs::metadata(scratch.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("tables"), 0o700);
    for name in ["checks", "exceptions", "items", "moves", "access", "samples"] {
        let path = format!("tables/{name}.csv");
        assert_eq!(mode(&path), 0o600, "{path}");
        let text = fs::read_to_string(scratch.path(&path)).unwrap();
        assert!(text.ends_with("\r\n") && text.lines().count() > 1, "{path}: {text}");
    }
    let again = scratch.run("report whole.zip --key log.pub --out page.html --csv tables");
    assert_eq!(
        (again.0, again.2.as_str()),
        (2, "pilot: tables: already exists; choose another directory with --csv\n")
    );
    assert!(!scratch.path("page.html").exists(), "nothing is written if not everything can be");
    let (code, out, _) = scratch.run("report whole.zip --key log.pub --out page.html --csv other");
    assert_eq!(code, 0);
    assert!(!out.contains("seed") && !out.contains("<html") && !scratch.path("other/samples.csv").exists(), "{out}");
    assert!(fs::read_to_string(scratch.path("page.html")).unwrap().contains("Access review"));
    for (line, said) in [
        ("report whole.zip --key log.pub --sample 2", "--csv"),
        ("report whole.zip --key log.pub --csv x --sample 0", "--sample"),
        ("report whole.zip --key log.pub --csv x --seed y", "--sample"),
        ("report whole.zip --key log.pub --csv x --sample two", "--sample"),
    ] {
        let (code, _, err) = scratch.run(line);
        assert!(code == 2 && err.contains(said), "{line}: {code} {err}");
    }
    assert_eq!(scratch.run("report changed.zip --key log.pub --csv x").0, 1);
    assert_eq!(scratch.run("report whole.zip --key log.pub --csv no/where").0, 3);
    assert!(!scratch.path("x").exists());
}

#[test]
fn tables_of_evidence_that_could_not_be_checked_completely_are_written_and_the_exit_code_says_so() {
    let scratch = Scratch::new();
    assert_eq!(scratch.run("redact whole.zip --out public.zip --all-documents").0, 0);
    let (code, out, _) = scratch.run("report public.zip --key log.pub --csv tables");
    assert_eq!(code, 4);
    assert!(out.contains("AS FAR AS IT COULD BE CHECKED"), "{out}");
    let checks = fs::read_to_string(scratch.path("tables/checks.csv")).unwrap();
    assert!(checks.lines().nth(1).unwrap().contains(",not checked,"), "{checks}");
    assert_eq!(scratch.run("report public.zip --key log.pub --csv others --allow-left-out").0, 0);
}

#[test]
fn nothing_in_a_bundle_or_an_argument_steers_the_terminal_or_hides_on_it() {
    let scratch = Scratch::new();
    let mut ledger = Ledger::default();
    let title = "user \u{202e}gnp.exe";
    let id = ledger.create("controlled-operation", &actor("ana"), title, payload("low")).unwrap();
    ledger.remark(&id, &actor("ana"), "\u{1b}[2J\u{9b}31m\r✓ holds");
    fs::write(scratch.path("hostile.zip"), ledger.item_bundle(&id)).unwrap();
    let runs = [
        ("verify hostile.zip --key log.pub", 0, ""),
        ("verify hostile.zip --key log.pub --output json", 0, r#""title": "user \u202egnp.exe""#),
        ("report hostile.zip --key log.pub", 0, ">⟨U+001B⟩[2J⟨U+009B⟩31m⟨U+000D⟩✓ holds</blockquote>"),
        ("verify no\u{1b}[2J\u{202e}where.zip --key log.pub", 3, "pilot: no⟨U+001B⟩[2J⟨U+202E⟩where.zip: "),
        ("verify --\u{202e}x", 2, "⟨U+202E⟩x"),
    ];
    for (line, ends, shown) in runs {
        let (code, out, err) = scratch.run(line);
        assert_eq!(code, ends, "{line}: {err}");
        assert!(out.contains(shown) || err.contains(shown), "{line}: {shown}\n{out}\n{err}");
        assert_eq!((out + &err).chars().find(|character| is_hidden(*character)), None, "{line}");
    }
    let (_, out, _) = scratch.run("verify hostile.zip --key log.pub --output json");
    let verdict: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(verdict.pointer("/items/0/title"), Some(&title.into()));
}
