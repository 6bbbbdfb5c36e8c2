//! `pilot serve`: runs the service until it is told to stop.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use pilot_ledger::clock::Clock;
use pilot_server::log::Log;
use pilot_server::logging;
use pilot_server::run::{Service, Stopped};
use pilot_server::start::start;
use pilot_setup::config::{Config, LogFormat, LogLevel, Logging};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::environment::Environment;
use crate::exit::{self, Failure};
use crate::output::print;
use crate::supervisor::Supervisor;

/// For what is still in progress when everything is written.
const LEFTOVER_PATIENCE: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    /// How much is logged, instead of what the configuration says
    #[arg(long, value_name = "LEVEL", value_parser = level())]
    log_level: Option<LogLevel>,
    /// Put this node's credentials, role map and definitions in force for all nodes that share the ledger
    #[arg(long)]
    adopt: bool,
    /// How log lines are written, instead of what the configuration says
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    log_format: Option<LogFormat>,
}

pub(crate) fn level() -> impl TypedValueParser<Value = LogLevel> {
    PossibleValuesParser::new(LogLevel::ALL.map(LogLevel::as_str)).try_map(|text| text.parse::<LogLevel>())
}

pub(crate) fn format() -> impl TypedValueParser<Value = LogFormat> {
    PossibleValuesParser::new(LogFormat::ALL.map(LogFormat::as_str)).try_map(|text| text.parse::<LogFormat>())
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let mut config = Config::load(&arguments.config, environment.variables())?;
    let Logging { level, format, .. } = &mut config.logging;
    *level = arguments.log_level.unwrap_or(*level);
    *format = arguments.log_format.unwrap_or(*format);
    let log = Log::start(logging::format(*format), logging::level(*level), Clock::System);
    log_panics(log.clone());
    let supervisor = Supervisor::find(environment);
    let served = serve(&config, &log, &supervisor, arguments.adopt, |service| {
        let announcement = service.announcement().map_err(|error| Failure::environment("the address", error))?;
        print(&format!("{announcement}\n"))?;
        supervisor.ready(&announcement);
        Ok(())
    });
    log.flush();
    served
}

/// Starts the service, tells `started` about it, and runs it until SIGTERM or Ctrl-C.
pub(crate) fn serve(
    config: &Config,
    log: &Log,
    supervisor: &Supervisor,
    adopt: bool,
    started: impl FnOnce(&Service) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers()).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
    to_the_end(runtime, async {
        // Before anything is announced: a signal right after the announcement must find its handler.
        let stop = stop_on_signal(supervisor)?;
        supervisor.starting();
        let service = start(config, log, stop, adopt).await?;
        started(&service)?;
        supervisor.keep_informed(service.is_alive());
        tracing::info!(version = env!("CARGO_PKG_VERSION"), "service started");
        let served = service.run().await;
        if let Err(stopped @ (Stopped::Damaged(_) | Stopped::Unsignable(_))) = &served {
            stop_at_once(stopped, log);
        }
        tracing::info!("service stopped");
        served.map_err(|error| {
            let remedy = "the service stopped with an error; everything acknowledged is in the files as they are, and the next start reads them";
            Failure::environment(remedy, error)
        })
    })
}

/// A thread that resolves a name cannot be interrupted, and may hang for longer than a stop may take.
fn to_the_end<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    runtime.shutdown_timeout(LEFTOVER_PATIENCE);
    done
}

/// Waits for nobody: whatever is still in progress would only make it worse.
fn stop_at_once(stopped: &Stopped, log: &Log) -> ! {
    match stopped {
        Stopped::Damaged(cause) => {
            tracing::error!(%cause, "the process stops; run `pilot log fsck`, and restore from a backup");
        }
        Stopped::Disk(_) | Stopped::Unsignable(_) => tracing::error!(
            cause = %stopped,
            "the process stops because what it would sign may be wrong; do not delete anything, run `pilot log fsck`, and read docs/operate/backup.md"
        ),
    }
    log.flush();
    std::process::exit(exit::ENVIRONMENT)
}

/// One core is left to the thread that writes the ledger. With a worker for every core, the two would take turns on
/// one, and a transition would cost a tenth more.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1))
}

pub(crate) fn stop_on_signal(supervisor: &Supervisor) -> Result<watch::Receiver<bool>, Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::environment("signals", error));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let mut hangup = listen(SignalKind::hangup())?;
    let (mut first, mut second) = (listen(SignalKind::user_defined1())?, listen(SignalKind::user_defined2())?);
    let (sender, receiver) = watch::channel(false);
    let supervisor = supervisor.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => break,
                _ = interrupt.recv() => break,
                _ = hangup.recv() => tracing::warn!("SIGHUP is ignored: certificates are reloaded by themselves, and everything else needs a restart"),
                _ = first.recv() => tracing::warn!("SIGUSR1 is ignored; `pilot logging set` changes what is logged"),
                _ = second.recv() => tracing::warn!("SIGUSR2 is ignored; `pilot logging set` changes what is logged"),
            }
        }
        tracing::info!("stopping: no new connections, requests in progress are finished");
        supervisor.stopping();
        let _ = sender.send(true);
    });
    Ok(receiver)
}

/// A panic's message may quote what it was working on, so it goes through the guarded log like everything else.
pub(crate) fn log_panics(log: Log) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        let message = panic.payload_as_str().unwrap_or("(no message)");
        tracing::error!(place, message, "the program panicked; this is a bug in pilot");
        log.flush();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_hangs_does_not_hold_the_process() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let (end, is_ended) = std::sync::mpsc::channel::<()>();
        let done = to_the_end(runtime, async {
            tokio::task::spawn_blocking(move || is_ended.recv());
            7
        });
        assert_eq!(done, 7);
        drop(end);
    }
}
