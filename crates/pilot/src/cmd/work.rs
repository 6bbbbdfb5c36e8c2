//! `pilot work`: the executor agent.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use pilot_core::actor::Actor;
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::workflow::Span;
use pilot_ledger::clock::Clock;
use pilot_server::log::{Format, Log};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tracing::level_filters::LevelFilter;

use crate::client::ClientArguments;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{note, print, table};
use crate::permit::read_policy;
use crate::supervisor::Supervisor;
use crate::work::agent::{Agent, Ended, Wish};
use crate::work::gauges::Gauges;
use crate::work::journal::Journal;
use crate::work::pool::Pool;
use crate::work::service::{No, Service};
use crate::work::settings::{Settings, Variables};
use crate::work::{group, health};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    client: ClientArguments,
    /// Take items of this workflow; may be repeated
    #[arg(long, value_name = "NAME", required_unless_present = "item")]
    workflow: Vec<String>,
    /// Take only items whose every target is one of these; may be repeated
    #[arg(long, value_name = "TARGET")]
    target: Vec<String>,
    /// How many commands may run at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    concurrency: u16,
    /// Take one item that is cleared now, if there is one, then end
    #[arg(long, conflicts_with_all = ["item", "concurrency"])]
    once: bool,
    /// Execute this item (or try again if it failed), then end
    #[arg(long, value_name = "ID", conflicts_with_all = ["workflow", "target", "concurrency"])]
    item: Option<ItemId>,
    /// End with the command's own exit code
    #[arg(long, requires = "item")]
    reflect_exit: bool,
    /// Stop a command that runs longer; the item becomes indeterminate
    #[arg(long, value_name = "DURATION", default_value = "1h")]
    time_limit: Span,
    /// How long a command has between SIGTERM and SIGKILL
    #[arg(long, value_name = "DURATION", default_value = "30s")]
    kill_grace: Span,
    /// After SIGTERM, stop commands that have not ended by themselves within this time; 0 waits without a limit
    #[arg(long, value_name = "DURATION", default_value = "0", value_parser = span_or_zero)]
    drain_timeout: Duration,
    /// Where the agent records what it does [default: $STATE_DIRECTORY, else ~/.local/state/pilot/work]
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Remove the files of a reported attempt after this time
    #[arg(long, value_name = "DURATION", default_value = "30d")]
    keep: Span,
    /// Pass this variable on to commands; may be repeated
    #[arg(long, value_name = "NAME")]
    env_allow: Vec<String>,
    /// Mask the values of variables with such names in the output; * stands for anything; may be repeated
    #[arg(long, value_name = "GLOB")]
    mask: Vec<String>,
    /// Keep this much of a command's output, such as 16MiB; of more, only the beginning and the end
    #[arg(long, value_name = "BYTES", default_value = "16MiB", value_parser = bytes)]
    output_limit: u64,
    /// Whether to hold each command in a control group of its own
    #[arg(long, value_enum, default_value_t)]
    cgroup: Cgroup,
    /// Answer /healthz, /readyz and /metrics at this address
    #[arg(long, value_name = "ADDR")]
    health: Option<SocketAddr>,
    /// Verify the permit of each item against this policy (C2SP tlog-policy) before its command is run
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Show what would be executed, and execute nothing
    #[arg(long)]
    dry_run: bool,
    /// The command, and its arguments up to the end of the line. It reads the item as JSON on standard input
    #[arg(long, value_name = "CMD", required = true, num_args = 1.., allow_hyphen_values = true)]
    exec: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
enum Cgroup {
    /// If there is one; otherwise say so
    #[default]
    Auto,
    /// Do not start without one
    Require,
    /// Never
    Off,
}

fn span_or_zero(text: &str) -> Result<Duration, String> {
    if text == "0" {
        Ok(Duration::ZERO)
    } else {
        text.parse().map(|span: Span| span.length).map_err(|error| error.to_string())
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let split = text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let unit = match unit {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err("write it as 512KiB, 16MiB or 1GiB".into()),
    };
    let number: u64 = number.parse().map_err(|_| "write it as 512KiB, 16MiB or 1GiB".to_owned())?;
    number.checked_mul(unit).filter(|bytes| *bytes <= 1 << 40).ok_or_else(|| "is too large".into())
}

/// The code that the process ends with, if the command's own is wanted.
pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<ExitCode, Failure> {
    let is_watched = std::io::stderr().is_terminal();
    let format = if is_watched { Format::Text } else { Format::Json };
    let log = Log::start(format, LevelFilter::INFO, Clock::System);
    // One thread starts every keeper: if it ended, the kernel would take them for orphans.
    let service = Arc::new(Service::new(&arguments.client, environment)?);
    let runtime = crate::client::runtime()?;
    let ended = runtime.block_on(agent(arguments, environment, service, &log));
    log.flush();
    ended
}

async fn agent(
    arguments: &Arguments,
    environment: &Environment,
    service: Arc<Service>,
    log: &Log,
) -> Result<ExitCode, Failure> {
    let settings = settings(arguments, environment)?;
    let (drain, wish) = watch::channel(Wish::Work);
    let (end, stop) = watch::channel(false);
    let supervisor = Supervisor::find(environment);
    listen_for_signals(drain, end, settings.drain_timeout, supervisor.clone())?;
    let actor = who_am_i(&service, wish.clone()).await?;
    log.guard_with(Arc::new(service.guard()));
    let gauges = Arc::new(Gauges::default());
    let agent = Arc::new(Agent {
        service: Arc::clone(&service),
        settings,
        guard: service.guard(),
        gauges,
        wish: wish.clone(),
        stop: stop.clone(),
    });
    if arguments.dry_run {
        let journal = Journal::open(&journal_directory(arguments, environment)?)?;
        return show(Pool::new(agent, journal, actor.actor_id.to_string())).await;
    }
    let journal = Journal::open(&journal_directory(arguments, environment)?)?;
    let mut announcement = format!("working as {} for {}", actor.actor_id, service.client().url());
    if let Some(listen) = arguments.health {
        let address = health::serve(listen, Arc::clone(&agent.gauges), stop)?;
        announcement = format!("{announcement}; health at http://{address}");
    }
    let mut pool = Pool::new(Arc::clone(&agent), journal, actor.actor_id.to_string());
    pool.recover()?;
    note(&announcement)?;
    supervisor.ready(&announcement);
    supervisor.keep_informed(|| true);
    match (&arguments.item, arguments.once) {
        (Some(id), _) => one(&mut pool, &service, id, arguments.reflect_exit).await,
        (None, true) => once(&mut pool).await,
        (None, false) => pool.work(wish).await.map(|()| ExitCode::SUCCESS),
    }
}

fn settings(arguments: &Arguments, environment: &Environment) -> Result<Settings, Failure> {
    let group_home = match (arguments.cgroup, group::home()) {
        (Cgroup::Off, _) => None,
        (_, Ok(home)) => Some(home),
        (Cgroup::Require, Err(error)) => {
            return Err(Failure::environment(
                "commands cannot be held in a control group; under systemd set Delegate=yes",
                error,
            ));
        }
        (Cgroup::Auto, Err(error)) => {
            tracing::warn!(%error, "commands are not held in a control group: a process that hides from the agent can outlive its command");
            None
        }
    };
    Ok(Settings {
        workflows: arguments.workflow.clone(),
        targets: arguments.target.clone(),
        concurrency: usize::from(arguments.concurrency),
        time_limit: arguments.time_limit.length,
        kill_grace: arguments.kill_grace.length,
        drain_timeout: arguments.drain_timeout,
        output_bytes_max: arguments.output_limit,
        kept_for: arguments.keep.length,
        group_home,
        policy: arguments.policy.as_deref().map(read_policy).transpose()?,
        command: arguments.exec.clone(),
        variables: Variables::new(environment, &arguments.env_allow, &arguments.mask),
    })
}

fn journal_directory(arguments: &Arguments, environment: &Environment) -> Result<PathBuf, Failure> {
    if let Some(directory) = &arguments.journal {
        return Ok(directory.clone());
    }
    // systemd separates several directories with colons; the first is the agent's.
    let state = environment.get("STATE_DIRECTORY").and_then(|list| list.split(':').next()).map(PathBuf::from);
    let xdg = || environment.get("XDG_STATE_HOME").map(|home| Path::new(home).join("pilot/work"));
    let home = || environment.get("HOME").map(|home| Path::new(home).join(".local/state/pilot/work"));
    let found = state.or_else(xdg).or_else(home);
    found.ok_or_else(|| Failure::Usage("there is no HOME: say where the journal is with --journal DIR".into()))
}

/// Waits for a service that is not there yet: agents and services are often started together.
async fn who_am_i(service: &Service, mut wish: watch::Receiver<Wish>) -> Result<Actor, Failure> {
    let mut is_first = true;
    loop {
        let why = match service.whoami().await {
            Ok(actor) if actor.role == Role::Executor => return Ok(actor),
            Ok(actor) => {
                let Actor { actor_id, role, .. } = actor;
                return Err(Failure::Usage(format!(
                    "only an executor can work; {actor_id} is {role}. Use the token of an executor"
                )));
            }
            Err(No::Refused { detail, .. }) => return Err(Failure::Refused(detail)),
            Err(No::NotYet(why)) => why,
        };
        if why.contains("credential_required") {
            return Err(Failure::Refused(why));
        }
        if std::mem::take(&mut is_first) {
            tracing::warn!(cause = why, "waiting for the service");
        }
        tokio::select! {
            _ = wish.changed() => return Err(Failure::Environment(why)),
            () = tokio::time::sleep(Duration::from_secs(2)) => {}
        }
    }
}

/// The first SIGTERM or Ctrl-C starts nothing more; the second, or the end of the drain time, stops commands.
fn listen_for_signals(
    drain: watch::Sender<Wish>,
    end: watch::Sender<bool>,
    limit: Duration,
    supervisor: Supervisor,
) -> Result<(), Failure> {
    let listen = |kind| signal(kind).map_err(|error| Failure::environment("signals", error));
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("draining: nothing more is started; commands that run are finished");
        supervisor.stopping();
        let _ = drain.send(Wish::Drain);
        let over =
            async { if limit.is_zero() { std::future::pending().await } else { tokio::time::sleep(limit).await } };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            () = over => {}
        }
        tracing::warn!("stopping commands; their items become indeterminate");
        let _ = end.send(true);
        // Kept, because those who wait for a change would take its end for one.
        std::future::pending::<()>().await;
        drop((drain, end));
    });
    Ok(())
}

async fn show(mut pool: Pool) -> Result<ExitCode, Failure> {
    let items = pool.candidates().await.map_err(|no| Failure::Environment(no.words()))?;
    if items.is_empty() {
        note("nothing is cleared for this agent now")?;
        return Ok(ExitCode::SUCCESS);
    }
    let row = |item: &pilot_api::items::ItemView<'_>| {
        vec![
            item.id.to_string(),
            item.workflow.name.to_string(),
            (item.attempts + 1).to_string(),
            item.title.to_string(),
        ]
    };
    print(&table(&["item", "workflow", "attempt", "title"], items.iter().map(row)))?;
    Ok(ExitCode::SUCCESS)
}

/// What was left over is finished first.
async fn once(pool: &mut Pool) -> Result<ExitCode, Failure> {
    while pool.next().await.is_some() {}
    let items = pool.candidates().await.map_err(|no| Failure::Environment(no.words()))?;
    let Some(item) = items.first() else {
        note("nothing is cleared for this agent now")?;
        return Ok(ExitCode::SUCCESS);
    };
    pool.begin(item, "start")?;
    finish(pool, false).await
}

async fn one(pool: &mut Pool, service: &Service, id: &ItemId, reflect: bool) -> Result<ExitCode, Failure> {
    while let Some((recovered, ended)) = pool.next().await {
        // An earlier run of this very command was cut off: what it did is what counts.
        if recovered == *id && !matches!(ended, Ended::NotGranted(_)) {
            return code(&ended, reflect);
        }
    }
    let (item, _) = service.item(id).await.map_err(|no| match no {
        No::Refused { detail, .. } => Failure::Refused(detail),
        No::NotYet(why) => Failure::Environment(why),
    })?;
    let action = ["start", "retry"].into_iter().find(|wanted| item.actions.iter().any(|action| **action == **wanted));
    let Some(action) = action else {
        let held = if item.held { " and held" } else { "" };
        return Err(Failure::Refused(format!("item {id} is {}{held}: it cannot be executed now", item.state)));
    };
    pool.begin(&item, action)?;
    finish(pool, reflect).await
}

async fn finish(pool: &mut Pool, reflect: bool) -> Result<ExitCode, Failure> {
    match pool.next().await {
        Some((_, ended)) => code(&ended, reflect),
        None => Err(Failure::Environment("the attempt ended without a report; see the log".into())),
    }
}

fn code(ended: &Ended, reflect: bool) -> Result<ExitCode, Failure> {
    match ended {
        Ended::Reported { exit_code, .. } if reflect => Ok(ExitCode::from(u8::try_from(*exit_code).unwrap_or(1))),
        Ended::Reported { action, .. } if action == "succeed" => Ok(ExitCode::SUCCESS),
        Ended::Reported { action, .. } => Err(Failure::Refused(format!("the attempt was reported as `{action}`"))),
        Ended::NotGranted(why) => Err(Failure::Refused(format!("the service did not grant it: {why}"))),
        Ended::Commented => Err(Failure::Refused(
            "the attempt has ended, but the item had moved on: a comment on it says how the command ended".into(),
        )),
        Ended::MovedOn => Err(Failure::Refused("the item moved on before the command was started".into())),
        Ended::Unfinished => Err(Failure::Environment(
            "the agent was stopped before everything was reported; the next run with this journal does that".into(),
        )),
    }
}
