//! `cargo xtask dist`: everything for those who run the service, in `target/dist`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::console;
use crate::step::{self, Failure, output_of, program, root, target_dir};
use crate::tools::{self, CC, DPKG_DEB, LINTIAN, MUSL, SYSTEMD_ANALYZE};

mod build;
mod materials;
mod package;
mod proof;
mod tree;

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// How exposed `systemd-analyze security` may find the unit, in tenths.
const EXPOSURE_MAX: &str = "15";

pub fn run() -> Result<(), Failure> {
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

/// A package of the programs in `from`, packed as the real one is: for trying it out, not for handing over.
pub fn quick_package(from: &Path) -> Result<PathBuf, Failure> {
    let place = Place::make_as("pages/package", "0".to_owned())?;
    let programs = build::PROGRAMS.map(|name| place.stage.join("programs").join(name));
    for path in &programs {
        copy(&from.join(name_of(path)), path)?;
        step::run(program("strip", &["--strip-debug"]).arg(path))?;
    }
    tree::make(&place, &programs)?;
    package::debian(&place, "none")
}

/// Where things are put, and the time they all carry.
pub struct Place {
    /// What is handed over.
    pub out: PathBuf,
    /// What it is made from.
    pub stage: PathBuf,
    /// Seconds since 1970 of the last commit: the same sources give the same archives.
    pub epoch: String,
}

impl Place {
    /// Both anew: nothing of an earlier version is handed over by mistake.
    fn make(epoch: String) -> Result<Place, Failure> {
        Place::make_as("dist", epoch)
    }

    fn make_as(name: &str, epoch: String) -> Result<Place, Failure> {
        let (out, stage) = (target_dir().join(name), target_dir().join(format!("{name}-stage")));
        for path in [&out, &stage] {
            if path.exists() {
                fs::remove_dir_all(path).map_err(|error| at(path, &error))?;
            }
            make_directory(path)?;
        }
        Ok(Place { out, stage, epoch })
    }

    /// The files as a package installs them.
    pub fn installed(&self) -> PathBuf {
        self.stage.join("installed")
    }
}

/// systemd reads the unit, with the program that was built in the place of the one it will find.
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

/// Sums for whoever downloads, and a table for whoever built.
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

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.display()))
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| at(path, &error))
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    fs::write(path, text).map_err(|error| at(path, &error))
}

/// Into a directory that may not be there yet.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_directory(to.parent().unwrap_or(root()))?;
    fs::copy(from, to).map(drop).map_err(|error| at(from, &error))
}
