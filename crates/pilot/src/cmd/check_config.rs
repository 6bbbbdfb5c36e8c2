//! `pilot check-config`: whether the service would start, and if not, why.

use std::path::PathBuf;

use pilot_core::leak::LeakGuard;
use pilot_ledger::clock::Clock;
use pilot_server::preflight::{self, Finding, Verdict};
use pilot_setup::config::Config;
use serde::Serialize;

use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, print, print_json, table};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    /// Do not ask whether the database, the identity provider, witnesses and others can be reached now
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    output: OutputArguments,
}

#[derive(Serialize)]
struct ReportView<'f> {
    ok: bool,
    checks: &'f [Finding],
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    files::refuse_root(&config)?;
    let mut findings = preflight::check(&config, Clock::System.now());
    if !arguments.offline {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
        findings.extend(runtime.block_on(preflight::reach(&config)));
    }
    // Details quote names from files, and a file may contain anything.
    let guard = LeakGuard::for_generated_tokens();
    for finding in &mut findings {
        finding.detail = guard.redact(&finding.detail).into_owned();
    }
    let count = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
    let (refused, environment) = (count(Verdict::Refused), count(Verdict::Environment));
    match arguments.output.output {
        Output::Json => print_json(&ReportView { ok: refused + environment == 0, checks: &findings })?,
        Output::Table => print(&table(&["check", "verdict", "detail"], findings.iter().flat_map(rows)))?,
    }
    match (refused, environment) {
        (0, 0) => Ok(()),
        (0, _) => Err(Failure::Environment("the service would not start on this machine".into())),
        _ => Err(Failure::Usage(format!("the service would not start: {refused} to fix first"))),
    }
}

/// A row for each line of the detail.
fn rows(finding: &Finding) -> Vec<Vec<String>> {
    let row = |(at, line): (usize, &str)| {
        let (check, verdict) = if at == 0 { (finding.check, finding.verdict.as_str()) } else { ("", "") };
        vec![check.to_owned(), verdict.to_owned(), line.to_owned()]
    };
    finding.detail.lines().enumerate().map(row).collect()
}
