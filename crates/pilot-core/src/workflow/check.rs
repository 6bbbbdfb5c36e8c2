//! The prover: what must hold for every definition, shown by searching all of its situations.
//!
//! Nothing here runs a workflow. The rules are data with fixed predicates, so the number of situations is finite, and
//! the search in [`super::search`] visits all of them.

mod reach;
mod shape;

use crate::workflow::Rules;
use crate::workflow::search::Model;
use crate::workflow::source::Finding;

/// Everything that is wrong with the rules; empty if they are proved.
pub fn check(rules: &Rules) -> Vec<Finding> {
    prove(rules).findings
}

#[derive(Debug, Clone)]
pub struct Proof {
    pub findings: Vec<Finding>,
    /// How many situations were visited: the cost of the search.
    pub situations: usize,
}

pub fn prove(rules: &Rules) -> Proof {
    let mut findings = shape::check(rules);
    let (reached, situations) = reach::check(&Model::new(rules));
    findings.extend(reached);
    Proof { findings, situations }
}
