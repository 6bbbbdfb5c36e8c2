//! Reads what a caller sent: bodies, query parameters and the headers that matter.

use std::borrow::Cow;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, IF_MATCH};
use pilot_core::decide::IfMatch;
use pilot_core::fault::Fault;
use pilot_core::item::ItemId;
use pilot_core::json::{self, Bounds};
use pilot_core::leak::LeakGuard;
use pilot_core::limits::{
    BODY_DEADLINE, BODY_VALUES_MAX, IDEMPOTENCY_KEY_CHARS_MAX, PAYLOAD_DEPTH_MAX, QUERY_VALUE_CHARS_MAX,
    SMALL_BODY_BYTES_MAX, WAITING_REQUEST_BYTES,
};
use pilot_store::Key;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::access;
use crate::budget::{Budget, Share};
use crate::call::Call;
use crate::caller::Caller;
use crate::exposure;
use crate::problem::{Code, Problem};
use crate::upload::Upload;

/// A body may be nested slightly deeper than the payload inside it.
const BODY_BOUNDS: Bounds = Bounds { depth: PAYLOAD_DEPTH_MAX + 4, values: BODY_VALUES_MAX };

/// A JSON object from the body, and the bytes it was read from.
pub struct JsonBody {
    pub members: Map<String, Value>,
    bytes: Bytes,
}

/// Reads a body strictly: media type, size and time, unambiguous JSON, only known members, and no token in it.
pub async fn read_body(call: &mut Call, media_types: &[&str], known: &[&str]) -> Result<JsonBody, Problem> {
    let Some(upload) = &mut call.upload else { return Err(Problem::framing("The body has already been read.")) };
    let bytes_max = call.body_bytes_max;
    // A body that declares itself too large is not waited for.
    if upload.bytes_at_least() > bytes_max as u64 {
        return Err(body_too_large(bytes_max));
    }
    check_media_type(&call.head.headers, media_types)?;
    let expected = upload.bytes_at_most().map_or(bytes_max, |bytes| usize::try_from(bytes).unwrap_or(bytes_max));
    if expected > SMALL_BODY_BYTES_MAX {
        let share = call.app.budget.take(&call.caller.actor.actor_id, 2 * expected.min(bytes_max));
        call.share = Some(Box::pin(share).await?);
    }
    let bytes = expected.min(bytes_max) + WAITING_REQUEST_BYTES;
    let room = Room { budget: &call.app.budget, caller: &call.caller, share: &mut call.share, bytes };
    let (bytes, has_waited) = collect(upload, bytes_max, room).await?;
    call.upload = None;
    if has_waited {
        access::recheck(&call.app, &call.caller)?;
    }
    let read = if bytes.len() <= SMALL_BODY_BYTES_MAX {
        read_json(&call.app.guard, &bytes)
    } else {
        let (guard, text) = (Arc::clone(&call.app.guard), bytes.clone());
        let reading = call.app.workshop.long(&call.caller.actor.actor_id, move || read_json(&guard, &text));
        Box::pin(reading).await?
    };
    let value = match read {
        Ok(value) => value,
        Err(unsound) => {
            let Unsound { problem, found } = *unsound;
            if let Some(found) = found {
                Box::pin(exposure::in_content(&call.app, &call.caller, call.address, found)).await?;
            }
            return Err(problem);
        }
    };
    let Value::Object(members) = value else {
        return Err(Problem::invalid(vec![Fault::new("", "must be a JSON object")]));
    };
    let unknown = members.keys().filter(|name| !known.contains(&name.as_str()));
    let detail = || format!("is not a known member; known members are {}", known.join(", "));
    let faults: Vec<_> = unknown.map(|name| Fault::new(json::join("", name), detail())).collect();
    if faults.is_empty() { Ok(JsonBody { members, bytes }) } else { Err(Problem::invalid(faults)) }
}

/// Like [`read_body`], for operations that work without a body: none counts as an empty object.
pub async fn read_optional_body(call: &mut Call, known: &[&str]) -> Result<JsonBody, Problem> {
    if call.upload.as_ref().is_none_or(Upload::is_at_end) {
        return Ok(JsonBody { members: Map::new(), bytes: Bytes::new() });
    }
    read_body(call, &["application/json"], known).await
}

/// Why a body is refused, and any token found in it, which has to be reported.
struct Unsound {
    problem: Problem,
    found: Option<exposure::Found>,
}

/// All the work a body causes before it is known to be valid.
fn read_json(guard: &LeakGuard, bytes: &[u8]) -> Result<Value, Box<Unsound>> {
    let value = json::parse(bytes, BODY_BOUNDS);
    let value = value.map_err(|faults| Box::new(Unsound { problem: Problem::invalid(faults), found: None }))?;
    match refuse_tokens(guard, &value) {
        Ok(()) => Ok(value),
        Err(problem) => Err(Box::new(Unsound { problem, found: Some(exposure::find_in_content(guard, &value)) })),
    }
}

fn check_media_type(headers: &HeaderMap, media_types: &[&str]) -> Result<(), Problem> {
    let is_plain = |coding: &HeaderValue| coding.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return Err(Problem::new(Code::UnsupportedMediaType, "Send the body unencoded, without Content-Encoding."));
    }
    let mut sent = headers.get_all(CONTENT_TYPE).iter();
    let first = sent.next().and_then(|value| value.to_str().ok()).unwrap_or("");
    let essence = first.split(';').next().unwrap_or("").trim();
    // Given two, different readers would pick different ones.
    if sent.next().is_none() && media_types.iter().any(|known| known.eq_ignore_ascii_case(essence)) {
        return Ok(());
    }
    Err(Problem::new(Code::UnsupportedMediaType, format!("Send Content-Type: {}.", media_types.join(" or "))))
}

/// Memory for a body that has to be waited for. Many small ones that never end take as much as a few large ones.
struct Room<'c> {
    budget: &'c Budget,
    caller: &'c Caller,
    share: &'c mut Option<Share>,
    bytes: usize,
}

impl Room<'_> {
    async fn make(self) -> Result<(), Problem> {
        if self.share.is_none() {
            *self.share = Some(self.budget.take(&self.caller.actor.actor_id, self.bytes).await?);
        }
        Ok(())
    }
}

/// The body, and whether it had to be waited for.
async fn collect(upload: &mut Upload, bytes_max: usize, room: Room<'_>) -> Result<(Bytes, bool), Problem> {
    let mut reading = pin!(read_all(upload, bytes_max));
    // Most bodies arrive with their head, or are there when the HTTP library is polled a second time: they need no
    // timer.
    let mut asked = false;
    let at_once = poll_fn(|context| match reading.as_mut().poll(context) {
        Poll::Ready(read) => Poll::Ready(Some(read)),
        Poll::Pending if asked => Poll::Ready(None),
        Poll::Pending => {
            asked = true;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    });
    if let Some(read) = at_once.await {
        return read.map(|bytes| (bytes, asked));
    }
    // Boxed, so that the many requests that need no timer do not carry the space for one.
    Box::pin(room.make()).await?;
    let read = Box::pin(tokio::time::timeout(BODY_DEADLINE, reading)).await.map_err(|_| Problem::body_too_slow())?;
    read.map(|bytes| (bytes, true))
}

async fn read_all(upload: &mut Upload, bytes_max: usize) -> Result<Bytes, Problem> {
    // A body is almost always one piece, which need not be copied.
    let (mut first, mut rest) = (Bytes::new(), Vec::new());
    while let Some(frame) = upload.next().await {
        let frame = frame.map_err(|_| Problem::framing("The body ended before it was complete."))?;
        // The only other frames are trailers, which nobody asked for.
        let Ok(piece) = frame.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > bytes_max {
            return Err(body_too_large(bytes_max));
        }
        if first.is_empty() {
            first = piece;
        } else {
            rest.extend_from_slice(&piece);
        }
    }
    Ok(if rest.is_empty() { first } else { [&*first, &*rest].concat().into() })
}

fn body_too_large(bytes_max: usize) -> Problem {
    Problem::new(Code::BodyTooLarge, format!("The body of this operation may be at most {} KiB.", bytes_max >> 10))
}

fn refuse_tokens(guard: &LeakGuard, value: &Value) -> Result<(), Problem> {
    let places = guard.find_in_json(value);
    if places.is_empty() {
        return Ok(());
    }
    let detail = "contains a clear token; remove it, and have the token rotated if it is in use";
    Err(Problem::token_in_content(places.into_iter().map(|place| Fault::new(place, detail)).collect()))
}

impl JsonBody {
    /// A member that must be a string if present.
    pub fn text(&mut self, name: &str, faults: &mut Vec<Fault>) -> Option<String> {
        match self.members.remove(name) {
            None => None,
            Some(Value::String(text)) => Some(text),
            Some(_) => {
                faults.push(Fault::new(json::join("", name), "must be a string"));
                None
            }
        }
    }

    pub fn required_text(&mut self, name: &str, faults: &mut Vec<Fault>) -> Option<String> {
        if !self.members.contains_key(name) {
            faults.push(Fault::new(json::join("", name), "is missing"));
        }
        self.text(name, faults)
    }

    /// The caller's idempotency key in its scope, if one was sent.
    pub fn key(&self, call: &Call) -> Result<Option<Key>, Problem> {
        let mut sent = call.head.headers.get_all("idempotency-key").iter();
        let Some(value) = sent.next() else { return Ok(None) };
        let faulty = || {
            let detail = format!("must be 1 to {IDEMPOTENCY_KEY_CHARS_MAX} visible ASCII characters, sent once");
            Problem::invalid(vec![Fault::new("/headers/Idempotency-Key", detail)])
        };
        let bytes = value.as_bytes();
        let bare = bytes.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(bytes);
        let legal = (1..=IDEMPOTENCY_KEY_CHARS_MAX).contains(&bare.len()) && bare.iter().all(u8::is_ascii_graphic);
        if !legal || sent.next().is_some() {
            return Err(faulty());
        }
        if std::str::from_utf8(bare).is_ok_and(|key| call.app.guard.is_in(key)) {
            let detail = "contains a clear token; remove it, and have the token rotated if it is in use";
            return Err(Problem::token_in_content(vec![Fault::new("/headers/Idempotency-Key", detail)]));
        }
        Ok(Some(Key { scope: scope(call, bare), body: Sha256::digest(&self.bytes).into() }))
    }
}

/// Never another actor's answer, and never that of another operation.
fn scope(call: &Call, key: &[u8]) -> [u8; 32] {
    let Caller { actor, .. } = &call.caller;
    let path = call.head.uri.path();
    // The same item in another letter case is the same path.
    let path = if path.starts_with("/v1/items/") { Cow::from(path.to_ascii_lowercase()) } else { Cow::from(path) };
    let mut hash = Sha256::new();
    for part in [actor.actor_id.as_str().as_bytes(), call.head.method.as_str().as_bytes(), path.as_bytes(), key] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

/// `If-Match: "7"`, or a list of such tags. A wildcard matches any version; a tag that is not one of ours matches none.
pub fn if_match(headers: &HeaderMap) -> Option<IfMatch> {
    let mut lines = headers.get_all(IF_MATCH).iter().peekable();
    lines.peek()?;
    let tags = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(',')).map(str::trim);
    let tags: Vec<_> = tags.collect();
    // Exactly as this service writes it: "01" is a different tag from "1", and a weak one never matches (RFC 9110,
    // 13.1.1).
    let version = |tag: &&str| {
        let tag = tag.strip_prefix('"')?.strip_suffix('"')?;
        tag.parse().ok().filter(|version: &u64| version.to_string() == tag)
    };
    (!tags.contains(&"*")).then(|| IfMatch::any_of(tags.iter().filter_map(version).collect()))
}

/// The item that a path names. Something that is not an id is simply not found.
pub fn item_id(call: &Call) -> Result<ItemId, Problem> {
    call.parameter.as_deref().and_then(read_item_id).ok_or_else(Problem::no_such_item)
}

/// An id in either letter case (RFC 9562). Answers use lower case.
pub fn read_item_id(text: &str) -> Option<ItemId> {
    text.to_ascii_lowercase().parse().ok()
}

/// Query parameters, each at most once and none unknown.
pub struct Query {
    parameters: Vec<(String, String)>,
}

impl Query {
    pub fn read(call: &Call, known: &[&str]) -> Result<Query, Problem> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        let mut faults = Vec::new();
        for pair in call.head.uri.query().unwrap_or("").split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                faults.push(Fault::new("/query", "is not valid percent-encoded UTF-8"));
                continue;
            };
            if !known.contains(&name.as_str()) {
                faults.push(Fault::new(
                    "/query",
                    format!("has an unknown parameter; known parameters are {}", known.join(", ")),
                ));
            } else if parameters.iter().any(|(earlier, _)| *earlier == name) {
                faults.push(Fault::new(json::join("/query", &name), "is given more than once"));
            } else if value.chars().count() > QUERY_VALUE_CHARS_MAX {
                let detail = format!("has more than {QUERY_VALUE_CHARS_MAX} characters");
                faults.push(Fault::new(json::join("/query", &name), detail));
            } else {
                parameters.push((name, value));
            }
        }
        if faults.is_empty() { Ok(Query { parameters }) } else { Err(Problem::invalid(faults)) }
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let plain = text.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.parse::<u64>().ok().filter(|number| plain && (least..=most).contains(number));
        number.map(Some).ok_or_else(|| {
            let detail = format!("must be a whole number from {least} to {most}");
            Problem::invalid(vec![Fault::new(json::join("/query", name), detail)])
        })
    }
}

/// Percent-decoded text, or `None` if it is malformed.
pub fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok().filter(|hex| !hex.starts_with('+'))?, 16).ok()?
            }
            b'+' => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
