//! How one period's bundle follows another: what the next one must agree with, and what it need not prove again.

use super::contents::{Contents, open};
use super::items::OpenItems;
use super::log::Roots;
use super::register::Register;
use super::verdict::{Check, Fault, Verdict};
use super::{Examined, Trust, examined, unopened};
use crate::bundle::Scope;
use crate::checkpoint::Checkpoint;
use crate::merkle::Hash;

/// The end of a period whose bundle has no fault.
#[derive(Debug, Clone, PartialEq)]
pub struct Predecessor {
    /// How many entries the log had at its end, and the root of their tree.
    pub end: u64,
    root: Hash,
    /// The newest checkpoint it knew.
    newest: Checkpoint,
    /// What a ledger that is followed from its first entry has shown so far.
    pub(super) carried: Option<Carried>,
}

/// What only the whole ledger shows, as of its end.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Carried {
    pub(super) register: Register,
    pub(super) open_items: OpenItems,
}

/// Verifies the bundle of a period, and returns what the next one must follow. The error is its verdict.
pub fn predecessor(bundle: &[u8], trust: &Trust) -> Result<Predecessor, Box<Verdict>> {
    let contents = open(bundle, &trust.key).map_err(|faults| Box::new(unopened(faults)))?;
    let Examined { mut verdict, newest, roots, carried } = examined(&contents, trust);
    let end = match (&contents.manifest.scope, newest, verdict.holds) {
        (Scope::Period { end, .. }, Some(newest), true) => roots.get(end).map(|root| (*end, *root, newest)),
        (Scope::Item(_), _, true) => {
            let fault = Fault::new(Check::Completeness, "scope", "it is about an item: only a period can be followed");
            verdict.refute(fault);
            None
        }
        _ => None,
    };
    match end {
        Some((end, root, newest)) => Ok(Predecessor { end, root, newest, carried }),
        None => Err(Box::new(verdict)),
    }
}

impl Predecessor {
    /// The sizes whose roots it wants to compare.
    pub(super) fn sizes(&self) -> [u64; 2] {
        [self.end, self.newest.size]
    }

    /// Whether this bundle begins where the previous one ended, in the same log.
    pub(super) fn check(&self, contents: &Contents<'_>, roots: &Roots) -> Result<(), Fault> {
        let wrong = |what: String| Fault::new(Check::Pins, "chain", what);
        let first = match contents.manifest.scope {
            Scope::Period { first, .. } => first,
            Scope::Item(_) => return Err(wrong("a bundle about an item does not follow a period".into())),
        };
        if first != self.end {
            return Err(wrong(format!(
                "the previous period ends before entry {}, and this one begins at {first}",
                self.end
            )));
        }
        for (size, root) in [(self.end, self.root), (self.newest.size, self.newest.root)] {
            if roots.get(&size).is_some_and(|found| *found != root) {
                return Err(wrong(format!(
                    "the previous period is of another history: its root at {size} entries differs"
                )));
            }
        }
        Ok(())
    }
}
