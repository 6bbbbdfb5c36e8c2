//! The definitions new items may be created under: the built-in ones and those in `workflows.dir`.

use std::path::Path;
use std::sync::Arc;

use pilot_core::limits::DEFINITIONS_MAX;
use pilot_core::workflow::registry::Definitions;
use pilot_core::workflow::{Definition, builtin};
use pilot_explain::flaws;
use pilot_store::StoredDefinition;

use crate::config::Config;
use crate::error::StartError;

/// The definitions new items may be created under, each proved, and their texts.
pub fn offered(dir: Option<&Path>) -> Result<(Definitions, Vec<StoredDefinition>), StartError> {
    let (mut offered, mut texts) = (Definitions::default(), Vec::new());
    for text in [builtin::CONTROLLED_OPERATION, builtin::EMERGENCY_OPERATION] {
        let definition = parse("built-in", text)?;
        texts.push(stored(&definition, text));
    }
    let mut refusals = Vec::new();
    let files = files(dir)?;
    let count = files.len() + texts.len();
    if count > DEFINITIONS_MAX {
        return Err(StartError::Refused(format!(
            "workflows.dir: {count} definitions with the built-in ones, but at most {DEFINITIONS_MAX} may be in \
             force; move those that no new item needs out of the directory; open items keep theirs"
        )));
    }
    for (name, text) in files {
        match parse(&name, &text) {
            Ok(definition) => {
                texts.push(stored(&definition, &text));
                refusals.extend(offered.add(definition).err().map(|error| format!("{name}: {error}")));
            }
            Err(refused) => refusals.push(refused.to_string()),
        }
    }
    if refusals.is_empty() { Ok((offered, texts)) } else { Err(StartError::Refused(refusals.join("\n"))) }
}

/// Reads and proves a definition.
pub fn parse(name: &str, text: &str) -> Result<Arc<Definition>, StartError> {
    let parsed = Definition::parse(text).map(Arc::new);
    parsed.map_err(|found| StartError::Refused(flaws::render(&found, name, false)))
}

fn stored(definition: &Definition, text: &str) -> StoredDefinition {
    StoredDefinition { digest: definition.digest().to_string(), text: text.to_owned() }
}

/// The `.toml` files of the directory, sorted by name, as name and text.
pub fn files(dir: Option<&Path>) -> Result<Vec<(String, String)>, StartError> {
    let Some(dir) = dir else { return Ok(Vec::new()) };
    let failed = |path: &Path, error: std::io::Error| {
        StartError::Refused(format!("{}: cannot be read as a definition ({error})", path.display()))
    };
    let entries = std::fs::read_dir(dir).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let mut paths: Vec<_> =
        entries.map_err(|error| failed(dir, error))?.into_iter().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|error| failed(path, error));
    paths.iter().map(|path| Ok((path.display().to_string(), read(path)?))).collect()
}

/// A misspelt directory must not silently mean "no definitions".
pub fn check_dir(config: &Config) -> Result<(), StartError> {
    match &config.workflows.dir {
        Some(path) if !path.is_dir() => Err(StartError::Refused(format!(
            "{}: workflows.dir is not a directory; create it, or remove the setting",
            path.display()
        ))),
        _ => Ok(()),
    }
}
