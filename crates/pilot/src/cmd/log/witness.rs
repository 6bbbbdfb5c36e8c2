//! `pilot log witness`: runs a witness for other logs.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;

use pilot_evidence::note::VerifierKey;
use pilot_ledger::clock::Clock;
use pilot_server::log::{Format, Log};
use pilot_witness::{State, WitnessService};
use tracing::level_filters::LevelFilter;

use crate::cmd::serve::{log_panics, stop_on_signal};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::supervisor::Supervisor;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen; put a TLS-terminating proxy in front if logs reach it over a network
    #[arg(long, value_name = "ADDRESS", required_unless_present = "print_key")]
    listen: Option<SocketAddr>,
    /// The directory for the witness's key and what it has cosigned; created at the first start
    #[arg(long, value_name = "DIR")]
    state: PathBuf,
    /// A log to witness: the line that `pilot log key` prints there; may be repeated
    #[arg(long, value_name = "VERIFIER KEY", required_unless_present = "print_key")]
    log: Vec<String>,
    /// The name of a new witness, which its signatures carry forever; preferably a host name you own
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the witness's own verifier key, for the configuration of the log, and exit
    #[arg(long)]
    print_key: bool,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    if arguments.print_key {
        let key = State::key(&arguments.state, arguments.name.as_deref())?;
        let verifier = key.verifier().to_string();
        return match arguments.output.output {
            Output::Json => print_json(&serde_json::json!({ "verifier_key": verifier })),
            Output::Table => print(&format!("{verifier}\n")),
        };
    }
    let parse =
        |line: &String| VerifierKey::parse(line).map_err(|error| Failure::Usage(format!("--log {line}: {error}")));
    let logs = arguments.log.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
    let Some(listen) = arguments.listen else { return Err(Failure::Usage("--listen is missing".into())) };
    let format = if std::io::stderr().is_terminal() { Format::Text } else { Format::Json };
    let log = Log::start(format, LevelFilter::INFO, Clock::System);
    log_panics(log.clone());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
    let served = runtime.block_on(async {
        let supervisor = Supervisor::find(environment);
        let stop = stop_on_signal(&supervisor)?;
        let witness = WitnessService::start(listen, &arguments.state, logs, arguments.name.as_deref())?;
        let announcement = witness.announcement().map_err(|error| Failure::environment("the address", error))?;
        print(&format!("{announcement}\n"))?;
        supervisor.ready(&announcement);
        supervisor.keep_informed(|| true);
        let key = witness.verifier().to_string();
        tracing::info!(key, "witness started");
        witness.run(stop).await;
        Ok(())
    });
    log.flush();
    served
}
