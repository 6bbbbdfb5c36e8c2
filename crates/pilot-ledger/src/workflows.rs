//! The definitions of this installation: those in force, and every one that items were created under.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use pilot_core::item::{Item, ItemId, WorkflowRef};
use pilot_core::workflow::registry::Definitions;
use pilot_core::workflow::{Definition, Name};
use pilot_explain::graph::Layouts;
use pilot_store::{Store, StoredDefinition};

use pilot_setup::definitions::{offered, parse};
use pilot_setup::error::StartError;

/// Cannot happen: every definition is stored before an item can be created under it.
#[derive(Debug, thiserror::Error)]
#[error("the definition of item {0} is not in the store")]
pub struct MissingDefinition(ItemId);

pub struct Workflows {
    /// Built in or in `workflows.dir`: new items are created under these.
    offered: Definitions,
    /// These and all that were ever offered: items keep their rules even if the file is gone.
    kept: Definitions,
    /// Diagrams drawn so far, by the digest of their definition.
    diagrams: Mutex<HashMap<Name, Bytes>>,
    layouts: Arc<Layouts>,
}

impl Workflows {
    /// Reads and proves the definitions, and stores their texts permanently with the ledger.
    pub async fn load(dir: Option<&Path>, store: &dyn Store) -> Result<Workflows, StartError> {
        let (offered, texts) = offered(dir)?;
        let mut kept = offered.clone();
        for StoredDefinition { digest, text } in store.keep_definitions(texts).await? {
            let added = kept.add(parse(&digest, &text)?);
            added.map_err(|error| StartError::Refused(format!("{error} (the other one is kept with the ledger)")))?;
        }
        Ok(Workflows { offered, kept, diagrams: Mutex::default(), layouts: Arc::default() })
    }

    /// The definition as a diagram (SVG), drawn once.
    pub fn diagram(&self, definition: &Definition) -> Bytes {
        let mut diagrams = self.diagrams.lock().unwrap_or_else(PoisonError::into_inner);
        let draw = || self.layouts.svg(definition, None).into();
        let drawn = diagrams.entry(definition.digest().clone()).or_insert_with(draw);
        drawn.clone()
    }

    /// For drawing the path of an item.
    pub fn layouts(&self) -> Arc<Layouts> {
        Arc::clone(&self.layouts)
    }

    pub fn in_force(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.offered.in_force()
    }

    /// Those in force, and all that items were ever created under.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.kept.all()
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Definition>> {
        self.offered.named(name)
    }

    /// The definition an item was created under, whatever is in force now.
    pub fn of(&self, workflow: &WorkflowRef) -> Option<&Arc<Definition>> {
        self.with_digest(&workflow.name, &workflow.digest)
    }

    /// The definition an item was created under, which is always stored.
    pub fn kept_by(&self, item: &Item) -> Result<Arc<Definition>, MissingDefinition> {
        self.of(&item.workflow).cloned().ok_or_else(|| MissingDefinition(item.id.clone()))
    }

    /// As entries name it.
    pub fn of_digest(&self, digest: &str) -> Option<&Arc<Definition>> {
        self.kept.all().find(|definition| **definition.digest() == *digest)
    }

    pub fn with_digest(&self, name: &str, digest: &str) -> Option<&Arc<Definition>> {
        self.kept.with_digest(name, digest)
    }
}
