//! `pilot mcp`: serves an AI agent. Standard output carries the protocol and nothing else.

use std::io::IsTerminal as _;
use std::sync::Arc;

use pilot_core::actor::Actor;
use pilot_ledger::clock::Clock;
use pilot_mcp::Agent;
use pilot_server::log::{Format, Log};
use tracing::level_filters::LevelFilter;

use crate::client::repeat::new_key;
use crate::client::{Ask, ClientArguments, runtime};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::mcp::Way;
use crate::output::note;
use crate::work::service::Service;

#[derive(clap::Args)]
#[command(after_help = "\
Which tools there are follows from the role of the credential. Every role can read: whoami, workflows, status, history. An \
initiator can also propose, wait, revise, withdraw and comment; an executor can see what is cleared, start it, send \
heartbeats and report. No role has a tool that decides: people do, with their own credentials.\n\n\
A client starts this command and talks to it on standard input and output. When the input ends, so does the command. The \
token comes from a profile, a file or PILOT_TOKEN, never from the command line.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    client: ClientArguments,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    if arguments.client.token_file.as_ref().is_some_and(|path| path.as_os_str() == "-") {
        return Err(Failure::Usage("standard input carries the protocol, so the token cannot come from there".into()));
    }
    let format = if std::io::stderr().is_terminal() { Format::Text } else { Format::Json };
    let log = Log::start(format, LevelFilter::WARN, Clock::System);
    let service = Arc::new(Service::new(&arguments.client, environment)?);
    log.guard_with(Arc::new(service.guard()));
    let runtime = runtime()?;
    let ended = runtime.block_on(serve(service));
    // A read of standard input that goes on must not keep the process.
    runtime.shutdown_background();
    log.flush();
    ended
}

async fn serve(service: Arc<Service>) -> Result<(), Failure> {
    // Asked once: a credential has one role, and keeps it.
    let actor: Actor = service.client().ask(Ask::get("/v1/session")).await?.read()?;
    note(&format!("serving {} ({}) for {}", actor.actor_id, actor.role, service.client().url()))?;
    let agent = Agent { service: Way(service), actor, session: new_key()?, version: env!("CARGO_PKG_VERSION") };
    Box::pin(pilot_mcp::serve_stdio(agent)).await.map_err(|error| Failure::Refused(error.0))
}
