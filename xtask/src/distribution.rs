//! `cargo xtask dist`: builds everything that operators install, in `target/dist`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console;
use crate::step::{self, Failure, output_of, program};
use crate::tools::{self, DPKG_DEB, LINTIAN, SSH_KEYGEN, SYSTEMD_ANALYZE};

mod architecture;
mod build;
mod cross;
mod materials;
mod package;
mod place;
mod proof;
mod provenance;
mod sums;
mod tree;

use architecture::Architecture;
use place::{Place, at, copy, name_of, versioned, write};
use provenance::Origin;
use sums::Key;

/// The highest exposure that `systemd-analyze security` may report for the unit, in tenths.
const EXPOSURE_MAX: &str = "15";

const USAGE: &str = "usage: cargo xtask dist [--sign-key FILE] [--builder URI], or cargo xtask dist sign DIRECTORY \
                     --sign-key FILE";

pub(crate) fn command(arguments: &[&str]) -> Result<(), Failure> {
    let (mut key, mut builder) = (None, None);
    let (directory, options) = match arguments {
        ["sign", directory, options @ ..] => (Some(*directory), options),
        options => (None, options),
    };
    for option in options.chunks(2) {
        match option {
            ["--sign-key", file] if key.is_none() => key = Some(*file),
            ["--builder", uri] if builder.is_none() && uri.contains(':') => builder = Some(*uri),
            _ => return Err(Failure::usage(USAGE)),
        }
    }
    tools::install_missing(&[SSH_KEYGEN])?;
    let key = key.map(Key::find).transpose()?;
    match (directory, key, builder) {
        (None, key, builder) => run(key.as_ref(), builder),
        (Some(directory), Some(key), None) => {
            let directory = Path::new(directory);
            sums::sign(&fs::canonicalize(directory).map_err(|error| at(directory, &error))?, &key)
        }
        (Some(_), ..) => Err(Failure::usage(USAGE)),
    }
}

fn run(key: Option<&Key>, builder: Option<&str>) -> Result<(), Failure> {
    for architecture in Architecture::ALL {
        tools::install_missing(&architecture.tools())?;
    }
    tools::install_missing(&[DPKG_DEB, LINTIAN, SYSTEMD_ANALYZE])?;
    let origin = Origin::look(builder)?;
    let epoch = output_of(&mut program("git", &["log", "-1", "--format=%ct"]))?.trim().to_owned();
    let place = Place::make(epoch)?;
    console::build()?;
    let native = build::run(&place, Architecture::X86)?;
    for architecture in Architecture::ALL {
        let programs =
            if architecture == Architecture::X86 { native.clone() } else { build::run(&place, architecture)? };
        deliver(&place, architecture, &programs, &native)?;
    }
    check_unit(&place)?;
    package::chart(&place)?;
    provenance::make(&origin, &place.out)?;
    summarise(&place)?;
    if origin.is_changed() {
        println!("\n*** CHANGED SOURCES: there are changes that are not committed, and {} says so.", provenance::FILE);
    }
    sums::seal(&place.out, key)
}

/// Everything for one processor, after the programs have been tried out.
fn deliver(
    place: &Place,
    architecture: Architecture,
    programs: &[PathBuf; 2],
    native: &[PathBuf; 2],
) -> Result<(), Failure> {
    for path in programs {
        proof::is_static(path, architecture)?;
        proof::names_no_place_of_this_machine(path)?;
    }
    proof::serves(place, programs, architecture)?;
    materials::write(place, architecture)?;
    tree::add_bills(place, architecture)?;
    tree::make(place, architecture, programs, native)?;
    package::tarball(place, architecture)?;
    package::image(place, architecture)?;
    package::inspect(&package::debian(place, architecture, "xz")?)?;
    for path in programs {
        copy(path, &place.out.join(versioned(&name_of(path), architecture)))?;
    }
    Ok(())
}

/// A package of the programs in `from`, built like the real one: for trying out, not for delivery.
pub(crate) fn quick_package(from: &Path) -> Result<PathBuf, Failure> {
    let place = Place::make_as("pages/package", "0".to_owned())?;
    let architecture = Architecture::X86;
    let programs = build::PROGRAMS.map(|name| place.programs(architecture).join(name));
    for path in &programs {
        copy(&from.join(name_of(path)), path)?;
        step::run(program("strip", &["--strip-debug"]).arg(path))?;
    }
    tree::make(&place, architecture, &programs, &programs)?;
    package::debian(&place, architecture, "none")
}

/// Lets systemd read the unit, with the program that was just built in place of the installed one.
fn check_unit(place: &Place) -> Result<(), Failure> {
    let installed = place.installed(Architecture::X86);
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
    println!("\n{:<44}{:>11}  SHA-256", place.out.display(), "bytes");
    for (name, sum) in sums::write(&place.out)? {
        let bytes = fs::metadata(place.out.join(&name)).map_or(0, |found| found.len());
        println!("{name:<44}{bytes:>11}  {sum}");
    }
    Ok(())
}
