//! The sections `[[webhooks]]`: who is told about entries of the ledger.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use pilot_core::entry::EntryType;
use pilot_core::limits::{WEBHOOK_NAME_CHARS_MAX, WEBHOOK_SECRETS_MAX, WEBHOOKS_MAX};
use pilot_core::role::Role;
use pilot_wire::outgoing::{Reach, Target};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::network::{Network, Networks};

/// Someone who is told about entries of the ledger, by HTTP (Standard Webhooks). At most 16.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Webhook {
    /// Names the endpoint, and its place in the ledger, which survives a change of every other key: 1 to 40 lower-case
    /// letters, digits and hyphens.
    #[serde(deserialize_with = "name")]
    #[schemars(with = "String")]
    pub name: String,
    /// Where entries are posted to, such as `https://host/path`, without a user, a query or a fragment. Give either this or
    /// `url_file`.
    #[serde(default)]
    pub url: Option<String>,
    /// A private file with the address, if the address is itself a secret; it may have a query. It is never logged or shown.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub url_file: Option<PathBuf>,
    /// `ed25519` signs with a private key (`v1a`), so that a receiver needs no secret; `hmac` signs with a secret that the
    /// receiver shares (`v1`).
    #[serde(default)]
    pub signing: Signing,
    /// Private files with one key each, as `pilot webhook key` makes them. If there are two, both sign: that is how keys are
    /// rotated.
    pub secret_files: Vec<PathBuf>,
    /// Where a new endpoint begins: `"now"`, or the index of an entry, such as 0 for the whole ledger. An endpoint that has
    /// begun continues where it was.
    #[serde(default)]
    pub from: From,
    /// Only entries about items of these workflows. An empty list means all.
    #[serde(default)]
    pub workflows: Vec<String>,
    /// Only entries of these types, such as `item.transition`. An empty list means all.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub types: Vec<EntryType>,
    /// Only entries after which it is the turn of one of these roles, and not those that leave an item in its state, except
    /// holds and releases. An empty list means all.
    #[serde(default)]
    #[schemars(with = "Vec<String>")]
    pub waits_for: Vec<Role>,
    /// Whether entries about access, credentials and the service are sent too, and not only those about items.
    #[serde(default)]
    pub restricted: bool,
    /// `thin` sends the entry, which has ids, states, roles and digests; `full` adds the title of the item.
    #[serde(default)]
    pub detail: Detail,
    /// Networks that may be reached although they are not public.
    #[serde(default, deserialize_with = "networks")]
    #[schemars(with = "Networks", extend("default" = Vec::<String>::new()))]
    pub allow_addresses: Vec<Network>,
    /// Ports that may be reached besides 443.
    #[serde(default)]
    pub allow_ports: Vec<u16>,
    /// Whether `url` may begin with `http://`, on port 80 or one of `allow_ports`. Only to addresses in `allow_addresses`.
    #[serde(default)]
    pub allow_http: bool,
    /// Certificate authorities to trust for it, in addition to the system's. A PEM file.
    #[serde(default)]
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Signing {
    #[default]
    Ed25519,
    Hmac,
}

impl Signing {
    pub const fn as_str(self) -> &'static str {
        match self {
            Signing::Ed25519 => "ed25519",
            Signing::Hmac => "hmac",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    #[default]
    Thin,
    Full,
}

/// Where an endpoint begins that has not begun yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum From {
    #[default]
    Now,
    Index(u64),
}

impl Serialize for From {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            From::Now => serializer.serialize_str("now"),
            From::Index(index) => serializer.serialize_u64(*index),
        }
    }
}

impl JsonSchema for From {
    fn schema_name() -> Cow<'static, str> {
        "From".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "integer"] })
    }
}

impl<'de> Deserialize<'de> for From {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<From, D::Error> {
        struct Place;
        impl Visitor<'_> for Place {
            type Value = From;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("\"now\" or the index of an entry")
            }

            fn visit_i64<E: serde::de::Error>(self, index: i64) -> Result<From, E> {
                u64::try_from(index).map(From::Index).map_err(|_| E::custom("must be \"now\" or the index of an entry"))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<From, E> {
                if text == "now" { Ok(From::Now) } else { Err(E::custom("must be \"now\" or the index of an entry")) }
            }
        }
        deserializer.deserialize_any(Place)
    }
}

pub(super) fn networks<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Network>, D::Error> {
    Networks::deserialize(deserializer).map(|Networks(networks)| networks)
}

pub(super) fn name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let name = String::deserialize(deserializer)?;
    let is_sign = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=WEBHOOK_NAME_CHARS_MAX).contains(&name.len()) && name.bytes().all(is_sign) {
        return Ok(name);
    }
    let wrong = format!("must be 1 to {WEBHOOK_NAME_CHARS_MAX} lower-case letters, digits and hyphens");
    Err(D::Error::custom(wrong))
}

/// Public addresses by https, and what the operator opened.
pub(super) fn reach(networks: &[Network], ports: &[u16], http: bool) -> Reach {
    let networks = networks.to_vec();
    let allows = Box::new(move |address| networks.iter().any(|network| network.contains(address)));
    Reach { allows, ports: ports.to_vec(), http }
}

impl Webhook {
    /// Where it may be, besides public addresses by https.
    pub fn reach(&self) -> Reach {
        reach(&self.allow_addresses, &self.allow_ports, self.allow_http)
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.url_file = self.url_file.as_ref().map(|path| base.join(path));
        self.ca_file = self.ca_file.as_ref().map(|path| base.join(path));
        self.secret_files.iter_mut().for_each(|path| *path = base.join(&path));
    }

    fn fault(&self) -> Option<String> {
        let needs_right = self.types.iter().find(|r#type| !r#type.is_about_item() && !self.restricted);
        if !(1..=WEBHOOK_SECRETS_MAX).contains(&self.secret_files.len()) {
            return Some(format!("secret_files: must name 1 to {WEBHOOK_SECRETS_MAX} files"));
        }
        if self.allow_http && self.allow_addresses.is_empty() {
            return Some("allow_http: needs allow_addresses, the networks in which plain HTTP is allowed".into());
        }
        if let Some(needs_right) = needs_right {
            return Some(format!("types: {needs_right} needs restricted = true"));
        }
        if let Some(fault) = self.filter_fault() {
            return Some(fault);
        }
        match (&self.url, &self.url_file) {
            (Some(url), None) if url.contains('?') => {
                Some("url: must not have a query, which is often a secret; use url_file".into())
            }
            (Some(url), None) => Target::parse(url, &self.reach()).err().map(|error| format!("url: {error}")),
            (None, Some(_)) => None,
            _ => Some("url: set either url or url_file".into()),
        }
    }
}

impl Webhook {
    /// Filters of which no entry passes both.
    fn filter_fault(&self) -> Option<String> {
        let moves: fn(&EntryType) -> bool = |kind| matches!(kind, EntryType::ItemCreated | EntryType::ItemTransition);
        let never = |can_match: fn(&EntryType) -> bool| !self.types.is_empty() && !self.types.iter().any(can_match);
        if !self.workflows.is_empty() && never(|kind| kind.is_about_item()) {
            return Some("workflows: no entry of these types is about an item".into());
        }
        if !self.waits_for.is_empty() && never(moves) {
            return Some("waits_for: needs item.created or item.transition in types".into());
        }
        None
    }
}

/// What is wrong with them, each and together.
pub(super) fn faults(webhooks: &[Webhook]) -> Vec<String> {
    let mut faults = Vec::new();
    if webhooks.len() > WEBHOOKS_MAX {
        faults.push(format!("webhooks: there are {}, and at most {WEBHOOKS_MAX} are allowed", webhooks.len()));
    }
    for (at, webhook) in webhooks.iter().enumerate() {
        if webhooks.iter().take(at).any(|earlier| earlier.name == webhook.name) {
            faults.push(format!("webhooks[{at}].name: is given twice; each endpoint has its own place in the ledger"));
        }
        faults.extend(webhook.fault().map(|fault| format!("webhooks[{at}].{fault}")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    const SOUND: &str = "[[webhooks]]\nname = 'chat'\nurl = 'https://chat.example/hook'\nsecret_files = ['chat.key']\n";

    fn read(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("pilot.toml"), text, &[]).map_err(|error| error.to_string())
    }

    #[test]
    fn an_endpoint_needs_a_name_an_address_and_a_key() {
        let config = read(SOUND).unwrap();
        let webhook = &config.webhooks[0];
        assert_eq!((webhook.signing, webhook.detail, webhook.from), (Signing::Ed25519, Detail::Thin, From::Now));
        assert!(!webhook.restricted && !webhook.allow_http && webhook.types.is_empty());
        let whole =
            "from = 0\nsigning = 'hmac'\ntypes = ['item.transition']\nwaits_for = ['approver']\ndetail = 'full'\n";
        let config = read(&format!("{SOUND}{whole}workflows = ['a']\nallow_addresses = ['10.0.0.0/8']")).unwrap();
        let webhook = &config.webhooks[0];
        assert_eq!((webhook.from, webhook.waits_for.as_slice()), (From::Index(0), [Role::Approver].as_slice()));
        assert!((webhook.reach().allows)("10.1.1.1".parse().unwrap()));
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_place() {
        let with = |more: &str| format!("{SOUND}{more}");
        for (text, why) in [
            (with("urll = 'x'"), "unknown field `urll`"),
            (with("url_file = 'x'"), "webhooks[0].url: set either url or url_file"),
            (with("allow_http = true"), "webhooks[0].allow_http: needs allow_addresses"),
            (with("types = ['credential.revoked']"), "webhooks[0].types: credential.revoked needs restricted = true"),
            (
                with("restricted = true\nworkflows = ['a']\ntypes = ['credential.revoked', 'service.started']"),
                "webhooks[0].workflows: no entry of these types is about an item",
            ),
            (
                with("waits_for = ['approver']\ntypes = ['item.comment', 'item.edited']"),
                "webhooks[0].waits_for: needs item.created or item.transition in types",
            ),
            (with("types = ['item.nothing']"), "is not known, expected one of `item.created`"),
            (with("waits_for = ['boss']"), "is not known"),
            (with("from = -1"), "must be \"now\" or the index of an entry"),
            (with("from = 'then'"), "must be \"now\" or the index of an entry"),
            (with(SOUND), "webhooks[1].name: is given twice"),
            (SOUND.replace("'chat'", "'Chat'"), "must be 1 to 40 lower-case letters"),
            (SOUND.replace("'chat.key'", ""), "webhooks[0].secret_files: must name 1 to 2 files"),
            (SOUND.replace("'chat.key'", "'a', 'b', 'c'"), "must name 1 to 2 files"),
            (SOUND.replace("https://chat.example/hook", "https://10.0.0.1/"), "webhooks[0].url: leads to 10.0.0.1"),
            (SOUND.replace("https://chat", "http://chat"), "webhooks[0].url: must begin with https://"),
            (SOUND.replace("/hook", "/hook?key=1"), "webhooks[0].url: must not have a query"),
        ] {
            let said = read(&text).err().unwrap_or_default();
            assert!(said.contains(why) && !said.contains("hook?"), "{why}: {said}");
        }
        let many: String = (0..17).map(|at| SOUND.replace("'chat'", &format!("'chat-{at}'"))).collect();
        assert!(read(&many).unwrap_err().contains("there are 17, and at most 16 are allowed"));
    }
}
