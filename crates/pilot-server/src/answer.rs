//! A request's path through the service, in the order of the checks: framing, token in the URL, credential, rate limit,
//! route and method, role, then the handler.

use std::sync::Arc;

use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use pilot_setup::config::Origin;
use pilot_wire::body::Body;
use pilot_wire::caps::Cap;
use pilot_wire::clock::Stopwatch;
use pilot_wire::deadline::PeerIsLate;
use pilot_wire::framing::{self, Malformed};
use pilot_wire::peer::Address;
use pilot_wire::served::Served;
use pilot_wire::traffic::Traffic;

use crate::access;
use crate::app::App;
use crate::call::{Call, Pending, end_upload};
use crate::caller::Caller;
use crate::encoding;
use crate::exposure;
use crate::log::RequestLine;
use crate::problem::{Problem, is_for_known_callers};
use crate::rate::Standing;
use crate::routes::{Found, Guarded, Handler, RequestBody, Router, is_under_v1};
use crate::spans::{Answered, Parent};
use crate::upload::Upload;
use crate::workshop::Asker;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What the request's log line and the metrics will say.
#[derive(Default)]
struct Trace {
    operation: Option<(usize, &'static str)>,
    caller: Option<Caller>,
    cause: Option<String>,
    /// What is left of the budget that the request was charged to.
    standing: Option<Standing>,
    address: Option<Address>,
    /// Health, documentation and the console's files, which anyone requests all the time.
    is_open: bool,
}

impl Trace {
    /// These are counted; a line for each would crowd out what matters.
    const fn is_unremarkable(&self, status: u16) -> bool {
        self.is_open && status < 400
    }

    /// Who sent the request, as far as known.
    fn whose(&self) -> String {
        let actor = self.caller.as_ref().map(|caller| caller.actor.actor_id.to_string());
        actor.or_else(|| self.address.map(|address| address.to_string())).unwrap_or_default()
    }
}

/// What the main listener serves: the route table, and what handlers share.
pub struct Door {
    pub router: Router,
    pub app: Arc<App>,
}

impl Served for Door {
    fn traffic(&self) -> &Traffic {
        &self.app.metrics.traffic
    }

    fn refuse(&self, malformed: Malformed) -> Response<Body> {
        refuse(&self.app, malformed.into())
    }

    fn records_origins(&self) -> bool {
        self.app.origin != Origin::Off
    }

    fn is_for_known_callers(status: StatusCode) -> bool {
        is_for_known_callers(status)
    }

    fn is_guarded(path: &str) -> bool {
        is_under_v1(path)
    }
}

pub async fn answer(door: Arc<Door>, request: Request<Incoming>) -> Response<Body> {
    let app = &door.app;
    let watch = Stopwatch::start();
    let request_id = app.request_ids.next();
    let (mut head, body) = request.into_parts();
    let (method, version, guarded) = (head.method.clone(), head.version, is_under_v1(head.uri.path()));
    // Only reads: the answer to a write may be a permit token, and secrets are never compressed.
    let accepts_gzip = method.is_safe() && encoding::accepts(&head.headers, "gzip");
    let traced = app.spans.as_ref().map(|spans| (spans, app.clock.now(), Parent::read(&head.headers)));
    let (mut trace, mut upload) = (Trace::default(), Some(Upload::new(&head.headers, body)));
    let admitted = admit(app, &mut head, &mut trace).await;
    let mut answered = match admitted.and_then(|()| begin(&door, head, &mut upload, &mut trace)) {
        Ok(Started::Answered(response)) => Ok(response),
        Ok(Started::InTime(answer)) => answer.await,
        Err(problem) => Err(problem),
    };
    if let Some(upload) = upload.filter(|upload| !upload.is_at_end()) {
        Box::pin(end_upload(upload, &mut answered)).await;
    }
    if let (Ok(response), Some(caller)) = (&mut answered, &trace.caller) {
        Box::pin(encoding::compress(&app.workshop, &caller.actor.actor_id, accepts_gzip, response)).await;
    }
    if let (Ok(response), Some(caller)) = (&mut answered, &trace.caller)
        && let Some(bytes) = response.body().uncounted()
    {
        // Boxed, because almost every answer is small.
        match Box::pin(app.budget.take(&caller.actor.actor_id, bytes)).await {
            Ok(share) => {
                let body = std::mem::replace(response.body_mut(), Body::empty());
                *response.body_mut() = body.holding(|bytes| share.shrunk_to(bytes));
            }
            // What was recorded must not be answered as if it had not been.
            Err(exhausted) if method.is_safe() => answered = Err(exhausted.into()),
            Err(_) => {}
        }
    }
    let mut response = match answered {
        Ok(response) => response,
        Err(problem) => {
            trace.cause.clone_from(&problem.cause);
            if let Some(cap) = problem.cap {
                app.metrics.traffic.caps.reached(cap, &trace.whose());
            }
            if problem.is_slowed {
                app.flood.hold_back().await;
            }
            let (ends_connection, peer_is_late) = (problem.ends_connection, problem.peer_is_late);
            let mut response = problem.into_response(&request_id);
            if ends_connection && version < Version::HTTP_2 {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            if peer_is_late {
                response.extensions_mut().insert(PeerIsLate);
            }
            response
        }
    };
    if method == Method::HEAD {
        remove_body(&mut response);
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if guarded {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if app.edge.https_only {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    if let Some(standing) = trace.standing {
        standing.write(headers);
    }
    let status = response.status().as_u16();
    let micros = watch.micros();
    app.metrics.answered(trace.operation.map(|(index, _)| index), status, micros);
    write_log_line(app, &request_id, known(&method), &trace, status, micros);
    if let Some((spans, begun, parent)) = traced.filter(|_| !trace.is_unremarkable(status)) {
        let route = trace.operation.and_then(|(index, _)| door.router.routes().get(index));
        spans.note(&Answered {
            // An outsider must not decide what is sent.
            parent: parent.filter(|_| trace.caller.is_some()),
            begun,
            micros,
            request_id: &request_id,
            method: known(&method),
            route: route.map(|route| (route.operation, route.path)),
            role: trace.caller.as_ref().map(|caller| caller.actor.role.as_str()),
            status,
        });
    }
    if let Ok(request_id) = HeaderValue::try_from(request_id) {
        response.headers_mut().insert(X_REQUEST_ID, request_id);
    }
    response
}

/// The answer to a message that never became a request. Nobody can tell what it was about, so it is recorded nowhere.
pub(crate) fn refuse(app: &App, problem: Problem) -> Response<Body> {
    let request_id = app.request_ids.next();
    let mut response = problem.into_response(&request_id);
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    let status = response.status().as_u16();
    app.metrics.answered(None, status, 0);
    write_log_line(app, &request_id, "none", &Trace::default(), status, 0);
    if let Ok(request_id) = HeaderValue::try_from(request_id) {
        response.headers_mut().insert(X_REQUEST_ID, request_id);
    }
    response
}

/// Everything up to the route. Nothing is revealed about what exists before the caller is known.
async fn admit(app: &Arc<App>, head: &mut Parts, trace: &mut Trace) -> Result<(), Problem> {
    framing::check(head)?;
    let address = app.edge.admit(head)?;
    trace.address = Some(address);
    let is_guarded = is_under_v1(head.uri.path());
    // Searching a URL for tokens costs something. For an address that has used up its budget, only callers with a valid
    // credential get that far.
    let is_late = is_guarded && app.limits.as_ref().is_some_and(|limits| limits.is_used_up(address));
    if is_late {
        trace.caller = Some(identify(app, head, address, &mut trace.standing).await?);
    }
    match exposure::refuse_in_url(app, head, address, Asker::at(address)).await {
        // Too much is in progress for this address. Callers with a valid credential have their own quota.
        Err(problem) if problem.cap == Some(Cap::LongTasks) && is_guarded => {
            app.metrics.traffic.caps.reached(Cap::LongTasks, &address);
            if trace.caller.is_none() {
                trace.caller = Some(identify(app, head, address, &mut trace.standing).await?);
            }
            let asker = trace.caller.as_ref().map_or(Asker::at(address), |caller| (&caller.actor.actor_id).into());
            Box::pin(exposure::refuse_in_url(app, head, address, asker)).await?;
        }
        looked => looked?,
    }
    framing::check_target(head)?;
    if is_guarded {
        if trace.caller.is_none() {
            trace.caller = Some(identify(app, head, address, &mut trace.standing).await?);
        }
        if let Some(caller) = &trace.caller {
            access::charge(app, caller, head, &mut trace.standing)?;
        }
    }
    Ok(())
}

async fn identify(
    app: &App,
    head: &Parts,
    address: Address,
    standing: &mut Option<Standing>,
) -> Result<Caller, Problem> {
    let caller = access::authenticate(app, head, address, standing).await?;
    Ok(Caller { origin: app.origin_in_ledger(address), ..caller })
}

/// How far a handler got.
enum Started {
    Answered(Response<Body>),
    InTime(Pending),
}

/// The route, the roles it is open to, and its handler.
fn begin(door: &Door, head: Parts, upload: &mut Option<Upload>, trace: &mut Trace) -> Result<Started, Problem> {
    let app = &door.app;
    let Found { index, route, parameter } = door.router.find(&head.method, head.uri.path())?;
    trace.operation = Some((index, route.operation));
    trace.is_open = !matches!(route.handler, Handler::Guarded(..));
    let answered = match (&route.handler, &trace.caller) {
        (Handler::Open(handler), _) => handler(app),
        (Handler::File(handler), _) => handler(app, &head, parameter.as_deref()),
        (Handler::Guarded(access, handler), Some(caller)) => {
            access::permit(*access, caller).inspect_err(|problem| {
                let (code, now) = (problem.code.as_str(), app.ledger.clock.now());
                app.ledger.refusals.note(&caller.actor, caller.origin, route.operation, code, now);
            })?;
            match handler {
                Guarded::AtOnce(handler) => handler(app, caller, parameter.as_deref()),
                Guarded::InTime(handler) => {
                    let (app, caller) = (Arc::clone(app), caller.clone());
                    let upload = upload.take_if(|_| route.docs.request.is_some());
                    let body_bytes_max = route.docs.request.map_or(0, |RequestBody(.., bytes_max)| bytes_max);
                    let address = trace.address;
                    let call = Call { app, caller, address, head, upload, parameter, body_bytes_max, share: None };
                    return Ok(Started::InTime(handler(call)));
                }
            }
        }
        // The router accepts guarded routes only under /v1, where the caller is known by now.
        (Handler::Guarded(..), None) => Err(Problem::credential_required(false, None)),
    };
    answered.map(Started::Answered)
}

/// HEAD has the headers of GET but no body.
pub(crate) fn remove_body(response: &mut Response<Body>) {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
}

fn write_log_line(app: &App, request_id: &str, method: &str, trace: &Trace, status: u16, micros: u64) {
    if trace.is_unremarkable(status) {
        return;
    }
    let caller = trace.caller.as_ref();
    let origin = trace.address.filter(|_| app.origin != Origin::Off).map(|address| address.to_string());
    app.log.request(&RequestLine {
        request_id,
        method,
        operation: trace.operation.map_or("none", |(_, operation)| operation),
        actor_id: caller.map_or("", |caller| caller.actor.actor_id.as_str()),
        role: caller.map_or("", |caller| caller.actor.role.as_str()),
        origin: origin.as_deref().unwrap_or(""),
        client_id: caller.and_then(|caller| caller.client.as_deref()).unwrap_or(""),
        cause: trace.cause.as_deref().unwrap_or(""),
        status,
        micros,
    });
}

/// A method is free text from the client, so only the known ones are repeated.
fn known(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PATCH | Method::PUT | Method::DELETE | Method::OPTIONS => {
            method.as_str()
        }
        _ => "other",
    }
}
