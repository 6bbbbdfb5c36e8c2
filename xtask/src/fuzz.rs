//! `cargo xtask fuzz`: libFuzzer on the targets in `fuzz/`, with the stable compiler and no other tool.

use std::collections::hash_map::RandomState;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::step::{Failure, cannot_start, cargo, output_of, program, root, run_timed, shown};
use crate::tools::{self, CXX};

/// Each with a dictionary for the fuzzer, if any, and the largest input that is possible in service.
pub(crate) const TARGETS: &[Target] = &[
    Target { name: "access_token", dictionary: Some("fuzz/json.dict"), kib_max: 128 },
    Target { name: "authorization", dictionary: None, kib_max: 16 },
    Target { name: "bundle", dictionary: Some("fuzz/json.dict"), kib_max: 256 },
    Target { name: "client_certificate", dictionary: None, kib_max: 16 },
    Target { name: "credential_file", dictionary: Some("fuzz/json.dict"), kib_max: 256 },
    Target { name: "evidence_text", dictionary: None, kib_max: 64 },
    Target { name: "leak_guard", dictionary: None, kib_max: 256 },
    Target { name: "payload_schema", dictionary: Some("fuzz/schema.dict"), kib_max: 64 },
    Target { name: "strict_json", dictionary: Some("fuzz/json.dict"), kib_max: 1024 },
];

#[derive(Clone, Copy)]
pub(crate) struct Target {
    name: &'static str,
    dictionary: Option<&'static str>,
    kib_max: u32,
}

/// What libFuzzer needs to see which path an input took. Stable options, but build scripts must not get them.
const COVERAGE: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// An input that takes longer than this is a finding, however busy the machine is. Targets whose input comes from
/// strangers assert 100 ms of CPU time and 20 MB themselves (`fuzz/fuzz_targets/cost.rs`).
const INPUT_SECONDS_MAX: u32 = 5;
/// Including everything the fuzzer keeps for itself.
const MEMORY_MIB_MAX: u32 = 512;

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    let seconds = |text: &str| text.parse().map_err(|_| Failure::usage(format!("`{text}` is not a number of seconds")));
    let one = |name: &str| {
        let names = || TARGETS.iter().map(|target| target.name).collect::<Vec<_>>().join(", ");
        let found = TARGETS.iter().find(|target| target.name == name).copied();
        found.ok_or_else(|| Failure::usage(format!("unknown target `{name}`; choose one of {}", names())))
    };
    tools::install_missing(&[CXX])?;
    match arguments {
        [] => run(TARGETS, 10),
        [name] => run(&[one(name)?], 10),
        [name, time] => run(&[one(name)?], seconds(time)?),
        _ => Err(Failure::usage("usage: cargo xtask fuzz [TARGET] [SECONDS]")),
    }
}

pub(crate) fn run(targets: &[Target], seconds: u32) -> Result<(), Failure> {
    let programs = build()?;
    for target in targets {
        fuzz(target, &programs, seconds)?;
    }
    Ok(())
}

/// Builds for an explicit target, which keeps the coverage counters out of build scripts; returns the directory of the
/// programs.
fn build() -> Result<PathBuf, Failure> {
    let host = host()?;
    let mut build = cargo(&["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", &host]);
    build.arg("--target-dir").arg(root().join("fuzz/target")).env("RUSTFLAGS", COVERAGE.join(" "));
    // The fuzzer itself: half the time to build, and it hardly runs slower.
    build.env("CXXFLAGS", "-O1 -g0");
    run_timed("build", &mut build)?;
    Ok(root().join("fuzz/target").join(host).join("release"))
}

fn host() -> Result<String, Failure> {
    let version = output_of(&mut program("rustc", &["--version", "--verbose"]))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::environment("`rustc --version --verbose` does not name the host"))
}

fn fuzz(target: &Target, programs: &Path, seconds: u32) -> Result<(), Failure> {
    let name = target.name;
    // Not from a clock: two runs in the same second should differ too.
    let seed = (RandomState::new().build_hasher().finish() & 0xFFFF_FFFE) + 1;
    println!("{name}: {seconds} s with seed {seed}");
    let log = programs.join(format!("{name}.log"));
    let command = &mut libfuzzer(target, programs, seconds, seed)?;
    let line = shown(command);
    let file = File::create(&log).map_err(|error| cannot_start(&line, &error))?;
    let status = command.stderr(file).stdout(Stdio::null()).status().map_err(|error| cannot_start(&line, &error))?;
    let report = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
    if !status.success() {
        let tail: Vec<_> = report.lines().rev().take(40).collect();
        eprintln!("{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        return Err(Failure::refuted(format!(
            "fuzz target {name} found something with seed {seed}; to repeat it:\n{line}"
        )));
    }
    let figure = |key: &str| {
        let line = report.lines().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(key));
        line.map_or("?", |rest| rest.trim_start_matches(':').trim())
    };
    println!("{name}: {} runs, {} per second", figure("number_of_executed_units"), figure("average_exec_per_sec"));
    Ok(())
}

fn libfuzzer(target: &Target, programs: &Path, seconds: u32, seed: u64) -> Result<Command, Failure> {
    let (corpus, artifacts) = (root().join("fuzz/corpus").join(target.name), root().join("fuzz/artifacts"));
    for directory in [&corpus, &artifacts] {
        let made = fs::create_dir_all(directory);
        made.map_err(|error| Failure::environment(format!("{}: {error}", directory.display())))?;
    }
    let mut command = Command::new(programs.join(target.name));
    command
        .current_dir(root())
        .args([format!("-seed={seed}"), format!("-max_total_time={seconds}")])
        .args([format!("-timeout={INPUT_SECONDS_MAX}"), format!("-rss_limit_mb={MEMORY_MIB_MAX}")])
        .args(["-print_final_stats=1".to_owned(), format!("-max_len={}", target.kib_max * 1024)])
        .arg(format!("-artifact_prefix={}/{}-", artifacts.display(), target.name));
    if let Some(dictionary) = target.dictionary {
        command.arg(format!("-dict={dictionary}"));
    }
    command.arg(corpus).arg(root().join("fuzz/seeds").join(target.name));
    Ok(command)
}
