//! What a listener needs from whatever it serves.

use http::{Response, StatusCode};

use crate::body::Body;
use crate::framing::Malformed;
use crate::traffic::Traffic;

/// What is behind a listener.
pub trait Served: Send + Sync + 'static {
    /// Whether the log may say where connections came from.
    fn records_origins(&self) -> bool {
        false
    }

    /// Where connections are counted.
    fn traffic(&self) -> &Traffic;

    /// The answer to a message that never became a request.
    fn refuse(&self, malformed: Malformed) -> Response<Body>;

    /// Whether an answer with this status, at a path that `is_guarded`, goes only to known callers. Their connections
    /// are the last to be closed when there are too many.
    fn is_for_known_callers(_status: StatusCode) -> bool {
        false
    }

    /// Whether a path is open only to known callers.
    fn is_guarded(_path: &str) -> bool {
        false
    }
}
