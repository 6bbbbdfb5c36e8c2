//! The section `[traces]`: where spans of requests are sent.

use std::path::PathBuf;

use http::Uri;
use schemars::JsonSchema;
use serde::Deserialize;

use super::url::plain_url;

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Traces {
    /// The address of an OpenTelemetry collector (OTLP over HTTP, in JSON), such as `http://127.0.0.1:4318/v1/traces`,
    /// without a user, a query or a fragment.
    #[serde(deserialize_with = "plain_url")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub url: Uri,
    /// Certificate authorities to trust for it, in addition to the system's. A PEM file.
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    /// How many of a hundred traces that begin here are sent: 1 to 100. A trace that a caller has begun is sent if the
    /// caller says so.
    #[serde(default = "Traces::all")]
    pub sample_percent: u8,
}

impl Traces {
    const fn all() -> u8 {
        100
    }

    pub(super) fn contradiction(&self) -> Option<String> {
        let percent = self.sample_percent;
        (!(1..=100).contains(&percent)).then(|| format!("traces.sample_percent: {percent} is not from 1 to 100"))
    }
}
