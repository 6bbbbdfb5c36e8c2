//! `cargo xtask check`: everything a change must pass. Steps that do not need each other run side by side; each one's
//! output is shown in one piece.

use crate::programs::linting_cargo;
use crate::step::{self, Failure, cargo};
use crate::tools::{self, CC, CHROMIUM, CURL, CXX, FIREFOX, JQ, OPENSSL, SSH_KEYGEN, STRACE, VISUDO};
use crate::{
    clients, console, deny, fuzz, manifests, mcp, notices, observe, pages, postgres, proxies, readers, schema, vault,
    verifiers,
};

mod order;
mod parts;
mod process;
mod suites;

use order::Step;
use parts::Parts;
use process::Output;
pub(crate) use process::PART;
use suites::Counts;

const FUZZ_SECONDS: u32 = 10;

const PAGES: &str = "pages";
/// Where tests are counted.
const COUNTED: [&str; 2] = ["tests", "PostgreSQL"];

/// Compilers use every core; tests, browsers and installers often wait.
const AT_ONCE: usize = 2;

/// Whether the documentation's commands are run: that needs root and a kernel that lets it create machines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pages {
    Run,
    LeftOut,
}

/// What fails fastest comes first. Steps that compile in the same directory wait for each other.
const STEPS: &[Step] = &[
    Step { name: "format", after: &[], run: format },
    Step { name: "tools", after: &[], run: install_tools },
    Step { name: "tidy", after: &["format"], run: tidy },
    Step { name: "dependencies", after: &["format"], run: deny::run },
    // Before the programs, which contain its files.
    Step { name: "console", after: &["tools"], run: console::check },
    Step { name: "vault", after: &["tools", "dependencies"], run: vault::install },
    Step { name: "programs", after: &["tidy", "console"], run: suites::build },
    Step { name: "tests", after: &["programs", "vault"], run: suites::run },
    Step { name: "browser", after: &["programs"], run: console::check_in_browser },
    // The same programs as the tests: not at once, because of what there is one of for each user, such as keyrings.
    Step { name: "PostgreSQL", after: &["tests"], run: suites::run_on_postgres },
    Step { name: "schema", after: &["programs"], run: schema::run_default },
    Step { name: "clients", after: &["programs"], run: clients::run },
    Step { name: "verifiers", after: &["programs"], run: verifiers::run_default },
    Step { name: PAGES, after: &["programs"], run: pages::run_all },
    Step { name: "manifests", after: &["tools"], run: manifests::check },
    Step { name: "observe", after: &["tools"], run: observe::check },
    // Compilers are kept busy by the programs before, and have room beside tests that wait for databases.
    Step { name: "fuzzing", after: &["programs"], run: || fuzz::run(fuzz::TARGETS, FUZZ_SECONDS) },
];

pub(crate) fn run(pages: Pages) -> Result<(), Failure> {
    let left_out: &[&str] = if pages == Pages::LeftOut { &[PAGES] } else { &[] };
    let mut parts = Parts::of(STEPS, left_out);
    let outcome = parts.run(AT_ONCE);
    parts.print_times();
    outcome?;
    let mut tests = Counts::default();
    for name in COUNTED {
        tests += Counts::of(&Output::of(name).text());
    }
    println!("tests: {} passed, {} failed", tests.passed, tests.failed);
    if pages == Pages::LeftOut {
        println!("pages: NOT RUN; run `cargo xtask pages` on a machine that can");
    }
    Ok(())
}

/// One step, with what it needs from earlier ones already there.
pub(crate) fn run_one(name: &str) -> Result<(), Failure> {
    let found = STEPS.iter().find(|step| step.name == name);
    let step = found.ok_or_else(|| {
        let names: Vec<_> = STEPS.iter().map(|step| step.name).collect();
        Failure::usage(format!("unknown step `{name}`; choose one of {}", names.join(", ")))
    })?;
    (step.run)()
}

/// The same as a part of a check, which it ends with.
pub(crate) fn run_part(name: &str) -> Result<(), Failure> {
    process::end_with_check();
    run_one(name)
}

fn format() -> Result<(), Failure> {
    tools::install_missing_components()?;
    step::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    // A separate workspace, which the first command does not see.
    step::run(&mut cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]))
}

fn install_tools() -> Result<(), Failure> {
    tools::install_missing(&[CC, CXX, STRACE, CURL, JQ, OPENSSL, VISUDO, SSH_KEYGEN, CHROMIUM, FIREFOX])?;
    tools::install_missing_token()?;
    tools::install_missing_syslog()?;
    postgres::install()?;
    tools::install_packages("identity provider", tools::PROVIDER)?;
    readers::install_missing()?;
    mcp::install_missing()?;
    notices::install_missing()?;
    proxies::install_missing()
}

fn tidy() -> Result<(), Failure> {
    step::run(&mut linting_cargo(&["test", "--quiet", "--package", "xtask", "--test", "tidy", "--test", "circles"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_needs_only_steps_before_it() {
        for (at, step) in STEPS.iter().enumerate() {
            for name in step.after {
                assert!(STEPS[..at].iter().any(|earlier| earlier.name == *name), "{} needs {name}", step.name);
            }
        }
    }
}
