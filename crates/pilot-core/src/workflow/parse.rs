//! Reads a definition: every key must be known, every value have the right type and bounds, every name exist.

mod values;

use serde_json::{Map, Value};

use crate::limits;
use crate::workflow::parse::values::{Reader, Table};
use crate::workflow::source::{Finding, Flaws, read_toml};
use crate::workflow::{
    Due, Hold, Input, Kind, Mark, Name, Own, QuorumIf, RESERVED_ACTIONS, Rule, Rules, Span, State, Timer, When,
};

/// Reads as much as possible. Returns rules only if their form is flawless.
pub(crate) fn read(text: &str) -> (Option<Rules>, Flaws) {
    if text.len() > limits::DEFINITION_BYTES_MAX {
        let mut flaws = Flaws::new("", super::source::Places::default());
        let message = format!("a definition may have at most {} bytes", limits::DEFINITION_BYTES_MAX);
        flaws.add([Finding::new("format", "").says(message).mend("shorten it")]);
        return (None, flaws);
    }
    let (document, places, findings) = read_toml(text);
    let mut flaws = Flaws::new(text, places);
    let (rules, findings) = rules(&document, findings);
    let sound = findings.is_empty();
    flaws.add(findings);
    flaws.sort();
    (rules.filter(|_| sound), flaws)
}

/// As many of the rules as can be read from a document, and what is wrong with them, after what was wrong before.
pub(super) fn rules(document: &Value, findings: Vec<Finding>) -> (Option<Rules>, Vec<Finding>) {
    let mut reader = Reader { findings };
    let rules = reader.rules(document);
    (rules, reader.findings)
}

impl Reader {
    fn rules(&mut self, document: &Value) -> Option<Rules> {
        let table = self.table(document, "")?;
        self.known(table, TOP_KEYS);
        if self.integer(table, "schema_version", 1..=1).is_none() {
            self.required(table, "schema_version", "write schema_version = 1");
        }
        let states = self.list(table, "state", limits::DEFINITION_STATES_MAX, Reader::state);
        let transitions = self.list(table, "transition", limits::DEFINITION_TRANSITIONS_MAX, Reader::rule);
        let timers = self.list(table, "timer", limits::DEFINITION_TRANSITIONS_MAX, Reader::timer);
        let hold = table.get("hold").and_then(|hold| self.hold(hold, "/hold"));
        let rules = Rules {
            schema_version: 1,
            name: self.need_name(table, "name"),
            version: self.need_integer(table, "version", 1..=1_000_000),
            title: self.need_text(table, "title"),
            description: self.text(table, "description").unwrap_or_default(),
            initial: self.need_name(table, "initial"),
            required_roles: self.need_roles(table, "required_roles"),
            one_open_per_creator: self.flag(table, "one_open_per_creator"),
            states,
            transitions,
            timers,
            hold,
            payload_schema: table.get("payload_schema").cloned().unwrap_or_else(|| Value::Object(Map::new())),
        };
        self.names_exist(&rules);
        Some(rules)
    }

    fn state(&mut self, value: &Value, at: &str) -> Option<State> {
        let table = self.table(value, at)?;
        self.known(table, STATE_KEYS);
        let kind = self.word(table, "kind", &KINDS);
        if kind.is_none() {
            self.required(table, "kind", "write kind = \"open\", \"effect\" or \"terminal\"");
        }
        Some(State {
            name: self.need_name(table, "name"),
            kind: kind.unwrap_or(Kind::Open),
            editable: self.flag(table, "editable"),
            waits_for: self.roles(table, "waits_for").unwrap_or_default(),
            description: self.text(table, "description").unwrap_or_default(),
        })
    }

    fn rule(&mut self, value: &Value, at: &str) -> Option<Rule> {
        let table = self.table(value, at)?;
        self.known(table, RULE_KEYS);
        let to = self.need_name(table, "to");
        let voids = self.words(table, "voids", &VOIDS);
        Some(Rule {
            action: self.action_name(table),
            from: self.need_names(table, "from"),
            to: Some(to).filter(|to| **to != *"same"),
            roles: self.need_roles(table, "roles"),
            own: self.word(table, "own", &OWNS),
            not_by_executor: self.word(table, "not_by", &[("executor", true)]).unwrap_or_default(),
            quorum: self.integer(table, "quorum", 0..=1_000),
            quorum_if: table.get("quorum_if").and_then(|value| self.quorum_if(value, &table.pointer("quorum_if"))),
            comment_required: self.word(table, "comment", &NEEDS).unwrap_or_default(),
            content_digest_required: self.word(table, "content_digest", &NEEDS).unwrap_or_default(),
            sets_window: table.get("sets_window").and_then(|value| self.window(value, &table.pointer("sets_window"))),
            inside_window: self.flag(table, "inside_window"),
            takes_lease: self.span(table, "takes_lease"),
            renews_lease: self.span(table, "renews_lease"),
            attempts: self.integer(table, "attempts", 1..=1_000),
            voids_votes: voids.contains(&Voids::Votes),
            voids_window: voids.contains(&Voids::Window),
            takes_back_vote: self.flag(table, "takes_back_vote"),
            replaces: self.names(table, "replaces_vote_for").unwrap_or_default(),
            when: table.get("when").and_then(|value| self.when(value, &table.pointer("when"))),
            inputs: self.words(table, "inputs", &INPUTS),
            description: self.text(table, "description").unwrap_or_default(),
            holds: None,
        })
    }

    fn action_name(&mut self, table: Table<'_>) -> Name {
        let action = self.need_name(table, "action");
        if RESERVED_ACTIONS.contains(&&*action) {
            let says = format!("`{action}` is reserved and cannot be an action of a definition");
            let mend =
                if matches!(&*action, "hold" | "release") { "use a [hold] table" } else { "choose another name" };
            self.fault(table.pointer("action"), says, mend);
        }
        action
    }

    fn quorum_if(&mut self, value: &Value, at: &str) -> Option<QuorumIf> {
        let table = self.table(value, at)?;
        self.known(table, &["pointer", "equals", "quorum"]);
        let pointer = self.need_text(table, "pointer");
        if !pointer.starts_with('/') || pointer.contains('~') {
            self.fault(table.pointer("pointer"), "a pointer names a payload member", "write it as \"/risk\"");
        }
        if table.get("equals").is_none() {
            self.required(table, "equals", "say which value raises the quorum");
        }
        let equals = table.get("equals").cloned().unwrap_or(Value::Null);
        Some(QuorumIf { pointer, equals, quorum: self.need_integer(table, "quorum", 0..=1_000) })
    }

    fn window(&mut self, value: &Value, at: &str) -> Option<Span> {
        let table = self.table(value, at)?;
        self.known(table, &["max"]);
        self.need_span(table, "max")
    }

    fn when(&mut self, value: &Value, at: &str) -> Option<When> {
        let table = self.table(value, at)?;
        self.known(table, &["input", "equals"]);
        let when = When { input: self.need_name(table, "input"), equals: self.need_text(table, "equals").into() };
        let is_fixed = |input: &str| ["not_before", "not_after"].contains(&input) || has_word(&INPUTS, input);
        if is_fixed(&when.input) {
            let says = format!("the input name `{}` is reserved", when.input);
            self.fault(table.pointer("input"), says, "choose another name, such as \"outcome\"");
        }
        Some(when)
    }

    fn timer(&mut self, value: &Value, at: &str) -> Option<Timer> {
        let table = self.table(value, at)?;
        self.known(table, &["from", "after", "at", "to"]);
        let due = match (table.get("after"), table.get("at")) {
            (Some(_), None) => self.span(table, "after").map(Due::After),
            (None, Some(_)) => self.word(table, "at", &MARKS).map(Due::At),
            _ => {
                self.fault(at, "a timer has either `after` or `at`", "write after = \"72h\" or at = \"window_end\"");
                None
            }
        };
        Some(Timer { from: self.need_names(table, "from"), to: self.need_name(table, "to"), due: due? })
    }

    fn hold(&mut self, value: &Value, at: &str) -> Option<Hold> {
        let table = self.table(value, at)?;
        self.known(table, &["roles", "release_roles", "blocks"]);
        Some(Hold {
            roles: self.need_roles(table, "roles"),
            release_roles: self.need_roles(table, "release_roles"),
            blocks: self.need_names(table, "blocks"),
        })
    }

    /// Every state and action that is mentioned must be declared, exactly once.
    fn names_exist(&mut self, rules: &Rules) {
        let declared = |name: &str| rules.states.iter().any(|state| *state.name == *name);
        let known = rules.states.iter().map(|state| &*state.name).collect::<Vec<_>>().join(", ");
        let mut spoken = vec![("/initial".to_owned(), rules.initial.clone())];
        for (index, rule) in rules.transitions.iter().enumerate() {
            spoken.extend(
                rule.from.iter().enumerate().map(|(at, from)| (format!("/transition/{index}/from/{at}"), from.clone())),
            );
            spoken.extend(rule.to.iter().map(|to| (format!("/transition/{index}/to"), to.clone())));
        }
        for (index, timer) in rules.timers.iter().enumerate() {
            spoken.extend(
                timer.from.iter().enumerate().map(|(at, from)| (format!("/timer/{index}/from/{at}"), from.clone())),
            );
            spoken.push((format!("/timer/{index}/to"), timer.to.clone()));
        }
        for (pointer, name) in spoken.into_iter().filter(|(_, name)| !name.is_empty() && !declared(name)) {
            self.fault(pointer, format!("there is no state `{name}`"), format!("the states are {known}"));
        }
        for (index, state) in rules.states.iter().enumerate() {
            if rules.states.iter().take(index).any(|earlier| earlier.name == state.name) || *state.name == *"same" {
                let says = format!("`{}` cannot be declared here", state.name);
                self.fault(format!("/state/{index}/name"), says, "give each state a unique name other than \"same\"");
            }
        }
        self.actions_exist(rules);
    }

    fn actions_exist(&mut self, rules: &Rules) {
        let declared = |name: &str| name == "edit" || rules.transitions.iter().any(|rule| *rule.action == *name);
        let blocks = rules.hold.iter().flat_map(|hold| hold.blocks.iter().enumerate());
        let mut spoken: Vec<_> = blocks.map(|(at, name)| (format!("/hold/blocks/{at}"), name)).collect();
        for (index, rule) in rules.transitions.iter().enumerate() {
            let replaced = rule.replaces.iter().enumerate();
            spoken.extend(replaced.map(|(at, name)| (format!("/transition/{index}/replaces_vote_for/{at}"), name)));
        }
        for (pointer, name) in spoken.into_iter().filter(|(_, name)| !declared(name)) {
            self.fault(pointer, format!("there is no action `{name}`"), "name the action of a transition, or \"edit\"");
        }
    }
}

fn has_word<T>(table: &[(&str, T)], word: &str) -> bool {
    table.iter().any(|(known, _)| *known == word)
}

const TOP_KEYS: &[&str] = &[
    "schema_version",
    "name",
    "version",
    "title",
    "description",
    "initial",
    "required_roles",
    "one_open_per_creator",
    "state",
    "transition",
    "timer",
    "hold",
    "payload_schema",
];
const STATE_KEYS: &[&str] = &["name", "kind", "editable", "waits_for", "description"];
const RULE_KEYS: &[&str] = &[
    "action",
    "from",
    "to",
    "roles",
    "own",
    "not_by",
    "quorum",
    "quorum_if",
    "comment",
    "content_digest",
    "sets_window",
    "inside_window",
    "takes_lease",
    "renews_lease",
    "attempts",
    "voids",
    "takes_back_vote",
    "replaces_vote_for",
    "when",
    "inputs",
    "description",
];
pub(super) const KINDS: [(&str, Kind); 3] =
    [("open", Kind::Open), ("effect", Kind::Effect), ("terminal", Kind::Terminal)];
pub(super) const OWNS: [(&str, Own); 3] = [("creator", Own::Creator), ("voter", Own::Voter), ("holder", Own::Holder)];
const NEEDS: [(&str, bool); 2] = [("required", true), ("optional", false)];
pub(super) const INPUTS: [(&str, Input); 3] =
    [("result", Input::Result), ("artifacts", Input::Artifacts), ("progress", Input::Progress)];
pub(super) const MARKS: [(&str, Mark); 2] = [("window_end", Mark::WindowEnd), ("lease_end", Mark::LeaseEnd)];
const VOIDS: [(&str, Voids); 2] = [("votes", Voids::Votes), ("window", Voids::Window)];

#[derive(Clone, Copy, PartialEq)]
enum Voids {
    Votes,
    Window,
}
