//! Why something cannot start: the operator has to change something, or the environment failed.

use pilot_store::StoreError;

use crate::random;

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operator has to change something: exit code 2.
    #[error("{0}")]
    Refused(String),
    /// The environment failed (disk, port, permissions): exit code 3.
    #[error("{what}")]
    Environment { what: String, source: Option<Box<dyn std::error::Error + Send + Sync>> },
}

impl StartError {
    pub fn environment(what: impl Into<String>, source: impl std::error::Error + Send + Sync + 'static) -> StartError {
        StartError::Environment { what: what.into(), source: Some(Box::new(source)) }
    }
}

impl From<random::NoRandomness> for StartError {
    fn from(error: random::NoRandomness) -> Self {
        StartError::environment("no random numbers", error)
    }
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(_) | StoreError::Damaged(_) => StartError::Refused(error.to_string()),
            StoreError::Unavailable(_) | StoreError::Full(_) | StoreError::DiskFailed(_) | StoreError::Hangs(_) => {
                StartError::Environment { what: error.to_string(), source: None }
            }
        }
    }
}

/// An error and its cause, on one line.
pub fn with_cause(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

/// The service does not run on the configured store.
pub fn no_such_store() -> StartError {
    let refused =
        "store.url: is not the address of a store; write \"sqlite:pilot.db\" or \"postgres://user@host/database\"";
    StartError::Refused(refused.into())
}
