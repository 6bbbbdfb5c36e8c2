//! Every bound of this crate: what one agent can cost, and how much it is told at once.

use std::time::Duration;

/// A line of input, which is one message. Longer ones are dropped unread.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The arguments of one call, as JSON. A payload may have 64 KiB.
pub(crate) const ARGUMENT_BYTES_MAX: usize = 96 * 1024;
/// How deep arguments may be nested: a payload of 32, and the arguments around it.
pub(crate) const ARGUMENT_DEPTH_MAX: usize = 33;
/// Calls that run at the same time.
pub(crate) const CALLS_RUNNING_MAX: usize = 8;
/// Calls that run or wait for their turn. Any beyond are refused at once.
pub(crate) const CALLS_ADMITTED_MAX: usize = 64;
/// A structured result, as JSON. The same follows once more as text.
pub(crate) const RESULT_BYTES_MAX: usize = 32 * 1024;
/// What is shown of a payload or a payload schema.
pub(crate) const JSON_BYTES_MAX: usize = 20 * 1024;
/// What is shown of a text in a list.
pub(crate) const TEXT_BYTES_MAX: usize = 600;
/// What is shown of a problem.
pub(crate) const PROBLEM_BYTES_MAX: usize = 4 * 1024;
/// Items of a list, workflows.
pub(crate) const LIST_MAX: usize = 20;
/// Entries of a history: so few that the longest texts in each fit into one result.
pub(crate) const HISTORY_MAX: usize = 10;
/// Faults in arguments that are listed.
pub(crate) const FAULTS_MAX: usize = 10;

/// Many clients give up on a call after a minute.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(45);
/// How often an item is looked at while it cannot be followed.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// People need minutes, not seconds.
pub(crate) const ASK_AGAIN_SECONDS: u64 = 60;

/// One's own newest items among which an earlier proposal is looked for: as many as one page of summaries has.
pub(crate) const OWN_ITEMS_MAX: usize = 1_000;
/// How many of them, if they have the same title, are compared with the proposal.
pub(crate) const COMPARED_MAX: usize = 50;
/// Attempts at the same proposal. No more than are compared.
pub(crate) const ATTEMPTS_MAX: u32 = 50;
