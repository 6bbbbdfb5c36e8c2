//! A request on its way to its handler, and what comes of it.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use http::header::{CONNECTION, HeaderValue};
use http::request::Parts;
use pilot_wire::body::Body;

use crate::app::App;
use crate::budget::Share;
use crate::caller::Caller;
use crate::problem::Problem;
use crate::upload::Upload;

pub type Answer = Result<Response<Body>, Problem>;
pub type Pending = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A request that has passed every check up to its own content.
pub struct Call {
    pub app: Arc<App>,
    pub caller: Caller,
    /// Where the request comes from, as far as that is known.
    pub address: Option<IpAddr>,
    pub head: Parts,
    /// For operations that read one, until it was read.
    pub upload: Option<Upload>,
    /// What stands in the place of the path's variable part.
    pub parameter: Option<String>,
    /// How large a body of this operation may be.
    pub body_bytes_max: usize,
    /// What the call holds of the budget of bytes, until it is answered.
    pub share: Option<Share>,
}

/// The answer stands: lets the client come to reading it. When there is more of the body than that is worth, the answer
/// is the last of its connection.
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
