//! The page for people.

use pilot_core::visible::is_hidden;
use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::bundle::zip::read;
use pilot_evidence::report::{assemble_with_report, report};
use pilot_evidence::sample::{Ledger, actor, key, payload, small_ledger};
use pilot_evidence::verify::verify;
use serde_json::{Value, json};

use crate::bundle::verdicts::{faults, trust};

#[test]
fn a_bundle_with_its_report_holds_and_the_report_tells_what_is_in_it() {
    let ledger = small_ledger();
    let bundle = assemble_with_report(&ledger.period_parts(0, ledger.size()), &key(), &trust()).unwrap();
    assert_eq!(faults(&verify(&bundle, &trust())), "");
    let files = read(&bundle).unwrap();
    let page = files.iter().find(|file| file.path == "report.html").unwrap();
    let page = std::str::from_utf8(page.bytes).unwrap();
    for told in [
        "✓ The evidence holds. Not checked: witnesses, complete, times, as pinned.",
        "Rotate the signing key",
        "approve 2 of 2 (ben, bea)",
        "read twice",
        "Open port 8443 on two hosts",
        "controlled-operation v2",
        "chief; second chief",
        "service.started",
        &key().verifier().to_string(),
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert!(report(&bundle, &trust()).unwrap() == page, "made again from the bundle, it is the same");
}

#[test]
fn whatever_people_wrote_is_text_on_the_page_and_nothing_comes_from_outside() {
    let mut ledger = Ledger::default();
    let hostile = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"' &lt;";
    let mut content = payload("low");
    content["purpose"] = json!(hostile);
    let id = ledger.create("controlled-operation", &actor("ana"), hostile, content).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.act(&id, &actor("ben"), "reject", hostile, Value::Null).unwrap();
    let page = report(&ledger.item_bundle(&id), &trust()).unwrap();
    for tag in ["<script", "<img", "onerror=alert(1)>", "http-equiv=\"refresh\"", "src=", "@import", "url("] {
        let found = page.matches(tag).count();
        assert_eq!(found, usize::from(tag == "src=") * page.matches("&#60;img src=x").count(), "{tag}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn a_report_of_what_does_not_hold_says_so_and_left_out_content_is_named_as_such() {
    let mut ledger = Ledger::default();
    let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("high")).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.force(&id, Some(&actor("ben")), |entry| {
        entry.action = Some("approve".into());
        entry.to = Some("approved".into());
    });
    let page = report(&ledger.item_bundle(&id), &trust()).unwrap();
    assert!(page.contains("✗ The evidence does NOT hold") && page.contains("before the quorum is reached"));
    let whole = small_ledger();
    let (smaller, _) = redact(&whole.period_bundle(0, whole.size()), &Redaction::All).unwrap();
    let page = report(&smaller, &trust()).unwrap();
    assert!(page.contains("its title (left out)") && !page.contains("read twice"));
    let damaged = &smaller[1..];
    assert!(!report(damaged, &trust()).unwrap_err().holds);
}

#[test]
fn hidden_characters_are_marks_on_the_page_and_the_item_warns_of_them() {
    let mut ledger = Ledger::default();
    let mut content = payload("low");
    content["operation"] = json!("rm -rf /srv/data/\u{202e}pmt/ylno\u{202c}  # safe");
    content["operation\u{200b}"] = json!(["שלום", "a\u{a0}b", "quoted \" \\"]);
    let id = ledger.create("controlled-operation", &actor("ana"), "user \u{202e}gnp.exe", content).unwrap();
    ledger.act(&id, &actor("ana"), "submit", "", Value::Null).unwrap();
    ledger.act(&id, &actor("ben"), "reject", "looks\u{2066} fine\u{1b}[2J", Value::Null).unwrap();
    let page = report(&ledger.item_bundle(&id), &trust()).unwrap();
    for shown in [
        "<title>Evidence: user ⟨U+202E⟩gnp.exe</title>",
        "<h2><bdi>user ⟨U+202E⟩gnp.exe</bdi></h2>",
        "\"<bdi>rm -rf /srv/data/⟨U+202E⟩pmt/ylno⟨U+202C⟩  # safe</bdi>\"",
        "\"<bdi>operation⟨U+200B⟩</bdi>\": [\n    \"<bdi>שלום</bdi>\",\n    \"<bdi>a⟨U+00A0⟩b</bdi>\",\n    \"<bdi>quoted \\&#34; \\\\</bdi>\"\n",
        "<blockquote dir=\"auto\">looks⟨U+2066⟩ fine⟨U+001B⟩[2J</blockquote>",
        "contains 7 hidden characters. They are shown as their code points.",
    ] {
        assert!(page.contains(shown), "{shown}\n{page}");
    }
    assert_eq!(page.chars().find(|character| is_hidden(*character)), None);
}

#[test]
fn a_page_without_hidden_characters_does_not_warn() {
    let ledger = small_ledger();
    let page = report(&ledger.period_bundle(0, ledger.size()), &trust()).unwrap();
    assert!(page.starts_with("<!doctype html>") && !page.contains("hidden character"), "{page}");
}
