//! The executor agent: what it runs, what it reports, and what it does when everything around it fails.

mod cut_off;
mod faults;
mod outcomes;
mod stage;

pub use stage::Cable;
