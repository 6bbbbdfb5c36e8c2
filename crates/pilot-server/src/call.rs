//! A request on its way to its handler, and its answer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use pilot_wire::body::Body;
use pilot_wire::peer::Address;

use crate::app::App;
use crate::budget::Share;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::upload::Upload;

pub type Answer = Result<Response<Body>, Problem>;
pub type Pending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request that has passed every check except those of its own content.
pub struct Call {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Where the request comes from, as far as known.
    pub address: Option<Address>,
    pub head: Parts,
    /// For operations that read a body, until it was read.
    pub upload: Option<Upload>,
    /// The value of the path's variable part.
    pub parameter: Option<String>,
    /// How large a body this operation accepts.
    pub body_bytes_max: usize,
    /// The call's share of the byte budget, held until it is answered.
    pub share: Option<Share>,
}

/// The answer is decided; this reads the rest of the body so that the client gets to read the answer. If too much of
/// the body is left, the answer is the last on its connection.
pub async fn end_upload(upload: Upload, answer: &mut Answer) {
    let is_over = matches!(answer, Err(problem) if problem.ends_connection);
    if is_over || upload.read_away().await {
        return;
    }
    match answer {
        Ok(response) => drop(response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"))),
        Err(problem) => problem.ends_connection = true,
    }
}
