//! `pilot workflow`: proofs, pictures and explanations from the command line.

use std::path::Path;

use crate::support::harness::{Finished, Installation, role_map};

/// A definition of the repository, as a path that works from anywhere.
fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workflows").join(name).display().to_string()
}

fn prints(finished: &Finished, words: &[&str]) {
    for word in words {
        assert!(finished.stdout.contains(word), "{word:?} is missing in {finished:?}");
    }
}

#[test]
fn a_sound_definition_is_proved_with_exit_0_and_named_by_file_or_by_name() {
    let installation = Installation::bare();
    for which in ["controlled-operation", "emergency-operation", &example("controlled-operation.toml")] {
        prints(&installation.pilot(&["workflow", "check", which]).expect(0), &["proved", "different people"]);
    }
    let report =
        installation.pilot(&["workflow", "check", "controlled-operation", "--output", "json"]).expect(0).json();
    assert!(report.is_object(), "{report}");
}

#[test]
fn a_flawed_definition_exits_1_with_the_shortest_path_that_breaks_it() {
    let installation = Installation::bare();
    let checked = installation.pilot(&["workflow", "check", &example("flawed/self-approval.toml")]).expect(1);
    let path = ["executing can be reached without approver", "1. initiator creates", "4. executor starts"];
    prints(&checked, &path);
    installation.pilot(&["workflow", "explain", &example("flawed/self-approval.toml")]).expect(1);
    installation.pilot(&["workflow", "graph", &example("flawed/self-approval.toml")]).expect(1);
}

#[test]
fn with_a_role_map_the_people_are_counted_too() {
    let installation = Installation::bare();
    let few = role_map(&[("ana", "initiator"), ("ben", "approver"), ("sol", "security_admin"), ("eli", "executor")]);
    installation.write("few.json", &few);
    let arguments = ["workflow", "check", "controlled-operation", "--role-map", "few.json"];
    let checked = installation.pilot(&arguments).expect(1);
    prints(&checked, &["approver        1 of 2 needed", "smallest group that could reach an effect: 4 people"]);
    checked.says(&["the role map has too few people"]);
}

#[test]
fn a_definition_is_drawn_and_explained() {
    let installation = Installation::bare();
    for (format, begins) in [("svg", "<svg "), ("mermaid", "stateDiagram-v2"), ("dot", "digraph")] {
        let drawn = installation.pilot(&["workflow", "graph", "emergency-operation", "--format", format]).expect(0);
        assert!(drawn.stdout.starts_with(begins), "{format}");
    }
    let drawn = ["workflow", "graph", "emergency-operation", "--format", "dot", "--output", "json"];
    let drawn = installation.pilot(&drawn).expect(0).json();
    assert_eq!((&drawn["workflow"]["name"], &drawn["format"]), (&"emergency-operation".into(), &"dot".into()));
    assert!(drawn["graph"].as_str().unwrap().starts_with("digraph"), "{drawn}");
    let explained = installation.pilot(&["workflow", "explain", "controlled-operation", "--output", "json"]).expect(0);
    let text = std::fs::read_to_string(example("controlled-operation.txt")).unwrap();
    assert_eq!(explained.json()["explanation"], text);
    let explained = installation.pilot(&["workflow", "explain", "controlled-operation"]).expect(0);
    assert_eq!(explained.stdout, std::fs::read_to_string(example("controlled-operation.txt")).unwrap());
}

#[test]
fn what_is_no_definition_is_a_clear_error() {
    let installation = Installation::bare();
    installation.pilot(&["workflow", "check", "nowhere.toml"]).expect(3).says(&["nowhere.toml"]);
    installation.write("bad.toml", "name = 7\n[[state]\n");
    installation.pilot(&["workflow", "check", "bad.toml"]).expect(1).says(&["bad.toml"]);
    installation.pilot(&["workflow", "check"]).expect(2);
}

#[test]
fn a_service_refuses_to_start_with_a_flawed_definition_and_serves_a_sound_one() {
    let installation = Installation::with_ana();
    std::fs::create_dir(installation.path("workflows")).unwrap();
    let config = installation.read("pilot.toml");
    installation.write("pilot.toml", &format!("{config}\n[workflows]\ndir = \"workflows\"\n"));
    let flawed = std::fs::read_to_string(example("flawed/self-approval.toml")).unwrap();
    installation.write("workflows/own.toml", &flawed);
    installation.serve_in_vain().expect(2).says(&["own.toml", "executing can be reached without approver"]);
    let sound = std::fs::read_to_string(example("controlled-operation.toml")).unwrap();
    installation.write("workflows/own.toml", &sound.replace("\"controlled-operation\"", "\"own-operation\""));
    let server = installation.serve();
    let listed = server.get("/v1/workflows", &[&crate::support::harness::bearer(crate::support::harness::TOKEN)]);
    assert!(listed.text().contains("own-operation"), "{}", listed.text());
}
