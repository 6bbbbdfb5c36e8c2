//! For supervisors and load balancers. Neither answer says anything about items, actors or credentials.

use pilot_api::health::HealthView;
use pilot_store::StoreError;

use crate::api::answers::json;
use crate::app::App;
use crate::call::Answer;
use crate::problem::{Code, Problem};

pub fn get_health(_: &App) -> Answer {
    json(&HealthView { status: "ok", limits_reached: Vec::new() })
}

pub fn get_readiness(app: &App) -> Answer {
    if app.is_draining() {
        return Err(Problem::new(Code::Unavailable, "The service is shutting down."));
    }
    if let Err(error) = app.ledger.store.check_current() {
        let detail = "This node cannot reach the ledger, or may no longer write it. See the log for the cause.";
        return Err(Problem::unavailable(detail, &error));
    }
    if let Err(error) = app.ledger.store.check() {
        let detail = match error {
            StoreError::Hangs(_) => "The disk is not responding, and writes are waiting for it.",
            StoreError::DiskFailed(_)
            | StoreError::Damaged(_)
            | StoreError::Unavailable(_)
            | StoreError::Full(_)
            | StoreError::Refused(_) => "Nothing can be written. See the log for the cause.",
        };
        return Err(Problem::unavailable(detail, &error));
    }
    app.ledger.check_writing()?;
    if let Err(cause) = app.identity.check() {
        return Err(Problem::unavailable(
            "Nobody can sign in: tokens cannot be verified. See the log for the cause.",
            &cause,
        ));
    }
    json(&HealthView { status: "ready", limits_reached: app.metrics.traffic.caps.lately() })
}
