//! What auditors ask for: the population and samples of it, exceptions, the access review, and what was not checked.

pub(crate) mod access;
pub(crate) mod checks;
mod csv;
pub(crate) mod exceptions;
mod kind;
pub(crate) mod population;
mod progress;
mod tables;

use std::collections::BTreeMap;
use std::io;

use pilot_core::certain::Certain as _;

use access::{Access, Review};
use checks::CheckRow;
pub use exceptions::Exception;
use exceptions::Exceptions;
pub use kind::Kind;
use population::{ItemRow, Move, Population, drawn};
use tables::Counts;
pub use tables::Table;

use crate::bundle::Scope;
use crate::bundle::source::Source;
use crate::verify::contents::Contents;
use crate::verify::{IN_MEMORY, Trust, Verdict, Watch, examine, opened, register_before};

/// How many items to draw, and from which seed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sampling {
    pub count: usize,
    /// By default the root of the bundle's checkpoint, in base64.
    pub seed: Option<String>,
}

/// What a bundle says, as files for a spreadsheet.
#[derive(Debug, Clone, PartialEq)]
pub struct Tables {
    pub verdict: Verdict,
    pub tables: Vec<Table>,
    /// The seed that samples were drawn from, if any were.
    pub seed: Option<String>,
}

/// The tables of a bundle in memory, or the verdict on one that cannot even be opened.
pub fn tables(bundle: &[u8], trust: &Trust, sampling: Option<&Sampling>) -> Result<Tables, Box<Verdict>> {
    tables_from(&bundle.into(), trust, sampling, &mut |_, _, _| {}).certain(IN_MEMORY)
}

/// The tables of a bundle that is read piece by piece. The outer error is of whatever it is read from.
pub fn tables_from(
    source: &Source<'_>,
    trust: &Trust,
    sampling: Option<&Sampling>,
    watch: &mut Watch<'_>,
) -> io::Result<Result<Tables, Box<Verdict>>> {
    let contents = match opened(source, trust, watch)? {
        Ok(contents) => contents,
        Err(verdict) => return Ok(Err(verdict)),
    };
    let verdict = examine(&contents, trust, watch)?;
    let Some(about) = &verdict.about else { return Ok(Err(Box::new(verdict))) };
    let audit = Audit::of(&contents, trust, &verdict, Population::with_moves())?;
    let counts = Counts::of(&audit.exceptions);
    let mut tables = vec![
        tables::checks(&audit.checks),
        tables::exceptions(&audit.exceptions),
        tables::items(&audit.items, &counts),
        tables::moves(&audit.moves, &contents)?,
        tables::access(&audit.access),
    ];
    let seed = sampling.map(|sampling| sampling.seed.clone().unwrap_or_else(|| about.root.clone()));
    if let (Some(sampling), Some(seed)) = (sampling, &seed) {
        tables.push(tables::samples(&drawn(&audit.items, sampling.count, seed), &counts, seed));
    }
    Ok(Ok(Tables { verdict, tables, seed }))
}

/// The rows of every table, made in one walk over the entries.
pub(crate) struct Audit {
    pub items: Vec<ItemRow>,
    pub moves: Vec<Move>,
    pub exceptions: Vec<Exception>,
    pub access: Access,
    pub checks: Vec<CheckRow>,
}

impl Audit {
    pub(crate) fn of(
        contents: &Contents<'_>,
        trust: &Trust,
        verdict: &Verdict,
        mut population: Population,
    ) -> io::Result<Audit> {
        let scope = &contents.manifest.scope;
        let mut exceptions = Exceptions::new(verdict);
        let mut review = Review::new(scope, &contents.role_maps, register_before(contents, trust));
        for mark in &contents.entries {
            let entry = &contents.entry(mark)?;
            let definition = entry.definition.as_deref().and_then(|digest| contents.definitions.get(digest));
            let definition = definition.map(|definition| &**definition);
            let is_inside = contents.is_inside(entry.index);
            population.take(entry, definition, is_inside);
            exceptions.take(entry, definition, is_inside);
            if is_inside || is_before(scope, entry.index) {
                review.take(entry, is_inside);
            }
        }
        let (items, moves) = population.listed(verdict);
        let definitions: BTreeMap<_, _> =
            items.iter().map(|row| (&row.id, contents.definitions.get(&row.definition).map(|one| &**one))).collect();
        let exceptions = exceptions.listed(verdict, &definitions);
        Ok(Audit { exceptions, items, moves, access: review.listed(), checks: checks::checks(verdict) })
    }
}

fn is_before(scope: &Scope, index: u64) -> bool {
    match scope {
        Scope::Item(_) => false,
        Scope::Period { first, .. } => index < *first,
    }
}
