//! For supervisors and load balancers.

use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Health")]
pub struct HealthView {
    #[schemars(extend("enum" = ["ok", "ready"]))]
    pub status: &'static str,
    /// Limits that were reached within the last minute. Absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<&'static str>,
}
