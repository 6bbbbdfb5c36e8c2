//! A proved definition, with everything `decide` needs at hand.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::document::sha256_of_canonical;
use crate::fault::Fault;
use crate::role_set::RoleSet;
use crate::workflow::check::Proof;
use crate::workflow::schema::PayloadSchema;
use crate::workflow::source::{Finding, Flaws};
use crate::workflow::{Name, Rule, Rules, check, parse};

/// All rules for one action.
#[derive(Debug, Clone)]
pub struct Action {
    pub name: Name,
    /// Every role that may take the action in some state.
    pub roles: RoleSet,
    rules: Vec<usize>,
}

/// Proved rules, with everything `decide` needs at hand.
#[derive(Debug, Clone)]
pub struct Definition {
    rules: Rules,
    digest: Name,
    all: Vec<Rule>,
    actions: Vec<Action>,
    schema: PayloadSchema,
}

impl Definition {
    /// Reads and proves a definition. All its faults are reported together, each with its place in the text.
    pub fn parse(text: &str) -> Result<Definition, Flaws> {
        Judged::of(text).verdict
    }

    /// The digest of a definition with this text, which is read but not proved: for comparing it with a proved one.
    pub fn digest_of(text: &str) -> Result<Name, Flaws> {
        let (rules, flaws) = parse::read(text);
        rules.map(|rules| sha256_of_canonical(&rules).into()).ok_or(flaws)
    }

    fn compile(rules: Rules, schema: PayloadSchema) -> Definition {
        let digest = sha256_of_canonical(&rules).into();
        let all = rules.all_rules();
        let mut actions: Vec<Action> = Vec::new();
        for (index, rule) in all.iter().enumerate() {
            if let Some(action) = actions.iter_mut().find(|action| action.name == rule.action) {
                action.roles = action.roles.union(rule.roles);
                action.rules.push(index);
            } else {
                actions.push(Action { name: rule.action.clone(), roles: rule.roles, rules: vec![index] });
            }
        }
        Definition { rules, digest, all, actions, schema }
    }

    /// For rules that a test has made and proved itself, with the payload schema of `like`.
    #[cfg(test)]
    pub(crate) fn from_rules(rules: Rules, like: &Definition) -> Definition {
        Definition::compile(rules, like.schema.clone())
    }

    pub fn name(&self) -> &Name {
        &self.rules.name
    }

    pub fn version(&self) -> u32 {
        self.rules.version
    }

    /// `sha256:…` over the canonical JSON of the rules: the file's comments and layout do not affect it.
    pub fn digest(&self) -> &Name {
        &self.digest
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn actions(&self) -> &[Action] {
        &self.actions
    }

    pub fn action(&self, name: &str) -> Option<&Action> {
        self.actions.iter().find(|action| *action.name == *name)
    }

    pub(crate) fn rules_of<'d>(&'d self, action: &'d Action) -> impl Iterator<Item = &'d Rule> {
        action.rules.iter().filter_map(|index| self.all.get(*index))
    }

    /// Every rule, including hold and release.
    #[cfg(test)]
    pub(crate) fn all_rules(&self) -> &[Rule] {
        &self.all
    }

    /// Whether a hold stops this action.
    pub fn hold_blocks(&self, action: &str) -> bool {
        self.rules.hold.as_ref().is_some_and(|hold| hold.blocks.iter().any(|blocked| **blocked == *action))
    }

    /// What is wrong with a complete payload; pointers begin with `/payload`.
    pub fn payload_faults(&self, payload: &Value) -> Vec<Fault> {
        self.schema.faults(payload)
    }

    /// What is wrong with the types in an unfinished payload.
    pub fn draft_faults(&self, payload: &Value) -> Vec<Fault> {
        self.schema.type_faults(payload)
    }
}

/// A text that was parsed and, if that succeeded, proved.
pub(crate) struct Judged {
    pub(crate) verdict: Result<Definition, Flaws>,
    /// The rules of a refused definition, if they could be read.
    pub(crate) refused: Option<Rules>,
    pub(crate) situations: usize,
}

impl Judged {
    pub(crate) fn of(text: &str) -> Judged {
        let (rules, mut flaws) = parse::read(text);
        let Some(rules) = rules else { return Judged { verdict: Err(flaws), refused: None, situations: 0 } };
        let mut findings = Vec::new();
        match proved(rules, &mut findings) {
            Ok((definition, situations)) => Judged { verdict: Ok(definition), refused: None, situations },
            Err(refused) => {
                let (rules, situations) = *refused;
                flaws.add(findings);
                Judged { verdict: Err(flaws), refused: Some(rules), situations }
            }
        }
    }
}

/// Rules with a sound form become a definition if they can be proved; otherwise `findings` says why not. Both with the
/// number of situations that were visited.
pub(super) fn proved(rules: Rules, findings: &mut Vec<Finding>) -> Result<(Definition, usize), Box<(Rules, usize)>> {
    let Proof { findings: found, situations } = check::prove(&rules);
    findings.extend(found);
    match PayloadSchema::compile(&rules.payload_schema) {
        Ok(schema) if findings.is_empty() => Ok((Definition::compile(rules, schema), situations)),
        compiled => {
            findings.extend(compiled.err().into_iter().flatten());
            Err(Box::new((rules, situations)))
        }
    }
}

/// The definition as the API shows it: the rules and their digest.
impl Serialize for Definition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct View<'d> {
            digest: &'d str,
            #[serde(flatten)]
            rules: &'d Rules,
        }
        View { digest: &self.digest, rules: &self.rules }.serialize(serializer)
    }
}
