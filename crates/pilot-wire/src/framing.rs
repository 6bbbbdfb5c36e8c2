//! Refuses messages that two readers could understand differently and that the HTTP library lets through.

use http::header::{HOST, HeaderMap, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Uri, Version};
use pilot_core::limits::{HEADER_BLOCK_BYTES_MAX, HEADER_FIELDS_MAX, URL_BYTES_MAX};

pub mod heads;

/// What is wrong with the bytes of a head, in the extensions of the request that was read from them.
#[derive(Debug, Clone, Copy)]
pub struct Ambiguous(pub &'static str);

/// Why a message cannot be treated as a request. Nothing in it can be relied on, so its connection ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// What is wrong, in a sentence for the caller.
    Framing(&'static str),
    UrlTooLong,
    HeadersTooLarge,
}

pub fn check(head: &Parts) -> Result<(), Malformed> {
    if let Some(Ambiguous(detail)) = head.extensions.get() {
        return Err(Malformed::Framing(detail));
    }
    check_sizes(&head.uri, &head.headers)?;
    match head.version {
        Version::HTTP_10 | Version::HTTP_11 => check_http1(head),
        _ => check_http2(head),
    }
}

fn check_sizes(uri: &Uri, headers: &HeaderMap) -> Result<(), Malformed> {
    let url_bytes = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    if url_bytes > URL_BYTES_MAX {
        return Err(Malformed::UrlTooLong);
    }
    let block_bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() > HEADER_FIELDS_MAX || block_bytes > HEADER_BLOCK_BYTES_MAX {
        return Err(Malformed::HeadersTooLarge);
    }
    Ok(())
}

fn check_http1(head: &Parts) -> Result<(), Malformed> {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(Malformed::Framing("The request has more than one Host header.")),
        (None, None) if head.version == Version::HTTP_11 => {
            return Err(Malformed::Framing("The request has no Host header."));
        }
        (Some(host), None) if !is_host(host.as_bytes()) => {
            return Err(Malformed::Framing("The Host header is not a host name with an optional port."));
        }
        _ => {}
    }
    check_coding(&head.headers)
}

fn check_coding(headers: &HeaderMap) -> Result<(), Malformed> {
    // Two lengths, or a length together with a coding, are found in the bytes of the head, because the library hides
    // one of them.
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Malformed::Framing("The only supported Transfer-Encoding is a single `chunked`.")),
    }
}

fn check_http2(head: &Parts) -> Result<(), Malformed> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let authority = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    match (authority, hosts.next(), hosts.next()) {
        (_, _, Some(_)) => Err(Malformed::Framing("The request has more than one Host header.")),
        (None, None, _) => Err(Malformed::Framing("The request has neither :authority nor Host.")),
        (Some(authority), Some(host), _) if !authority.eq_ignore_ascii_case(host.as_bytes()) => {
            Err(Malformed::Framing("The :authority and the Host header differ."))
        }
        (None, Some(host), _) if !is_host(host.as_bytes()) => {
            Err(Malformed::Framing("The Host header is not a host name with an optional port."))
        }
        _ => Ok(()),
    }
}

/// An absolute target must name the same host as the header. Checked only after the target was searched for tokens: one
/// in front of the host must be found, whatever the header says.
pub fn check_target(head: &Parts) -> Result<(), Malformed> {
    if head.uri.scheme().is_none() {
        return Ok(());
    }
    let (Some(target), Some(host)) = (head.uri.authority(), head.headers.get(HOST)) else { return Ok(()) };
    let target = target.as_str().rsplit_once('@').map_or(target.as_str(), |(_, host)| host);
    if target.as_bytes().eq_ignore_ascii_case(host.as_bytes()) {
        return Ok(());
    }
    Err(Malformed::Framing("The target and the Host header name different hosts."))
}

fn is_host(host: &[u8]) -> bool {
    !host.is_empty() && host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
}
