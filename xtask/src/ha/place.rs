//! Where a cluster keeps its files. In memory where possible: databases on a slow disk would measure the disk.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::process::USER;
use crate::step::{Failure, output_of, program, root, run, target_dir};

pub(crate) struct Place {
    base: PathBuf,
}

fn environment(path: &Path, error: &std::io::Error) -> Failure {
    Failure::environment(format!("{}: {error}", path.display()))
}

/// Names the directory of the cluster that is up.
fn note() -> PathBuf {
    target_dir().join("ha.place")
}

impl Place {
    pub(crate) fn find() -> Option<Place> {
        let base = PathBuf::from(fs::read_to_string(note()).ok()?.trim());
        base.is_dir().then_some(Place { base })
    }

    pub(crate) fn forget() {
        let _ = fs::remove_file(note());
    }

    pub(crate) fn make() -> Result<Place, Failure> {
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let base = parent.join(format!("pilot-ha-{}", std::process::id()));
        fs::create_dir(&base).map_err(|error| environment(&base, &error))?;
        fs::write(note(), format!("{}\n", base.display())).map_err(|error| environment(&note(), &error))?;
        let place = Place { base };
        place.own(place.base())?;
        Ok(place)
    }

    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// The directory of a machine, or a file in it.
    pub(crate) fn of(&self, machine: &str, file: &str) -> PathBuf {
        self.base.join(machine).join(file)
    }

    pub(crate) fn text(&self, machine: &str, file: &str) -> String {
        self.of(machine, file).display().to_string()
    }

    pub(crate) fn directory(&self, path: &Path) -> Result<(), Failure> {
        fs::create_dir_all(path).map_err(|error| environment(path, &error))?;
        self.own(path)
    }

    /// A file that only the user of the database can read.
    pub(crate) fn write(&self, path: &Path, text: &str) -> Result<(), Failure> {
        fs::write(path, text).map_err(|error| environment(path, &error))?;
        self.own(path)
    }

    pub(crate) fn copy(&self, from: &Path, to: &Path) -> Result<(), Failure> {
        fs::copy(from, to).map_err(|error| environment(from, &error))?;
        self.own(to)
    }

    /// Makes a file or directory the database user's own.
    pub(crate) fn own(&self, path: &Path) -> Result<(), Failure> {
        let mode = if path.is_dir() || path.starts_with(self.base.join("bin")) { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(|error| environment(path, &error))?;
        run(program("chown", &[&format!("{USER}:{USER}")]).arg(path))
    }
}

/// A file of the recipe, with the words between @ signs and the usual places replaced.
pub(crate) fn filled(file: &str, words: &[(&str, &str)]) -> Result<String, Failure> {
    let path = root().join("deploy/ha").join(file);
    let text = fs::read_to_string(&path).map_err(|error| environment(&path, &error))?;
    let filled = words.iter().fold(text, |text, (word, value)| text.replace(word, value));
    let is_open = |line: &&str| !line.trim_start().starts_with('#') && line.matches('@').count() > 1;
    match filled.lines().find(is_open) {
        Some(line) => Err(Failure::refuted(format!("deploy/ha/{file} has a word that nobody replaces: {line}"))),
        None => Ok(filled),
    }
}

/// A password for this cluster only.
pub(crate) fn password() -> Result<String, Failure> {
    Ok(output_of(&mut program("openssl", &["rand", "-hex", "16"]))?.trim().to_owned())
}
