//! The definitions of an installation: one in force per name, and the older ones that items still follow.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::workflow::builtin::builtin;
use crate::workflow::{Definition, Name};

#[derive(Debug, Clone)]
pub struct Definitions {
    by_name: BTreeMap<Name, Vec<Arc<Definition>>>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("there are two different definitions {name} version {version}; give the changed one a higher version")]
pub struct TwoOfOneVersion {
    pub name: Name,
    pub version: u32,
}

impl Default for Definitions {
    fn default() -> Self {
        let mut definitions = Definitions { by_name: BTreeMap::new() };
        for definition in builtin() {
            definitions.by_name.entry(definition.name().clone()).or_default().push(definition);
        }
        definitions
    }
}

impl Definitions {
    /// Adds to the built-in definitions. Adding the same one twice is harmless; a changed one with an old version
    /// number is refused, because it would be unclear which rules that version has.
    pub fn add(&mut self, definition: Arc<Definition>) -> Result<(), TwoOfOneVersion> {
        let versions = self.by_name.entry(definition.name().clone()).or_default();
        match versions.iter().find(|known| known.version() == definition.version()) {
            Some(known) if known.digest() == definition.digest() => Ok(()),
            Some(_) => Err(TwoOfOneVersion { name: definition.name().clone(), version: definition.version() }),
            None => {
                versions.push(definition);
                versions.sort_by_key(|definition| definition.version());
                Ok(())
            }
        }
    }

    /// The definitions new items are created under: the highest version of each name.
    pub fn in_force(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.by_name.values().filter_map(|versions| versions.last())
    }

    pub fn named(&self, name: &str) -> Option<&Arc<Definition>> {
        self.by_name.get(name)?.last()
    }

    /// The exact rules an item was created under.
    pub fn with_digest(&self, name: &str, digest: &str) -> Option<&Arc<Definition>> {
        self.by_name.get(name)?.iter().find(|definition| **definition.digest() == *digest)
    }

    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.by_name.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workflow::builtin::CONTROLLED_OPERATION;

    /// The version of the definition that is changed here.
    const BUILT_IN: u32 = 2;

    fn changed(version: &str) -> Arc<Definition> {
        let text = CONTROLLED_OPERATION.replace("\nversion = 2\n", version).replace("\"72h\"", "\"48h\"");
        Arc::new(Definition::parse(&text).unwrap())
    }

    #[test]
    fn a_higher_version_is_in_force_and_the_old_one_stays_for_its_items() {
        let mut definitions = Definitions::default();
        let old = definitions.named("controlled-operation").unwrap().digest().clone();
        definitions.add(changed("\nversion = 3\n")).unwrap();
        definitions.add(changed("\nversion = 3\n")).unwrap();
        assert_eq!(definitions.named("controlled-operation").unwrap().version(), BUILT_IN + 1);
        assert_eq!(definitions.with_digest("controlled-operation", &old).unwrap().version(), BUILT_IN);
        assert_eq!(definitions.in_force().count(), 2);
        assert!(definitions.named("unknown").is_none());
    }

    #[test]
    fn changed_rules_under_an_old_version_are_refused() {
        let refused = Definitions::default().add(changed("\nversion = 2\n")).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "there are two different definitions controlled-operation version 2; give the changed one a higher version"
        );
    }
}
