//! `cargo xtask bench NAME`: measurements anyone can repeat. They report and judge nothing: exit code 0, or 3 if
//! nothing could be measured.

use crate::step::Failure;

use report::{Section, Target};

mod export;
mod feed;
mod flood;
mod growth;
mod load;
mod moves;
mod options;
mod readers;
mod reads;
mod report;
mod rounds;
mod rules;
mod session;
mod start;
mod transitions;

type Bench = (&'static str, fn(&[&str]) -> Result<(), Failure>);

const BENCHES: &[Bench] =
    &[("session", session::run), ("rules", rules::run), ("transitions", transitions::run), ("flood", flood::run)];

type Measure = (&'static str, fn(&[&str]) -> Result<Section, Failure>);

const SECTIONS: &[Measure] = &[
    ("growth", growth::run),
    ("reads", reads::run),
    ("feed", feed::run),
    ("start", start::run),
    ("export", export::run),
];

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let names = || {
        let names = BENCHES.iter().map(|(name, _)| *name).chain(SECTIONS.iter().map(|(name, _)| *name));
        names.collect::<Vec<_>>().join(", ")
    };
    let [wanted, rest @ ..] = arguments else {
        return Err(Failure::usage(format!("usage: cargo xtask bench NAME, where NAME is one of {}", names())));
    };
    let measured =
        |failure: Failure| if failure.is_usage() { failure } else { Failure::environment(failure.to_string()) };
    if let Some((_, bench)) = SECTIONS.iter().find(|(name, _)| name == wanted) {
        print(&bench(rest).map_err(measured)?);
        return Ok(());
    }
    let Some((_, bench)) = BENCHES.iter().find(|(name, _)| name == wanted) else {
        return Err(Failure::usage(format!("unknown benchmark `{wanted}`; choose one of {}", names())));
    };
    // A benchmark does not refute anything: if it fails, it could not measure. A wrong option is still the caller's
    // fault.
    bench(rest).map_err(measured)
}

fn print(section: &Section) {
    println!("{} (cargo xtask bench {})\n{}\n", section.title, section.command, section.about);
    for table in &section.tables {
        println!("{}", table.columns.join(" | "));
        for row in &table.rows {
            println!("{}", row.join(" | "));
        }
        println!();
    }
    for figure in &section.figures {
        let target = match figure.target {
            Target::AtLeast(least) => format!("at least {least}"),
            Target::AtMost(most) => format!("at most {most}"),
        };
        let verdict = if figure.target.is_met(figure.value) { "met" } else { "missed" };
        let (what, value, unit, spread) = (&figure.what, figure.value, figure.unit, figure.spread * 100.0);
        println!("{what:<50} {value:>10.3} {unit:<4} ({target}: {verdict}; spread {spread:.0} %)");
    }
    println!("{} plots", section.plots.len());
}
