//! A Debian that has nothing of this machine: installed by debootstrap, from where this machine gets its packages.

use std::fs;
use std::path::PathBuf;

use crate::step::{Failure, Stopwatch, output_of, program, run, target_dir};
use crate::tools::{self, Tool};

const TOOLS: [Tool; 2] = [
    Tool { program: "debootstrap", package: "debootstrap" },
    Tool { program: "systemd-nspawn", package: "systemd-container" },
];
/// What a server has, and what the pages tell their reader to install.
const PACKAGES: &str =
    "systemd,systemd-sysv,dbus,procps,openssl,curl,ca-certificates,softhsm2,opensc,python3,python3-pykcs11";

/// Its root directory. It is kept for the next time: a machine writes to memory only.
pub(super) fn root() -> Result<PathBuf, Failure> {
    tools::install_missing(&TOOLS)?;
    let (suite, mirror) = source()?;
    let directory = target_dir().join("pages").join(format!("debian-{suite}"));
    if directory.join("complete").exists() {
        return Ok(directory);
    }
    let failed = |error: std::io::Error| Failure::environment(format!("{}: {error}", directory.display()));
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(failed)?;
    }
    println!("  installing Debian {suite} into {}; this takes some minutes", directory.display());
    let watch = Stopwatch::start();
    let mut install = program("debootstrap", &["--variant=minbase", &format!("--include={PACKAGES}"), &suite]);
    run(install.arg(&directory).arg(&mirror).stdout(std::process::Stdio::null()))?;
    fs::write(directory.join("complete"), "").map_err(failed)?;
    println!("  Debian {suite}: {:.0} s", watch.elapsed().as_secs_f64());
    Ok(directory)
}

/// The release that this machine runs, and the address of its packages.
fn source() -> Result<(String, String), Failure> {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME=")).unwrap_or_default().to_owned();
    let listed = output_of(&mut program("apt-get", &["indextargets", "--format", "$(RELEASE) $(REPO_URI)"]))?;
    let mirror = listed.lines().find_map(|line| line.strip_prefix(&format!("{suite} ")));
    match mirror {
        Some(mirror) if !suite.is_empty() => Ok((suite, mirror.to_owned())),
        _ => Err(Failure::environment("pages --fresh needs a Debian machine: it installs the same release once more")),
    }
}
