//! The reference page of the configuration, generated from the types that read it. A test keeps `docs/reference` equal to it.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::Value;

use crate::config::Config;

const INTRODUCTION: &str = "\
<!-- Generated from the code; `UPDATE_EXPECT=1 cargo test` rewrites it. -->

Every key of `pilot.toml`, in alphabetical order. [Install and configure](../operate/install.md#configuration) explains
how the file is read, and `pilot check-config` whether a start would accept it. Paths are relative to the file.

- **Default**: *required* means that the section must have the key if the section exists; *none* means that the key can
  be left out, and the last column says what happens then.
- **Environment**: the variable that overrides the file. It is `PILOT_`, the section and the key in capitals, with two
  underscores for each dot; a list is separated by commas. A key with a dash can be set only in the file.
";

/// A table of the file, and the keys it may have.
struct Section {
    /// Empty for keys outside of any section.
    path: Vec<String>,
    is_list: bool,
    meaning: String,
    keys: Vec<Key>,
}

struct Key {
    name: String,
    shape: String,
    default: String,
    /// Nothing when the environment cannot express the value.
    variable: Option<String>,
    meaning: String,
}

/// Every key of the configuration file.
pub fn configuration() -> String {
    let mut text = format!("# Configuration keys\n\n{INTRODUCTION}");
    for section in sections() {
        section.write(&mut text);
    }
    text
}

fn sections() -> Vec<Section> {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let schema = settings.into_generator().into_root_schema_for::<Config>().to_value();
    let mut sections = Vec::new();
    collect(&[], false, &schema, &mut sections);
    sections
}

/// The section with this schema, and those inside it after it.
fn collect(path: &[String], is_list: bool, schema: &Value, sections: &mut Vec<Section>) {
    let at = sections.len();
    let mut keys = Vec::new();
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        let inner: Vec<String> = path.iter().chain([name]).cloned().collect();
        if has_type(member, "object") {
            collect(&inner, is_list, member, sections);
            continue;
        }
        if has_type(&member["items"], "object") {
            collect(&inner, true, &member["items"], sections);
        }
        let is_required = schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
        keys.push(Key {
            name: name.clone(),
            shape: shape(member),
            default: default(member, is_required),
            variable: (!is_list && fits_into_environment(member)).then(|| variable(&inner)),
            meaning: meaning(member),
        });
    }
    if !keys.is_empty() {
        sections.insert(at, Section { path: path.to_vec(), is_list, meaning: meaning(schema), keys });
    }
}

fn meaning(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An optional value has "null" among its types, which TOML cannot express.
fn types(schema: &Value) -> impl Iterator<Item = &str> {
    let several = schema["type"].as_array().into_iter().flatten();
    schema["type"].as_str().into_iter().chain(several.filter_map(Value::as_str)).filter(|name| *name != "null")
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    types(schema).any(|name| name == wanted)
}

fn shape(schema: &Value) -> String {
    if let Some(values) = schema["enum"].as_array() {
        let values: Vec<_> = values.iter().filter(|value| !value.is_null()).map(code).collect();
        return one_of(&values);
    }
    let format = schema["format"].as_str().unwrap_or_default();
    match types(schema).next() {
        Some("array") => format!("list of {}", plural(&schema["items"])),
        Some("boolean") => "`true` or `false`".to_owned(),
        Some("integer") => match (&schema["minimum"], &schema["maximum"]) {
            (Value::Number(least), Value::Number(most)) => format!("whole number, {least} to {most}"),
            (least, _) => format!("whole number, at least {least}"),
        },
        Some("string") => match format {
            "path" => "path",
            "socket-address" => "address and port",
            "listen" => "address and port, or socket",
            "uri" => "http or https address",
            "https-uri" => "https address; http only on this machine",
            _ => "string",
        }
        .to_owned(),
        _ => String::new(),
    }
}

fn plural(items: &Value) -> String {
    match (shape(items).as_str(), items["format"].as_str()) {
        (_, Some("network")) => "addresses and networks".to_owned(),
        ("", _) => "tables".to_owned(),
        ("string", _) => "strings".to_owned(),
        (numbers, _) if numbers.starts_with("whole number") => numbers.replacen("number", "numbers", 1),
        (values, _) => values.to_owned(),
    }
}

fn one_of(values: &[String]) -> String {
    match values {
        [] => String::new(),
        [only] => only.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// JSON and TOML write the values in use here alike.
fn code(value: &Value) -> String {
    match value {
        Value::Array(values) => {
            format!("`[{}]`", values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
        }
        value => format!("`{value}`"),
    }
}

fn default(schema: &Value, is_required: bool) -> String {
    match schema.get("default").filter(|value| !value.is_null()) {
        Some(value) if is_required => format!("required; {} without the section", code(value)),
        Some(value) => code(value),
        None if is_required => "required".to_owned(),
        None => "none".to_owned(),
    }
}

/// docs/adr/0010-environment-overrides.md has the rule.
fn variable(path: &[String]) -> String {
    format!("PILOT_{}", path.join("__").to_ascii_uppercase())
}

fn fits_into_environment(schema: &Value) -> bool {
    types(schema).any(|name| matches!(name, "string" | "integer"))
}

impl Section {
    fn heading(&self) -> String {
        match (self.path.join("."), self.is_list) {
            (path, _) if path.is_empty() => "Top-level keys".to_owned(),
            (path, false) => format!("`[{path}]`"),
            (path, true) => format!("`[[{path}]]`"),
        }
    }

    fn write(&self, text: &mut String) {
        let _ = writeln!(text, "\n## {}\n", self.heading());
        let meaning = if self.path.is_empty() { "These keys come before any section." } else { &self.meaning };
        let _ = match explained_in(&self.path.join(".")) {
            Some(pages) => writeln!(text, "{meaning} More in {pages}.\n"),
            None => writeln!(text, "{meaning}\n"),
        };
        text.push_str("| key | value | default | environment | meaning |\n|---|---|---|---|---|\n");
        for Key { name, shape, default, variable, meaning } in &self.keys {
            let variable = variable.as_ref().map_or_else(|| "–".to_owned(), |variable| format!("`{variable}`"));
            let _ = writeln!(text, "| `{name}` | {shape} | {default} | {variable} | {meaning} |");
        }
    }
}

/// The pages for people who want to do something with a section.
fn explained_in(section: &str) -> Option<&'static str> {
    Some(match section {
        "" => "[the production profile](../operate/production.md)",
        "clock" => "[when the clock jumps ahead](../operate/ledger.md#when-it-jumps-ahead)",
        "console" => "[the console](../guide/console.md)",
        "credentials" => {
            "[the credential file](../operate/install.md#the-credential-file) and \
             [credentials from a secret manager](../operate/secret-manager.md)"
        }
        "credentials.exec" => "[your own program](../operate/secret-manager.md#your-own-program)",
        "credentials.systemd" => "[systemd](../operate/secret-manager.md#systemd)",
        "credentials.vault" => "[Vault, OpenBao](../operate/secret-manager.md#vault-openbao)",
        "identity" => "[identity](../operate/production.md#identity)",
        "identity.mutual_tls" => "[client certificates](../operate/identity-certificates.md)",
        "identity.oauth" => "[an identity provider](../operate/identity-oauth.md)",
        "identity.oauth.introspection" => {
            "[revocation at the provider](../operate/identity-oauth.md#revocation-at-the-provider)"
        }
        "log" => "[the second place](../operate/backup.md#the-second-place) and [witnesses](../operate/witnesses.md)",
        "ops" => "[health and metrics](../operate/install.md#health-and-metrics)",
        "permits" => "[enforcing at the target](../guide/enforcing-at-the-target.md)",
        "rate_limits" => "[rate limits](../operate/production.md#rate-limits)",
        "socket" => "[proxies](../operate/proxies.md#over-a-unix-socket)",
        "store" => "[the ledger on disk](../operate/ledger.md)",
        "tls" => "[TLS](../operate/production.md#tls) and [behind a mesh](../operate/production.md#behind-a-mesh)",
        "notices" => "[chat and mail](../operate/notices.md)",
        "webhooks" => "[webhooks](../operate/webhooks.md)",
        "workflows" => "[your own workflows](../operate/install.md#your-own-workflows)",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_and_section_is_described() {
        let sections = sections();
        assert!(sections.len() > 15, "the schema of the configuration has another form now");
        for section in sections {
            let place = section.heading();
            assert!(section.path.is_empty() || is_sentence(&section.meaning), "{place}: `{}`", section.meaning);
            for Key { name, shape, meaning, .. } in section.keys {
                assert!(is_sentence(&meaning), "{place} {name}: `{meaning}`");
                assert!(!shape.is_empty(), "{place} {name}: the page has no words for its type");
            }
        }
    }

    fn is_sentence(text: &str) -> bool {
        text.ends_with('.') && text.contains(' ') && !text.contains('|')
    }

    /// What is wrong with the value is of no interest, as long as it has reached its key.
    #[test]
    fn every_variable_on_the_page_reaches_its_key() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pilot.toml");
        std::fs::write(&file, "").unwrap();
        let of_section = |section: Section| section.keys.into_iter().filter_map(|key| Some((key.variable?, key.shape)));
        for (variable, shape) in sections().into_iter().flat_map(of_section) {
            let value = if shape.starts_with("whole number") { "7" } else { "x" };
            let error = Config::load(&file, &[(variable.clone(), value.to_owned())]).err();
            let said = error.map(|error| error.to_string()).unwrap_or_default();
            assert!(!said.contains("unknown field") && !said.contains("wrong type"), "{variable}: {said}");
            let is_ignored = Config::load(&file, &[(variable.clone(), String::new())]).is_ok();
            assert!(!is_ignored, "{variable}: its first part is not among the configuration's names");
        }
    }
}
