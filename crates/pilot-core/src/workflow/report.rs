//! What `pilot workflow check` finds: the proof, or every flaw, and whether a role map's people are enough.

use serde::Serialize;

use crate::role_map::RoleMap;
use crate::workflow::definition::Judged;
use crate::workflow::people::{People, examine};
use crate::workflow::source::{Finding, Flaws};
use crate::workflow::{Definition, Rules};

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Present if the definition was proved.
    pub workflow: Option<Proved>,
    pub findings: Vec<Placed>,
    /// How many situations the proof visited; zero if the definition could not be read.
    pub situations: usize,
    pub people: Option<People>,
    #[serde(skip)]
    flaws: Option<Flaws>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Proved {
    pub name: String,
    pub version: u32,
    pub digest: String,
    pub states: usize,
    pub transitions: usize,
    pub required_roles: Vec<String>,
    pub effects: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Placed {
    pub line: usize,
    pub column: usize,
    #[serde(flatten)]
    pub finding: Finding,
}

/// Reads, proves and, given a role map, examines whether there are people to do the work.
pub fn report(text: &str, map: Option<&RoleMap>) -> Report {
    let judged = Judged::of(text);
    let people = |rules: &Rules| map.map(|map| examine(rules, map));
    let situations = judged.situations;
    match judged.verdict {
        Ok(definition) => Report {
            people: people(definition.rules()),
            workflow: Some(Proved::of(&definition)),
            findings: Vec::new(),
            situations,
            flaws: None,
        },
        Err(flaws) => {
            let placed = flaws.findings().iter().map(|finding| {
                let (line, column) = flaws.place(finding);
                Placed { line, column, finding: finding.clone() }
            });
            // The people are worth examining even if the rules are flawed, as long as these could be read.
            let people = judged.refused.as_ref().and_then(people);
            Report { workflow: None, findings: placed.collect(), situations, people, flaws: Some(flaws) }
        }
    }
}

impl Proved {
    fn of(definition: &Definition) -> Proved {
        let rules = definition.rules();
        let effects = rules.states.iter().filter(|state| state.kind.is_effect());
        Proved {
            name: rules.name.to_string(),
            version: rules.version,
            digest: definition.digest().to_string(),
            states: rules.states.len(),
            transitions: rules.transitions.len(),
            required_roles: rules.required_roles.iter().map(|role| role.to_string()).collect(),
            effects: effects.map(|state| state.name.to_string()).collect(),
        }
    }
}

impl Report {
    /// Proved and, if people were examined, there are enough of them.
    pub fn is_sound(&self) -> bool {
        self.workflow.is_some() && self.people.as_ref().is_none_or(|people| people.finishable)
    }

    /// Where the findings are in the text; `None` if there are none.
    pub fn flaws(&self) -> Option<&Flaws> {
        self.flaws.as_ref()
    }
}
