//! What is under way when the service stops.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

/// One step of sending. When it is time to stop, the step gets a little longer: the receiver may have the message
/// already, and would get it again after the next start. `None` if it is time to stop.
pub async fn until_stopped<T>(
    step: impl Future<Output = T>,
    stopped: impl Future<Output = ()>,
    patience: Duration,
) -> Option<T> {
    let mut step = pin!(step);
    tokio::select! {
        biased;
        done = &mut step => Some(done),
        () = stopped => {
            let _ = tokio::time::timeout(patience, step).await;
            None
        }
    }
}
