//! The configuration file, with overrides from the environment.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use pilot_core::limits::{CLOCK_OUTAGE_DAYS, TOKEN_BYTES_MIN};
use pilot_evidence::cosignature::CosignerVerifier;
use pilot_store::postgres::Access;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::private_file::{self, Others};

mod account;
mod claims;
mod console;
mod edge;
mod faults;
mod hours;
mod listen;
mod logging;
mod network;
mod node;
mod notices;
mod oauth;
mod permits;
mod signer;
mod source;
mod store;
mod traces;
mod url;
mod webhooks;

pub use account::{Account, AccountError};
pub use claims::{RoleValue, RoleValues, TokenTypes};
pub use console::{Colour, Console};
pub use edge::{
    ClientAddress, ClientCertificate, ClientTrust, Count, IdentitySection, Mechanism, Mesh, MutualTls, RateLimits, Tls,
    TlsFiles,
};
pub use hours::{Hours, TimeOfDay, Zone};
pub use listen::{Listen, NoListen, Socket, SocketMode};
pub use logging::{LogFormat, LogLevel, Logging, Origin};
pub use network::{Network, NotANetwork};
pub use node::Node;
pub use notices::{MailTls, Notice, NoticeKind};
pub use oauth::{Algorithms, Introspection, Oauth, ProviderUrl};
pub use permits::{Issuer, Permits};
pub use signer::Signer;
pub use source::{Credentials, Exec, Login, Source, Systemd, Vault};
pub use store::Store;
pub use traces::Traces;
use url::plain_url;
pub use webhooks::{Detail, From as WebhookFrom, Signing, Webhook};

/// Top-level names of the configuration: `PILOT_<NAME>` and `PILOT_<NAME>__<KEY>` override them.
const NAMES: [&str; 22] = [
    "profile",
    "listen",
    "public_url",
    "socket",
    "data_dir",
    "store",
    "credentials",
    "workflows",
    "log",
    "logging",
    "ops",
    "console",
    "tls",
    "rate_limits",
    "identity",
    "clock",
    "node",
    "permits",
    "traces",
    "webhooks",
    "contacts_file",
    "notices",
];
/// Keys whose value is a number; the environment has texts alone.
const NUMBERS: [&str; 7] = [
    "lifetime_days_max",
    "require_witnesses",
    "every_minutes",
    "idle_minutes",
    "timeout_seconds",
    "outage_days",
    "sample_percent",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "snake_case")]
pub enum Profile {
    #[default]
    Pilot,
    Production,
}

/// `docs/reference/configuration.md` is made from these types: the comment of a field is what it says there.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// With `production` the service does not start without TLS, a role map, rate limits and an identity mechanism.
    pub profile: Profile,
    /// Address and port of the main listener; port 0 picks a free one. Or a Unix socket, such as
    /// `unix:/run/pilot/pilot.sock`: an absolute path of at most 107 bytes.
    pub listen: Listen,
    /// The address at which people and programs reach the service, such as `https://pilot.example.com`, without a slash at
    /// the end. Webhooks name it as their source, and link to the console there.
    #[serde(deserialize_with = "public_url")]
    #[schemars(with = "Option<Issuer>")]
    pub public_url: Option<String>,
    /// The file of the Unix socket. Only if `listen` names one.
    pub socket: Option<Socket>,
    /// The directory of the ledger and its keys. It is created with mode 0700 if it does not exist.
    #[schemars(extend("format" = "path"))]
    pub data_dir: PathBuf,
    /// The ledger's storage.
    pub store: Store,
    /// Where the credential file comes from, and the role map that it must agree with. At most one of `file`,
    /// `[credentials.systemd]`, `[credentials.exec]` and `[credentials.vault]` may be set.
    pub credentials: Credentials,
    /// Your own workflow definitions, in addition to the built-in ones.
    pub workflows: Workflows,
    /// The transparency log and its witnesses.
    pub log: Log,
    /// The service's own log on standard error.
    pub logging: Logging,
    /// The listener for health checks and metrics. Without this section there is none.
    pub ops: Option<Ops>,
    /// The operator console.
    pub console: Console,
    /// TLS on the main listener. Set `certificate` and `key` if TLS ends at the service, or `termination` and `trusted`
    /// if it ends at a mesh. Without this section the service uses plain HTTP.
    pub tls: Option<Tls>,
    /// How often an actor, or an address without a valid credential, may call. An empty section turns the limits on with
    /// their defaults; without the section there are none.
    pub rate_limits: Option<RateLimits>,
    /// How callers prove who they are.
    pub identity: Option<IdentitySection>,
    /// How far the machine's clock is trusted.
    pub clock: Clock,
    /// This process among others that share a ledger.
    pub node: Node,
    /// Tokens by which targets, such as a secret manager or a cluster, let an executor in for one approved operation.
    /// Without this section none are issued.
    pub permits: Option<Permits>,
    /// Spans of requests, for an OpenTelemetry collector. Without this section none are sent.
    pub traces: Option<Traces>,
    /// Who is told about entries of the ledger, by HTTP.
    pub webhooks: Vec<Webhook>,
    /// A private file that says how people are reached, for `[[notices]]`: a table for each actor. It is read again when it
    /// changes.
    #[schemars(extend("format" = "path"))]
    pub contacts_file: Option<PathBuf>,
    /// Where people are told that something waits for them.
    pub notices: Vec<Notice>,
    /// Set when someone else could have written the file this was read from.
    #[serde(skip)]
    pub foreign_hand: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Clock {
    /// If the service was down for longer than this many days and the machine was restarted meanwhile, no write is
    /// accepted until an operator accepts the clock.
    pub outage_days: u16,
}

impl Clock {
    pub const fn outage(self) -> Duration {
        Duration::from_hours(24 * self.outage_days as u64)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Clock { outage_days: CLOCK_OUTAGE_DAYS }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Workflows {
    /// A directory with definitions, in files that end in `.toml`. It must exist.
    #[schemars(extend("format" = "path"))]
    pub dir: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Log {
    /// The file that keeps the last signed checkpoint outside the database, best on another disk. By default it is in
    /// `data_dir`.
    #[schemars(extend("format" = "path", "default" = Config::default().checkpoint_path()))]
    pub checkpoint: Option<PathBuf>,
    /// Who cosigns the log's checkpoints. Each witness may be listed once.
    pub witnesses: Vec<Witness>,
    /// How many witnesses must have cosigned an item's newest entry before an effect may begin. It cannot exceed the
    /// number of witnesses.
    pub require_witnesses: usize,
    /// Certificate authorities to trust for witnesses and for `timestamps`, in addition to the system's. A PEM file.
    #[schemars(extend("format" = "path"))]
    pub ca_file: Option<PathBuf>,
    pub signer: Option<Signer>,
    /// Who timestamps the log's checkpoints (RFC 3161). Without it, only witnesses date them.
    pub timestamps: Option<Timestamps>,
}

/// A timestamping authority.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timestamps {
    /// The address of the authority, such as `https://host/path`, without a user, a query or a fragment.
    #[serde(deserialize_with = "plain_url")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub url: Uri,
    /// How often it is asked, in minutes, while the log grows: 1 to 1440.
    #[serde(default = "Timestamps::hourly")]
    pub every_minutes: u16,
}

impl Timestamps {
    const fn hourly() -> u16 {
        60
    }
}

/// One witness: an independent party that cosigns checkpoints of this log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Witness {
    /// The address of the witness, such as `https://host/prefix`, without a user, a query or a fragment.
    #[serde(deserialize_with = "plain_url")]
    #[schemars(with = "String", extend("format" = "uri"))]
    pub url: Uri,
    /// The public key of the witness, as `pilot log witness --print-key` prints it.
    #[serde(deserialize_with = "witness_key")]
    #[schemars(with = "String")]
    pub key: CosignerVerifier,
}

fn public_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Issuer::deserialize(deserializer).map(|url| Some(url.as_str().to_owned()))
}

fn witness_key<'de, D: Deserializer<'de>>(deserializer: D) -> Result<CosignerVerifier, D::Error> {
    let text = String::deserialize(deserializer)?;
    CosignerVerifier::parse(&text).map_err(|error| D::Error::custom(format!("is not a witness key: {error}")))
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ops {
    /// Address and port, always plain HTTP. Keep it internal: callers need no credential.
    #[schemars(extend("format" = "socket-address"))]
    pub listen: SocketAddr,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            profile: Profile::Pilot,
            listen: Listen::Tcp(SocketAddr::from(([127, 0, 0, 1], 7450))),
            public_url: None,
            socket: None,
            data_dir: "data".into(),
            store: Store::default(),
            credentials: Credentials::default(),
            workflows: Workflows::default(),
            log: Log::default(),
            logging: Logging::default(),
            ops: None,
            console: Console::default(),
            tls: None,
            rate_limits: None,
            identity: None,
            clock: Clock::default(),
            node: Node::default(),
            permits: None,
            traces: None,
            webhooks: Vec::new(),
            contacts_file: None,
            notices: Vec::new(),
            foreign_hand: None,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("{}: cannot be read; `pilot init DIR` creates an installation with a configuration file", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}, line {line}, column {column}: {message}", path.display())]
    Parse { path: PathBuf, line: usize, column: usize, message: String },
    #[error("the environment overrides the configuration with an invalid value: {message} (set by {variables})")]
    Environment { variables: String, message: String },
    #[error("{}: {message}", path.display())]
    Contradiction { path: PathBuf, message: String },
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<ConfigError>),
}

impl From<Vec<ConfigError>> for ConfigError {
    fn from(mut faults: Vec<ConfigError>) -> Self {
        match faults.pop() {
            Some(only) if faults.is_empty() => only,
            last => ConfigError::Several(faults.into_iter().chain(last).collect()),
        }
    }
}

impl Log {
    fn contradiction(&self) -> Option<String> {
        let Log { witnesses, require_witnesses, timestamps, .. } = self;
        let minutes = timestamps.as_ref().map_or(1, |timestamps| timestamps.every_minutes);
        if !(1..=1440).contains(&minutes) {
            return Some(format!("log.timestamps.every_minutes: {minutes} is not from 1 to 1440"));
        }
        match witnesses.iter().enumerate().find(|(at, witness)| {
            witnesses.iter().take(*at).any(|other| other.key.public_key == witness.key.public_key)
        }) {
            Some((at, _)) => Some(format!("log.witnesses[{at}].key: is given twice; a witness counts once")),
            None if *require_witnesses > witnesses.len() => Some(format!(
                "log.require_witnesses: {require_witnesses} are required, but log.witnesses has {}",
                witnesses.len()
            )),
            None => None,
        }
    }
}

impl Config {
    /// Reads the file, lays the environment over it, and makes relative paths relative to the file.
    pub fn load(path: &Path, environment: &[(String, String)]) -> Result<Config, ConfigError> {
        let read = private_file::read_public(path);
        let (text, foreign_hand) = read.map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        let mut config = Config::parse(path, &text, environment)?;
        config.foreign_hand = foreign_hand.map(|error| error.to_string());
        config.resolve(path.parent().unwrap_or(Path::new("")));
        config.credentials.look_around(environment);
        if let Some(signer) = &mut config.log.signer {
            signer.exec.look_around(environment);
        }
        Ok(config)
    }

    /// What the group and the rest of the world may do with a secret file.
    pub fn others(&self) -> Others {
        match self.profile {
            Profile::Pilot => Others::MayRead,
            Profile::Production => Others::MayNothing,
        }
    }

    /// What each value by itself does not show.
    fn check(self, path: &Path) -> Result<Config, ConfigError> {
        let contradiction = |message: String| ConfigError::Contradiction { path: path.to_owned(), message };
        let identity = self.identity.as_ref().and_then(IdentitySection::contradiction).map(str::to_owned);
        let faults = identity.into_iter().chain(self.trusts_itself()).chain(self.log.contradiction());
        let faults = faults.chain(self.traces.as_ref().and_then(Traces::contradiction));
        let faults = faults.chain(self.store.fault()).chain(self.same_address());
        let faults = faults.chain(self.socket_fault().map(str::to_owned)).chain(webhooks::faults(&self.webhooks));
        let faults = faults.chain(notices::faults(&self.notices, self.contacts_file.is_some()));
        let faults: Vec<_> = faults.map(contradiction).collect();
        if faults.is_empty() { Ok(self) } else { Err(faults.into()) }
    }

    /// A permit token is for a target, and must never be a way to sign in here.
    fn trusts_itself(&self) -> Option<String> {
        let (oauth, permits) = (self.identity.as_ref()?.oauth.as_ref()?, self.permits.as_ref()?);
        let is_own = oauth.issuer.text.trim_end_matches('/') == permits.issuer.as_str();
        is_own.then(|| {
            "identity.oauth.issuer: is permits.issuer, so this service would accept its own permit tokens".into()
        })
    }

    /// Two listeners cannot share an address.
    fn same_address(&self) -> Option<String> {
        let (main, ops) = (self.listen.address()?, self.ops.as_ref()?.listen);
        let is_same = main.ip() == ops.ip() || main.ip().is_unspecified() || ops.ip().is_unspecified();
        (is_same && main.port() == ops.port() && main.port() != 0)
            .then(|| format!("ops.listen: {ops} is also what listen ({main}) uses; give it another port"))
    }

    /// What a Unix socket can do and an address cannot, and the other way round.
    fn socket_fault(&self) -> Option<&'static str> {
        match (&self.listen, &self.tls) {
            (Listen::Tcp(_), Some(Tls::Mesh(mesh))) if !mesh.trusted_users.is_empty() => Some(
                "tls.trusted_users: only a Unix socket tells who is at its other end; set listen to one, or use trusted \
                 instead",
            ),
            (Listen::Tcp(_), _) if self.socket.is_some() => Some(
                "socket: is for a Unix socket, but listen is an address; remove the section, or set listen to a socket",
            ),
            (Listen::Unix(_), Some(Tls::Mesh(mesh))) if mesh.trusted_users.is_empty() => Some(
                "tls.trusted_users: is missing; on a Unix socket a mesh has no address and is known by its users, so list \
                 them",
            ),
            (Listen::Unix(_), Some(Tls::Here(_))) => Some(
                "tls.certificate: TLS is not used on a Unix socket. End TLS at the proxy, with termination = \"mesh\" and \
                 trusted_users, or set listen to an address",
            ),
            _ => None,
        }
    }

    fn parse(path: &Path, text: &str, environment: &[(String, String)]) -> Result<Config, ConfigError> {
        // The file must be valid by itself: only then do its faults have a line.
        let config = faults::read::<Config>(text).map_err(|faults| {
            let fault = |faults::Found { line, column, message }| ConfigError::Parse {
                path: path.to_owned(),
                line,
                column,
                message: without_value(&message),
            };
            ConfigError::from(faults.into_iter().map(fault).collect::<Vec<_>>())
        })?;
        if let Some((name, _)) = environment.iter().find(|(name, value)| keys(name).is_some() && value.is_empty()) {
            let message = "it is empty; unset it or give it a value".to_owned();
            return Err(ConfigError::Environment { variables: name.clone(), message });
        }
        let overrides: Vec<_> =
            environment.iter().filter_map(|(name, value)| Some((keys(name)?, name, value))).collect();
        if overrides.is_empty() {
            return config.check(path);
        }
        let mut table: toml::Table = toml::from_str(text).unwrap_or_default();
        for (keys, _, value) in &overrides {
            set(&mut table, keys, value);
        }
        let config: Result<Config, _> = table.try_into();
        let config = config.map_err(|error: toml::de::Error| ConfigError::Environment {
            variables: overrides.iter().map(|(_, name, _)| name.as_str()).collect::<Vec<_>>().join(", "),
            message: without_value(error.message()),
        })?;
        config.check(path)
    }

    fn resolve(&mut self, base: &Path) {
        self.data_dir = base.join(&self.data_dir);
        self.store.resolve(base);
        self.credentials.resolve(base);
        self.workflows.dir = self.workflows.dir.as_ref().map(|path| base.join(path));
        self.log.checkpoint = self.log.checkpoint.as_ref().map(|path| base.join(path));
        self.log.ca_file = self.log.ca_file.as_ref().map(|path| base.join(path));
        if let Some(traces) = &mut self.traces {
            traces.ca_file = traces.ca_file.as_ref().map(|path| base.join(path));
        }
        self.webhooks.iter_mut().for_each(|webhook| webhook.resolve(base));
        self.notices.iter_mut().for_each(|notice| notice.resolve(base));
        self.contacts_file = self.contacts_file.as_ref().map(|path| base.join(path));
        if let Some(tls) = &mut self.tls {
            tls.resolve(base);
        }
        if let Some(oauth) = self.identity.as_mut().and_then(|identity| identity.oauth.as_mut()) {
            oauth.resolve(base);
        }
    }

    /// How callers prove who they are.
    pub fn mechanism(&self) -> Mechanism {
        self.identity.as_ref().map_or_else(Mechanism::default, |identity| identity.mechanism)
    }

    /// The file of the embedded store, when that is the one configured.
    pub fn sqlite_path(&self) -> Option<PathBuf> {
        self.store.url.strip_prefix("sqlite:").map(|path| self.data_dir.join(path))
    }

    /// Access to the database, when the ledger is in one.
    pub fn postgres(&self) -> Option<Access> {
        let binds_channel = self.profile == Profile::Production;
        self.store.postgres().map(|access| Access { binds_channel, ..access })
    }

    pub fn log_key_path(&self) -> PathBuf {
        self.data_dir.join("log.key")
    }

    /// The public half of a key that is in no file, as it was when the log began.
    pub fn log_public_key_path(&self) -> PathBuf {
        self.data_dir.join("log.pub")
    }

    /// The keys that sign permit tokens.
    pub fn permit_key_path(&self) -> PathBuf {
        self.data_dir.join("permit.key")
    }

    /// Which credentials were revoked, outside of the database: beside the checkpoint.
    pub fn revocations_path(&self) -> PathBuf {
        let mut path = self.checkpoint_path().into_os_string();
        path.push(".revocations");
        path.into()
    }

    /// What a run knows about the time, for the next start.
    pub fn clock_path(&self) -> PathBuf {
        self.data_dir.join("clock.json")
    }

    /// When the last backup was made.
    pub fn backup_record_path(&self) -> PathBuf {
        self.data_dir.join("backup.json")
    }

    /// What the log shows for a while.
    pub fn log_settings_path(&self) -> PathBuf {
        self.data_dir.join("logging.json")
    }

    /// What was last learned of the identity provider, for a start while it is out of reach.
    pub fn provider_path(&self) -> PathBuf {
        self.data_dir.join("identity-provider.json")
    }

    /// Where the last signed checkpoint is kept outside of the database.
    pub fn checkpoint_path(&self) -> PathBuf {
        self.log.checkpoint.clone().unwrap_or_else(|| self.data_dir.join("log.checkpoint"))
    }
}

/// Reads a file that may have no unknown key. Each fault is named with its line; values are not quoted.
pub fn read_strictly<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, Vec<String>> {
    let said = |faults::Found { line, message, .. }| format!("line {line}: {}", without_value(&message));
    faults::read(text).map_err(|faults| faults.into_iter().map(said).collect())
}

/// `PILOT_STORE__URL` → `["store", "url"]`; nothing for variables that are not ours.
fn keys(variable: &str) -> Option<Vec<String>> {
    let keys: Vec<_> = variable.strip_prefix("PILOT_")?.split("__").map(str::to_ascii_lowercase).collect();
    NAMES.contains(&keys.first()?.as_str()).then_some(keys)
}

fn set(table: &mut toml::Table, keys: &[String], value: &str) {
    match keys {
        [] => {}
        [key] => {
            let number = value.parse().ok().filter(|_| NUMBERS.contains(&key.as_str()));
            table.insert(key.clone(), number.map_or_else(|| value.into(), toml::Value::Integer));
        }
        [key, rest @ ..] => {
            let inner = table.entry(key.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            if let Some(inner) = inner.as_table_mut() {
                set(inner, rest, value);
            }
        }
    }
}

/// The library quotes the value it stumbled over, and a value may be a secret that was set by mistake.
fn without_value(message: &str) -> String {
    // An unknown key is named, unless it is as long as a token; none of our keys is.
    let short = |word| if str::len(word) < TOKEN_BYTES_MIN { word } else { "(long name)" };
    match message.split_once(", expected ") {
        Some((what, expected)) if what.starts_with("invalid ") => format!("has the wrong type, expected {expected}"),
        Some((what, expected)) if what.starts_with("unknown variant ") => format!("is not known, expected {expected}"),
        _ => message.split(' ').map(short).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
    fn check(text: &str, environment: &[(&str, &str)], expected: Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
            Ok(config) => format!("{} {} {:?}", config.listen, config.store.url, config.ops.map(|ops| ops.listen)),
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    #[test]
    fn an_empty_file_gives_the_documented_defaults() {
        check("", &[], expect!["127.0.0.1:7450 sqlite:pilot.db None"]);
    }

    #[test]
    fn the_environment_overrides_single_keys() {
        check(
            "listen = '127.0.0.1:1'\n[store]\nurl = 'sqlite:a'",
            &[
                ("PILOT_LISTEN", "127.0.0.1:2"),
                ("PILOT_STORE__URL", "sqlite:b"),
                ("PILOT_OPS__LISTEN", "127.0.0.1:3"),
                ("PILOT_TOKEN", "x"),
                ("OTHER", "y"),
            ],
            expect!["127.0.0.1:2 sqlite:b Some(127.0.0.1:3)"],
        );
        check(
            "",
            &[("PILOT_LISTEN", "nowhere")],
            expect![
                "the environment overrides the configuration with an invalid value: must be an address and a port, such as 127.0.0.1:7450, or a socket, such as unix:/run/pilot/pilot.sock (set by PILOT_LISTEN)"
            ],
        );
        check(
            "",
            &[("PILOT_STORE__URI", "x")],
            expect![
                "the environment overrides the configuration with an invalid value: unknown field `uri`, expected one of `url`, `password_file`, `ca_file`, `client_certificate`, `client_key` (set by PILOT_STORE__URI)"
            ],
        );
    }

    #[test]
    fn an_unknown_key_is_refused_with_its_line() {
        check(
            "profile = 'pilot'\nlisen = '127.0.0.1:1'",
            &[],
            expect![
                "pilot.toml, line 2, column 1: unknown field `lisen`, expected one of `profile`, `listen`, `public_url`, `socket`, `data_dir`, `store`, `credentials`, `workflows`, `log`, `logging`, `ops`, `console`, `tls`, `rate_limits`, `identity`, `clock`, `node`, `permits`, `traces`, `webhooks`, `contacts_file`, `notices`"
            ],
        );
        check(
            "[store]\npath = 'x'",
            &[],
            expect![
                "pilot.toml, line 2, column 1: unknown field `path`, expected one of `url`, `password_file`, `ca_file`, `client_certificate`, `client_key`"
            ],
        );
    }

    #[test]
    fn a_faulty_value_is_refused_with_its_line() {
        check(
            "\nlisten = 'here'",
            &[],
            expect![
                "pilot.toml, line 2, column 10: must be an address and a port, such as 127.0.0.1:7450, or a socket, such as unix:/run/pilot/pilot.sock"
            ],
        );
        check(
            "profile = 'prod'",
            &[],
            expect!["pilot.toml, line 1, column 11: is not known, expected `pilot` or `production`"],
        );
        check(
            "listen = 7450",
            &[],
            expect!["pilot.toml, line 1, column 10: has the wrong type, expected an address and a port, or a socket"],
        );
        check(
            "",
            &[("PILOT_STORE", "hunter2")],
            expect![
                "the environment overrides the configuration with an invalid value: has the wrong type, expected a section (set by PILOT_STORE)"
            ],
        );
        check(
            "",
            &[("PILOT_STORE__URL", "")],
            expect![
                "the environment overrides the configuration with an invalid value: it is empty; unset it or give it a value (set by PILOT_STORE__URL)"
            ],
        );
        check("[store", &[], expect!["pilot.toml, line 1, column 7: unclosed table, expected `]`"]);
        check("[ops]\n", &[], expect!["pilot.toml, line 1, column 1: missing field `listen`"]);
    }

    #[test]
    fn a_socket_and_what_belongs_to_it_come_together_or_not_at_all() {
        const SOCKET: &str = "listen = 'unix:/run/pilot/pilot.sock'\n";
        const USERS: &str = "[tls]\ntermination = 'mesh'\ntrusted_users = ['haproxy', 33]\n";
        let with = |parts: &[&str]| parts.concat();
        for (text, environment) in [
            (with(&[SOCKET]), [].as_slice()),
            (with(&[SOCKET, "[socket]\ngroup = 'web'\nmode = '0600'\n", USERS]), &[]),
            (with(&[SOCKET]), &[("PILOT_TLS__TERMINATION", "mesh"), ("PILOT_TLS__TRUSTED_USERS", "haproxy, 33")]),
        ] {
            check(&text, environment, expect!["unix:/run/pilot/pilot.sock sqlite:pilot.db None"]);
        }
        check(
            &with(&["[socket]\n"]),
            &[],
            expect![
                "pilot.toml: socket: is for a Unix socket, but listen is an address; remove the section, or set listen to a socket"
            ],
        );
        check(
            &with(&[USERS]),
            &[],
            expect![
                "pilot.toml: tls.trusted_users: only a Unix socket tells who is at its other end; set listen to one, or use trusted instead"
            ],
        );
        check(
            &with(&[SOCKET, "[tls]\ntermination = 'mesh'\ntrusted = ['127.0.0.1']\n"]),
            &[],
            expect![
                "pilot.toml: tls.trusted_users: is missing; on a Unix socket a mesh has no address and is known by its users, so list them"
            ],
        );
        check(
            &with(&[SOCKET, "[tls]\ncertificate = 'c.pem'\nkey = 'k.pem'\n"]),
            &[],
            expect![[
                r#"pilot.toml: tls.certificate: TLS is not used on a Unix socket. End TLS at the proxy, with termination = "mesh" and trusted_users, or set listen to an address"#
            ]],
        );
        check(
            &with(&[SOCKET, "[socket]\nmode = '0666'\n"]),
            &[],
            expect![[
                r#"pilot.toml, line 3, column 8: must be "0600" or "0660": to connect, a user needs both rights, and other users must have none. To let a user in, add it to the socket's group"#
            ]],
        );
        check(
            &with(&[SOCKET, "[socket]\ngroup = 'not a name'\n"]),
            &[],
            expect!["pilot.toml, line 3, column 9: must be a name or a number, such as haproxy or 101"],
        );
    }

    #[test]
    fn the_console_has_a_short_name_and_one_of_five_colours() {
        check("[console]\nname = 'Production'\ncolour = 'red'", &[], expect!["127.0.0.1:7450 sqlite:pilot.db None"]);
        check(
            "",
            &[("PILOT_CONSOLE__NAME", "Staging"), ("PILOT_CONSOLE__COLOUR", "amber")],
            expect!["127.0.0.1:7450 sqlite:pilot.db None"],
        );
        check(&format!("[console]\nname = '{}'", "é".repeat(40)), &[], expect!["127.0.0.1:7450 sqlite:pilot.db None"]);
        check(
            &format!("[console]\nname = '{}'", "é".repeat(41)),
            &[],
            expect!["pilot.toml, line 2, column 8: must have at most 40 characters"],
        );
        for blank in ["''", "'  '", "' a'"] {
            check(
                &format!("[console]\nname = {blank}"),
                &[],
                expect!["pilot.toml, line 2, column 8: must not be empty, and must not begin or end with a space"],
            );
        }
        check(
            "[console]\nname = \"Prod\\u202Euction\"",
            &[],
            expect!["pilot.toml, line 2, column 8: must not contain hidden characters"],
        );
        check(
            "[console]\ncolour = 'pink'",
            &[],
            expect![
                "pilot.toml, line 2, column 10: is not known, expected one of `grey`, `blue`, `green`, `amber`, `red`"
            ],
        );
    }

    #[test]
    fn witnesses_are_read_and_every_fault_of_them_has_its_place() {
        let key = pilot_evidence::cosignature::CosignerKey::generate("w.example/1", &[7; 32]).unwrap().verifier();
        let witness = |url: &str| format!("{{ url = '{url}', key = '{key}' }}");
        let log = |witnesses: &str, required: usize| {
            format!("[log]\nwitnesses = [{witnesses}]\nrequire_witnesses = {required}")
        };
        check(&log(&witness("https://w.example/submit"), 1), &[], expect!["127.0.0.1:7450 sqlite:pilot.db None"]);
        check(
            &log(&witness("https://w.example"), 2),
            &[],
            expect!["pilot.toml: log.require_witnesses: 2 are required, but log.witnesses has 1"],
        );
        check(
            &log(&witness("https://w.example"), 0),
            &[("PILOT_LOG__REQUIRE_WITNESSES", "3")],
            expect!["pilot.toml: log.require_witnesses: 3 are required, but log.witnesses has 1"],
        );
        check(
            &log(&[witness("https://a.example"), witness("https://b.example")].join(", "), 2),
            &[],
            expect!["pilot.toml: log.witnesses[1].key: is given twice; a witness counts once"],
        );
        for wrong in ["w.example", "ftp://w.example", "https://user@w.example", "https://w.example/?x", "https:///x"] {
            check(
                &log(&witness(wrong), 1),
                &[],
                expect![
                    "pilot.toml, line 2, column 22: is not an address that can be used: give it as https://host/prefix, without a user, a query or a fragment"
                ],
            );
        }
        check(
            "[log]\nwitnesses = [{ url = 'https://w.example', key = 'w.example+00000000+AQ==' }]",
            &[],
            expect![
                "pilot.toml, line 2, column 49: is not a witness key: the key has the wrong type: a log signs with Ed25519 (1), a witness with Ed25519 cosignatures (4)"
            ],
        );
    }
}
