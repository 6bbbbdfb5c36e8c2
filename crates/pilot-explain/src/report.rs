//! What `pilot workflow check` prints: the proof, or every flaw, and whether a role map's people are enough.

use std::fmt::Write as _;

use pilot_core::actor::Actor;
use pilot_core::workflow::people::People;
use pilot_core::workflow::report::{Proved, Report};

use crate::flaws::render;

pub fn to_text(report: &Report, file: &str, colour: bool) -> String {
    let mut text = String::new();
    if let Some(flaws) = report.flaws() {
        text.push_str(&render(flaws, file, colour));
        let count = report.findings.len();
        let _ = writeln!(text, "{file}: refused, {count} {}", if count == 1 { "flaw" } else { "flaws" });
    }
    if let Some(proved) = &report.workflow {
        write_proof(proved, file, report.situations, &mut text);
    }
    if let Some(people) = &report.people {
        write_people(people, &mut text);
    }
    text
}

fn write_proof(proved: &Proved, file: &str, situations: usize, text: &mut String) {
    let _ = writeln!(text, "{file}: proved");
    let _ = writeln!(text, "  {} version {}, {}", proved.name, proved.version, proved.digest);
    let _ = writeln!(
        text,
        "  {} states, {} transitions, {situations} situations searched",
        proved.states, proved.transitions
    );
    let people = proved.required_roles.len();
    let _ = writeln!(
        text,
        "  {}: never without {}, {people} different people",
        proved.effects.join(", "),
        proved.required_roles.join(", "),
    );
    let _ = writeln!(text, "  timers only take rights away; every state can be reached and every item can end");
}

fn write_people(people: &People, text: &mut String) {
    let _ = writeln!(text, "\npeople");
    for staffing in &people.roles {
        let verdict = if staffing.have >= staffing.need { "" } else { "  too few" };
        let _ = writeln!(text, "  {:<15} {} of {} needed{verdict}", staffing.role, staffing.have, staffing.need);
    }
    for person in &people.in_several_roles {
        let roles = person.roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(" and ");
        let _ = writeln!(text, "  {} counts once per item, although their machines make it {roles}", person.actor_id);
    }
    let can = if people.finishable { "can" } else { "CANNOT" };
    let _ = writeln!(text, "  these people {can} carry an item through an effect to a terminal state");
    match &people.smallest_group {
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
    if people.finishable {
        let who = if people.indispensable.is_empty() { "nobody".to_owned() } else { names(&people.indispensable) };
        let _ = writeln!(text, "  people without whom items cannot be finished: {who}");
    }
}

fn names(actors: &[Actor]) -> String {
    let words = |actor: &Actor| match &actor.operated_by {
        None => format!("{} ({})", actor.actor_id, actor.role),
        Some(operator) => format!("{operator} through {} ({})", actor.actor_id, actor.role),
    };
    actors.iter().map(words).collect::<Vec<_>>().join(", ")
}
