//! `cargo xtask schema`: schemathesis sends the service everything its OpenAPI document describes, and much that it
//! does not, as each role and without a credential.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::programs;
use crate::step::{Failure, Stopwatch, cannot_start, program, root, run, run_timed, shown, target_dir};
use crate::tools;

/// The directory is named after the version, so that another version is installed next to it.
const INSTALLED: &str = "tools/schemathesis-4.32.5";
const EXAMPLES: &str = "50";
const SEED: &str = "1";
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance,negative_data_rejection,missing_required_header,\
    unsupported_method,allow_header_conformance,ignored_auth";
/// Two at a time, one for each core. The initiator comes first, so that the others find the items it created.
const ROUNDS: [[&str; 2]; 3] = [["initiator", "nobody"], ["approver", "security_admin"], ["executor", "auditor"]];

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    let number = |text: &&str| !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    match arguments {
        [] => run_all(EXAMPLES, SEED),
        [examples] if number(examples) => run_all(examples, SEED),
        [examples, seed] if number(examples) && number(seed) => run_all(examples, seed),
        _ => Err(Failure::usage("usage: cargo xtask schema [EXAMPLES] [SEED]")),
    }
}

pub(crate) fn run_default() -> Result<(), Failure> {
    run_all(EXAMPLES, SEED)
}

fn run_all(examples: &str, seed: &str) -> Result<(), Failure> {
    let schemathesis = install_missing()?;
    programs::build()?;
    let directory = Directory::make()?;
    let mut demo = Demo::start(&target_dir().join("debug/pilot"), &directory.0)?;
    println!("{examples} examples for each operation, seed {seed}\n{:<16}{:>10}{:>10}", "as", "requests", "seconds");
    let mut findings = Vec::new();
    for round in ROUNDS {
        let ask = |role: &'static str| {
            let mut command = Command::new(&schemathesis);
            demo.address(&mut command, role, examples, seed).current_dir(&directory.0);
            move || (role, ask(command))
        };
        let answers = thread::scope(|scope| {
            let running = round.map(|role| scope.spawn(ask(role)));
            running.map(|thread| thread.join().map_err(|_| Failure::environment("a thread ended early")))
        });
        for answer in answers {
            let (role, outcome) = answer?;
            let Outcome { requests, seconds, report } = outcome?;
            println!("{role:<16}{requests:>10}{seconds:>10.1}");
            findings.extend(report);
        }
    }
    demo.stop()?;
    if findings.is_empty() {
        return Ok(());
    }
    Err(Failure::refuted(format!("the service and its OpenAPI document disagree:\n{}", findings.join("\n"))))
}

struct Outcome {
    requests: u64,
    seconds: f64,
    /// What schemathesis printed, if it found something.
    report: Option<String>,
}

fn ask(mut command: Command) -> Result<Outcome, Failure> {
    let watch = Stopwatch::start();
    let output = command.stdin(Stdio::null()).output().map_err(|error| cannot_start("schemathesis", &error))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let requests = requests(&printed).unwrap_or(0);
    let clean = output.status.success() && requests > 0;
    let report = (!clean).then(|| format!("{printed}\n{}", String::from_utf8_lossy(&output.stderr)));
    Ok(Outcome { requests, seconds: watch.elapsed().as_secs_f64(), report })
}

/// `  828 generated, 828 passed`
fn requests(printed: &str) -> Option<u64> {
    let line = printed.lines().find(|line| line.contains(" generated"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The program, installed from the package index into its own directory, each file checked by its hash.
fn install_missing() -> Result<PathBuf, Failure> {
    let home = target_dir().join(INSTALLED);
    let schemathesis = home.join("bin/schemathesis");
    if !schemathesis.exists() {
        tools::install_missing_venv()?;
        run_timed("install", program("python3", &["-m", "venv", "--clear"]).arg(&home))?;
        let mut pip = Command::new(home.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--require-hashes", "--requirement"]);
        run_timed("install", pip.arg(root().join("xtask/schemathesis.txt")))?;
    }
    Ok(schemathesis)
}

/// Where schemathesis stores what it remembers; removed when dropped.
struct Directory(PathBuf);

impl Directory {
    fn make() -> Result<Directory, Failure> {
        let path = std::env::temp_dir().join(format!("pilot-schema-{}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))?;
        Ok(Directory(path))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// `pilot demo`: at least one person in each role, whose tokens it prints, and nothing left behind at the end.
struct Demo {
    child: Child,
    url: String,
    /// Role and token.
    tokens: Vec<(String, String)>,
}

impl Demo {
    fn start(executable: &Path, directory: &Path) -> Result<Demo, Failure> {
        let mut command = Command::new(executable);
        command.args(["demo", "--listen", "127.0.0.1:0"]).current_dir(directory).env("TMPDIR", directory);
        let line = shown(&command);
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(|error| cannot_start(&line, &error))?;
        let output = child.stdout.take();
        let mut demo = Demo { child, url: String::new(), tokens: Vec::new() };
        for line in output.into_iter().flat_map(|output| BufReader::new(output).lines().map_while(Result::ok)) {
            if let Some(url) = line.strip_prefix("listening on ") {
                url.clone_into(&mut demo.url);
                return Ok(demo);
            }
            if let [_, role, token] = line.split_whitespace().collect::<Vec<_>>()[..]
                && token.starts_with("pilot_")
            {
                demo.tokens.push((role.to_owned(), token.to_owned()));
            }
        }
        Err(Failure::environment(format!("`{line}` did not start listening")))
    }

    /// The arguments of schemathesis for one role, or for a caller without a credential.
    fn address<'c>(&self, command: &'c mut Command, role: &str, examples: &str, seed: &str) -> &'c mut Command {
        command.arg("--config-file").arg(root().join("xtask/schemathesis.toml"));
        command.args(["run", &format!("{}/openapi.json", self.url), "--checks", CHECKS, "--seed", seed]);
        command.args(["--phases", "examples,coverage,fuzzing", "--max-examples", examples, "--continue-on-failure"]);
        // Only a feed would take longer, and nobody here opens one.
        command.args(["--request-timeout", "20", "--warnings", "off", "--no-color"]);
        if let Some((_, token)) = self.tokens.iter().find(|(known, _)| known == role) {
            command.args(["--header", &format!("Authorization: Bearer {token}")]);
        }
        command
    }

    fn stop(&mut self) -> Result<(), Failure> {
        run(&mut program("kill", &["-TERM", &self.child.id().to_string()]))?;
        let status = self.child.wait().map_err(|error| Failure::environment(error.to_string()))?;
        if status.success() { Ok(()) } else { Err(Failure::refuted(format!("the service ended with {status}"))) }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_from_the_closing_lines() {
        let printed = "Test cases:\n  828 generated, 1 found 1 unique failure, 28 skipped\n";
        assert_eq!(requests(printed), Some(828));
        assert_eq!(requests("Test cases:\n"), None);
    }
}
