//! Paths of the machine that builds, and what stands for them in what is built: it says nothing about the machine, and is
//! the same wherever it is built.

use crate::step::{Failure, cargo, output_of, root, target_dir};

/// Which prefix replaces each path of this machine; if several match, the last one counts.
pub(crate) fn renamed() -> Result<Vec<(String, &'static str)>, Failure> {
    // A build's own copies of generated files are below the target directory.
    let mut places = vec![(target_dir().to_string_lossy().into_owned(), "target")];
    places.push((root().to_string_lossy().into_owned(), "pilot"));
    let metadata = output_of(&mut cargo(&["metadata", "--locked", "--format-version", "1"]))?;
    if let Some(registry) = registry_of(&metadata) {
        places.push((registry, "crates"));
    }
    Ok(places)
}

/// The directory with the sources of other people's crates, derived from the first of them.
fn registry_of(metadata: &str) -> Option<String> {
    let manifests = metadata.split("\"manifest_path\":\"").skip(1).filter_map(|rest| rest.split('"').next());
    manifests.filter_map(|path| path.split_once("/registry/src/")).find_map(|(home, rest)| {
        let index = rest.split('/').next()?;
        Some(format!("{home}/registry/src/{index}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_other_crates_are_found_whatever_the_registry_is_called() {
        let metadata =
            r#"{"manifest_path":"/a/pilot/Cargo.toml"},{"manifest_path":"/b/registry/src/x-1/clap/Cargo.toml"}"#;
        assert_eq!(registry_of(metadata).as_deref(), Some("/b/registry/src/x-1"));
        assert_eq!(registry_of(r#"{"manifest_path":"/a/vendor/clap/Cargo.toml"}"#), None);
    }
}
