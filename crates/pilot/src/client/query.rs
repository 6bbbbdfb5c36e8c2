//! Parts of a request's address, and of an answer's head.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use pilot_core::time::Time;

const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':');

/// Percent-encoded, for a path or a query.
pub(crate) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// A path with those of the parameters that have a value.
pub(crate) fn path_with(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", encode((*value)?))));
    let given: Vec<_> = given.collect();
    if given.is_empty() { path.to_owned() } else { format!("{path}?{}", given.join("&")) }
}

/// The `Date` of an answer.
pub(super) fn http_date(text: &str) -> Option<Time> {
    let parsed = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text.replace("GMT", "+0000")).ok()?;
    Some(Time::from_unix_micros(parsed.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_survives_in_a_query() {
        assert_eq!(encode("2026-11-15T00:00:00+01:00"), "2026-11-15T00:00:00%2B01:00");
        let parameters = [("state", Some("a b&c")), ("workflow", None), ("q", Some("é"))];
        assert_eq!(path_with("/v1/items", &parameters), "/v1/items?state=a%20b%26c&q=%C3%A9");
        assert_eq!(path_with("/v1/items", &[]), "/v1/items");
    }

    #[test]
    fn the_date_of_an_answer_is_read() {
        let read = http_date("Tue, 17 Nov 2026 02:04:11 GMT").unwrap();
        assert_eq!(read.to_string(), "2026-11-17T02:04:11.000000Z");
        assert!(http_date("yesterday").is_none());
    }
}
