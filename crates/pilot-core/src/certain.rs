//! The one place that stops the process when something impossible happens.
//!
//! If the program relies on something being there and it is not, continuing with a plausible value would write the
//! mistake into the ledger.

use std::fmt;

pub trait Certain<T> {
    /// `why` says why it must be there.
    fn certain(self, why: &str) -> T;
}

impl<T> Certain<T> for Option<T> {
    #[track_caller]
    fn certain(self, why: &str) -> T {
        match self {
            Some(value) => value,
            None => stop(why, &"nothing is there"),
        }
    }
}

impl<T, E: fmt::Display> Certain<T> for Result<T, E> {
    #[track_caller]
    fn certain(self, why: &str) -> T {
        match self {
            Ok(value) => value,
            Err(cause) => stop(why, &cause),
        }
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "a mistake of this program; every other value in its place would be believed")]
fn stop(why: &str, cause: &dyn fmt::Display) -> ! {
    panic!("this cannot be, because {why}: {cause}")
}
