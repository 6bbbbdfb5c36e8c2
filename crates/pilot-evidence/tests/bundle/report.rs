//! The page for people.

use pilot_evidence::bundle::redact::{Redaction, redact};
use pilot_evidence::bundle::zip::read;
use pilot_evidence::report::{assemble_with_report, report};
use pilot_evidence::sample::{Ledger, actor, key, payload, small_ledger};
use pilot_evidence::verify::verify;
use serde_json::{Value, json};

use crate::verdicts::{faults, trust};

#[test]
fn a_bundle_with_its_report_holds_and_the_report_tells_what_is_in_it() {
    let ledger = small_ledger();
    let bundle = assemble_with_report(&ledger.period_parts(0, ledger.size()), &key(), &trust()).unwrap();
    assert_eq!(faults(&verify(&bundle, &trust())), "");
    let files = read(&bundle).unwrap();
    let page = files.iter().find(|file| file.path == "report.html").unwrap();
    let page = std::str::from_utf8(page.bytes).unwrap();
    for told in [
        "✓ The evidence holds. Not checked: witnesses.",
        "Rotate the signing key",
        "approve 2 of 2 (ben, bea)",
        "read twice",
        "Open port 8443 on two hosts",
        "controlled-operation v1",
        "chief, second chief",
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
