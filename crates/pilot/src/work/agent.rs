//! What the attempts of an agent share.

use std::sync::Arc;
use std::time::Duration;

use pilot_core::leak::LeakGuard;
use tokio::sync::watch;

use crate::work::gauges::Gauges;
use crate::work::service::Service;
use crate::work::settings::Settings;

/// Between two attempts to reach the service.
pub(crate) const PAUSE_MIN: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(15);

pub(crate) struct Agent {
    pub service: Arc<Service>,
    pub settings: Settings,
    /// Knows the agent's own token.
    pub guard: LeakGuard,
    pub gauges: Arc<Gauges>,
    pub wish: watch::Receiver<Wish>,
    /// Commands are to end now.
    pub stop: watch::Receiver<bool>,
}

/// What is asked of the agent from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Work,
    /// Start nothing more.
    Drain,
}

/// How an attempt ended for the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    Reported {
        action: String,
        exit_code: i32,
    },
    /// The item had moved on, so its end is in a comment.
    Commented,
    /// The service did not grant it.
    NotGranted(String),
    /// It was granted, but the item moved on before the command was started.
    MovedOn,
    /// The agent had to end first. The journal has what is left to do.
    Unfinished,
}

/// Returns when the agent is told to stop its commands.
pub(crate) async fn told_to(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|stop| *stop).await.is_err() {
        std::future::pending::<()>().await;
    }
}

impl Agent {
    /// Waits a little longer each time, and not at all when the agent is to end.
    pub(crate) async fn pause(&self, pause: &mut Duration) -> Result<(), Ended> {
        let mut stop = self.stop.clone();
        tokio::select! {
            () = told_to(&mut stop) => Err(Ended::Unfinished),
            () = tokio::time::sleep(*pause) => {
                *pause = (2 * *pause).min(PAUSE_MAX);
                Ok(())
            }
        }
    }
}
