//! The project's own commands. `cargo xtask` without arguments lists them.
//!
//! Only the standard library is used here: anyone with cargo can run everything, and nothing is built twice because of
//! it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "these commands talk to the person who runs them")]

use std::process::ExitCode;

use crate::check::Pages;
use crate::step::Failure;

mod apt;
mod bench;
mod chaos;
mod check;
mod clients;
mod console;
mod crates;
mod demo;
mod deny;
mod distribution;
mod environment;
mod fuzz;
mod ha;
mod manifests;
mod mcp;
mod notices;
mod observe;
mod pages;
mod places;
mod postgres;
mod processor;
mod programs;
mod proxies;
mod readers;
mod schema;
mod step;
mod tools;
mod vault;
mod verifiers;
mod wasm;

const HELP: &str = "\
cargo xtask COMMAND

  demo [ARGUMENTS]        build everything and start the demo; arguments go to `pilot demo`
  check                   everything a change must pass: format, tidy, console, lints, tests, verifiers, clients, pages, alerts, browser, schema, dependencies, fuzzing
  check --without-pages   the same, on a machine that cannot run systemd in its own root
  check STEP              one step of it; those it needs must have been run before
  console                 build the operator console, and the verifier in it for browsers
  console api             generate the console's API types from docs/reference/openapi.json
  console check           check its types, unit tests and size, and test it in a browser against the real service
  clients                 check the Python client and the TypeScript types: generated, typed, tested, packaged
  fuzz [TARGET] [SECONDS] fuzz one target, or all of them, for 10 or the given number of seconds each
  schema [EXAMPLES] [SEED] run schemathesis against the OpenAPI document, as each role and without a credential
  deny                    check licences, sources and bans of the dependencies
  pages                   run the commands of the operators' pages on machines made for that, with systemd and the package
  pages --fresh           the same on a Debian that is installed for it; some minutes the first time
  manifests               check deploy/kubernetes and deploy/helm with Helm and the schemas that Kubernetes publishes
  manifests --write       make deploy/kubernetes/pilot.yaml from the chart in deploy/helm
  observe                 check deploy/observe with promtool: alerting rules, their unit tests, the dashboard's queries
  dist [--sign-key FILE] [--builder URI]
                          build everything operators need, in target/dist: static programs, packages, bill of materials,
                          provenance, checksums, and with a key (of ssh) a signature over them
  dist sign DIRECTORY --sign-key FILE
                          sign the checksums of what was built elsewhere
  proxies                 install the proxies that the tests start in front of the service
  readers                 install the libraries with which the tests read permit tokens
  mcp                     install the MCP clients with which the tests call `pilot mcp`
  notices                 install the mail server to which the tests send, and the library with which they read cards
  verifiers [COUNT] [SEED] compare the verifier in Rust with the one in Python on forged bundles, 1,000 or so many
  vault                   build a Vault-compatible server, for the tests that read credentials from one
  ha up | down            start, or end, three PostgreSQL members with Patroni and three nodes, in network namespaces
  chaos [--without-watchdog] [ROUNDS] [WORDS]
                          break that cluster under load in 20 ways, or only in those whose names contain one of the
                          words, and check that nothing acknowledged is lost and that writes come back. Plays the
                          watchdog that Patroni needs: an old primary is killed before it may go on
  bench [--into DIRECTORY] [--entries N]
                          every benchmark that has a part in docs/reference/performance.md, one after the other; writes
                          that page with its plots, there or into a directory; N is for the growth of the ledger
  bench compare PAGE PAGE whether two runs of every benchmark agree: no figure differs by more than the spread they state
  bench session [--beside PATH]
                          /v1/session with 1,000 credentials, compared with nginx, axum and hyper and with another build
  bench rules             decisions per second of the rule engine
  bench transitions [--beside PATH]
                          durable transitions over HTTP, compared with a plain SQLite loop that writes the same rows, with
                          Fastify on PostgreSQL, with Restate and with another build
  bench transitions --store postgres
                          durable transitions on PostgreSQL by one node and by two, compared with pgbench
  bench reads             items, lists and searches among a million items
  bench feed              1,000 live feeds: memory, CPU per write, and how long the last one waits
  bench start             starts on a new ledger and with 20,000 credentials; memory at rest and after a load
  bench growth [--entries N]
                          the same load and the same questions on ledgers of 10 thousand to 5 million entries, and one of N
  bench flood [--program PATH] [WORDS]
                          how long a well-behaved actor waits during each kind of attack, and what the service uses;
                          only attacks whose names contain one of the words, with this or another program
  bench export            entries per second of an evidence bundle, exported and verified
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("\nxtask: {failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(arguments: &[&str]) -> Result<(), Failure> {
    match arguments {
        [] | ["help" | "--help" | "-h", ..] => {
            print!("{HELP}");
            Ok(())
        }
        ["demo", rest @ ..] => demo::run(rest),
        ["check"] => check::run(Pages::Run),
        ["check", "--without-pages"] => check::run(Pages::LeftOut),
        ["check", step] => check::run_one(step),
        ["check", step, check::PART] => check::run_part(step),
        ["pages"] => pages::run_all(),
        ["pages", "--fresh"] => pages::run_fresh(),
        ["manifests", rest @ ..] => manifests::command(rest),
        ["observe"] => observe::check(),
        ["console"] => console::build(),
        ["console", "api"] => console::generate_types(),
        ["console", "check"] => console::check().and_then(|()| console::check_in_browser()),
        ["clients"] => clients::run(),
        ["fuzz", rest @ ..] => fuzz::command(rest),
        ["schema", rest @ ..] => schema::command(rest),
        ["deny"] => deny::run(),
        ["dist", rest @ ..] => distribution::command(rest),
        ["proxies"] => proxies::install_missing(),
        ["readers"] => readers::install_missing(),
        ["mcp"] => mcp::install_missing(),
        ["notices"] => notices::install_missing(),
        ["vault"] => vault::install(),
        ["verifiers", rest @ ..] => verifiers::command(rest),
        ["ha", rest @ ..] => ha::command(rest),
        ["chaos", rest @ ..] => chaos::command(rest),
        ["bench", rest @ ..] => bench::run(rest),
        [
            "check" | "clients" | "deny" | "mcp" | "notices" | "observe" | "pages" | "proxies" | "readers" | "vault",
            surplus,
            ..,
        ] => Err(Failure::usage(format!("this command takes no arguments, but was given `{surplus}`"))),
        [unknown, ..] => Err(Failure::usage(format!("unknown command `{unknown}`\n\n{HELP}"))),
    }
}
