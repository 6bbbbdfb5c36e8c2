//! Which answers are compressed. Why that is safe here is in docs/adr/0067-compressed-answers.md.

use std::io::{self, Write as _};

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::Response;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use pilot_core::actor::ActorId;
use pilot_core::limits::{COMPRESSED_BYTES_MIN, SMALL_BODY_BYTES_MAX};
use pilot_wire::body::Body;

use crate::workshop::Workshop;

/// Named in `Accept-Encoding`, and not with a weight of zero.
pub(crate) fn accepts(asked: &HeaderMap, encoding: &str) -> bool {
    let offered = asked.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    offered.flat_map(|value| value.split(',')).any(|offer| {
        let (name, weight) = offer.split_once(';').unwrap_or((offer, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.trim().parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case(encoding) && weight.is_none_or(|weight| weight > 0.0)
    })
}

/// The bytes of a complete JSON answer that are worth compressing for a caller who accepts that.
pub(crate) fn to_compress(is_accepted: bool, response: &mut Response<Body>) -> Option<Bytes> {
    if response.headers().get(CONTENT_TYPE).is_none_or(|media_type| media_type != "application/json") {
        return None;
    }
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept-encoding"));
    response.body().complete().filter(|bytes| is_accepted && bytes.len() >= COMPRESSED_BYTES_MIN)
}

/// A large answer is compressed in the workshop, where one caller has one turn at a time; if too many wait there, it is
/// sent as it is.
pub(crate) async fn compress(workshop: &Workshop, actor: &ActorId, bytes: Bytes, response: &mut Response<Body>) {
    let packed = if bytes.len() <= SMALL_BODY_BYTES_MAX {
        gzip(&bytes).ok()
    } else {
        let text = bytes.clone();
        workshop.long(actor, move || gzip(&text)).await.ok().and_then(Result::ok)
    };
    if let Some(packed) = packed.filter(|packed| packed.len() < bytes.len()) {
        *response.body_mut() = packed.into();
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoding_is_accepted_if_it_is_named_and_not_weighed_at_nothing() {
        let accepts = |offered: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in offered {
                headers.append(ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            accepts(&headers, "gzip")
        };
        for yes in [&["gzip"][..], &["br, gzip;q=0.1"], &["deflate", "GZIP ; q=1"], &["gzip;q=0.001"]] {
            assert!(accepts(yes), "{yes:?}");
        }
        for no in
            [&[][..], &[""], &["br"], &["gzip;q=0"], &["gzip; q=0.000"], &["gzip ;q= 0"], &["identity"], &["xgzip"]]
        {
            assert!(!accepts(no), "{no:?}");
        }
    }
}
