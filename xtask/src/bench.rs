//! `cargo xtask bench NAME`: measurements anyone can repeat. They report and judge nothing: exit code 0, or 3 if
//! nothing could be measured.

use crate::step::Failure;

mod export;
mod flood;
mod growth;
mod load;
mod moves;
mod options;
mod rules;
mod session;
mod transitions;

type Bench = (&'static str, fn(&[&str]) -> Result<(), Failure>);

const BENCHES: &[Bench] = &[
    ("session", session::run),
    ("rules", rules::run),
    ("transitions", transitions::run),
    ("growth", growth::run),
    ("flood", flood::run),
    ("export", export::run),
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let names = || BENCHES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let [wanted, rest @ ..] = arguments else {
        return Err(Failure::usage(format!("usage: cargo xtask bench NAME, where NAME is one of {}", names())));
    };
    let Some((_, bench)) = BENCHES.iter().find(|(name, _)| name == wanted) else {
        return Err(Failure::usage(format!("unknown benchmark `{wanted}`; choose one of {}", names())));
    };
    // A benchmark does not refute anything: if it fails, it could not measure. A wrong option is still the caller's
    // fault.
    bench(rest).map_err(|failure| if failure.is_usage() { failure } else { Failure::environment(failure.to_string()) })
}
