//! For supervisors and load balancers.

use serde::Serialize;

#[derive(Serialize)]
pub struct HealthView {
    pub status: &'static str,
    /// Bounds that were reached within the last minute: someone may have been turned away.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits_reached: Vec<&'static str>,
}
