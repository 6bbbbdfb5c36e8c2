//! A definition as canonical JSON (RFC 8785): what its digest is the SHA-256 of. It can be checked without a reader of
//! TOML, and without this program.

use serde_json::{Map, Value, json};

use crate::document::canonical;
use crate::limits::DEFINITION_BYTES_MAX;
use crate::workflow::definition::proved;
use crate::workflow::source::Finding;
use crate::workflow::{Definition, parse};

/// Quotes and braces that TOML does without make the canonical form longer than the text, but never by more than this.
const BYTES_MAX: usize = 4 * DEFINITION_BYTES_MAX;

/// Why bytes are not the canonical form of a definition.
#[derive(Debug, thiserror::Error)]
pub enum NotADefinition {
    #[error("a definition as JSON may have at most {BYTES_MAX} bytes")]
    TooLarge,
    #[error("this is not valid JSON: {0}")]
    Json(#[from] serde_json::Error),
    #[error("{}", words(.0))]
    Flawed(Vec<Finding>),
    #[error("this is not in canonical form, so its SHA-256 is not the digest of its rules")]
    Form,
}

fn words(findings: &[Finding]) -> String {
    let one = |finding: &Finding| format!("{}: {} [{}]", finding.pointer, finding.message, finding.code);
    findings.iter().map(one).collect::<Vec<_>>().join("; ")
}

impl Definition {
    /// The bytes whose SHA-256 is the digest.
    pub fn to_canonical(&self) -> Vec<u8> {
        canonical(self.rules())
    }

    /// Reads and proves what [`Definition::to_canonical`] wrote, and nothing else.
    pub fn from_canonical(bytes: &[u8]) -> Result<Definition, NotADefinition> {
        if bytes.len() > BYTES_MAX {
            return Err(NotADefinition::TooLarge);
        }
        let document = as_written(serde_json::from_slice(bytes)?);
        let (rules, mut findings) = parse::rules(&document, Vec::new());
        let Some(rules) = rules.filter(|_| findings.is_empty()) else { return Err(NotADefinition::Flawed(findings)) };
        let (definition, _) = proved(rules, &mut findings).map_err(|_| NotADefinition::Flawed(findings))?;
        // Repeated members, members with their default value, unsorted roles: whatever was read, this would show it.
        if definition.to_canonical() == bytes { Ok(definition) } else { Err(NotADefinition::Form) }
    }
}

/// Member of the JSON form, key of the TOML form.
const TOP: [(&str, &str); 3] = [("states", "state"), ("transitions", "transition"), ("timers", "timer")];

/// The keys and values by which a person writes the same definition. What does not belong into the JSON form stays as it
/// is: the comparison with what would be written finds it.
fn as_written(document: Value) -> Value {
    let Value::Object(mut members) = document else { return document };
    for (json, toml) in TOP {
        rename(&mut members, json, toml);
    }
    if let Some(Value::Array(rules)) = members.get_mut("transition") {
        rules.iter_mut().filter_map(Value::as_object_mut).for_each(rule_as_written);
    }
    Value::Object(members)
}

fn rule_as_written(rule: &mut Map<String, Value>) {
    rule.entry("to").or_insert_with(|| "same".into());
    rename(rule, "replaces", "replaces_vote_for");
    for (json, toml, value) in [
        ("not_by_executor", "not_by", "executor"),
        ("comment_required", "comment", "required"),
        ("content_digest_required", "content_digest", "required"),
    ] {
        if take_true(rule, json) {
            rule.insert(toml.to_owned(), value.into());
        }
    }
    if let Some(max) = rule.remove("sets_window") {
        rule.insert("sets_window".to_owned(), json!({ "max": max }));
    }
    let voided = [("voids_votes", "votes"), ("voids_window", "window")];
    let voids: Vec<_> = voided.into_iter().filter(|(json, _)| take_true(rule, json)).map(|(_, what)| what).collect();
    if !voids.is_empty() {
        rule.insert("voids".to_owned(), voids.into());
    }
}

fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = members.remove(from) {
        members.insert(to.to_owned(), value);
    }
}

fn take_true(members: &mut Map<String, Value>, name: &str) -> bool {
    let is_true = members.get(name) == Some(&Value::Bool(true));
    if is_true {
        members.remove(name);
    }
    is_true
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::document::ContentDigest;
    use crate::workflow::builtin::{CONTROLLED_OPERATION, builtin};

    /// Every member that is left out if it has its default value, `to` excepted.
    const MAY_BE_LEFT_OUT: [&str; 21] = [
        "attempts",
        "comment_required",
        "content_digest_required",
        "description",
        "editable",
        "hold",
        "inputs",
        "inside_window",
        "not_by_executor",
        "one_open_per_creator",
        "own",
        "quorum_if",
        "renews_lease",
        "replaces",
        "sets_window",
        "takes_back_vote",
        "takes_lease",
        "voids_votes",
        "voids_window",
        "waits_for",
        "when",
    ];

    #[test]
    fn every_built_in_definition_is_read_from_its_canonical_form_and_together_they_have_every_member() {
        let mut texts = String::new();
        for definition in builtin() {
            let bytes = definition.to_canonical();
            assert_eq!(ContentDigest::of_bytes(&bytes).as_str(), &**definition.digest());
            let again = Definition::from_canonical(&bytes).unwrap();
            assert_eq!(again.digest(), definition.digest());
            assert_eq!(format!("{:?}", again.rules()), format!("{:?}", definition.rules()));
            assert_eq!(format!("{:?}", again.actions()), format!("{:?}", definition.actions()));
            texts += std::str::from_utf8(&bytes).unwrap();
        }
        for member in MAY_BE_LEFT_OUT {
            assert!(texts.contains(&format!("\"{member}\":")), "{member}");
        }
    }

    #[test]
    fn numbers_in_a_schema_survive_the_canonical_form_however_they_are_written() {
        let numbers = "enum = [1, 1.0, 0.1, -0.0, 1e21, 1e300, 5e-324, 9007199254740993, 1e16, 123456789.125]";
        let text = CONTROLLED_OPERATION.replace(
            "[payload_schema.properties.links]",
            &format!("[payload_schema.properties.amount]\n{numbers}\n\n[payload_schema.properties.links]"),
        );
        let definition = Definition::parse(&text).unwrap();
        let again = Definition::from_canonical(&definition.to_canonical()).unwrap();
        assert_eq!(again.digest(), definition.digest());
    }

    fn check_refused(change: impl Fn(String) -> String, expected: &Expect) {
        let [definition, _] = builtin();
        let text = String::from_utf8(definition.to_canonical()).unwrap();
        let changed = change(text.clone());
        assert_ne!(changed, text);
        expected.assert_eq(&Definition::from_canonical(changed.as_bytes()).unwrap_err().to_string());
    }

    #[test]
    fn what_would_not_be_written_in_exactly_this_way_is_refused() {
        let form = || expect!["this is not in canonical form, so its SHA-256 is not the digest of its rules"];
        check_refused(|text| format!("{text}\n"), &form());
        check_refused(|text| text.replacen('{', "{ ", 1), &form());
        check_refused(|text| text.replacen('{', "{\"hold\":{},", 1), &form());
        check_refused(|text| text.replacen("\"editable\":true", "\"editable\":true,\"editable\":true", 1), &form());
        check_refused(|text| text.replacen("\"kind\":\"open\"", "\"editable\":false,\"kind\":\"open\"", 1), &form());
        check_refused(|text| text.replacen("\"states\":", "\"state\":", 1), &form());
        check_refused(|text| text.replacen("\"comment_required\":true", "\"comment\":\"required\"", 1), &form());
    }

    #[test]
    fn what_says_something_else_is_refused_with_its_place() {
        check_refused(
            |text| text.replacen("\"initial\":\"draft\"", "\"initial\":\"dawn\"", 1),
            &expect!["/initial: there is no state `dawn` [format]"],
        );
        check_refused(
            |text| text.replacen("\"voids_votes\":true", "\"voids_votes\":1", 1),
            &expect!["/transition/3/voids_votes: `voids_votes` is not a valid key here [format]"],
        );
        check_refused(
            |_| "[1".to_owned(),
            &expect!["this is not valid JSON: EOF while parsing a list at line 1 column 2"],
        );
        check_refused(|_| "[]".to_owned(), &expect![": this must be a table [format]"]);
        check_refused(|_| " ".repeat(BYTES_MAX + 1), &expect!["a definition as JSON may have at most 1048576 bytes"]);
    }
}
