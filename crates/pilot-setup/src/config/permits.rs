//! Permit tokens: under which name they are issued, and for whom.

use std::fmt;

use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::ProviderUrl;

const AUDIENCES_MAX: usize = 32;
const AUDIENCE_CHARS_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permits {
    /// The address at which targets find this service's keys, as it is written into tokens: `https://host`, without a
    /// slash at the end. `/.well-known/openid-configuration` must be reachable there.
    pub issuer: Issuer,
    /// For whom tokens may be issued: 1 to 32 names. Each token is for one of them, which must be a name that no other
    /// service accepts.
    #[serde(deserialize_with = "audiences")]
    pub audiences: Vec<String>,
}

/// Readers of a token compare it byte for byte, so it is kept as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer(String);

impl Issuer {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Issuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl JsonSchema for Issuer {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Issuer".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        ProviderUrl::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for Issuer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Issuer, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = "must be an address such as https://host, without a user, a query, a fragment or a slash at the end; http is allowed only for this machine";
        let url = ProviderUrl::parse(&text).filter(|url| url.uri.query().is_none() && !text.ends_with('/'));
        url.map(|url| Issuer(url.text)).ok_or_else(|| D::Error::custom(wrong))
    }
}

fn audiences<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let audiences = Vec::<String>::deserialize(deserializer)?;
    let is_plain = |name: &String| {
        (1..=AUDIENCE_CHARS_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
    };
    let is_new = |(at, name): (usize, &String)| !audiences.iter().take(at).any(|earlier| earlier == name);
    let fits = (1..=AUDIENCES_MAX).contains(&audiences.len());
    if fits && audiences.iter().all(is_plain) && audiences.iter().enumerate().all(is_new) {
        return Ok(audiences);
    }
    Err(D::Error::custom("must have 1 to 32 different names of 1 to 255 visible ASCII characters each"))
}
