//! `pilot log monitor`: follows a log from outside, and raises an alarm if it contradicts itself.

mod alarm;
mod look;
mod state;

use std::path::PathBuf;
use std::time::Duration;

use pilot_evidence::verify::trust::Given;
use pilot_ledger::clock::Clock;
use serde_json::json;

use self::alarm::Alarms;
use self::look::{Looked, Trouble, look};
use self::state::State;
use crate::client::{Client, ClientArguments};
use crate::cmd::evidence::read_trust;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The log's verifier key, as `pilot log key` prints it, or a file with that line
    #[arg(long, value_name = "KEY", required_unless_present = "policy")]
    key: Option<String>,
    /// A witness's verifier key, given the same way; may be repeated. All of them must have cosigned
    #[arg(long, value_name = "KEY")]
    witness_key: Vec<String>,
    /// A policy (C2SP tlog-policy) in place of these keys
    #[arg(long, value_name = "FILE", conflicts_with = "witness_key")]
    policy: Option<PathBuf>,
    /// The directory for the checkpoints that are kept; created at the first run
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// Look once, and exit
    #[arg(long)]
    once: bool,
    /// How many seconds lie between two looks
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    every: u64,
    /// A program to run for each alarm; what happened is on its standard input, as JSON
    #[arg(long, value_name = "PROGRAM")]
    alarm: Option<PathBuf>,
    /// A file to write metrics to, for the textfile collector of Prometheus
    #[arg(long, value_name = "FILE")]
    metrics: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let policy = arguments.policy.as_ref().map(|path| path.display().to_string());
    let trust = read_trust(Given {
        key: arguments.key.as_deref(),
        witness_keys: &arguments.witness_key,
        policy: policy.as_deref(),
        ..Given::default()
    })?;
    let mut state = State::open(&arguments.state, &trust.key)?;
    let client = Client::new(&arguments.client, environment)?;
    let mut alarms = Alarms::new(arguments.alarm.as_deref(), arguments.metrics.as_deref());
    loop {
        let now = Clock::System.now();
        let looked = look(&client, &trust, &mut state, now);
        alarms.tell(&trust.key.name, state.size(), &looked, now)?;
        match looked {
            Ok(looked) if arguments.once || looked.has_grown() => report(&looked, arguments.output.output)?,
            // A log that contradicts itself does not heal: the exit code says it, and so does every later run.
            Err(Trouble::Contradiction { what, .. }) => return Err(Failure::Refused(what)),
            Err(trouble) if arguments.once => return Err(trouble.into_failure()),
            Ok(_) | Err(_) => {}
        }
        if arguments.once {
            return Ok(());
        }
        std::thread::sleep(Duration::from_secs(arguments.every));
    }
}

fn report(looked: &Looked, output: Output) -> Result<(), Failure> {
    let Looked { size, before, root, signed_by, last_entry_at } = looked;
    match output {
        Output::Json => print_json(&json!({
            "size": size,
            "before": before,
            "root": root,
            "cosigned_by": signed_by,
            "last_entry_at": last_entry_at,
        })),
        Output::Table => {
            let grown = match before {
                None => "first seen".to_owned(),
                Some(before) if before == size => "as before".to_owned(),
                Some(before) => format!("continues the {before} entries seen before"),
            };
            let signers = if signed_by.is_empty() { "nobody".to_owned() } else { signed_by.join(", ") };
            print(&format!("{size} entries, {grown}; cosigned by {signers}\n"))
        }
    }
}
