//! Runs the command of one attempt through a keeper, renews the lease meanwhile, and says how it ended.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use pilot_api::items::ItemView;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::work::agent::told_to;
use crate::work::boot::Moment;
use crate::work::captured::Capture;
use crate::work::group::{Group, kill_marked};
use crate::work::journal::{Attempt, Claim};
use crate::work::keeper::{NOT_STARTED, Order, Report};
use crate::work::lease::Fence;
use crate::work::outcome::Ending;
use crate::work::service::{Answer, No, Service};
use crate::work::settings::Settings;

/// How often the time is looked at: a clock that counts sleep cannot be waited for.
const TICK: Duration = Duration::from_millis(200);
/// How long output is read after the last process of the command has ended.
const OUTPUT_LATE: Duration = Duration::from_secs(2);
const RESULT_FILE: &str = "PILOT_RESULT_FILE";
const PROGRESS_CHARS_MAX: usize = pilot_core::limits::PROGRESS_CHARS_MAX;

/// The files of an attempt.
pub(crate) struct Files {
    pub item: PathBuf,
    pub permit: PathBuf,
    pub result: PathBuf,
    pub artifacts: PathBuf,
    pub output: PathBuf,
    pub fault: PathBuf,
}

impl Files {
    pub(crate) fn of(attempt: &Attempt) -> Files {
        Files {
            item: attempt.path("item.json"),
            permit: attempt.path("permit.zip"),
            result: attempt.path("result.json"),
            artifacts: attempt.path("artifacts"),
            output: attempt.path("output.txt"),
            fault: attempt.path("fault"),
        }
    }

    /// Kills what can be found of the command by a variable that only this attempt has; says how many there were.
    pub(crate) fn kill_marked(&self) -> usize {
        kill_marked(RESULT_FILE, &self.result.display().to_string())
    }
}

/// Everything needed to run one command.
pub(crate) struct Run<'r> {
    pub service: &'r Arc<Service>,
    pub settings: &'r Settings,
    pub claim: &'r Claim,
    pub item: &'r ItemView<'static>,
    pub state: &'r str,
    pub files: &'r Files,
    pub group: Option<Group>,
    pub fence: Fence,
}

type Beat = JoinHandle<(Moment, Answer<Duration>)>;

/// A command while it runs.
struct Running {
    keeper: Child,
    orders: ChildStdin,
    ends_by: Moment,
    fence: Fence,
    beat: Option<Beat>,
    next_beat: Moment,
    /// Why the agent asked the command to end.
    stopped: Option<String>,
    /// When the agent does what the keeper should have done by then.
    kill_by: Option<Moment>,
    /// What the keeper has said.
    ended: Option<Report>,
    left_over: Option<usize>,
    emptied_at: Option<Moment>,
}

impl Run<'_> {
    /// Returns when nothing of the command is left.
    pub(crate) async fn carry_out(&self, capture: &mut Capture, mut stop: watch::Receiver<bool>) -> io::Result<Ending> {
        let mut keeper = self.start()?;
        let missing = || io::Error::other("the keeper has no pipes");
        let orders = keeper.stdin.take().ok_or_else(missing)?;
        let mut reports = BufReader::new(keeper.stdout.take().ok_or_else(missing)?).lines();
        let mut output = keeper.stderr.take().ok_or_else(missing)?;
        let ends_by = Moment::now().plus(self.settings.time_limit);
        let (fence, next_beat) = (self.fence, self.fence.renew_at());
        let mut running = Running {
            keeper,
            orders,
            ends_by,
            fence,
            beat: None,
            next_beat,
            stopped: None,
            kill_by: None,
            ended: None,
            left_over: None,
            emptied_at: None,
        };
        let (mut has_reports, mut has_output) = (true, true);
        let mut piece = vec![0; 64 * 1024];
        let mut tick = tokio::time::interval(TICK);
        while has_reports || has_output {
            tokio::select! {
                line = reports.next_line(), if has_reports => match line {
                    Ok(Some(line)) => running.hear(&line),
                    _ => has_reports = false,
                },
                read = output.read(&mut piece), if has_output => match read {
                    Ok(0) | Err(_) => has_output = false,
                    Ok(length) => capture.push(piece.get(..length).unwrap_or_default()),
                },
                () = told_to(&mut stop), if running.stopped.is_none() => {
                    running.end("the agent was told to stop").await;
                }
                _ = tick.tick() => {
                    self.look_at_time(&mut running, capture).await;
                    // Nothing of the command is left; someone else may hold its output open.
                    has_output &= !running.emptied_at.is_some_and(|at| at.plus(OUTPUT_LATE).is_past());
                }
            }
            if !has_reports && running.left_over.is_none() {
                // The keeper was killed: whatever it kept has no other master than this agent.
                self.clear();
            }
        }
        let _ = running.keeper.wait().await;
        self.clear_up(&running).await;
        Ok(self.ending(&running))
    }

    fn start(&self) -> io::Result<Child> {
        let mut keeper = Command::new("/proc/self/exe");
        keeper.arg("keep").arg("--stdin").arg(&self.files.item).arg("--fault").arg(&self.files.fault);
        keeper.args(["--until", &self.stop_at().millis().to_string()]);
        keeper.args(["--grace", &self.fence.grace().as_millis().to_string()]);
        if let Some(group) = &self.group {
            keeper.arg("--group").arg(group.path());
        }
        keeper.arg("--").args(&self.settings.command);
        keeper.env_clear().envs(self.settings.variables.shown()).envs(self.variables());
        keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        keeper.spawn()
    }

    /// The command ends before the lease does, and within its own limit.
    fn stop_at(&self) -> Moment {
        self.fence.stop_at().min(Moment::now().plus(self.settings.time_limit))
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let path = |path: &Path| path.display().to_string();
        let mut variables = vec![
            ("PILOT_ITEM_ID", self.claim.item.to_string()),
            ("PILOT_VERSION", self.item.version.to_string()),
            ("PILOT_ATTEMPT", self.claim.attempt.to_string()),
            ("PILOT_WORKFLOW", self.item.workflow.name.to_string()),
            ("PILOT_CONTENT_DIGEST", self.claim.content_digest.clone()),
            (RESULT_FILE, path(&self.files.result)),
            ("PILOT_ARTIFACT_DIR", path(&self.files.artifacts)),
            ("PILOT_URL", self.service.client().url()),
        ];
        if let Some(window) = &*self.item.window {
            variables.push(("PILOT_WINDOW_END", window.not_after.to_string()));
        }
        if self.files.permit.exists() {
            variables.push(("PILOT_PERMIT_FILE", path(&self.files.permit)));
        }
        variables
    }

    async fn look_at_time(&self, running: &mut Running, capture: &Capture) {
        if let Some(beat) = running.beat.take_if(|beat| beat.is_finished()) {
            running.settle(beat).await;
        }
        let is_working = running.ended.is_none() && running.stopped.is_none();
        if is_working && running.beat.is_none() && running.next_beat.is_past() {
            running.beat = Some(self.renew(capture.last_line()));
        }
        if running.ends_by.is_past() && running.stopped.is_none() {
            running.end("its time limit was reached").await;
        }
        let latest = running.fence.stop_at().plus(running.fence.grace() + running.fence.late());
        let is_late = latest.is_past() || running.kill_by.is_some_and(Moment::is_past);
        if is_late && running.left_over.is_none() {
            // The keeper should have done this. It may have been stopped.
            self.clear();
            if let Some(pid) = running.keeper.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
    }

    /// Asks for a longer lease without waiting for the answer.
    fn renew(&self, progress: Option<String>) -> Beat {
        let progress = progress.map(|line| line.chars().take(PROGRESS_CHARS_MAX).collect::<String>());
        let inputs = progress.map_or(json!({}), |progress| json!({"progress": progress}));
        let action = json!({"action": "heartbeat", "inputs": inputs});
        let (service, claim, state) = (Arc::clone(self.service), self.claim.clone(), self.state.to_owned());
        let asked_at = Moment::now();
        let key = format!("{}-heartbeat-{}", self.claim.key, asked_at.millis());
        tokio::spawn(async move {
            let id = &claim.item;
            let mut answer = service.act(id, &action, &key, None).await;
            if matches!(&answer, Err(No::Refused { status: 422, .. })) {
                // An older definition has no progress, or it contained something that must not be stored.
                let plain = json!({"action": "heartbeat"});
                answer = service.act(id, &plain, &format!("{key}-plain"), None).await;
            }
            let length = async {
                let renewed_at = answer?.at;
                let (item, _) = service.item(id).await?;
                let lease = item.lease.as_ref().as_ref().filter(|_| claim.is_held_in(&item, &state));
                Ok(lease.map_or(Duration::ZERO, |lease| lease.expires_at.since(renewed_at)))
            };
            (asked_at, length.await)
        })
    }

    /// Kills everything that can be found.
    fn clear(&self) {
        if let Some(group) = &self.group {
            let _ = group.kill();
        }
        self.files.kill_marked();
    }

    /// Nothing is reported before nothing is left.
    async fn clear_up(&self, running: &Running) {
        let Some(group) = &self.group else {
            while running.left_over.is_none() && self.files.kill_marked() > 0 {
                tokio::time::sleep(TICK).await;
            }
            return;
        };
        while !group.is_empty().unwrap_or(false) {
            self.clear();
            tokio::time::sleep(TICK).await;
        }
        if let Err(error) = group.remove() {
            tracing::warn!(group = %group.path().display(), %error, "an empty control group cannot be removed");
        }
    }

    fn ending(&self, running: &Running) -> Ending {
        match (running.ended, running.left_over) {
            (Some(Report::Exited(code)), Some(left_over)) => {
                let fault = std::fs::read_to_string(&self.files.fault).ok().filter(|_| code == NOT_STARTED);
                fault.map_or(Ending::Exited { code, left_over }, Ending::NotRun)
            }
            (Some(Report::Signalled(signal)), Some(_)) => Ending::Signalled(signal),
            (Some(Report::Stopped), _) => {
                let reason = running.stopped.clone();
                Ending::Stopped(reason.unwrap_or_else(|| "the lease could not be renewed in time".into()))
            }
            _ => Ending::Lost("the process that watched it was killed".into()),
        }
    }
}

impl Running {
    fn hear(&mut self, line: &str) {
        match serde_json::from_str(line) {
            Ok(Report::Empty { left_over }) => {
                (self.left_over, self.emptied_at) = (Some(left_over), Some(Moment::now()));
            }
            Ok(report) => self.ended = Some(report),
            Err(_) => {}
        }
    }

    async fn end(&mut self, why: &str) {
        self.stopped = Some(why.to_owned());
        self.kill_by = Some(Moment::now().plus(self.fence.grace() + self.fence.late()));
        self.order(&Order::End).await;
    }

    /// A keeper that does not read is seen by the time it takes.
    async fn order(&mut self, order: &Order) {
        if let Ok(line) = serde_json::to_string(order) {
            let line = line + "\n";
            let write = self.orders.write_all(line.as_bytes());
            let _ = tokio::time::timeout(TICK, write).await;
        }
    }

    async fn settle(&mut self, beat: Beat) {
        match beat.await {
            Ok((asked_at, Ok(length))) if !length.is_zero() => {
                self.fence = self.fence.renewed(asked_at, length);
                self.next_beat = self.fence.renew_at();
                self.order(&Order::Until(self.fence.stop_at().min(self.ends_by).millis())).await;
            }
            Ok((_, Ok(_))) => self.lose("the item has no lease any more").await,
            Ok((_, Err(No::Refused { detail, .. }))) => self.lose(&format!("the lease was lost: {detail}")).await,
            Ok((_, Err(No::NotYet(why)))) => {
                tracing::warn!(cause = why, "the lease could not be renewed; trying again");
                self.next_beat = Moment::now().plus(self.fence.retry_after());
            }
            Err(_) => self.next_beat = Moment::now().plus(self.fence.retry_after()),
        }
    }

    async fn lose(&mut self, why: &str) {
        self.next_beat = self.fence.stop_at().plus(Duration::from_hours(1));
        if self.stopped.is_none() {
            tracing::error!(cause = why, "the command is stopped");
            self.end(why).await;
        }
    }
}
