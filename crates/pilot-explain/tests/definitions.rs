//! Definitions as files: the built-ins are proved and explained, the flawed examples are refused with a reason.
//! `UPDATE_EXPECT=1 cargo test -p pilot-explain` rewrites the generated files.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::{expect, expect_file};
use pilot_core::role_map::RoleMap;
use pilot_core::workflow::Definition;
use pilot_core::workflow::builtin::{CONTROLLED_OPERATION, builtin};
use pilot_core::workflow::report::report;
use pilot_explain::graph;
use pilot_explain::report::to_text;
use pilot_explain::words::explain;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn flawed() -> Vec<PathBuf> {
    let files = fs::read_dir(root().join("workflows/flawed")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "toml")).collect();
    files.sort();
    files
}

#[test]
fn each_flawed_example_is_refused_for_its_flaw_with_the_explanation_beside_it() {
    let files = flawed();
    assert!(files.len() >= 10, "{} examples", files.len());
    let mut surprises = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let announced = text.lines().find_map(|line| line.strip_prefix("# flaw: ")).unwrap();
        let flaws = Definition::parse(&text).unwrap_err();
        let found: BTreeSet<_> = flaws.findings().iter().map(|finding| finding.code).collect();
        expect_file![file.with_extension("txt")].assert_eq(&to_text(&report(&text, None), name, false));
        if found != announced.split(' ').collect() {
            surprises.push(format!("{name} was refused for {found:?}"));
        }
    }
    assert_eq!(surprises, Vec::<String>::new());
}

#[test]
fn the_built_in_definitions_are_proved() {
    expect![[r#"
        controlled-operation.toml: proved
          controlled-operation version 2, sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7
          16 states, 22 transitions, 38 situations searched
          executing, rolling_back: never without initiator, approver, security_admin, executor, 4 different people
          timers only take rights away; every state can be reached and every item can end
    "#]]
    .assert_eq(&to_text(&report(CONTROLLED_OPERATION, None), "controlled-operation.toml", false));
    assert_eq!(
        builtin().map(|definition| definition.name().to_string()),
        ["controlled-operation", "emergency-operation"]
    );
}

#[test]
fn what_lies_beside_each_built_in_definition_is_what_it_says_today() {
    for definition in builtin() {
        let beside = |folder: &str, end: &str| root().join(folder).join(format!("{}.{end}", definition.name()));
        expect_file![beside("workflows", "txt")].assert_eq(&explain(&definition));
        expect_file![beside("docs/guide/img", "svg")].assert_eq(&graph::svg(&definition, None));
    }
}

fn people(actors: &[(&str, &str)]) -> String {
    let entries: Vec<_> =
        actors.iter().map(|(name, role)| format!(r#"{{"actor_id":"{name}","role":"{role}"}}"#)).collect();
    let map = format!(r#"{{"schema_version":1,"approved_by":["x","y"],"actors":[{}]}}"#, entries.join(","));
    let map = RoleMap::parse(map.as_bytes()).unwrap();
    let report = to_text(&report(CONTROLLED_OPERATION, Some(&map)), "c.toml", false);
    report.split_once("\npeople\n").unwrap().1.lines().map(|line| format!("{}\n", line.trim_start())).collect()
}

#[test]
fn a_role_map_shows_who_is_missing_who_could_conspire_and_who_must_not_fall_ill() {
    let five = [
        ("ana", "initiator"),
        ("ben", "approver"),
        ("bea", "approver"),
        ("sam", "security_admin"),
        ("eve", "executor"),
        ("eli", "executor"),
    ];
    expect![[r#"
          initiator       1 of 1 needed
          approver        2 of 2 needed
          security_admin  1 of 1 needed
          executor        2 of 1 needed
          these people can carry an item through an effect to a terminal state
          smallest group that could reach an effect: 4 people, for example ana (initiator), ben (approver), sam (security_admin), eve (executor)
          people without whom items cannot be finished: ana (initiator), ben (approver), bea (approver), sam (security_admin)
    "#]].assert_eq(&people(&five));
    expect![[r#"
          initiator       1 of 1 needed
          approver        1 of 2 needed  too few
          security_admin  1 of 1 needed
          executor        1 of 1 needed
          these people CANNOT carry an item through an effect to a terminal state
          smallest group that could reach an effect: 4 people, for example ana (initiator), ben (approver), sam (security_admin), eve (executor)
    "#]].assert_eq(&people(&[
        ("ana", "initiator"),
        ("ben", "approver"),
        ("sam", "security_admin"),
        ("eve", "executor"),
    ]));
    expect![[r#"
          initiator       1 of 1 needed
          approver        1 of 2 needed  too few
          security_admin  0 of 1 needed  too few
          executor        1 of 1 needed
          these people CANNOT carry an item through an effect to a terminal state
          no group of these people can reach an effect
    "#]]
    .assert_eq(&people(&[("ana", "initiator"), ("ben", "approver"), ("eve", "executor")]));
}

#[test]
fn comments_and_layout_do_not_change_a_digest_and_a_rule_does() {
    let digest = |text: &str| Definition::parse(text).unwrap().digest().to_string();
    let original = digest(CONTROLLED_OPERATION);
    assert!(original.starts_with("sha256:") && original.len() == 71, "{original}");
    assert_eq!(digest(&format!("# another comment\n{CONTROLLED_OPERATION}\n\n")), original);
    assert_ne!(digest(&CONTROLLED_OPERATION.replace("\"72h\"", "\"73h\"")), original);
    // A changed digest is a changed definition: give it a new version.
    expect!["sha256:83435355fec8619aeca46414354f2f4296d3b7c276625092787916dcb7c8efd7"].assert_eq(&original);
}

#[test]
fn a_definition_too_large_or_not_toml_is_refused_with_its_place() {
    let large = format!("#{}", "x".repeat(256 * 1024));
    expect![[r#"
        error[format]: a definition may have at most 262144 bytes
         --> large.toml:1:1
          |
        1 |
          | ^
          |
          = help: shorten it

        large.toml: refused, 1 flaw
    "#]]
    .assert_eq(&to_text(&report(&large, None), "large.toml", false));
    expect![[r#"
        error[format]: `schema_version` is missing
         --> broken.toml:1:1
          |
        1 | name = "x
          | ^^^^^^^^^
          |
          = help: write schema_version = 1

        error[format]: `version` must be an integer from 1 to 1000000
         --> broken.toml:1:1
          |
        1 | name = "x
          | ^
          |
          = help: write version = 1

        error[format]: `initial` is missing
         --> broken.toml:1:1
          |
        1 | name = "x
          | ^^^^^^^^^
          |
          = help: add initial = "…"

        error[format]: `required_roles` is missing
         --> broken.toml:1:1
          |
        1 | name = "x
          | ^^^^^^^^^
          |
          = help: add required_roles = ["…"]

        error[syntax]: this is not valid TOML: invalid basic string, expected `"`
         --> broken.toml:1:10
          |
        1 | name = "x
          |          ^
          |
          = help: see https://toml.io for how values are written

        error[syntax]: this is not valid TOML: extra `=`, expected nothing
         --> broken.toml:3:11
          |
        3 | version = = 1
          |           ^
          |
          = help: see https://toml.io for how values are written

        error[syntax]: this is not valid TOML: unexpected key or value, expected newline, `#`
         --> broken.toml:3:13
          |
        3 | version = = 1
          |             ^
          |
          = help: see https://toml.io for how values are written

        broken.toml: refused, 7 flaws
    "#]]
    .assert_eq(&to_text(&report("name = \"x\ntitle = 'y'\nversion = = 1\n", None), "broken.toml", false));
}

#[test]
fn a_trail_stands_out_and_the_rest_steps_aside() {
    let [controlled, _] = builtin();
    let trail: graph::Trail =
        [("draft".into(), "submitted".into()), ("submitted".into(), "rejected".into())].into_iter().collect();
    let svg = graph::svg(&controlled, Some(&trail));
    assert_eq!(svg.matches("<g class=\"state end visited current\">").count(), 1);
    assert_eq!(svg.matches(" taken\">").count(), 2);
    assert_eq!(svg.matches(" visited").count(), 3);
}

#[test]
fn a_quorum_shared_by_roles_counts_heads_across_them() {
    let several = CONTROLLED_OPERATION
        .replace("roles = [\"approver\"]\nquorum = 1", "roles = [\"approver\", \"security_admin\"]\nquorum = 9")
        .replace("quorum = 2 }", "quorum = 9 }");
    let actors = (0..9).flat_map(|n| ["initiator", "approver", "security_admin", "executor"].map(|role| (n, role)));
    let actors: Vec<_> = actors.map(|(n, role)| format!(r#"{{"actor_id":"{role}{n}","role":"{role}"}}"#)).collect();
    let map = format!(r#"{{"schema_version":1,"approved_by":["x","y"],"actors":[{}]}}"#, actors.join(","));
    let people = report(&several, Some(&RoleMap::parse(map.as_bytes()).unwrap())).people.unwrap();
    assert_eq!(people.smallest_group.unwrap().len(), 1 + 9 + 1);
    assert!(people.finishable && people.indispensable.is_empty());
}

#[test]
fn every_text_in_a_picture_is_escaped() {
    let text = CONTROLLED_OPERATION.replace("title = \"Controlled operation\"", "title = \"<script>&\"");
    let svg = graph::svg(&Definition::parse(&text).unwrap(), None);
    assert!(svg.contains("&lt;script&gt;&amp;") && !svg.contains("<script"));
}

#[test]
fn a_picture_holds_one_style_sheet_and_nothing_else_a_policy_must_allow() {
    let [controlled, _] = builtin();
    let svg = graph::svg(&controlled, None);
    assert_eq!(svg.matches("<style>").count(), 1);
    for foreign in [" style=", "<script", "href", "url(", "@import", "onload"] {
        assert!(!svg.contains(foreign), "{foreign}");
    }
    assert!(graph::style_source().starts_with("'sha256-") && graph::style_source().len() == 53);
}

#[test]
fn mermaid_and_dot_say_the_same_as_the_picture() {
    let [controlled, _] = builtin();
    let mermaid = graph::mermaid(&controlled);
    assert!(mermaid.contains("submitted --> approved: approve (1–2) (approver)\n"), "{mermaid}");
    let dot = graph::dot(&controlled);
    assert!(dot.contains("\"cleared\" -> \"expired\" [label=\"window over (timer)\", style=dashed];"), "{dot}");
}

/// As many states, transitions and situations as the limits allow: everyone may do everything everywhere.
fn worst_case() -> String {
    let mut text = String::from(
        "schema_version = 1\nname = \"worst\"\nversion = 1\ntitle = \"t\"\ninitial = \"s0\"\nrequired_roles = [\"initiator\", \"approver\"]\n",
    );
    for state in 0..50 {
        let kind = if state >= 45 { "effect" } else { "open" };
        let editable = if state % 3 == 0 && state < 45 { "editable = true\n" } else { "" };
        let _ =
            write!(text, "[[state]]\nname = \"s{state}\"\nkind = \"{kind}\"\n{editable}waits_for = [\"initiator\"]\n");
    }
    let all: Vec<String> = (0..50).map(|state| format!("\"s{state}\"")).collect();
    for rule in 0..200 {
        let flags =
            ["quorum = 9", "takes_lease = \"1m\"", "sets_window = { max = \"1d\" }", "voids = [\"votes\"]"][rule % 4];
        let _ = write!(
            text,
            "[[transition]]\naction = \"a{rule}\"\nfrom = [{}]\nto = \"s{}\"\nroles = [\"initiator\", \"approver\", \"security_admin\", \"executor\"]\n{flags}\n",
            all.join(", "),
            rule % 50
        );
    }
    text
}

#[test]
fn the_largest_definition_is_decided_within_the_situations_there_are() {
    let roles = ["initiator", "approver", "security_admin", "executor"];
    let actors: Vec<_> = (0..40).map(|n| format!(r#"{{"actor_id":"p{n}","role":"{}"}}"#, roles[n % 4])).collect();
    let map = format!(r#"{{"schema_version":1,"approved_by":["x","y"],"actors":[{}]}}"#, actors.join(","));
    let map = RoleMap::parse(map.as_bytes()).unwrap();
    let report = report(&worst_case(), Some(&map));
    assert!(report.findings.iter().any(|placed| placed.finding.code == "effect_without_role"));
    assert!(report.findings.iter().any(|placed| placed.finding.code == "dead_end"));
    assert!(report.situations > 1_000 && report.situations <= 50 * 32 * 8, "{} situations", report.situations);
    assert_eq!(report.people.unwrap().smallest_group.unwrap().len(), 1);
}

#[test]
fn a_payload_schema_that_is_none_or_reaches_outside_is_refused() {
    let flaw = |from: &str, to: &str| {
        let text = CONTROLLED_OPERATION.replace(from, to);
        let flaws = Definition::parse(&text).unwrap_err();
        let lines =
            flaws.findings().iter().map(|finding| format!("line {}: {}", flaws.place(finding).0, finding.message));
        lines.collect::<Vec<_>>().join("\n")
    };
    expect!["line 366: `type` must be the name of a type, or a list of them"]
        .assert_eq(&flaw("type = \"string\"\nenum", "type = \"word\"\nenum"));
    expect!["line 366: `$ref` must point inside this schema"]
        .assert_eq(&flaw("type = \"string\"\nenum", "\"$ref\" = \"https://example.org/risk.json\"\nenum"));
    expect!["line 353: this pattern cannot be used: unclosed group"]
        .assert_eq(&flaw("pattern = '\\S'\ndescription = \"why", "pattern = '(a'\ndescription = \"why"));
}

#[test]
fn the_api_shows_a_definition_with_its_digest_and_rules() {
    let [controlled, _] = builtin();
    let view = serde_json::to_value(&*controlled).unwrap();
    let members: Vec<_> = view.as_object().unwrap().keys().map(String::as_str).collect();
    expect!["description digest hold initial name payload_schema required_roles schema_version states timers title transitions version"].assert_eq(&members.join(" "));
    expect![[r#"{"action":"approve","content_digest_required":true,"from":["submitted"],"quorum":1,"quorum_if":{"equals":"high","pointer":"/risk","quorum":2},"roles":["approver"],"to":"approved"}"#]].assert_eq(&view["transitions"][1].to_string());
    expect![[r#"{"at":"window_end","from":["cleared"],"to":"expired"}"#]].assert_eq(&view["timers"][4].to_string());
}
