//! The definitions of this installation: those in force, and every one that items were created under.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pilot_core::item::WorkflowRef;
use pilot_core::limits::DEFINITIONS_MAX;
use pilot_core::workflow::registry::Definitions;
use pilot_core::workflow::{Definition, Name, builtin, graph};
use pilot_store::{Store, StoredDefinition};

use crate::start::StartError;

pub struct Workflows {
    /// Built in or in `workflows.dir`: what new items are created under.
    offered: Definitions,
    /// Those and all that were ever offered: items keep their rules though the file is gone.
    kept: Definitions,
    /// Pictures that were asked for, by the digest of their definition: laying one out takes milliseconds.
    diagrams: Mutex<HashMap<Name, Bytes>>,
}

impl Workflows {
    /// Reads and proves the definitions, and keeps their texts with the ledger for as long as it lasts.
    pub async fn load(dir: Option<&Path>, store: &dyn Store) -> Result<Workflows, StartError> {
        let (offered, texts) = offered(dir)?;
        let mut kept = offered.clone();
        for StoredDefinition { digest, text } in store.keep_definitions(texts).await? {
            let added = kept.add(parse(&digest, &text)?);
            added.map_err(|error| StartError::Refused(format!("{error} (the other one is kept with the ledger)")))?;
        }
        Ok(Workflows { offered, kept, diagrams: Mutex::default() })
    }

    /// The definition as a picture (SVG), drawn once.
    pub fn diagram(&self, definition: &Definition) -> Bytes {
        let mut diagrams = self.diagrams.lock().unwrap_or_else(PoisonError::into_inner);
        let drawn = diagrams.entry(definition.digest().clone()).or_insert_with(|| graph::svg(definition, None).into());
        drawn.clone()
    }

    pub fn in_force(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.offered.in_force()
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Definition>> {
        self.offered.named(name)
    }

    /// The definition an item was created under, whatever is in force now.
    pub fn of(&self, workflow: &WorkflowRef) -> Option<&Arc<Definition>> {
        self.with_digest(&workflow.name, &workflow.digest)
    }

    pub fn with_digest(&self, name: &str, digest: &str) -> Option<&Arc<Definition>> {
        self.kept.with_digest(name, digest)
    }
}

/// The definitions new items may be created under, each proved, and their texts.
pub(crate) fn offered(dir: Option<&Path>) -> Result<(Definitions, Vec<StoredDefinition>), StartError> {
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

fn parse(name: &str, text: &str) -> Result<Arc<Definition>, StartError> {
    let parsed = Definition::parse(text).map(Arc::new);
    parsed.map_err(|flaws| StartError::Refused(flaws.render(name, false)))
}

fn stored(definition: &Definition, text: &str) -> StoredDefinition {
    StoredDefinition { digest: definition.digest().to_string(), text: text.to_owned() }
}

/// The `.toml` files of the directory in the order of their names, as name and text.
pub(crate) fn files(dir: Option<&Path>) -> Result<Vec<(String, String)>, StartError> {
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
