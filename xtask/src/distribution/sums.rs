//! Checksums, and their signature: one signature covers everything that is delivered.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::place::{self, at};
use crate::step::{Failure, output_of, program, run};

pub(super) const FILE: &str = "SHA256SUMS";
const SIGNATURE: &str = "SHA256SUMS.sig";
/// A signature for another purpose by the same key is not one of a release.
const NAMESPACE: &str = "pilot-release";

/// The key that signs releases: a private key, or a public one whose private half is in an agent.
pub(super) struct Key(PathBuf);

impl Key {
    /// Looks at it before a build that takes long.
    pub(super) fn find(path: &str) -> Result<Key, Failure> {
        let path = fs::canonicalize(path).map_err(|error| at(Path::new(path), &error))?;
        let fingerprint = output_of(program("ssh-keygen", &["-l", "-f"]).arg(&path))
            .map_err(|_| Failure::usage(format!("{}: is not a key that ssh-keygen can use", path.display())))?;
        println!("the checksums will be signed with {}", fingerprint.trim());
        Ok(Key(path))
    }
}

/// The names and digests of all files in a directory, sorted, without the checksums themselves.
pub(super) fn digests(directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let entries = fs::read_dir(directory).map_err(|error| at(directory, &error))?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.retain(|name| ![FILE, SIGNATURE].contains(&name.as_str()));
    names.sort();
    names.into_iter().map(|name| Ok((name.clone(), sha256(&directory.join(name))?))).collect()
}

pub(super) fn sha256(path: &Path) -> Result<String, Failure> {
    // From standard input, so that no name is escaped.
    let file = fs::File::open(path).map_err(|error| at(path, &error))?;
    let line = output_of(program("sha256sum", &[]).stdin(Stdio::from(file)))?;
    line.split(' ').next().map(str::to_owned).ok_or_else(|| Failure::environment("sha256sum printed nothing"))
}

pub(super) fn write(directory: &Path) -> Result<Vec<(String, String)>, Failure> {
    let digests = digests(directory)?;
    place::write(&directory.join(FILE), &lines(&digests))?;
    Ok(digests)
}

fn lines(digests: &[(String, String)]) -> String {
    digests.iter().map(|(name, digest)| format!("{digest}  {name}\n")).collect()
}

/// Signs the checksums, or says that nobody did.
pub(super) fn seal(directory: &Path, key: Option<&Key>) -> Result<(), Failure> {
    if let Some(key) = key {
        return sign(directory, key);
    }
    println!("\n*** UNSIGNED: {FILE} has no signature, so nobody can tell who made these files.");
    println!("*** To sign them: cargo xtask dist sign {} --sign-key FILE", directory.display());
    Ok(())
}

/// Signs the checksums of a directory, on whatever machine has the key, if they are right and cover every file.
pub(super) fn sign(directory: &Path, key: &Key) -> Result<(), Failure> {
    let path = directory.join(FILE);
    let found = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    if found != lines(&digests(directory)?) {
        return Err(Failure::refuted(format!("{}: these are not the checksums of the files here", path.display())));
    }
    let signature = directory.join(SIGNATURE);
    if signature.exists() {
        fs::remove_file(&signature).map_err(|error| at(&signature, &error))?;
    }
    let mut sign = program("ssh-keygen", &["-q", "-Y", "sign", "-n", NAMESPACE, "-f"]);
    run(sign.arg(&key.0).arg(FILE).current_dir(directory))?;
    let sums = fs::File::open(&path).map_err(|error| at(&path, &error))?;
    let mut check = program("ssh-keygen", &["-Y", "check-novalidate", "-n", NAMESPACE, "-s", SIGNATURE]);
    run(check.current_dir(directory).stdin(Stdio::from(sums)))
}
