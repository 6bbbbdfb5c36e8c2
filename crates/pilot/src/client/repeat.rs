//! Writes whose answer was lost, repeated under the same idempotency key: however often they arrive, they are recorded
//! once.

use std::time::Duration;

use pilot_setup::random;

use crate::client::{Ask, Client, Reply};
use crate::exit::Failure;
use crate::output::note;

const TRIES_MAX: u32 = 5;
/// Before the second try; each further pause is twice as long. In all 7.5 s, which is longer than a restart takes.
const PAUSE: Duration = Duration::from_millis(500);

/// A key that nobody has used.
pub(crate) fn new_key() -> Result<String, Failure> {
    let bytes: [u8; 16] = random::bytes()?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

impl Client {
    /// A write under this key, until it is answered or the tries are used up.
    pub(crate) async fn write(&self, ask: Ask<'_>, key: &str) -> Result<Reply, Failure> {
        let outcome = self.insist(ask.key(key)).await;
        if !is_lost(&outcome) {
            return outcome;
        }
        let text = outcome.map_or_else(|failure| failure, |reply| reply.refusal());
        Err(Failure::Environment(format!(
            "{}\nit is not known whether this was recorded; the same command with --idempotency-key {key} repeats it \
             safely within 24 hours",
            text.text()
        )))
    }

    /// The same request again while its answer is lost. Only for requests that are safe to repeat.
    pub(crate) async fn insist(&self, ask: Ask<'_>) -> Result<Reply, Failure> {
        let mut tries = Tries::default();
        loop {
            let outcome = self.ask(ask.clone()).await;
            if !is_lost(&outcome) || !tries.again().await? {
                return outcome;
            }
        }
    }
}

/// Whether the service may have done it without our hearing of it, or may be about to come back.
pub(crate) fn is_lost(outcome: &Result<Reply, Failure>) -> bool {
    match outcome {
        Ok(reply) => matches!(reply.status(), 502..=504),
        Err(Failure::Environment(_)) => true,
        Err(_) => false,
    }
}

/// A bounded number of tries.
pub(crate) struct Tries {
    used: u32,
    pause: Duration,
}

impl Default for Tries {
    fn default() -> Tries {
        Tries { used: 1, pause: PAUSE }
    }
}

impl Tries {
    /// Pauses before the next try; false if that was the last.
    pub(crate) async fn again(&mut self) -> Result<bool, Failure> {
        if self.used == TRIES_MAX {
            return Ok(false);
        }
        self.used += 1;
        note(&format!("no answer from the service; trying again ({} of {TRIES_MAX})", self.used))?;
        tokio::time::sleep(self.pause).await;
        self.pause *= 2;
        Ok(true)
    }
}
