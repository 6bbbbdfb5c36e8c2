//! What `[identity.oauth]` says about the claims of a token: their names at the provider, and what they must contain.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use pilot_core::access_token::{ClaimPath, ClientClaim, Needed, SubjectClaim, TokenIdClaim, TokenType};
use pilot_core::limits::{CLAIM_PATH_NAMES_MAX, TOKEN_DEMAND_CHARS_MAX, TOKEN_DEMANDS_MAX};
use pilot_core::role::Role;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// Names that people can change, or that may be given to someone else later.
const PASSING: [&str; 8] =
    ["email", "preferred_username", "upn", "unique_name", "name", "nickname", "login", "phone_number"];

/// Which types of tokens are accepted. A list, or in the environment a text with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenTypes(pub Vec<TokenType>);

impl Default for TokenTypes {
    fn default() -> Self {
        TokenTypes(vec![TokenType::AccessToken])
    }
}

impl TokenTypes {
    /// Whether an ID token could have one of these types.
    pub fn include_id_tokens(&self) -> bool {
        !self.0.iter().all(|one| one.is_for_access())
    }
}

impl<'de> Deserialize<'de> for TokenTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TokenTypes, D::Error> {
        let wrong = || D::Error::custom(format!("must be a list of one or more of {}", TokenType::NAMES.join(", ")));
        let types: Option<Vec<_>> = texts(deserializer)?.iter().map(|name| TokenType::named(name)).collect();
        types.filter(|types| !types.is_empty()).map(TokenTypes).ok_or_else(wrong)
    }
}

impl JsonSchema for TokenTypes {
    fn schema_name() -> Cow<'static, str> {
        "TokenTypes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "enum": TokenType::NAMES }, "minItems": 1 })
    }
}

/// Which values a token must have for each role: one of a list, or `"any"` if none is needed. A role that is not listed
/// is not accepted. This can only keep callers out: the role map says which role an actor has.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RoleValues {
    /// What an initiator needs: one of these values. `"any"` instead of a list requires none.
    pub initiator: Option<RoleValue>,
    /// What an approver needs: one of these values. `"any"` instead of a list requires none.
    pub approver: Option<RoleValue>,
    /// What a security admin needs: one of these values. `"any"` instead of a list requires none.
    pub security_admin: Option<RoleValue>,
    /// What an executor needs: one of these values. `"any"` instead of a list requires none.
    pub executor: Option<RoleValue>,
    /// What an auditor needs: one of these values. `"any"` instead of a list requires none.
    pub auditor: Option<RoleValue>,
}

impl RoleValues {
    pub fn needed(&self) -> BTreeMap<Role, Needed> {
        let RoleValues { initiator, approver, security_admin, executor, auditor } = self;
        let all = [
            (Role::Initiator, initiator),
            (Role::Approver, approver),
            (Role::SecurityAdmin, security_admin),
            (Role::Executor, executor),
            (Role::Auditor, auditor),
        ];
        all.into_iter().filter_map(|(role, value)| Some((role, value.as_ref()?.0.clone()))).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RoleValue(Needed);

impl<'de> Deserialize<'de> for RoleValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RoleValue, D::Error> {
        match deserializer.deserialize_any(List)? {
            (true, word) if word == ["any"] => Ok(RoleValue(Needed::Nothing)),
            (_, values) => Ok(RoleValue(Needed::OneOf(checked(values, false)?))),
        }
    }
}

impl JsonSchema for RoleValue {
    fn schema_name() -> Cow<'static, str> {
        "RoleValue".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["array", "string"], "items": { "type": "string" } })
    }
}

pub(super) fn client_claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ClientClaim, D::Error> {
    one_of(deserializer, ClientClaim::named, ClientClaim::NAMES)
}

pub(super) fn token_id_claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TokenIdClaim, D::Error> {
    one_of(deserializer, TokenIdClaim::named, TokenIdClaim::NAMES)
}

pub(super) fn subject_claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SubjectClaim, D::Error> {
    let name = String::deserialize(deserializer)?;
    let names = SubjectClaim::NAMES.join(", ");
    let reason =
        "people can change what this claim says, and someone else may get it later, so it cannot identify an actor";
    let reason = if PASSING.contains(&name.as_str()) { format!(": {reason}") } else { String::new() };
    SubjectClaim::named(&name).ok_or_else(|| D::Error::custom(format!("must be one of {names}{reason}")))
}

pub(super) fn roles_claim<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<ClaimPath>, D::Error> {
    let wrong = || {
        D::Error::custom(format!(
            "must be the name of a claim, or up to {CLAIM_PATH_NAMES_MAX} names with dots between them, such as realm_access.roles"
        ))
    };
    let text = String::deserialize(deserializer)?;
    let path = Some(text).filter(|text| text.len() <= TOKEN_DEMAND_CHARS_MAX).and_then(|text| ClaimPath::parse(&text));
    path.map(Some).ok_or_else(wrong)
}

fn one_of<'de, D: Deserializer<'de>, T>(
    deserializer: D,
    find: fn(&str) -> Option<T>,
    names: &[&str],
) -> Result<T, D::Error> {
    let name = String::deserialize(deserializer)?;
    find(&name).ok_or_else(|| D::Error::custom(format!("must be one of {}", names.join(", "))))
}

/// Names that tokens are compared with.
pub(super) fn compared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    checked(texts(deserializer)?, false)
}

/// The same, where each is one word.
pub(super) fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    checked(texts(deserializer)?, true)
}

fn checked<E: serde::de::Error>(texts: Vec<String>, are_words: bool) -> Result<Vec<String>, E> {
    if texts.is_empty() || texts.len() > TOKEN_DEMANDS_MAX {
        return Err(E::custom(format!("must have 1 to {TOKEN_DEMANDS_MAX} entries")));
    }
    let is_sound = |text: &String| {
        (1..=TOKEN_DEMAND_CHARS_MAX).contains(&text.chars().count())
            && !text.chars().any(|character| character.is_control() || are_words && character.is_whitespace())
            && text.trim() == text
    };
    if !texts.iter().all(is_sound) {
        let words = if are_words { ", without spaces" } else { ", without spaces at either end" };
        return Err(E::custom(format!("must be a list of strings of 1 to {TOKEN_DEMAND_CHARS_MAX} characters{words}")));
    }
    if texts.iter().collect::<BTreeSet<_>>().len() < texts.len() {
        return Err(E::custom("must not have the same entry twice"));
    }
    Ok(texts)
}

/// A list of texts; in the environment one text with commas.
pub(super) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    deserializer.deserialize_any(List).map(|(_, texts)| texts)
}

/// The texts, and whether they were written as one.
struct List;

impl<'de> Visitor<'de> for List {
    type Value = (bool, Vec<String>);

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of strings")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok((true, text.split(',').map(|part| part.trim().to_owned()).collect()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = list.next_element()? {
            texts.push(text);
        }
        Ok((false, texts))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Config;
    use expect_test::{Expect, expect};
    use pilot_core::limits::{TOKEN_DEMAND_CHARS_MAX, TOKEN_DEMANDS_MAX};

    const HEAD: &str = "[identity]\nmechanism = 'oauth'\n[identity.oauth]\nissuer = 'https://id.example'\naudience = 'https://pilot.example'\n";

    fn check(lines: &str, environment: &[(&str, &str)], expected: &Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), &format!("{HEAD}{lines}"), &environment) {
            Ok(config) => {
                let rules = config.identity.unwrap().oauth.unwrap().rules();
                let names = (rules.client_claim, rules.subject_claim, rules.token_id_claim);
                format!("{:?} {names:?} {:?}", rules.token_types, rules.demands)
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn without_further_lines_tokens_are_as_the_standard_has_them_and_nothing_more_is_required() {
        check(
            "",
            &[],
            &expect![
                "[AccessToken] (ClientId, Sub, Jti) Demands { clients: [], scopes: [], acr: [], amr: [], roles: None }"
            ],
        );
    }

    #[test]
    fn every_demand_and_every_name_can_be_set_in_the_file_and_in_the_environment() {
        check(
            "clients = ['a', 'b']\nscopes_required = ['pilot']\nacr_values = ['2']\namr_required = ['mfa']\ntoken_types = ['at+jwt', 'JWT']\nclient_claim = 'azp'\nsubject_claim = 'oid'\ntoken_id_claim = 'uti'\nroles_claim = 'realm_access.roles'\n[identity.oauth.role_values]\napprover = ['x', 'y z']\nexecutor = 'any'\n",
            &[],
            &expect![[
                r#"[AccessToken, Jwt] (Azp, Oid, Uti) Demands { clients: ["a", "b"], scopes: ["pilot"], acr: ["2"], amr: ["mfa"], roles: Some(RoleDemand { claim: ClaimPath(["realm_access", "roles"]), values: {Approver: OneOf(["x", "y z"]), Executor: Nothing} }) }"#
            ]],
        );
        check(
            "clients = ['a']\nroles_claim = 'https://pilot.example/roles'\n[identity.oauth.role_values]\nauditor = ['any']\n",
            &[
                ("PILOT_IDENTITY__OAUTH__CLIENTS", "c, d"),
                ("PILOT_IDENTITY__OAUTH__TOKEN_TYPES", "absent,okta-internal-at+jwt"),
                ("PILOT_IDENTITY__OAUTH__CLIENT_CLAIM", "cid"),
                ("PILOT_IDENTITY__OAUTH__ROLE_VALUES__EXECUTOR", "any"),
                ("PILOT_IDENTITY__OAUTH__ROLE_VALUES__APPROVER", "x, y"),
            ],
            &expect![[
                r#"[Absent, Okta] (Cid, Sub, Jti) Demands { clients: ["c", "d"], scopes: [], acr: [], amr: [], roles: Some(RoleDemand { claim: ClaimPath(["https://pilot.example/roles"]), values: {Approver: OneOf(["x", "y"]), Executor: Nothing, Auditor: OneOf(["any"])} }) }"#
            ]],
        );
    }

    #[test]
    fn a_claim_that_can_change_never_names_an_actor() {
        for name in ["email", "preferred_username", "upn", "unique_name"] {
            check(
                &format!("subject_claim = '{name}'\n"),
                &[],
                &expect![
                    "pilot.toml, line 6, column 17: must be one of sub, oid, uid: people can change what this claim says, and someone else may get it later, so it cannot identify an actor"
                ],
            );
        }
        check("subject_claim = 'user'\n", &[], &expect!["pilot.toml, line 6, column 17: must be one of sub, oid, uid"]);
    }

    #[test]
    fn names_of_claims_come_from_a_fixed_list() {
        check(
            "client_claim = 'sub'\n",
            &[],
            &expect!["pilot.toml, line 6, column 16: must be one of client_id, azp, appid, cid"],
        );
        check(
            "token_id_claim = 'none'\n",
            &[],
            &expect!["pilot.toml, line 6, column 18: must be one of jti, uti, digest"],
        );
        check(
            "token_types = ['at+jwt', 'id+jwt']\n",
            &[],
            &expect![
                "pilot.toml, line 6, column 15: must be a list of one or more of at+jwt, okta-internal-at+jwt, JWT, absent"
            ],
        );
        check(
            "token_types = []\n",
            &[],
            &expect![
                "pilot.toml, line 6, column 15: must be a list of one or more of at+jwt, okta-internal-at+jwt, JWT, absent"
            ],
        );
        check(
            "roles_claim = 'a.b.c.d.e'\n",
            &[],
            &expect![
                "pilot.toml, line 6, column 15: must be the name of a claim, or up to 4 names with dots between them, such as realm_access.roles"
            ],
        );
        check(
            "roles_claim = 'a..b'\n",
            &[],
            &expect![
                "pilot.toml, line 6, column 15: must be the name of a claim, or up to 4 names with dots between them, such as realm_access.roles"
            ],
        );
    }

    #[test]
    fn types_that_id_tokens_have_need_a_list_of_clients_and_an_audience_that_is_none_of_them() {
        check(
            "token_types = ['JWT']\n",
            &[],
            &expect![
                "pilot.toml: identity.oauth.token_types: ID tokens have this type too, so set clients to those that may call"
            ],
        );
        check(
            "token_types = ['at+jwt', 'absent']\n",
            &[],
            &expect![
                "pilot.toml: identity.oauth.token_types: ID tokens have this type too, so set clients to those that may call"
            ],
        );
        let api = "token_types = ['JWT']\nresource_url = 'https://pilot.example'\n";
        check(
            &format!("{api}clients = ['https://pilot.example', 'x']\n"),
            &[],
            &expect![
                "pilot.toml: identity.oauth.audience: is also a client, so that client's ID tokens could not be told from access tokens; register the service as an API with a name of its own"
            ],
        );
    }

    #[test]
    fn googles_tokens_are_for_an_address_and_never_for_a_client() {
        check(
            "resource_url = 'https://pilot.example'\n",
            &[
                ("PILOT_IDENTITY__OAUTH__ISSUER", "https://accounts.google.com"),
                ("PILOT_IDENTITY__OAUTH__AUDIENCE", "1234.apps.googleusercontent.com"),
            ],
            &expect![
                "pilot.toml: identity.oauth.audience: Google's tokens for a client are ID tokens of people, which are not accepted; use this service's own address, for service accounts"
            ],
        );
    }

    /// Each block of the pages about providers; one that is only a part goes with the first of its page.
    #[test]
    fn every_configuration_on_the_pages_about_providers_is_accepted_and_lists_its_clients() {
        let mut seen = 0;
        let pages = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operate/identity");
        for entry in std::fs::read_dir(pages).unwrap() {
            let path = entry.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let blocks: Vec<_> =
                text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
            let first = blocks.first().unwrap_or_else(|| panic!("{}: has no configuration", path.display()));
            for block in &blocks {
                let whole = if block.contains("[identity]") { (*block).to_owned() } else { format!("{first}{block}") };
                let config = Config::parse(&path, &whole, &[]).unwrap_or_else(|error| panic!("{error}\n{whole}"));
                let oauth = config.identity.and_then(|identity| identity.oauth).unwrap();
                assert!(!oauth.clients.is_empty() && config.credentials.role_map.is_some(), "{whole}");
                seen += 1;
            }
        }
        assert_eq!(seen, 10, "blocks on all pages");
    }

    #[test]
    fn the_consoles_client_is_one_of_the_clients() {
        check(
            "clients = ['a']\nconsole_client_id = 'b'\n",
            &[],
            &expect![
                "pilot.toml: identity.oauth.clients: does not list console_client_id, so nobody could sign in to the console"
            ],
        );
    }

    #[test]
    fn the_service_does_not_trust_its_own_permit_tokens() {
        check(
            "[permits]\nissuer = 'https://id.example'\naudiences = ['x']\n",
            &[],
            &expect![
                "pilot.toml: identity.oauth.issuer: is permits.issuer, so this service would accept its own permit tokens"
            ],
        );
    }

    #[test]
    fn role_values_and_their_claim_come_together() {
        check(
            "roles_claim = 'groups'\n",
            &[],
            &expect!["pilot.toml: identity.oauth.roles_claim: needs [identity.oauth.role_values]"],
        );
        check(
            "[identity.oauth.role_values]\nauditor = ['x']\n",
            &[],
            &expect!["pilot.toml: identity.oauth.role_values: needs roles_claim"],
        );
        check(
            "roles_claim = 'groups'\n[identity.oauth.role_values]\n",
            &[],
            &expect!["pilot.toml: identity.oauth.role_values: lists no role, so nobody could call"],
        );
        check(
            "roles_claim = 'groups'\n[identity.oauth.role_values]\nadmin = ['x']\n",
            &[],
            &expect![
                "pilot.toml, line 8, column 1: unknown field `admin`, expected one of `initiator`, `approver`, `security_admin`, `executor`, `auditor`"
            ],
        );
    }

    #[test]
    fn lists_are_bounded_and_an_empty_one_is_not_mistaken_for_none() {
        check("clients = []\n", &[], &expect!["pilot.toml, line 6, column 11: must have 1 to 64 entries"]);
        check(
            "roles_claim = 'groups'\n[identity.oauth.role_values]\nauditor = []\n",
            &[],
            &expect!["pilot.toml, line 8, column 11: must have 1 to 64 entries"],
        );
        check(
            "clients = ['a', 'a']\n",
            &[],
            &expect!["pilot.toml, line 6, column 11: must not have the same entry twice"],
        );
        check(
            "clients = [' a']\n",
            &[],
            &expect![
                "pilot.toml, line 6, column 11: must be a list of strings of 1 to 256 characters, without spaces at either end"
            ],
        );
        check(
            "scopes_required = ['a b']\n",
            &[],
            &expect!["pilot.toml, line 6, column 19: must be a list of strings of 1 to 256 characters, without spaces"],
        );
        let many: Vec<_> = (0..=TOKEN_DEMANDS_MAX).map(|at| format!("'{at}'")).collect();
        check(
            &format!("clients = [{}]\n", many.join(", ")),
            &[],
            &expect!["pilot.toml, line 6, column 11: must have 1 to 64 entries"],
        );
        check(
            &format!("acr_values = ['{}']\n", "x".repeat(TOKEN_DEMAND_CHARS_MAX + 1)),
            &[],
            &expect![
                "pilot.toml, line 6, column 14: must be a list of strings of 1 to 256 characters, without spaces at either end"
            ],
        );
    }
}
