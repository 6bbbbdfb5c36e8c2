//! Programs that cargo builds from their source. That takes minutes, so they are kept for every clone of this user.

use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::variable;
use crate::step::{Failure, cargo, run_timed, target_dir};

/// A program and the crate that contains it.
pub(crate) struct Crate {
    pub program: &'static str,
    pub name: &'static str,
    pub version: &'static str,
}

impl Crate {
    pub(crate) fn path(&self) -> PathBuf {
        target_dir().join("tools/bin").join(self.program)
    }

    /// Takes the program from where it is kept into `target/tools`. Returns whether it is there now.
    pub(crate) fn is_there(&self) -> bool {
        let path = self.path();
        path.exists() || self.kept().is_some_and(|kept| kept.exists() && put(&kept, &path).is_ok())
    }

    /// Returns the program's path. It is built without optimisation and debug information, which is fastest: it answers a
    /// few requests, or runs for seconds.
    pub(crate) fn install_missing(&self) -> Result<PathBuf, Failure> {
        let directory = target_dir().join("tools");
        if !self.is_there() {
            let mut install =
                cargo(&["install", self.name, "--version", self.version, "--locked", "--debug", "--root"]);
            install.arg(&directory).arg("--target-dir").arg(directory.join("build"));
            install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_INCREMENTAL", "0");
            run_timed(&format!("install {}", self.name), &mut install)?;
            if let Some(kept) = self.kept() {
                // Without it, the next clone builds it again.
                let _ = put(&self.path(), &kept);
            }
        }
        Ok(self.path())
    }

    fn kept(&self) -> Option<PathBuf> {
        let file = format!("{}-{}-{}", self.name, self.version, std::env::consts::ARCH);
        Some(cache()?.join("pilot/tools").join(file))
    }
}

/// The user's directory for what can be made again.
fn cache() -> Option<PathBuf> {
    let named = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    named("XDG_CACHE_HOME").or_else(|| Some(named("HOME")?.join(".cache")))
}

/// Copies a program. It gets its name when all of it is there.
fn put(from: &Path, to: &Path) -> std::io::Result<()> {
    to.parent().map_or(Ok(()), fs::create_dir_all)?;
    let beside = to.with_extension(format!("new-{}", std::process::id()));
    fs::copy(from, &beside)?;
    fs::rename(&beside, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_copied_whole_with_its_mode() {
        let directory = target_dir().join(format!("crates-test-{}", std::process::id()));
        let (from, to) = (directory.join("one/program"), directory.join("two/program"));
        fs::create_dir_all(directory.join("one")).unwrap();
        fs::copy("/bin/true", &from).unwrap();
        put(&from, &to).unwrap();
        assert!(std::process::Command::new(&to).status().unwrap().success());
        let left: Vec<_> =
            fs::read_dir(directory.join("two")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["program"]);
        fs::remove_dir_all(&directory).unwrap();
    }
}
