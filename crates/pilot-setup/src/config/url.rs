//! Addresses of others that the service calls.

use http::Uri;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// One without anything that could be a secret.
pub(super) fn plain_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uri, D::Error> {
    let text = String::deserialize(deserializer)?;
    let uri: Option<Uri> = text.parse().ok();
    let is_usable = |uri: &Uri| {
        let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        matches!(uri.scheme_str(), Some("http" | "https")) && is_plain && uri.query().is_none()
    };
    let wrong =
        "is not an address that can be used: give it as https://host/prefix, without a user, a query or a fragment";
    uri.filter(|uri| is_usable(uri) && !text.contains('#')).ok_or_else(|| D::Error::custom(wrong))
}
