//! `examples/github-actions` and `examples/gitlab-ci`: the lines of their jobs, run as a runner runs them.

use std::fs;

use super::stage::{Stage, change_a_byte, repository, sha256_of};

const FILES: [(&str, &str); 2] = [("github-actions", "deploy.yml"), ("gitlab-ci", ".gitlab-ci.yml")];

/// What is indented more than the line that begins like this, up to the next line that is not.
fn below<'t>(text: &'t str, begins: &str) -> Vec<&'t str> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let mut lines = text.lines().skip_while(|line| line.trim_start() != begins);
    let first = lines.next().unwrap_or_else(|| panic!("{begins:?} is missing"));
    lines.take_while(|line| line.trim().is_empty() || depth(line) > depth(first)).collect()
}

/// The commands of a job: a text for each `run: |`, `- |` or line of a script.
fn commands(job: &[&str]) -> Vec<String> {
    let depth = |line: &str| line.len() - line.trim_start().len();
    let script: Vec<&str> = match job.iter().position(|line| line.trim() == "script:") {
        Some(at) => job[at + 1..].iter().copied().take_while(|line| depth(line) > depth(job[at])).collect(),
        None => job.to_vec(),
    };
    let is_gitlab = script.len() != job.len();
    let mut found = Vec::new();
    for (at, line) in script.iter().enumerate() {
        match line.trim() {
            "run: |" | "- |" => {
                let block: Vec<_> = script[at + 1..].iter().take_while(|next| depth(next) > depth(line)).collect();
                let margin = block.first().map_or(0, |line| depth(line));
                found.push(block.iter().map(|line| format!("{}\n", &line[margin..])).collect());
            }
            entry if is_gitlab && entry.starts_with("- ") => found.push(format!("{}\n", &entry[2..])),
            _ => {}
        }
    }
    found
}

/// A job as one shell runs it; GitHub begins a new one for each step.
fn job(stage: &Stage, file: &str, name: &str) -> String {
    let text = stage.text(file);
    assert!(text.contains("RELEASE: /srv/deploy/release.tar"), "the path that the test moves");
    let commands = commands(&below(&text, &format!("{name}:")));
    assert!(!commands.is_empty(), "{file}: {name} has no commands");
    commands.iter().map(|lines| format!("(\n{lines})\n")).collect()
}

fn stage(example: &'static str) -> Stage {
    let stage = Stage::new(example, &[]);
    stage.stand_in("sbin/deploy", "");
    fs::create_dir(stage.path("work/site")).unwrap();
    fs::write(stage.path("work/site/index.html"), "<h1>It is new</h1>\n").unwrap();
    stage
}

/// Another runner begins with nothing but the artifact.
fn next_runner(stage: &Stage) {
    let artifact = ["item", "release.tar"].map(|name| (name, fs::read(stage.path("work").join(name)).unwrap()));
    fs::remove_dir_all(stage.path("work")).unwrap();
    fs::remove_file(stage.path("srv/release.tar")).unwrap();
    fs::create_dir(stage.path("work")).unwrap();
    for (name, bytes) in artifact {
        fs::write(stage.path("work").join(name), bytes).unwrap();
    }
}

#[test]
fn the_release_that_was_approved_is_what_a_pipeline_deploys() {
    for (example, file) in FILES {
        let stage = stage(example);
        let id = stage.propose(&job(&stage, file, "propose"));
        next_runner(&stage);
        stage.run("eli", &job(&stage, file, "deploy")).expect(0);
        assert_eq!(stage.record(), format!("deploy {}\n", sha256_of(&stage.path("srv/release.tar"))), "{example}");
        stage.succeeded(&id);
        stage.has_no_token();
    }
}

#[test]
fn an_artifact_with_one_byte_changed_is_not_deployed() {
    for (example, file) in FILES {
        let stage = stage(example);
        let id = stage.propose(&job(&stage, file, "propose"));
        next_runner(&stage);
        change_a_byte(&stage.path("work/release.tar"));
        stage.run("eli", &job(&stage, file, "deploy")).expect(1);
        stage.refused(&id, &["release.tar: its bytes are not those that were approved"]);
    }
}

/// A token in a command line is seen by everyone on the machine. Each job has the token of one role, by its environment.
#[test]
fn jobs_take_their_token_from_the_environment_only() {
    for (example, file) in FILES {
        let text = repository(&format!("examples/{example}/{file}"));
        for job in ["propose:", "deploy:"] {
            let lines = below(&text, job);
            assert!(lines.iter().any(|line| line.trim().starts_with("environment: ")), "{example}: {job}");
            let commands = commands(&lines).concat();
            assert!(!commands.contains("TOKEN") && !commands.contains("--token"), "{example}: {job} {commands}");
        }
    }
}
