//! `cargo xtask bench [NAME]`: measurements anyone can repeat. They report and judge nothing: exit code 0, or 3 if
//! something could not be measured. Only `compare` judges: exit code 1 if two runs do not agree.

use std::fs;
use std::path::{Path, PathBuf};

use self::machine::Description;
use self::page::Measured;
use self::quiet::Before;
use self::report::Section;
use crate::step::{Failure, Stopwatch, root};

mod compare;
mod export;
mod feed;
mod flood;
mod growth;
mod length;
mod load;
mod machine;
mod moves;
mod options;
mod page;
mod plot;
mod quiet;
mod readers;
mod reads;
mod report;
mod rounds;
mod rules;
mod session;
mod shown;
mod start;
mod transitions;
mod turns;

/// A benchmark with a part of the page.
struct Bench {
    name: &'static str,
    /// As the page has it.
    options: &'static [&'static str],
    takes_entries: bool,
    /// Checks the options, then builds and installs what it needs: nothing of that may run during a measurement.
    prepare: fn(&[&str]) -> Result<(), Failure>,
    measure: fn(&[&str]) -> Result<Section, Failure>,
}

/// In the order of the page.
const BENCHES: &[Bench] = &[
    Bench { name: "session", options: &[], takes_entries: false, prepare: session::prepare, measure: session::measure },
    Bench {
        name: "transitions",
        options: &[],
        takes_entries: false,
        prepare: transitions::prepare,
        measure: transitions::measure,
    },
    Bench {
        name: "transitions",
        options: &["--store", "postgres"],
        takes_entries: false,
        prepare: transitions::prepare,
        measure: transitions::measure,
    },
    Bench { name: "reads", options: &[], takes_entries: false, prepare: readers::prepare, measure: reads::measure },
    Bench { name: "feed", options: &[], takes_entries: false, prepare: readers::prepare, measure: feed::measure },
    Bench { name: "export", options: &[], takes_entries: false, prepare: export::prepare, measure: export::measure },
    Bench { name: "start", options: &[], takes_entries: false, prepare: start::prepare, measure: start::measure },
    Bench { name: "growth", options: &[], takes_entries: true, prepare: growth::prepare, measure: growth::measure },
];

type Printing = (&'static str, fn(&[&str]) -> Result<(), Failure>);

/// Those that only print.
const PRINTING: &[Printing] = &[("rules", rules::run), ("flood", flood::run)];

pub(crate) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let done = match arguments {
        ["compare", pages @ ..] => return compare::run(pages),
        [] | ["--into" | "--entries", ..] => Page::asked_for(arguments).and_then(|page| run_all(&page)),
        [name, rest @ ..] => run_one(name, rest),
    };
    // A benchmark does not refute anything: if it fails, it could not measure. A wrong option is still the caller's
    // fault.
    done.map_err(|failure| if failure.is_usage() { failure } else { Failure::environment(failure.to_string()) })
}

/// A run of every benchmark.
struct Page {
    directory: PathBuf,
    /// One more size of the ledger, for the benchmark of its growth.
    entries: Vec<String>,
}

impl Page {
    fn asked_for(mut arguments: &[&str]) -> Result<Page, Failure> {
        let mut page = Page { directory: root().join("docs/reference"), entries: Vec::new() };
        loop {
            match arguments {
                [] => return Ok(page),
                ["--into", directory, rest @ ..] => (page.directory, arguments) = (PathBuf::from(directory), rest),
                ["--entries", number, rest @ ..] => {
                    options::entries(&["--entries", number])?;
                    (page.entries, arguments) = (vec!["--entries".to_owned(), (*number).to_owned()], rest);
                }
                _ => return Err(Failure::usage("every benchmark: [--into DIRECTORY] [--entries N]")),
            }
        }
    }

    fn options(&self, bench: &Bench) -> Vec<&str> {
        let entries = self.entries.iter().map(String::as_str).filter(|_| bench.takes_entries);
        bench.options.iter().copied().chain(entries).collect()
    }
}

fn run_one(name: &str, options: &[&str]) -> Result<(), Failure> {
    if let Some((_, run)) = PRINTING.iter().find(|(printing, _)| *printing == name) {
        return run(options);
    }
    let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) else {
        let names = BENCHES.iter().map(|bench| bench.name).chain(PRINTING.iter().map(|(name, _)| *name));
        let mut names: Vec<_> = names.collect();
        names.dedup();
        return Err(Failure::usage(format!("unknown benchmark `{name}`; choose one of {}", names.join(", "))));
    };
    let measured = bench.run(options)?;
    shown::print(&measured);
    Ok(())
}

impl Bench {
    fn run(&self, options: &[&str]) -> Result<Measured, Failure> {
        (self.prepare)(options)?;
        quiet::wait();
        let before = Before::now();
        let section = (self.measure)(options)?;
        Ok(Measured { command: self.command(options), section: Some(section), conditions: before.until_now() })
    }

    fn command(&self, options: &[&str]) -> String {
        [&[self.name], options].concat().join(" ")
    }
}

/// If one cannot be measured, the others are.
fn run_all(page: &Page) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    // All of it first, so that the machine is quiet afterwards.
    for bench in BENCHES {
        (bench.prepare)(&page.options(bench))?;
    }
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for bench in BENCHES {
        let options = page.options(bench);
        let command = bench.command(&options);
        println!("\n== {command} ==");
        let before = Before::now();
        let measured = bench.run(&options).unwrap_or_else(|failure| {
            eprintln!("{command}: {failure}");
            failed.push(command.clone());
            Measured { command, section: None, conditions: before.until_now() }
        });
        all.push(measured);
    }
    write(&page.directory, &all)?;
    println!();
    for measured in &all {
        shown::print(measured);
    }
    println!("\n{} benchmarks in {:.0} minutes", all.len(), watch.elapsed().as_secs_f64() / 60.0);
    if failed.is_empty() {
        return Ok(());
    }
    Err(Failure::environment(format!("could not be measured: {}", failed.join(", "))))
}

/// The page, and beside it the directory of its plots.
fn write(directory: &Path, all: &[Measured]) -> Result<(), Failure> {
    let plots = directory.join("performance");
    let failed = |path: &Path, error| Failure::environment(format!("{}: {error}", path.display()));
    fs::create_dir_all(&plots).map_err(|error| failed(&plots, error))?;
    let put = |path: PathBuf, text: &str| fs::write(&path, text).map_err(|error| failed(&path, error));
    for plot in all.iter().filter_map(|measured| measured.section.as_ref()).flat_map(|section| &section.plots) {
        put(plots.join(format!("{}.svg", plot.file)), &plot::svg(plot))?;
    }
    put(directory.join("performance.md"), &page::markdown(&Description::read()?, all))
}
