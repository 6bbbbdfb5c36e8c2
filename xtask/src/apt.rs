//! Debian's packages: one installation at a time, although steps of a check run side by side.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use crate::step::{Failure, program, run, run_timed, target_dir};

/// How long the lists of packages are taken as they are: fetching them takes longer than many an installation.
const FRESH: Duration = Duration::from_hours(1);

pub(crate) fn install(packages: &[&str]) -> Result<(), Failure> {
    let lists = Lists::lock()?;
    if lists.are_fresh() && run_install(packages).is_ok() {
        return Ok(());
    }
    // Packages that have since been replaced by newer ones are found after this.
    lists.fetch()?;
    run_install(packages)
}

/// Fetches the lists if that was long ago.
pub(crate) fn update() -> Result<(), Failure> {
    let lists = Lists::lock()?;
    if lists.are_fresh() { Ok(()) } else { lists.fetch() }
}

fn run_install(packages: &[&str]) -> Result<(), Failure> {
    // In a session of its own: a check that is stopped must not leave half of a package.
    let mut install = program("setsid", &["--wait", "apt-get", "install", "--yes", "--quiet=2"]);
    // Nothing of the developer's is removed for it: Debian's packages of Rust exclude each other.
    install.args(["--no-install-recommends", "--no-remove"]).args(packages);
    run_timed("install", install.env("DEBIAN_FRONTEND", "noninteractive").stdin(Stdio::null()))
}

/// A file that is locked while packages are installed, and was written when the lists were last fetched.
struct Lists(File);

impl Lists {
    fn lock() -> Result<Lists, Failure> {
        let path: PathBuf = target_dir().join("tools/apt");
        let opened = fs::create_dir_all(target_dir().join("tools"))
            .and_then(|()| OpenOptions::new().create(true).append(true).open(&path))
            .and_then(|file| file.lock().map(|()| file));
        opened.map(Lists).map_err(|error| Failure::environment(format!("{}: {error}", path.display())))
    }

    fn are_fresh(&self) -> bool {
        let Ok(found) = self.0.metadata() else { return false };
        found.len() > 0 && found.modified().is_ok_and(|at| at.elapsed().is_ok_and(|age| age < FRESH))
    }

    fn fetch(&self) -> Result<(), Failure> {
        run(&mut program("apt-get", &["update", "--quiet=2"]))?;
        (&self.0).write_all(b"fetched\n").map_err(|error| Failure::environment(error.to_string()))
    }
}
