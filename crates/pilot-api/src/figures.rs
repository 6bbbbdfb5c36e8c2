//! What the ledger adds up to.

use std::collections::BTreeMap;

use pilot_core::time::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::named;

/// Counted from every entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Figures")]
pub struct FiguresView {
    #[schemars(with = "named::Time")]
    pub at: Time,
    /// How many entries were counted.
    pub entries: u64,
    /// Open items by state.
    pub open: BTreeMap<String, u64>,
    pub open_by_age: AgesView,
    /// Oldest first, by days in UTC, with those on which nothing happened.
    pub days: Vec<DayView>,
    pub time_to_decide: TimeToDecideView,
    /// Refused attempts by code. Null for callers who may not see entries about access.
    pub refusals: Option<BTreeMap<String, u64>>,
}

/// Open items by the time since their creation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Ages")]
pub struct AgesView {
    /// Less than an hour.
    pub hour: u64,
    pub day: u64,
    pub three_days: u64,
    pub week: u64,
    pub older: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Day")]
pub struct DayView {
    /// As in `2026-11-16`.
    pub day: String,
    /// What people did to items, without creations, edits, comments, permits and heartbeats.
    pub decisions: u64,
    pub created: u64,
    /// Null for callers who may not see entries about access.
    pub refused: Option<u64>,
}

/// From a submission to the first decision of another person, in seconds, to within a tenth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "TimeToDecide")]
pub struct TimeToDecideView {
    pub count: u64,
    pub median_s: Option<u64>,
    pub p90_s: Option<u64>,
    pub max_s: Option<u64>,
}
