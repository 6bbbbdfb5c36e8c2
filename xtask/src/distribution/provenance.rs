//! Where the deliverables come from: an in-toto statement with SLSA's predicate. It is the same for the same sources,
//! compiler and builder, so it has no time of day in it.

use std::fs;
use std::path::Path;

use super::architecture::Architecture;
use super::place::{at, write};
use super::sums::{digests, sha256};
use crate::step::{Failure, output_of, program, root};

pub(super) const FILE: &str = "provenance.json";
/// Stands for anyone who did not say who they are. Who vouches for it is shown by the signature.
const NOBODY: &str = "urn:pilot:builder:unnamed";
const BUILD_TYPE: &str = "urn:pilot:build:xtask-dist:v1";
/// What decides which code of others is in the programs and in the console.
const LOCKS: [&str; 2] = ["Cargo.lock", "console/package-lock.json"];

/// What the programs were built from, and with.
pub(super) struct Origin {
    builder: String,
    commit: String,
    /// The sources differ from the commit.
    is_changed: bool,
    rustc: String,
    /// Names and SHA-256 digests.
    locks: Vec<(String, String)>,
}

impl Origin {
    /// As it is before the build, whatever someone edits while it runs.
    pub(super) fn look(builder: Option<&str>) -> Result<Origin, Failure> {
        let line = |name: &str, arguments: &[&str]| output_of(&mut program(name, arguments));
        let is_changed = !line("git", &["status", "--porcelain"])?.trim().is_empty();
        let mut locks = Vec::new();
        for name in LOCKS {
            locks.push((name.to_owned(), sha256(&root().join(name))?));
        }
        Ok(Origin {
            builder: builder.unwrap_or(NOBODY).to_owned(),
            commit: line("git", &["rev-parse", "HEAD"])?.trim().to_owned(),
            is_changed,
            rustc: line("rustc", &["--version"])?.trim().to_owned(),
            locks,
        })
    }

    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }
}

/// Describes every file in the directory.
pub(super) fn make(origin: &Origin, directory: &Path) -> Result<(), Failure> {
    let path = directory.join(FILE);
    if path.exists() {
        fs::remove_file(&path).map_err(|error| at(&path, &error))?;
    }
    write(&path, &statement(origin, &digests(directory)?))
}

fn statement(origin: &Origin, files: &[(String, String)]) -> String {
    let Origin { builder, commit, is_changed, rustc, locks } = origin;
    let described = |(name, digest): &(String, String)| {
        format!(r#"{{"name": {}, "digest": {{"sha256": {}}}}}"#, quoted(name), quoted(digest))
    };
    let subjects: Vec<_> = files.iter().map(described).collect();
    let commit = format!(
        r#"{{"name": "source", "digest": {{"gitCommit": {}}}, "annotations": {{"changed": {is_changed}}}}}"#,
        quoted(commit)
    );
    let dependencies: Vec<_> = std::iter::once(commit).chain(locks.iter().map(described)).collect();
    format!(
        r#"{{
  "_type": "https://in-toto.io/Statement/v1",
  "subject": [
    {subjects}
  ],
  "predicateType": "https://slsa.dev/provenance/v1",
  "predicate": {{
    "buildDefinition": {{
      "buildType": {build_type},
      "externalParameters": {{"command": "cargo xtask dist", "targets": [{targets}]}},
      "resolvedDependencies": [
        {dependencies}
      ]
    }},
    "runDetails": {{
      "builder": {{"id": {builder}, "version": {{"rustc": {rustc}}}}}
    }}
  }}
}}
"#,
        subjects = subjects.join(",\n    "),
        build_type = quoted(BUILD_TYPE),
        targets = Architecture::ALL.map(|one| quoted(one.target())).join(", "),
        dependencies = dependencies.join(",\n        "),
        builder = quoted(builder),
        rustc = quoted(rustc),
    )
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let escaped = text.chars().map(|sign| match sign {
        '"' | '\\' => format!("\\{sign}"),
        sign if sign.is_control() => format!("\\u{:04x}", u32::from(sign)),
        sign => sign.to_string(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::sums;
    use super::*;
    use crate::step::target_dir;

    fn origin() -> Origin {
        Origin {
            builder: NOBODY.to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
            is_changed: false,
            rustc: "rustc 1.95.0 (\"x\" 2026-04-14)".to_owned(),
            locks: vec![("Cargo.lock".to_owned(), "11".repeat(32))],
        }
    }

    fn directory(name: &str) -> std::path::PathBuf {
        let directory = target_dir().join("tmp").join(name);
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).unwrap();
        directory
    }

    #[test]
    fn a_statement_names_files_sources_compiler_and_builder() {
        let files = [("a.deb".to_owned(), "22".repeat(32)), ("b \"c\".tar".to_owned(), "33".repeat(32))];
        let expected = r#"{
  "_type": "https://in-toto.io/Statement/v1",
  "subject": [
    {"name": "a.deb", "digest": {"sha256": "2222222222222222222222222222222222222222222222222222222222222222"}},
    {"name": "b \"c\".tar", "digest": {"sha256": "3333333333333333333333333333333333333333333333333333333333333333"}}
  ],
  "predicateType": "https://slsa.dev/provenance/v1",
  "predicate": {
    "buildDefinition": {
      "buildType": "urn:pilot:build:xtask-dist:v1",
      "externalParameters": {"command": "cargo xtask dist", "targets": ["x86_64-unknown-linux-musl", "aarch64-unknown-linux-musl"]},
      "resolvedDependencies": [
        {"name": "source", "digest": {"gitCommit": "0123456789abcdef0123456789abcdef01234567"}, "annotations": {"changed": false}},
        {"name": "Cargo.lock", "digest": {"sha256": "1111111111111111111111111111111111111111111111111111111111111111"}}
      ]
    },
    "runDetails": {
      "builder": {"id": "urn:pilot:builder:unnamed", "version": {"rustc": "rustc 1.95.0 (\"x\" 2026-04-14)"}}
    }
  }
}
"#;
        assert_eq!(statement(&origin(), &files), expected);
    }

    #[test]
    fn digests_are_those_of_the_files_and_the_checksums_cover_the_statement() {
        let directory = directory("provenance");
        fs::write(directory.join("abc"), "abc").unwrap();
        fs::write(directory.join("nothing"), "").unwrap();
        // A second time, as after a failed signature: it does not describe itself.
        for _ in 0..2 {
            make(&origin(), &directory).unwrap();
            sums::write(&directory).unwrap();
        }
        let text = fs::read_to_string(directory.join(FILE)).unwrap();
        let subjects: Vec<_> = text.lines().filter(|line| line.starts_with("    {\"name\"")).collect();
        assert_eq!(
            subjects,
            [
                "    {\"name\": \"abc\", \"digest\": {\"sha256\": \
             \"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\"}},",
                "    {\"name\": \"nothing\", \"digest\": {\"sha256\": \
             \"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\"}}",
            ]
        );
        let sums = fs::read_to_string(directory.join(sums::FILE)).unwrap();
        let names: Vec<_> = sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, name)| name).collect();
        assert_eq!(names, ["abc", "nothing", FILE]);
        let check = Command::new("sha256sum").args(["--check", "--quiet", sums::FILE]).current_dir(&directory).status();
        assert!(check.unwrap().success());
    }

    /// The sources of this repository, as they are now.
    #[test]
    fn what_is_looked_up_is_there() {
        let origin = Origin::look(Some("https://builder.example/7")).unwrap();
        assert!(origin.commit.len() == 40 && origin.rustc.starts_with("rustc "), "{}, {}", origin.commit, origin.rustc);
        assert_eq!(origin.locks.len(), LOCKS.len());
        assert!(origin.locks.iter().all(|(_, digest)| digest.len() == 64));
        let directory = directory("provenance-read");
        fs::write(directory.join("a file"), "").unwrap();
        make(&origin, &directory).unwrap();
        // What a reader of JSON that others wrote makes of it.
        let filter = r#"(.subject | length) == 1 and .predicate.runDetails.builder.id == "https://builder.example/7""#;
        let read = Command::new("jq").args(["--exit-status", filter, FILE]).current_dir(&directory).output().unwrap();
        assert!(read.status.success(), "{read:?}");
    }
}
