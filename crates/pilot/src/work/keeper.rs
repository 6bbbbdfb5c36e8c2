//! The keeper: a process between the agent and one command. It ends the command and everything that it started when the
//! lease runs out or the agent is gone, even if the agent itself is stopped and can do nothing.
//!
//! Standard input brings orders, standard output takes reports, and standard error is the command's output.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::exit::Failure;
use crate::work::boot::Moment;
use crate::work::group::{Group, children};

/// How often the time is looked at. A clock that counts sleep cannot be waited for.
const TICK: Duration = Duration::from_millis(200);

/// How a process ends that could not become the command, and has said why.
pub(crate) const NOT_STARTED: i32 = 126;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The control group for the command
    #[arg(long)]
    group: Option<PathBuf>,
    /// What the command reads as standard input
    #[arg(long)]
    stdin: PathBuf,
    /// Where to write why the command could not be started
    #[arg(long)]
    fault: PathBuf,
    /// Milliseconds since boot at which the command is asked to end
    #[arg(long)]
    until: u64,
    /// Milliseconds between asking and killing
    #[arg(long)]
    grace: u64,
    /// The keeper that started this process, which becomes the command
    #[arg(long)]
    becomes_command_of: Option<i32>,
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

/// What the agent says to the keeper, one JSON value per line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Order {
    /// The lease was renewed: milliseconds since boot.
    Until(u64),
    End,
}

/// What the keeper says to the agent, one JSON value per line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// The command exited by itself.
    Exited(i32),
    Signalled(i32),
    /// The command ended after it had been asked to.
    Stopped,
    /// Nothing of the command is left. This many of its processes were still there after it had ended.
    Empty {
        left_over: usize,
    },
}

enum Event {
    Order(Order),
    AgentGone,
    Ended(WaitStatus),
    /// Every child is gone.
    Childless {
        left_over: usize,
    },
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let outcome = match arguments.becomes_command_of {
        Some(keeper) => become_command(arguments, keeper),
        None => keep(arguments),
    };
    outcome.map_err(|error| Failure::environment("the keeper", error))
}

fn keep(arguments: &Arguments) -> io::Result<()> {
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    rustix::thread::set_no_new_privs(true)?;
    let command = Pid::from_child(&start(arguments)?);
    let (events, arrived) = channel();
    let orders = events.clone();
    std::thread::spawn(move || read_orders(&orders));
    std::thread::spawn(move || reap(command, &events));
    let group = arguments.group.clone().map(Group::at);
    Keeper { command, group, grace: Duration::from_millis(arguments.grace), stage: Stage::Running }
        .watch(&arrived, Moment::from_millis(arguments.until))
}

/// The command's output goes where this process's errors go.
fn start(arguments: &Arguments) -> io::Result<std::process::Child> {
    let output = || rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3).map(Stdio::from);
    let mut stub = Command::new("/proc/self/exe");
    stub.arg("keep").args(std::env::args_os().skip(2).take_while(|argument| argument != "--"));
    stub.arg("--becomes-command-of").arg(std::process::id().to_string()).arg("--").args(&arguments.command);
    stub.stdin(File::open(&arguments.stdin)?).stdout(output()?).stderr(output()?);
    stub.spawn()
}

/// In a process of its own: enters the group, ties its life to the keeper's, and turns into the command.
fn become_command(arguments: &Arguments, keeper: i32) -> io::Result<()> {
    let prepared = (|| {
        rustix::process::setsid()?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // An agent that was stopped may have started this too late.
        if Moment::from_millis(arguments.until).is_past() {
            return Err(io::Error::other("the lease ended before it could be started"));
        }
        if rustix::process::getppid().is_none_or(|parent| parent.as_raw_nonzero().get() != keeper) {
            return Err(io::Error::other("the keeper is gone"));
        }
        arguments.group.clone().map(Group::at).map_or(Ok(()), |group| group.enter())
    })();
    let (name, rest) = arguments.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let error = prepared.map_or_else(|error| error, |()| Command::new(name).args(rest).exec());
    std::fs::write(&arguments.fault, format!("{name}: {error}"))?;
    std::process::exit(NOT_STARTED)
}

fn read_orders(events: &Sender<Event>) {
    for line in io::stdin().lock().lines() {
        let Ok(order) = line.and_then(|line| serde_json::from_str(&line).map_err(io::Error::from)) else { break };
        if events.send(Event::Order(order)).is_err() {
            return;
        }
    }
    let _ = events.send(Event::AgentGone);
}

/// Waits for the command and for everything that it left behind, which becomes this process's child.
fn reap(command: Pid, events: &Sender<Event>) {
    let (mut has_ended, mut left_over) = (false, 0);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == command => {
                has_ended = true;
                let _ = events.send(Event::Ended(status));
            }
            Ok(Some(_)) => left_over += usize::from(has_ended),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => break,
        }
    }
    let _ = events.send(Event::Childless { left_over });
}

struct Keeper {
    command: Pid,
    group: Option<Group>,
    grace: Duration,
    stage: Stage,
}

enum Stage {
    Running,
    /// Asked to end; killed at this moment.
    Ending(Moment),
    /// Whatever is still there is killed.
    Clearing,
}

impl Keeper {
    fn watch(mut self, events: &Receiver<Event>, mut until: Moment) -> io::Result<()> {
        let mut left_over = None;
        loop {
            match events.recv_timeout(TICK) {
                Ok(Event::Order(Order::Until(millis))) => until = Moment::from_millis(millis),
                Ok(Event::Order(Order::End)) => self.ask_to_end(),
                Ok(Event::AgentGone) => self.stage = Stage::Clearing,
                Ok(Event::Ended(status)) => {
                    let was_left_alone = matches!(self.stage, Stage::Running);
                    report(if was_left_alone { how_it_ended(status) } else { Report::Stopped })?;
                    self.stage = Stage::Clearing;
                }
                Ok(Event::Childless { left_over: count }) => left_over = Some(count),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("its threads are gone")),
            }
            match self.stage {
                Stage::Running if until.is_past() => self.ask_to_end(),
                Stage::Ending(at) if at.is_past() => self.stage = Stage::Clearing,
                Stage::Clearing => {
                    self.kill();
                    if let Some(left_over) = left_over.filter(|_| self.is_group_empty()) {
                        return report(Report::Empty { left_over });
                    }
                }
                Stage::Running | Stage::Ending(_) => {}
            }
        }
    }

    fn ask_to_end(&mut self) {
        if matches!(self.stage, Stage::Running) {
            let _ = kill_process_group(self.command, Signal::TERM);
            self.stage = Stage::Ending(Moment::now().plus(self.grace));
        }
    }

    /// What was started by what is killed here becomes this process's child, and is killed the next time.
    fn kill(&self) {
        if let Some(group) = &self.group {
            let _ = group.kill();
        }
        // Also those that have left the group.
        for child in children() {
            let _ = kill_process(child, Signal::KILL);
        }
    }

    fn is_group_empty(&self) -> bool {
        self.group.as_ref().is_none_or(|group| group.is_empty().unwrap_or(false))
    }
}

fn how_it_ended(status: WaitStatus) -> Report {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Report::Exited(code),
        (None, signal) => Report::Signalled(signal.unwrap_or_default()),
    }
}

/// If nobody reads it, the agent is gone, and finds out about it from its journal.
fn report(report: Report) -> io::Result<()> {
    let mut line = serde_json::to_string(&report).map_err(io::Error::from)?;
    line.push('\n');
    match io::stdout().write_all(line.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
