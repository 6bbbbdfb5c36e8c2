//! Puts the built console into the program. Without one there is an empty list, and a page that says so.

#![allow(clippy::print_stdout, reason = "cargo listens to what a build script prints")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let dist = PathBuf::from(variable("CARGO_MANIFEST_DIR")?).join("../../console/dist");
    // The directory is always in the repository: cargo takes a missing one for changed, and would build us every time.
    println!("cargo::rerun-if-changed={}", dist.display());
    let out = PathBuf::from(variable("OUT_DIR")?);
    let mut files = BTreeMap::new();
    if dist.join("index.html").exists() {
        walk(&dist, "", &mut files)?;
    }
    // From copies: the console may be built anew while the compiler is at work.
    for (number, place) in files.values_mut().enumerate() {
        let copy = out.join(format!("console-{number}"));
        fs::copy(&*place, &copy)?;
        *place = copy;
    }
    let mut source = String::from("pub static FILES: &[File] = &[\n");
    for (path, place) in files.iter().filter(|(path, _)| !is_packed(path) && !path.starts_with('.')) {
        let packed = |ending: &str| match files.get(&format!("{path}.{ending}")) {
            Some(place) => format!("Some({})", inclusion(place)),
            None => "None".to_owned(),
        };
        let mut hash = DefaultHasher::new();
        fs::read(place)?.hash(&mut hash);
        let tag = format!("W/\"{:016x}\"", hash.finish());
        let (bytes, brotli, gzip) = (inclusion(place), packed("br"), packed("gz"));
        writeln!(
            source,
            "    File {{ path: {path:?}, tag: {tag:?}, bytes: {bytes}, brotli: {brotli}, gzip: {gzip} }},"
        )?;
    }
    source.push_str("];\n");
    fs::write(out.join("console_files.rs"), source)?;
    Ok(())
}

fn inclusion(place: &Path) -> String {
    format!("include_bytes!({:?})", place.display().to_string())
}

fn is_packed(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ending == "br" || ending == "gz")
}

#[expect(clippy::disallowed_methods, reason = "cargo speaks to a build script through the environment")]
fn variable(name: &str) -> Result<String, std::env::VarError> {
    std::env::var(name)
}

/// Every file, by its path below the directory with forward slashes.
fn walk(directory: &Path, prefix: &str, files: &mut BTreeMap<String, PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), &format!("{path}/"), files)?;
        } else {
            files.insert(path, entry.path());
        }
    }
    Ok(())
}
