//! Who may do what, as text for people: `pilot workflow explain`, and the file next to each built-in definition.

use std::fmt::Write as _;

use pilot_core::role::Role;
use pilot_core::workflow::{Definition, Kind, Own, Rule, Rules, State};

const WIDTH_MAX: usize = 118;

/// The whole definition as text, one table per state.
pub fn explain(definition: &Definition) -> String {
    let rules = definition.rules();
    let mut text = String::new();
    let _ = writeln!(text, "{}: {} version {}", rules.title, rules.name, rules.version);
    let _ = writeln!(text, "{}\n", definition.digest());
    write_wrapped(&mut text, "", &rules.description);
    text.push('\n');
    for note in notes(rules) {
        write_wrapped(&mut text, "- ", &note);
    }
    for state in &rules.states {
        write_state(&mut text, definition, state);
    }
    text
}

fn notes(rules: &Rules) -> Vec<String> {
    let named = |kind: Kind| {
        let states = rules.states.iter().filter(|state| state.kind == kind).map(|state| &*state.name);
        states.collect::<Vec<_>>().join(", ")
    };
    let required: Vec<_> = rules.required_roles.iter().map(Role::as_str).collect();
    let mut notes = vec![
        format!(
            "No effect ({}) begins before {} have each let exactly this content pass: {} different people.",
            named(Kind::Effect),
            required.join(", "),
            required.len()
        ),
        "Anyone who acted on an item in one role can never act on it in another, even if their role changes later."
            .to_owned(),
        format!(
            "An initiator creates an item; it begins as {}. Its terminal states: {}.",
            rules.initial,
            named(Kind::Terminal)
        ),
    ];
    if rules.one_open_per_creator {
        notes.push(
            "An initiator can have one such item at a time: the next can be created once the previous one has ended."
                .to_owned(),
        );
    }
    if let Some(hold) = &rules.hold {
        notes.push(format!(
            "Hold: {} can hold an item in any state that is not terminal; {} can release it. Both need a comment. \
             While an item is held, {} are refused; deadlines keep running.",
            hold.roles,
            hold.release_roles,
            hold.blocks.join(", ")
        ));
    }
    notes
}

fn write_state(text: &mut String, definition: &Definition, state: &State) {
    let rules = definition.rules();
    let kind = match state.kind {
        Kind::Open => "",
        Kind::Effect => " (effect)",
        Kind::Terminal => " (end)",
    };
    let turn = if state.waits_for.is_empty() { String::new() } else { format!("; waits for {}", state.waits_for) };
    let _ = writeln!(text, "\n{}{kind}: {}{turn}", state.name, state.description);
    let mut lines: Vec<[String; 4]> = Vec::new();
    if state.editable {
        lines.push(["edit".into(), "initiator".into(), "stays".into(), edit_conditions(rules)]);
    }
    for rule in rules.transitions.iter().filter(|rule| rule.leads_from(&state.name)) {
        let to = rule.to.as_ref().map_or_else(|| "stays".to_owned(), |to| format!("→ {to}"));
        lines.push([rule.action.to_string(), roles(rule), to, conditions(definition, rule).join("; ")]);
    }
    for timer in rules.timers.iter().filter(|timer| timer.from.contains(&state.name)) {
        lines.push(["(timer)".into(), "nobody".into(), format!("→ {}", timer.to), timer.due.to_string()]);
    }
    write_table(text, &lines);
}

fn roles(rule: &Rule) -> String {
    rule.roles.iter().map(Role::as_str).collect::<Vec<_>>().join(", ")
}

fn edit_conditions(rules: &Rules) -> String {
    let held = rules.hold.as_ref().is_some_and(|hold| hold.blocks.iter().any(|blocked| **blocked == *"edit"));
    format!("its creator only; voids votes and window{}", if held { "; not while held" } else { "" })
}

fn conditions(definition: &Definition, rule: &Rule) -> Vec<String> {
    // Destructured without `..`: a field that is not explained here does not compile.
    let Rule {
        action,
        // The other columns of the table.
        from: _,
        to: _,
        roles: _,
        own,
        not_by_executor,
        // See `votes`.
        quorum: _,
        quorum_if: _,
        replaces: _,
        comment_required,
        content_digest_required,
        sets_window,
        inside_window,
        takes_lease,
        renews_lease,
        attempts,
        voids_votes,
        voids_window,
        takes_back_vote,
        when,
        inputs,
        description,
        // See `notes`.
        holds: _,
    } = rule;
    let mut said = Vec::new();
    said.extend(when.as_ref().map(|when| format!("input {} = {}", when.input, when.equals)));
    said.extend(own.map(|own| owner(own).to_owned()));
    said.extend(not_by_executor.then(|| "not by anyone who executed it".to_owned()));
    said.extend(votes(rule));
    said.extend(inside_window.then(|| "inside the window".to_owned()));
    said.extend(attempts.map(|attempts| format!("at most {attempts} attempts")));
    said.extend(definition.hold_blocks(action).then(|| "not while held".to_owned()));
    said.extend(content_digest_required.then(|| "sends the content digest".to_owned()));
    said.extend(comment_required.then(|| "sends a comment".to_owned()));
    said.extend(sets_window.as_ref().map(|max| format!("sets a window of at most {max}")));
    said.extend(takes_lease.as_ref().map(|length| format!("takes a lease of {length}")));
    said.extend(renews_lease.as_ref().map(|length| format!("renews the lease for {length}")));
    said.extend(takes_back_vote.then(|| "takes back the actor's own vote".to_owned()));
    said.extend(voids_votes.then(|| "voids every vote".to_owned()));
    said.extend(voids_window.then(|| "voids the window".to_owned()));
    let inputs: Vec<_> = inputs.iter().map(|input| input.as_str()).collect();
    said.extend((!inputs.is_empty()).then(|| format!("may send {}", inputs.join(", "))));
    said.extend((!description.is_empty()).then(|| description.clone()));
    said
}

fn owner(own: Own) -> &'static str {
    match own {
        Own::Creator => "its creator only",
        Own::Voter => "only an actor whose vote stands",
        Own::Holder => "the lease holder only",
    }
}

fn votes(rule: &Rule) -> Option<String> {
    let quorum = rule.quorum?;
    let raised = rule.quorum_if.as_ref();
    let raised =
        raised.map_or_else(String::new, |cond| format!(", {} when {} is {}", cond.quorum, cond.pointer, cond.equals));
    let replaced = if rule.replaces.is_empty() {
        String::new()
    } else {
        format!(", replacing the actor's own vote to {}", rule.replaces.join(" or "))
    };
    Some(format!("{quorum} {}{raised}{replaced}", if quorum == 1 { "vote" } else { "votes" }))
}

fn write_table(text: &mut String, lines: &[[String; 4]]) {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let (action, who, to) = (width(0), width(1), width(2));
    for [a, b, c, conditions] in lines {
        let lead = format!("  {a:<action$}  {b:<who$}  {c:<to$}  ");
        write_wrapped(text, &lead, conditions);
    }
}

/// Puts `lead` before the first line, and as many spaces before the others.
fn write_wrapped(text: &mut String, lead: &str, words: &str) {
    let indent = lead.chars().count();
    let mut line = lead.to_owned();
    let mut empty = true;
    for word in words.split_whitespace() {
        if !empty && line.chars().count() + word.chars().count() + 1 > WIDTH_MAX {
            let _ = writeln!(text, "{}", line.trim_end());
            line = " ".repeat(indent);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(word);
        empty = false;
    }
    let _ = writeln!(text, "{}", line.trim_end());
}
