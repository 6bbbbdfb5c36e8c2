//! `cargo xtask dist`: builds everything that operators install, in `target/dist`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console;
use crate::step::{self, Failure, output_of, program};
use crate::tools::{self, CC, DPKG_DEB, LINTIAN, MUSL, SYSTEMD_ANALYZE};

mod build;
mod materials;
mod package;
mod place;
mod proof;
mod tree;

use place::{Place, at, copy, name_of, write};

/// The highest exposure that `systemd-analyze security` may report for the unit, in tenths.
const EXPOSURE_MAX: &str = "15";

pub(crate) fn run() -> Result<(), Failure> {
    tools::install_missing(&[CC, MUSL, DPKG_DEB, LINTIAN, SYSTEMD_ANALYZE])?;
    let epoch = output_of(&mut program("git", &["log", "-1", "--format=%ct"]))?.trim().to_owned();
    let place = Place::make(epoch)?;
    console::build()?;
    let programs = build::run(&place.stage)?;
    for path in &programs {
        proof::is_static(path)?;
        proof::names_no_place_of_this_machine(path)?;
    }
    proof::serves(&place, &programs)?;
    materials::write(&place)?;
    tree::add_bills(&place)?;
    tree::make(&place, &programs)?;
    check_unit(&place)?;
    package::tarball(&place)?;
    package::image(&place)?;
    package::inspect(&package::debian(&place, "xz")?)?;
    for path in &programs {
        copy(path, &place.out.join(name_of(path)))?;
    }
    summarise(&place)
}

/// A package of the programs in `from`, built like the real one: for trying out, not for delivery.
pub(crate) fn quick_package(from: &Path) -> Result<PathBuf, Failure> {
    let place = Place::make_as("pages/package", "0".to_owned())?;
    let programs = build::PROGRAMS.map(|name| place.stage.join("programs").join(name));
    for path in &programs {
        copy(&from.join(name_of(path)), path)?;
        step::run(program("strip", &["--strip-debug"]).arg(path))?;
    }
    tree::make(&place, &programs)?;
    package::debian(&place, "none")
}

/// Lets systemd read the unit, with the program that was just built in place of the installed one.
fn check_unit(place: &Place) -> Result<(), Failure> {
    let installed = place.installed();
    let text = fs::read_to_string(installed.join(tree::UNIT)).map_err(|error| at(&installed, &error))?;
    let unit = place.stage.join("pilot.service");
    write(&unit, &text.replace("/usr/bin/pilot", &installed.join("usr/bin/pilot").to_string_lossy()))?;
    step::run(program("systemd-analyze", &["verify", "--man=no"]).arg(&unit))?;
    let threshold = format!("--threshold={EXPOSURE_MAX}");
    let mut security = program("systemd-analyze", &["security", "--no-pager", "--offline=true", &threshold]);
    let report = output_of(security.arg(&unit))
        .map_err(|_| Failure::refuted("the unit is more exposed than before; see `systemd-analyze security`"))?;
    println!("{}", report.lines().last().unwrap_or_default());
    Ok(())
}

/// Checksums for those who download, and a table for those who build.
fn summarise(place: &Place) -> Result<(), Failure> {
    let mut names: Vec<String> = fs::read_dir(&place.out)
        .map_err(|error| at(&place.out, &error))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    let sums = output_of(program("sha256sum", &["--"]).args(&names).current_dir(&place.out))?;
    write(&place.out.join("SHA256SUMS"), &sums)?;
    println!("\n{:<34}{:>11}  SHA-256", place.out.display(), "bytes");
    for line in sums.lines() {
        let Some((sum, name)) = line.split_once("  ") else { continue };
        let bytes = fs::metadata(place.out.join(name)).map_or(0, |found| found.len());
        println!("{name:<34}{bytes:>11}  {sum}");
    }
    Ok(())
}
