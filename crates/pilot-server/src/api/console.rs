//! The operator console's files, included in the program when it was built. A program built without them says so
//! instead of showing an empty page.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_FRAME_OPTIONS,
};
use http::request::Parts;
use http::{Response, StatusCode};
use pilot_setup::config::{self, ProviderUrl};
use pilot_wire::body::Body;
use serde_json::json;

use crate::api::answers::page;
use crate::app::App;
use crate::call::Answer;
use crate::encoding::accepts;
use crate::problem::{Code, Problem};

/// One file as built, and compressed for clients that can decompress it.
pub struct File {
    path: &'static str,
    tag: &'static str,
    bytes: &'static [u8],
    brotli: Option<&'static [u8]>,
    gzip: Option<&'static [u8]>,
}

include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

const PLACEHOLDER: &str = include_str!("console/placeholder.html");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Scripts and styles only from here, nothing inline, nothing evaluated, no form that submits elsewhere, no framing.
/// There are two Trusted Types policies: Svelte's, for the constant templates in its own code, and one that vouches for a
/// single address, that of the verifier's thread. If people sign in at an identity provider, its token and revocation
/// endpoints may be called too, and nothing else outside.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types svelte-trusted-html pilot-verifier";

/// The thread that verifies bundles may compile the verifier, which the page may not, and can load and send nothing.
const WORKER_POLICY: &str = "default-src 'none'; script-src 'wasm-unsafe-eval'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
/// How its file is called, before the hash: `console/src/verifier/bundle.worker.ts`.
const WORKER: &str = "bundle.worker-";

/// The only page; its script shows the screen that the address names.
pub fn get_console(app: &App, head: &Parts, _: Option<&str>) -> Answer {
    let Some(index) = FILES.iter().find(|file| file.path == "index.html") else {
        return Ok(document(PLACEHOLDER));
    };
    // Revalidated each time, so that a new version is seen at once.
    let mut response = serve(index, &head.headers, "no-cache");
    let policy = app.identity.sign_in().map(|sign_in| {
        let called = [Some(sign_in.token_endpoint), sign_in.revocation_endpoint].into_iter().flatten();
        let origins: BTreeSet<_> = called.filter_map(|url| Some(ProviderUrl::parse(&url)?.origin())).collect();
        let connect =
            origins.into_iter().fold("connect-src 'self'".to_owned(), |policy, origin| policy + " " + &origin);
        HeaderValue::try_from(POLICY.replace("connect-src 'self'", &connect))
    });
    fence(response.headers_mut(), policy.and_then(Result::ok).unwrap_or(HeaderValue::from_static(POLICY)));
    Ok(response)
}

/// Files with a hash in their names: once fetched, they stay valid forever.
pub fn get_console_asset(_: &App, head: &Parts, file: Option<&str>) -> Answer {
    let wanted = file.unwrap_or("");
    let found = FILES.iter().find(|file| file.path.strip_prefix("assets/") == Some(wanted));
    let found = found.ok_or_else(|| Problem::new(Code::NotFound, "The console has no such file; reload the page."))?;
    let mut response = serve(found, &head.headers, "public, max-age=31536000, immutable");
    let policy = if wanted.starts_with(WORKER) { WORKER_POLICY } else { "default-src 'none'; sandbox" };
    fence(response.headers_mut(), HeaderValue::from_static(policy));
    Ok(response)
}

pub fn get_console_settings(app: &App) -> Answer {
    let config::Console { colour, idle_minutes, name } = &app.console;
    let mechanism = app.identity.mechanism().as_str();
    let mut settings = json!({ "colour": colour, "idle_minutes": idle_minutes, "mechanism": mechanism, "name": name });
    if let (Some(sign_in), Some(settings)) = (app.identity.sign_in(), settings.as_object_mut()) {
        settings.insert("sign_in".to_owned(), json!(sign_in));
    }
    let mut response = page("application/json", settings.to_string());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    Ok(response)
}

fn serve(file: &File, asked: &HeaderMap, cache: &'static str) -> Response<Body> {
    let known = asked.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_known = known.flat_map(|value| value.split(',')).any(|tag| tag.trim() == file.tag);
    let mut response = if is_known { unchanged() } else { packed(file, asked) };
    let headers = response.headers_mut();
    headers.insert(ETAG, HeaderValue::from_static(file.tag));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn unchanged() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NOT_MODIFIED;
    response
}

fn packed(file: &File, asked: &HeaderMap) -> Response<Body> {
    let choices = [("br", file.brotli), ("gzip", file.gzip)];
    let choice = choices.iter().find_map(|(name, bytes)| Some((*name, (*bytes)?)).filter(|_| accepts(asked, name)));
    let mut response = page(media_type(file.path), choice.map_or(file.bytes, |(_, bytes)| bytes));
    if let Some((name, _)) = choice {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static(name));
    }
    response
}

fn media_type(path: &str) -> &'static str {
    match path.rsplit('.').next().unwrap_or("") {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}

/// A page that can load nothing, run nothing and be framed by nobody.
pub fn document(text: impl Into<Bytes>) -> Response<Body> {
    let mut response = page("text/html; charset=utf-8", text.into());
    let policy = "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox";
    fence(response.headers_mut(), HeaderValue::from_static(policy));
    response
}

fn fence(headers: &mut HeaderMap, policy: HeaderValue) {
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CROSS_ORIGIN_OPENER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(CROSS_ORIGIN_RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
}
