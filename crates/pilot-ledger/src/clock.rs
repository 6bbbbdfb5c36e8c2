//! What time it is. Handlers and rules get the time as a parameter; tests move it.
//!
//! There are two kinds of time. What is compared with the ledger (deadlines, windows, leases, what a caller may do now)
//! uses the [`LedgerClock`], which never goes back. What others have dated (credentials, certificates, signed tokens)
//! uses the machine's [`Clock`]. The service reads that through a [`ClockGuard`], so that a leap moves neither.

mod guard;
mod keeper;
mod ledger;
mod machine;
mod record;
mod wall;

pub use guard::{ClockGuard, SinceBoot};
pub use keeper::{ClockKeeper, run};
pub use ledger::{Change, Elapsed, LedgerClock, Watch};
pub use machine::Clock;
pub use record::{Accepted, Record, RecordError, boot_id};
pub use wall::Wall;
