//! What `pilot workflow check` prints: the proof, or every flaw, and what a role map makes of it.

use std::fmt::Write as _;

use serde::Serialize;

use crate::actor::Actor;
use crate::role_map::RoleMap;
use crate::workflow::people::{People, examine};
use crate::workflow::source::{Finding, Flaws};
use crate::workflow::{Definition, Judged, Rules};

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Known when the definition was proved.
    pub workflow: Option<Proved>,
    pub findings: Vec<Placed>,
    /// How many situations the proof looked at; zero when the definition could not be read.
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

/// Reads, proves and, with a role map, examines who is there to do it.
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
            // People are worth a look even when the rules are flawed, as long as they could be read.
            let people = judged.refused.as_ref().and_then(people);
            Report { workflow: None, findings: placed.collect(), situations, people, flaws: Some(flaws) }
        }
    }
}

impl Proved {
    fn of(definition: &Definition) -> Proved {
        let rules = definition.rules();
        let effects = rules.states.iter().filter(|state| state.kind == super::Kind::Effect);
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
    /// Proved, and, when people were examined, there are enough of them.
    pub fn is_sound(&self) -> bool {
        self.workflow.is_some() && self.people.as_ref().is_none_or(|people| people.finishable)
    }

    pub fn to_text(&self, file: &str, colour: bool) -> String {
        let mut text = String::new();
        if let Some(flaws) = &self.flaws {
            text.push_str(&flaws.render(file, colour));
            let count = self.findings.len();
            let _ = writeln!(text, "{file}: refused, {count} {}", if count == 1 { "flaw" } else { "flaws" });
        }
        if let Some(proved) = &self.workflow {
            proved.write(file, self.situations, &mut text);
        }
        if let Some(people) = &self.people {
            people.write(&mut text);
        }
        text
    }
}

impl Proved {
    fn write(&self, file: &str, situations: usize, text: &mut String) {
        let _ = writeln!(text, "{file}: proved");
        let _ = writeln!(text, "  {} version {}, {}", self.name, self.version, self.digest);
        let _ = writeln!(
            text,
            "  {} states, {} transitions, {situations} situations searched",
            self.states, self.transitions
        );
        let people = self.required_roles.len();
        let _ = writeln!(
            text,
            "  {}: never without {}, {people} different people",
            self.effects.join(", "),
            self.required_roles.join(", "),
        );
        let _ = writeln!(text, "  timers only take rights away; every state can be reached and every item can end");
    }
}

impl People {
    fn write(&self, text: &mut String) {
        let _ = writeln!(text, "\npeople");
        for staffing in &self.roles {
            let verdict = if staffing.have >= staffing.need { "" } else { "  too few" };
            let _ = writeln!(text, "  {:<15} {} of {} needed{verdict}", staffing.role, staffing.have, staffing.need);
        }
        let can = if self.finishable { "can" } else { "CANNOT" };
        let _ = writeln!(text, "  these people {can} carry an item through an effect to a terminal state");
        match &self.smallest_group {
            Some(group) => {
                let _ = writeln!(
                    text,
                    "  smallest group that could reach an effect: {} people, for example {}",
                    group.len(),
                    names(group)
                );
            }
            None => {
                let _ = writeln!(text, "  no group of these people can reach an effect");
            }
        }
        if self.finishable {
            let who = if self.indispensable.is_empty() { "nobody".to_owned() } else { names(&self.indispensable) };
            let _ = writeln!(text, "  people without whom items cannot be finished: {who}");
        }
    }
}

fn names(actors: &[Actor]) -> String {
    actors.iter().map(|actor| format!("{} ({})", actor.actor_id, actor.role)).collect::<Vec<_>>().join(", ")
}
