//! Refuses messages that two readers could understand differently, which the HTTP library lets through.

use http::header::{HOST, HeaderMap, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Uri, Version};
use pilot_core::limits::{HEADER_BLOCK_BYTES_MAX, HEADER_FIELDS_MAX, URL_BYTES_MAX};

use crate::problem::Problem;

pub mod heads;

/// What is wrong with the bytes of a head, in the extensions of the request that was read from them.
#[derive(Debug, Clone, Copy)]
pub struct Ambiguous(pub &'static str);

pub fn check(head: &Parts) -> Result<(), Problem> {
    if let Some(Ambiguous(detail)) = head.extensions.get() {
        return Err(Problem::framing(detail));
    }
    check_sizes(&head.uri, &head.headers)?;
    match head.version {
        Version::HTTP_10 | Version::HTTP_11 => check_http1(head),
        _ => check_http2(head),
    }
}

fn check_sizes(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    let url_bytes = uri.path().len() + uri.query().map_or(0, |query| query.len() + 1);
    if url_bytes > URL_BYTES_MAX {
        return Err(Problem::url_too_long());
    }
    let block_bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers.len() > HEADER_FIELDS_MAX || block_bytes > HEADER_BLOCK_BYTES_MAX {
        return Err(Problem::headers_too_large());
    }
    Ok(())
}

fn check_http1(head: &Parts) -> Result<(), Problem> {
    let mut hosts = head.headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => return Err(Problem::framing("The request has more than one Host header.")),
        (None, None) if head.version == Version::HTTP_11 => {
            return Err(Problem::framing("The request has no Host header."));
        }
        (Some(host), None) if !is_host(host.as_bytes()) => {
            return Err(Problem::framing("The Host header is not a host name with an optional port."));
        }
        _ => {}
    }
    check_coding(&head.headers)
}

fn check_coding(headers: &HeaderMap) -> Result<(), Problem> {
    // Two lengths, and a length beside a coding, are found in the bytes of the head: the library lets one go by.
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => Ok(()),
        (Some(coding), None) if coding.as_bytes().eq_ignore_ascii_case(b"chunked") => Ok(()),
        _ => Err(Problem::framing("The only supported Transfer-Encoding is a single `chunked`.")),
    }
}

fn check_http2(head: &Parts) -> Result<(), Problem> {
    let mut hosts = head.headers.get_all(HOST).iter();
    let authority = head.uri.authority().map(|authority| authority.as_str().as_bytes());
    match (authority, hosts.next(), hosts.next()) {
        (_, _, Some(_)) => Err(Problem::framing("The request has more than one Host header.")),
        (None, None, _) => Err(Problem::framing("The request has neither :authority nor Host.")),
        (Some(authority), Some(host), _) if !authority.eq_ignore_ascii_case(host.as_bytes()) => {
            Err(Problem::framing("The :authority and the Host header differ."))
        }
        (None, Some(host), _) if !is_host(host.as_bytes()) => {
            Err(Problem::framing("The Host header is not a host name with an optional port."))
        }
        _ => Ok(()),
    }
}

/// A target sent whole must name the host that the header names. Asked once the target was searched for tokens: one that
/// stands before the host has to be found, whatever the header says.
pub fn check_target(head: &Parts) -> Result<(), Problem> {
    if head.uri.scheme().is_none() {
        return Ok(());
    }
    let (Some(target), Some(host)) = (head.uri.authority(), head.headers.get(HOST)) else { return Ok(()) };
    let target = target.as_str().rsplit_once('@').map_or(target.as_str(), |(_, host)| host);
    if target.as_bytes().eq_ignore_ascii_case(host.as_bytes()) {
        return Ok(());
    }
    Err(Problem::framing("The target and the Host header name different hosts."))
}

fn is_host(host: &[u8]) -> bool {
    !host.is_empty() && host.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-._~:[]%".contains(byte))
}
