//! How cost grows with the ledger: the same load, over items spread across the whole store, on ledgers of several sizes.

use super::options;
use super::quiet;
use super::readers;
use super::report::{Drawing, Figure, Plot, Section, Table, Target};
use super::rounds::Rounds;
use crate::step::Failure;

use grown::{Grown, READS};

mod grown;

const SIZES: [u64; 4] = [10_000, 100_000, 1_000_000, 5_000_000];
/// From here on, cost is compared with that on the smallest.
const LARGE: u64 = 5_000_000;
const ROUNDS: usize = 5;

/// `--entries N` adds a larger ledger.
pub(super) fn prepare(arguments: &[&str]) -> Result<(), Failure> {
    options::entries(arguments)?;
    readers::prepare(&[])
}

pub(super) fn measure(arguments: &[&str]) -> Result<Section, Failure> {
    let mut sizes = SIZES.to_vec();
    sizes.extend(options::entries(arguments)?);
    grown::check_free(sizes.iter().sum())?;
    let mut all = sizes.into_iter().map(Grown::make).collect::<Result<Vec<_>, _>>()?;
    // A service that finds items without a search index makes one, and signs what it has not signed.
    for grown in &all {
        grown.wait_until_ready()?;
    }
    quiet::wait();
    for grown in &mut all {
        grown.start_again()?;
    }
    for grown in &mut all {
        grown.warm_up()?;
    }
    // In turn, and what is compared within seconds: the machine is slower in one minute and faster in the next.
    for _ in 0..ROUNDS {
        for grown in &mut all {
            grown.measure_writes()?;
        }
        for number in 0..READS.len() {
            for grown in &mut all {
                grown.measure_reads(number)?;
            }
        }
    }
    for grown in &mut all {
        grown.finish()?;
    }
    Ok(section(&all))
}

fn section(all: &[Grown]) -> Section {
    let about = format!(
        "Ledgers of {}, each with ten entries for an item and a thousand items at a time, in SQLite. The services run \
         next to each other and are measured in turn: 64 clients that move items, then one client that reads. Ratios \
         compare large ledgers with the smallest, round by round; those of reads are of the service's CPU time. The \
         bundle of a period has the last {} entries.",
        all.iter().map(|grown| size(grown.entries)).collect::<Vec<_>>().join(", "),
        grown::PERIOD_ENTRIES
    );
    Section { title: "Growth of the ledger", about, figures: figures(all), tables: vec![table(all)], plots: plots(all) }
}

/// Of each large ledger, beside the smallest.
fn figures(all: &[Grown]) -> Vec<Figure> {
    let mut figures = Vec::new();
    let Some((smallest, others)) = all.split_first() else { return figures };
    for large in others.iter().filter(|grown| grown.entries >= LARGE) {
        let sizes = format!("{} / {}", size(large.entries), size(smallest.entries));
        let writes = large.writes.over(&smallest.writes);
        figures.push(writes.figure(format!("{sizes}, transitions per second"), "", Target::AtLeast(0.9)));
        for ((read, of_large), of_smallest) in READS.iter().zip(&large.reads).zip(&smallest.reads) {
            let cpu = of_large.cpu_micros.over(&of_smallest.cpu_micros);
            figures.push(cpu.figure(format!("{sizes}, {}", read.what), "", Target::AtMost(1.1)));
        }
        let start = format!("start at {}", size(large.entries));
        figures.push(large.start_seconds.figure(start, "s", Target::AtMost(0.2)));
    }
    figures
}

fn table(all: &[Grown]) -> Table {
    let mut columns = vec!["entries", "MiB", "start s", "transitions/s"];
    columns.extend(READS.iter().flat_map(|read| [read.what, "CPU µs"]));
    columns.extend(["resident MiB", "after the load"]);
    let row = |grown: &Grown| {
        let median = |rounds: &Rounds, digits: usize| format!("{:.digits$}", rounds.median());
        let mut row = vec![size(grown.entries), grown.store_mib.to_string()];
        row.extend([median(&grown.start_seconds, 3), median(&grown.writes, 0)]);
        for read in &grown.reads {
            row.extend([format!("{} µs", median(&read.p50_micros, 0)), median(&read.cpu_micros, 0)]);
        }
        row.extend([grown.resting_mib, grown.loaded_mib].map(|mib| format!("{mib:.0}")));
        row
    };
    Table { columns, rows: all.iter().map(row).collect() }
}

fn plots(all: &[Grown]) -> Vec<Plot> {
    let along = |value: &dyn Fn(&Grown) -> f64| all.iter().map(|grown| (grown.entries_f64(), value(grown))).collect();
    let writes = ("transitions/s".to_owned(), along(&|grown| grown.writes.median()));
    let reads = READS.iter().enumerate().filter(|(_, read)| read.is_small).map(|(number, read)| {
        let p50 = |grown: &Grown| grown.reads.get(number).map_or(f64::NAN, |read| read.p50_micros.median());
        (read.what.to_owned(), along(&p50))
    });
    let start = ("start".to_owned(), along(&|grown| grown.start_seconds.median()));
    let curves = |unit, curves| Drawing::Curves { unit, along: "entries", curves };
    vec![
        Plot {
            file: "growth-writes",
            title: "Transitions per second by size of the ledger".into(),
            drawing: curves("per second", vec![writes]),
        },
        Plot {
            file: "growth-reads",
            title: "Time of reads by size of the ledger, p50".into(),
            drawing: curves("µs", reads.collect()),
        },
        Plot { file: "growth-start", title: "Start by size of the ledger".into(), drawing: curves("s", vec![start]) },
    ]
}

/// 5000000 as `5 million`.
fn size(entries: u64) -> String {
    match entries {
        _ if entries >= 1_000_000 && entries.is_multiple_of(1_000_000) => format!("{} million", entries / 1_000_000),
        _ if entries >= 1_000 && entries.is_multiple_of(1_000) => format!("{} thousand", entries / 1_000),
        _ => entries.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_words() {
        let shown = [10_000, 5_000_000, 1_500_000, 12].map(size);
        assert_eq!(shown, ["10 thousand", "5 million", "1500 thousand", "12"]);
    }
}
