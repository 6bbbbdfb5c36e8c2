//! A request's path through the service, in the order of the checks: framing, token in the URL, credential, rate limit,
//! route and method, role, then the handler.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, HeaderName, HeaderValue, STRICT_TRANSPORT_SECURITY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use hyper::body::Incoming;
use pilot_core::limits::TOKEN_BYTES_MIN;
use pilot_core::time::Time;
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
use crate::app::{App, RequestId};
use crate::call::{Answer, Call, Pending, end_upload};
use crate::caller::{Access, Caller};
use crate::encoding;
use crate::exposure;
use crate::log::RequestLine;
use crate::problem::{Problem, is_for_known_callers};
use crate::rate::Standing;
use crate::routes::{Found, FoundAtOnce, Guarded, Handler, RequestBody, Router, is_under_v1};
use crate::spans::{Answered, Parent};
use crate::upload::Upload;
use crate::workshop::Asker;

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// A request in progress: what its answer, its log line, its span and the metrics will say.
struct Exchange {
    watch: Stopwatch,
    request_id: RequestId,
    method: Method,
    version: Version,
    is_guarded: bool,
    accepts_gzip: bool,
    /// When it began, and what it is a part of, if spans are kept.
    traced: Option<(Time, Option<Parent>)>,
    operation: Option<(usize, &'static str)>,
    caller: Option<Caller>,
    cause: Option<String>,
    /// What is left of the budget that the request was charged to.
    standing: Option<Standing>,
    /// The caller's; until that is known, the peer's.
    address: Address,
    /// Health, documentation and the console's files, which anyone requests all the time.
    is_open: bool,
}

impl Exchange {
    fn begin(app: &App, head: &Parts, peer: Address) -> Exchange {
        Exchange {
            watch: Stopwatch::start(),
            request_id: app.request_ids.next(),
            method: head.method.clone(),
            version: head.version,
            is_guarded: is_under_v1(head.uri.path()),
            // Only reads: the answer to a write may be a permit token, and secrets are never compressed.
            accepts_gzip: head.method.is_safe() && encoding::accepts(&head.headers, "gzip"),
            traced: app.spans.as_ref().map(|_| (app.clock.now(), Parent::read(&head.headers))),
            operation: None,
            caller: None,
            cause: None,
            standing: None,
            address: peer,
            is_open: false,
        }
    }

    /// These are counted; a line for each would crowd out what matters.
    const fn is_unremarkable(&self, status: u16) -> bool {
        self.is_open && status < 400
    }

    /// Who sent the request, as far as known.
    fn whose(&self) -> String {
        let actor = self.caller.as_ref().map(|caller| caller.actor.actor_id.to_string());
        actor.unwrap_or_else(|| self.address.to_string())
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

/// An answer, or the way to it.
pub enum Answering {
    AtOnce(Option<Response<Body>>),
    InTime(Pin<Box<dyn Future<Output = Response<Body>> + Send>>),
}

impl Future for Answering {
    type Output = Response<Body>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Response<Body>> {
        match self.get_mut() {
            Answering::AtOnce(response) => response.take().map_or(Poll::Pending, Poll::Ready),
            Answering::InTime(answer) => answer.as_mut().poll(context),
        }
    }
}

/// What needs nothing that has to be waited for is answered at once: handing a future around costs as much as such an
/// answer does.
pub fn answer(door: Arc<Door>, peer: Address, request: Request<Incoming>) -> Answering {
    let (head, body) = request.into_parts();
    let (exchange, upload) = (Exchange::begin(&door.app, &head, peer), Upload::new(&head.headers, body));
    let is_immediate = upload.is_at_end() && is_local(&door.app, &head);
    let find = || door.router.find_at_once(&head.method, head.uri.path());
    match is_immediate.then(find).flatten() {
        Some(found) => answer_at_once(&door, exchange, head, &found),
        None => Answering::InTime(Box::pin(answer_in_time(door, exchange, head, upload))),
    }
}

/// Whether the caller is known without asking anyone, and the target is too short for a token, so that nothing has to be
/// searched for one.
fn is_local(app: &App, head: &Parts) -> bool {
    app.identity.is_local() && exposure::searched(head).iter().map(|part| part.len()).sum::<usize>() < TOKEN_BYTES_MIN
}

/// In the order of [`answer_in_time`].
fn answer_at_once(door: &Arc<Door>, mut exchange: Exchange, mut head: Parts, found: &FoundAtOnce) -> Answering {
    let app = &door.app;
    let mut answered = admit_at_once(app, &mut head, &mut exchange).and_then(|()| {
        exchange.operation = Some((found.index, found.operation));
        let caller = exchange.caller.as_ref().ok_or_else(|| Problem::credential_required(false, None))?;
        permit(app, found.access, found.operation, caller)?;
        (found.handler)(app, caller, found.parameter.as_deref())
    });
    let packing = answered.as_mut().ok().and_then(|response| encoding::to_compress(exchange.accepts_gzip, response));
    let has_to_wait = match &answered {
        Ok(response) => packing.is_some() || response.body().uncounted().is_some(),
        Err(problem) => problem.is_slowed,
    };
    if has_to_wait {
        let door = Arc::clone(door);
        return Answering::InTime(Box::pin(async move {
            let response = complete(&door.app, &mut exchange, answered, packing).await;
            finish(&door, &exchange, response)
        }));
    }
    let response = answered.unwrap_or_else(|problem| refused(app, &mut exchange, problem));
    Answering::AtOnce(Some(finish(door, &exchange, response)))
}

async fn answer_in_time(door: Arc<Door>, mut exchange: Exchange, mut head: Parts, upload: Upload) -> Response<Body> {
    let app = &door.app;
    let mut upload = Some(upload);
    let admitted = admit(app, &mut head, &mut exchange).await;
    let mut answered = match admitted.and_then(|()| begin(&door, head, &mut upload, &mut exchange)) {
        Ok(Started::Answered(response)) => Ok(response),
        Ok(Started::InTime(answer)) => answer.await,
        Err(problem) => Err(problem),
    };
    if let Some(upload) = upload.filter(|upload| !upload.is_at_end()) {
        Box::pin(end_upload(upload, &mut answered)).await;
    }
    let packing = match (&mut answered, &exchange.caller) {
        (Ok(response), Some(_)) => encoding::to_compress(exchange.accepts_gzip, response),
        _ => None,
    };
    let response = complete(app, &mut exchange, answered, packing).await;
    finish(&door, &exchange, response)
}

/// What may take a while after the handler has answered: compressing, waiting for memory, and slowing down a flood.
async fn complete(app: &App, exchange: &mut Exchange, mut answered: Answer, packing: Option<Bytes>) -> Response<Body> {
    // Boxed, because almost every answer is small.
    if let (Ok(response), Some(caller), Some(bytes)) = (&mut answered, &exchange.caller, packing) {
        Box::pin(encoding::compress(&app.workshop, &caller.actor.actor_id, bytes, response)).await;
    }
    if let (Ok(response), Some(caller)) = (&mut answered, &exchange.caller)
        && let Some(bytes) = response.body().uncounted()
    {
        match Box::pin(app.budget.take(&caller.actor.actor_id, bytes)).await {
            Ok(share) => {
                let body = std::mem::replace(response.body_mut(), Body::empty());
                *response.body_mut() = body.holding(|bytes| share.shrunk_to(bytes));
            }
            // What was recorded must not be answered as if it had not been.
            Err(exhausted) if exchange.method.is_safe() => answered = Err(exhausted.into()),
            Err(_) => {}
        }
    }
    match answered {
        Ok(response) => response,
        Err(problem) => {
            let is_slowed = problem.is_slowed;
            let response = refused(app, exchange, problem);
            if is_slowed {
                app.flood.hold_back().await;
            }
            response
        }
    }
}

fn refused(app: &App, exchange: &mut Exchange, problem: Problem) -> Response<Body> {
    exchange.cause.clone_from(&problem.cause);
    if let Some(cap) = problem.cap {
        app.metrics.traffic.caps.reached(cap, &exchange.whose());
    }
    let (ends_connection, peer_is_late) = (problem.ends_connection, problem.peer_is_late);
    let mut response = problem.into_response(exchange.request_id.as_str());
    if ends_connection && exchange.version < Version::HTTP_2 {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if peer_is_late {
        response.extensions_mut().insert(PeerIsLate);
    }
    response
}

/// The headers that every answer has, and what is written down about it.
fn finish(door: &Door, exchange: &Exchange, mut response: Response<Body>) -> Response<Body> {
    let app = &door.app;
    if exchange.method == Method::HEAD {
        remove_body(&mut response);
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if exchange.is_guarded {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    if app.edge.https_only {
        headers.insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    if let Some(standing) = exchange.standing {
        standing.write(headers);
    }
    mark(&mut response, exchange.request_id);
    let (status, micros) = (response.status().as_u16(), exchange.watch.micros());
    app.metrics.answered(exchange.operation.map(|(index, _)| index), status, micros);
    if exchange.is_unremarkable(status) {
        return response;
    }
    write_log_line(app, exchange, status, micros);
    if let (Some(spans), Some((begun, parent))) = (&app.spans, exchange.traced) {
        let route = exchange.operation.and_then(|(index, _)| door.router.routes().get(index));
        spans.note(&Answered {
            // An outsider must not decide what is sent.
            parent: parent.filter(|_| exchange.caller.is_some()),
            begun,
            micros,
            request_id: exchange.request_id.as_str(),
            method: known(&exchange.method),
            route: route.map(|route| (route.operation, route.path)),
            role: exchange.caller.as_ref().map(|caller| caller.actor.role.as_str()),
            status,
        });
    }
    response
}

fn mark(response: &mut Response<Body>, request_id: RequestId) {
    if let Ok(request_id) = HeaderValue::from_str(request_id.as_str()) {
        response.headers_mut().insert(X_REQUEST_ID, request_id);
    }
}

/// The answer to a message that never became a request. Nobody can tell what it was about, so it is recorded nowhere.
pub(crate) fn refuse(app: &App, problem: Problem) -> Response<Body> {
    let request_id = app.request_ids.next();
    let mut response = problem.into_response(request_id.as_str());
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    mark(&mut response, request_id);
    let status = response.status().as_u16();
    app.metrics.answered(None, status, 0);
    app.log.request(&RequestLine {
        request_id: request_id.as_str(),
        method: "none",
        operation: "none",
        status,
        ..RequestLine::default()
    });
    response
}

/// As [`admit`], where nothing has to be waited for and the target cannot contain a token.
fn admit_at_once(app: &App, head: &mut Parts, exchange: &mut Exchange) -> Result<(), Problem> {
    framing::check(head)?;
    let address = app.edge.admit(head, exchange.address)?;
    exchange.address = address;
    framing::check_target(head)?;
    let caller = access::authenticate_at_once(app, head, address, &mut exchange.standing)?;
    let caller = exchange.caller.insert(Caller { origin: app.origin_in_ledger(address), ..caller });
    access::charge(app, caller, head, &mut exchange.standing)
}

/// Everything up to the route. Nothing is revealed about what exists before the caller is known.
async fn admit(app: &Arc<App>, head: &mut Parts, exchange: &mut Exchange) -> Result<(), Problem> {
    framing::check(head)?;
    let address = app.edge.admit(head, exchange.address)?;
    exchange.address = address;
    let is_guarded = is_under_v1(head.uri.path());
    // Searching a URL for tokens costs something. For an address that has used up its budget, only callers with a valid
    // credential get that far.
    let is_late = is_guarded && app.limits.as_ref().is_some_and(|limits| limits.is_used_up(address));
    if is_late {
        exchange.caller = Some(identify(app, head, address, &mut exchange.standing).await?);
    }
    match exposure::refuse_in_url(app, head, address, Asker::at(address)).await {
        // Too much is in progress for this address. Callers with a valid credential have their own quota.
        Err(problem) if problem.cap == Some(Cap::LongTasks) && is_guarded => {
            app.metrics.traffic.caps.reached(Cap::LongTasks, &address);
            if exchange.caller.is_none() {
                exchange.caller = Some(identify(app, head, address, &mut exchange.standing).await?);
            }
            let asker = exchange.caller.as_ref().map_or(Asker::at(address), |caller| (&caller.actor.actor_id).into());
            Box::pin(exposure::refuse_in_url(app, head, address, asker)).await?;
        }
        looked => looked?,
    }
    framing::check_target(head)?;
    if is_guarded {
        if exchange.caller.is_none() {
            exchange.caller = Some(identify(app, head, address, &mut exchange.standing).await?);
        }
        if let Some(caller) = &exchange.caller {
            access::charge(app, caller, head, &mut exchange.standing)?;
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
fn begin(door: &Door, head: Parts, upload: &mut Option<Upload>, exchange: &mut Exchange) -> Result<Started, Problem> {
    let app = &door.app;
    let Found { index, route, parameter } = door.router.find(&head.method, head.uri.path())?;
    exchange.operation = Some((index, route.operation));
    exchange.is_open = !matches!(route.handler, Handler::Guarded(..));
    let answered = match (&route.handler, &exchange.caller) {
        (Handler::Open(handler), _) => handler(app),
        (Handler::File(handler), _) => handler(app, &head, parameter.as_deref()),
        (Handler::Guarded(access, handler), Some(caller)) => {
            permit(app, *access, route.operation, caller)?;
            match handler {
                Guarded::AtOnce(handler) => handler(app, caller, parameter.as_deref()),
                Guarded::InTime(handler) => {
                    let (app, caller) = (Arc::clone(app), caller.clone());
                    let upload = upload.take_if(|_| route.docs.request.is_some());
                    let body_bytes_max = route.docs.request.map_or(0, |RequestBody(.., bytes_max)| bytes_max);
                    let address = Some(exchange.address);
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

/// A refusal for the role is recorded.
fn permit(app: &App, access: Access, operation: &str, caller: &Caller) -> Result<(), Problem> {
    access::permit(access, caller).inspect_err(|problem| {
        let (code, now) = (problem.code.as_str(), app.ledger.clock.now());
        app.ledger.refusals.note(&caller.actor, caller.origin, operation, code, now);
    })
}

/// HEAD has the headers of GET but no body.
pub(crate) fn remove_body(response: &mut Response<Body>) {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *response.body_mut() = Body::empty();
}

fn write_log_line(app: &App, exchange: &Exchange, status: u16, micros: u64) {
    let caller = exchange.caller.as_ref();
    let origin = (app.origin != Origin::Off).then(|| exchange.address.to_string());
    app.log.request(&RequestLine {
        request_id: exchange.request_id.as_str(),
        method: known(&exchange.method),
        operation: exchange.operation.map_or("none", |(_, operation)| operation),
        actor_id: caller.map_or("", |caller| caller.actor.actor_id.as_str()),
        role: caller.map_or("", |caller| caller.actor.role.as_str()),
        origin: origin.as_deref().unwrap_or(""),
        client_id: caller.and_then(|caller| caller.client.as_deref()).unwrap_or(""),
        cause: exchange.cause.as_deref().unwrap_or(""),
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
