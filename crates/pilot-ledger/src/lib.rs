//! The service without HTTP: every write, the register of credentials, timers, signing, witnesses and evidence.

pub mod clearance;
pub mod clock;
pub mod dated;
pub mod erasures;
pub mod evidence;
pub mod fenced;
pub mod figures;
pub mod following;
pub mod ids;
pub mod last_step;
pub mod moves;
mod persisted;
pub mod proofs;
pub mod refusals;
pub mod register;
pub mod repeated;
pub mod reserve;
pub mod second_place;
pub mod settle;
pub mod signer;
pub mod starts;
pub mod timers;
pub mod timestamps;
pub mod webhooks;
pub mod witnesses;
pub mod workflows;
