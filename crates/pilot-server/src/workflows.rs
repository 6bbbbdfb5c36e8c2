//! The definitions of this installation: those in force, by name, and every one that items were created under.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use pilot_core::workflow::{Definition, builtin};
use pilot_store::{Store, StoredDefinition};

use crate::start::StartError;

pub struct Workflows {
    /// What new items are created under.
    in_force: Vec<Arc<Definition>>,
    by_digest: HashMap<String, Arc<Definition>>,
}

/// Definitions with the text they were read from.
type Texts = Vec<(Arc<Definition>, String)>;

impl Workflows {
    /// Reads and proves the definitions, and keeps their texts with the ledger for as long as it lasts.
    pub async fn load(dir: Option<&Path>, store: &dyn Store) -> Result<Workflows, StartError> {
        let texts = read(dir)?;
        let stored = texts
            .iter()
            .map(|(definition, text)| StoredDefinition { digest: definition.digest().to_string(), text: text.clone() });
        let kept = store.keep_definitions(stored.collect()).await?;
        let mut by_digest = HashMap::new();
        for StoredDefinition { digest, text } in kept {
            let definition = match texts.iter().find(|(definition, _)| **definition.digest() == *digest) {
                Some((definition, _)) => Arc::clone(definition),
                None => Arc::new(Definition::parse(&text).map_err(|flaws| {
                    StartError::Refused(format!(
                        "a definition kept in the store is flawed:\n{}",
                        flaws.render(&digest, false)
                    ))
                })?),
            };
            by_digest.insert(digest, definition);
        }
        Ok(Workflows { in_force: texts.into_iter().map(|(definition, _)| definition).collect(), by_digest })
    }

    pub fn in_force(&self) -> &[Arc<Definition>] {
        &self.in_force
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Definition>> {
        self.in_force.iter().find(|definition| **definition.name() == *name)
    }

    /// The definition an item was created under, whatever is in force now.
    pub fn with_digest(&self, digest: &str) -> Option<&Arc<Definition>> {
        self.by_digest.get(digest)
    }
}

fn read(dir: Option<&Path>) -> Result<Texts, StartError> {
    let builtin = [builtin::CONTROLLED_OPERATION, builtin::EMERGENCY_OPERATION].map(str::to_owned);
    let mut texts: Texts = builtin::builtin().into_iter().zip(builtin).collect();
    let Some(dir) = dir else { return Ok(texts) };
    let failed = |error: std::io::Error| {
        StartError::Refused(format!("{}: workflows.dir cannot be read ({error})", dir.display()))
    };
    let mut paths: Vec<_> = std::fs::read_dir(dir)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(failed)?
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    let mut refusals = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).map_err(failed)?;
        match Definition::parse(&text) {
            Ok(definition) if texts.iter().any(|(known, _)| known.name() == definition.name()) => {
                refusals.push(format!("{}: there is a workflow named {} already", path.display(), definition.name()));
            }
            Ok(definition) => texts.push((Arc::new(definition), text)),
            Err(flaws) => refusals.push(flaws.render(&path.display().to_string(), false)),
        }
    }
    if refusals.is_empty() { Ok(texts) } else { Err(StartError::Refused(refusals.join("\n"))) }
}
