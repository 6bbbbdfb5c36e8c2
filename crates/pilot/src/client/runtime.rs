//! Waiting for answers, on one thread.

use crate::exit::Failure;

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|error| Failure::environment("runtime", error))
}
