//! The life of one attempt: claimed, run, reported. Each step is in the journal before the next one begins.

use std::sync::Arc;
use std::time::Duration;

use pilot_api::items::ItemView;
use pilot_core::time::Time;
use serde_json::json;

use crate::permit;
use crate::work::agent::{Agent, Ended, PAUSE_MIN, Wish};
use crate::work::boot::{self, Moment};
use crate::work::captured::Capture;
use crate::work::group::Group;
use crate::work::journal::{Attempt, Claim, Report, Stand, Step};
use crate::work::lease::Fence;
use crate::work::outcome::Ending;
use crate::work::report::{self, Delivered};
use crate::work::run::{Files, Run};
use crate::work::service::{Answer, No};

/// It was made a moment ago.
const PERMIT_AGE_MAX: Duration = Duration::from_mins(10);

/// A lease that was granted, and the item at that time.
struct Granted {
    fence: Fence,
    state: String,
    item: ItemView<'static>,
    bytes: Vec<u8>,
}

const MOVED_ON: &str = "the item moved on before it could be started";

pub(crate) async fn live(agent: Arc<Agent>, claim: Claim, stand: Stand, attempt: Attempt) -> Ended {
    let report = match stand {
        Stand::New | Stand::Claiming | Stand::Claimed { .. } => match agent.obtain(&claim, &stand).await {
            Ok(granted) => agent.run(&claim, granted, &attempt).await,
            Err(Ended::MovedOn) => {
                let ending = Ending::NotRun(MOVED_ON.into());
                // In no state: all that can be said is a comment.
                report::of(&agent, &claim, "", &ending, None, &Files::of(&attempt)).await
            }
            Err(Ended::NotGranted(why)) => {
                attempt.forget();
                return Ended::NotGranted(why);
            }
            Err(ended) => return ended,
        },
        Stand::Spawned { boot_id, group, state } => {
            let ending = agent.clear(&attempt, &boot_id, group.map(Group::at)).await;
            report::of(&agent, &claim, &state, &ending, None, &Files::of(&attempt)).await
        }
        Stand::Exited(report) => report,
        Stand::Reported => return Ended::Unfinished,
    };
    agent.finish(&claim, report, &attempt).await
}

impl Agent {
    /// Asks for the lease until the service has answered.
    async fn obtain(&self, claim: &Claim, stand: &Stand) -> Result<Granted, Ended> {
        let (asked_at, mut pause) = (Moment::now(), PAUSE_MIN);
        loop {
            let granted = match stand {
                Stand::New | Stand::Claiming => self.claim(claim, asked_at, matches!(stand, Stand::New)).await,
                Stand::Claimed { state } => self.resume(claim, state).await,
                _ => return Err(Ended::Unfinished),
            };
            match granted {
                Ok(Some(granted)) => return Ok(granted),
                Ok(None) => return Err(Ended::MovedOn),
                Err(No::Refused { .. }) if matches!(stand, Stand::Claimed { .. }) => return Err(Ended::MovedOn),
                Err(No::Refused { detail, .. }) => return Err(Ended::NotGranted(detail)),
                Err(No::NotYet(why)) => tracing::warn!(item.id = %claim.item, cause = why, "not claimed yet"),
            }
            if *self.wish.borrow() == Wish::Drain {
                // The journal has the claim; the next run asks again.
                return Err(Ended::Unfinished);
            }
            self.pause(&mut pause).await?;
        }
    }

    /// Nothing if the item has moved on since. Unless it was asked for just now, the lease is renewed: it may have been
    /// granted to an agent that died before it heard of it.
    async fn claim(&self, claim: &Claim, asked_at: Moment, is_new: bool) -> Answer<Option<Granted>> {
        let action = json!({"action": claim.action, "content_digest": claim.content_digest});
        let granted = self.service.act(&claim.item, &action, &claim.key, Some(claim.version)).await?;
        let state = granted.to.unwrap_or_default();
        let looked = self.look(claim, asked_at, granted.at, &state).await?;
        match looked {
            Some(looked) if is_new && !looked.fence.renew_at().is_past() => Ok(Some(looked)),
            Some(_) => self.resume(claim, &state).await,
            None => Ok(None),
        }
    }

    /// After a restart: renews the lease if it still is for this attempt.
    async fn resume(&self, claim: &Claim, state: &str) -> Answer<Option<Granted>> {
        // The heartbeat would be refused in most cases, but not during a roll-back by the same actor.
        let (item, _) = self.service.item(&claim.item).await?;
        if !claim.is_held_in(&item, state) {
            return Ok(None);
        }
        let asked_at = Moment::now();
        let key = format!("{}-resume-{}", claim.key, asked_at.millis());
        let renewed = self.service.act(&claim.item, &json!({"action": "heartbeat"}), &key, None).await?;
        self.look(claim, asked_at, renewed.at, state).await
    }

    /// The item under a lease that was given at `at` by the service's clock.
    async fn look(&self, claim: &Claim, asked_at: Moment, at: Time, state: &str) -> Answer<Option<Granted>> {
        let (item, bytes) = self.service.item(&claim.item).await?;
        let Some(lease) = item.lease.as_ref().clone().filter(|_| claim.is_held_in(&item, state)) else {
            return Ok(None);
        };
        let fence = Fence::new(asked_at, lease.expires_at.since(at), self.settings.kill_grace);
        Ok(Some(Granted { fence, state: state.to_owned(), item, bytes }))
    }

    /// Runs the command, unless something is missing for that.
    async fn run(&self, claim: &Claim, granted: Granted, attempt: &Attempt) -> Report {
        let files = Files::of(attempt);
        let group = self.settings.group_home.as_ref();
        let group = group.map(|home| Group::at(home.join(format!("pilot-{}.{}", claim.item, claim.attempt))));
        if let Err(why) = self.prepare(claim, &granted, attempt, &files, group.as_ref()).await {
            return report::of(self, claim, &granted.state, &Ending::NotRun(why), None, &files).await;
        }
        tracing::info!(item.id = %claim.item, attempt = claim.attempt, "executing item `{}`", claim.item);
        let run = Run {
            service: &self.service,
            settings: &self.settings,
            claim,
            item: &granted.item,
            state: &granted.state,
            files: &files,
            group,
            fence: granted.fence,
        };
        let mut capture = Capture::new(&files.output, self.settings.variables.masks(), self.settings.output_bytes_max);
        let ending = run.carry_out(&mut capture, self.stop.clone()).await;
        let ending = ending.unwrap_or_else(|error| Ending::NotRun(error.to_string()));
        report::of(self, claim, &granted.state, &ending, Some(capture.finish()), &files).await
    }

    /// Everything that has to be there before the command may start. The last is the line of the journal after which
    /// nobody will start it again.
    async fn prepare(
        &self,
        claim: &Claim,
        granted: &Granted,
        attempt: &Attempt,
        files: &Files,
        group: Option<&Group>,
    ) -> Result<(), String> {
        let journal = |error: std::io::Error| {
            self.gauges.journal_failed(&error);
            format!("the agent's journal cannot be written: {error}")
        };
        attempt.record(&Step::Claimed { state: granted.state.clone() }).map_err(journal)?;
        std::fs::create_dir_all(&files.artifacts).map_err(journal)?;
        std::fs::write(&files.item, &granted.bytes).map_err(journal)?;
        self.fetch_permit(claim, granted, files).await?;
        if let Some(group) = group {
            // One that was left by an agent that died before the command began is empty.
            group.remove().and_then(|()| group.make()).map_err(|error| format!("no control group: {error}"))?;
        }
        let group = group.map(|group| group.path().to_owned());
        attempt.record(&Step::Spawned { boot_id: boot::id(), group }).map_err(journal)
    }

    /// Within the lease.
    async fn fetch_permit(&self, claim: &Claim, granted: &Granted, files: &Files) -> Result<(), String> {
        let mut pause = PAUSE_MIN;
        loop {
            match self.service.permit(&claim.item).await {
                Ok(permit) => {
                    std::fs::write(&files.permit, &permit).map_err(|error| error.to_string())?;
                    return self.check_permit(claim, &granted.item, &permit);
                }
                // A service that is older than this agent has none.
                Err(No::Refused { status: 404, .. }) if self.settings.policy.is_none() => return Ok(()),
                Err(No::Refused { detail, .. }) => return Err(format!("there is no permit: {detail}")),
                Err(No::NotYet(why)) if granted.fence.renew_at().is_past() => {
                    return Err(format!("there is no permit: {why}"));
                }
                Err(No::NotYet(_)) => {}
            }
            self.pause(&mut pause).await.map_err(|_| "the agent was told to stop".to_owned())?;
        }
    }

    /// With a policy, the service's word is not enough: the log and its witnesses have to agree.
    fn check_permit(&self, claim: &Claim, item: &ItemView<'_>, bundle: &[u8]) -> Result<(), String> {
        let Some(policy) = &self.settings.policy else { return Ok(()) };
        let permit = permit::verify(bundle, policy, PERMIT_AGE_MAX).map_err(|failure| failure.text().to_owned())?;
        let is_ours = permit.item.id == claim.item
            && permit.item.attempts == claim.attempt
            && permit.item.content_digest.to_string() == claim.content_digest
            && permit.begun.actor.actor_id.as_str() == claim.actor_id;
        if !is_ours {
            return Err("the service sent the permit of another attempt".into());
        }
        // What the command reads must be what the log proves to be approved.
        if *permit.item.title != *item.title || permit.item.payload.value() != item.payload.value() {
            return Err("the service sent another content than the one that was approved".into());
        }
        Ok(())
    }

    /// After a restart: the command may have been started, so it is never started again. Whatever is left of it is
    /// killed, and nobody saw how it ended.
    async fn clear(&self, attempt: &Attempt, boot_id: &str, group: Option<Group>) -> Ending {
        let files = Files::of(attempt);
        let is_this_boot = boot_id == boot::id();
        let is_clear = || match &group {
            _ if !is_this_boot => true,
            Some(group) => group.kill().and_then(|()| group.is_empty()).unwrap_or(false),
            None => files.kill_marked() == 0,
        };
        while !is_clear() {
            tokio::time::sleep(PAUSE_MIN).await;
        }
        if let Some(Err(error)) = group.as_ref().map(Group::remove) {
            tracing::warn!(%error, "an empty control group cannot be removed");
        }
        let why = if is_this_boot { "the agent ended while it ran" } else { "the machine was restarted while it ran" };
        Ending::Lost(why.into())
    }

    /// The report is in the journal first, so that it stays the same whatever happens.
    async fn finish(&self, claim: &Claim, report: Report, attempt: &Attempt) -> Ended {
        if let Err(error) = attempt.record(&Step::Exited(report.clone())) {
            self.gauges.journal_failed(&error);
        }
        let (action, exit_code) = (report.action.clone(), report.exit_code);
        let delivered = match report::deliver(self, claim, &report).await {
            Ok(delivered) => delivered,
            Err(ended) => return ended,
        };
        if let Err(error) = attempt.record(&Step::Reported) {
            self.gauges.journal_failed(&error);
        }
        match delivered {
            Delivered::Recorded => {
                self.gauges.reported(&action);
                tracing::info!(item.id = %claim.item, action, "reported `{action}` for item `{}`", claim.item);
                Ended::Reported { action, exit_code }
            }
            Delivered::Commented => {
                self.gauges.reported("unknown");
                Ended::Commented
            }
        }
    }
}
