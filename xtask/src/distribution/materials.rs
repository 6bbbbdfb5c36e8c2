//! The bill of materials of each program, for each processor: CycloneDX, every crate with version, licence and checksum.

use std::fs;
use std::path::PathBuf;

use super::architecture::Architecture;
use super::build;
use super::place::{self, Place, at, versioned};
use crate::crates::Crate;
use crate::step::{Failure, cargo, root, run_timed};

const CYCLONEDX: Crate = Crate { program: "cargo-cyclonedx", name: "cargo-cyclonedx", version: "0.5.9" };

pub(super) fn write(place: &Place, architecture: Architecture) -> Result<(), Failure> {
    CYCLONEDX.install_missing()?;
    let mut cyclonedx = cargo(&["cyclonedx", "--quiet", "--format", "json", "--spec-version", "1.5"]);
    cyclonedx.args(["--target", architecture.target()]).env("SOURCE_DATE_EPOCH", &place.epoch);
    build::with_tools(&mut cyclonedx)?;
    let made = run_timed("bill of materials", &mut cyclonedx);
    let bills = take_bills()?;
    made?;
    for name in build::PROGRAMS {
        let Some((_, bill)) = bills.iter().find(|(crate_name, _)| crate_name == name) else {
            return Err(Failure::refuted(format!("cargo cyclonedx wrote nothing for {name}")));
        };
        // The tool names our own crates by their paths.
        let bill = bill.replace(&*root().to_string_lossy(), "/pilot");
        place::write(&place.out.join(file_of(name, architecture)), &bill)?;
    }
    Ok(())
}

/// Removes what the tool writes into the sources, a file next to each manifest, and returns it.
fn take_bills() -> Result<Vec<(String, String)>, Failure> {
    let crates = root().join("crates");
    let entries = fs::read_dir(&crates).map_err(|error| at(&crates, &error))?;
    let directories = entries.filter_map(|entry| Some(entry.ok()?.path())).chain([root().join("xtask")]);
    let mut bills = Vec::new();
    for directory in directories {
        let name = place::name_of(&directory);
        let path: PathBuf = directory.join(format!("{name}.cdx.json"));
        if let Ok(text) = fs::read_to_string(&path) {
            fs::remove_file(&path).map_err(|error| at(&path, &error))?;
            bills.push((name, text));
        }
    }
    Ok(bills)
}

pub(super) fn file_of(name: &str, architecture: Architecture) -> String {
    format!("{}.cdx.json", versioned(name, architecture))
}
