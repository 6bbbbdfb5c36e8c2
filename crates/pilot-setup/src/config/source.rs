//! The section `[credentials]`: where the credential file comes from, and the role map it is compared with.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use pilot_core::limits::{SOURCE_PATIENCE, SOURCE_PATIENCE_MAX};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What a helper finds of our environment.
const HANDED_ON: [&str; 3] = ["PATH", "HOME", "CREDENTIALS_DIRECTORY"];
const CREDENTIAL_FILE: &str = "credentials.json";
const VAULT_FIELD: &str = "credentials";
const APPROLE_MOUNT: &str = "approle";

#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "CredentialsSection")]
#[schemars(with = "CredentialsSection")]
pub struct Credentials {
    pub source: Source,
    pub role_map: Option<PathBuf>,
    /// No credential may be valid for longer.
    pub lifetime_days_max: Option<u16>,
}

/// Who keeps the credential file. Exactly one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    Systemd(Systemd),
    Exec(Exec),
    Vault(Vault),
}

/// A credential that systemd hands to the service, by `LoadCredential=` or one of its kin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Systemd {
    pub name: String,
    /// Where systemd has put it; nothing when the program was started by someone else.
    pub directory: Option<PathBuf>,
}

/// A program that does something for us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    pub timeout: Duration,
    /// Everything it finds in its environment.
    pub environment: Vec<(String, String)>,
}

/// A field in a key-value store that speaks Vault's protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vault {
    /// Without a slash at its end.
    pub url: String,
    /// As in the API, after `/v1/`.
    pub path: String,
    pub field: String,
    pub namespace: Option<String>,
    pub ca_file: Option<PathBuf>,
    pub login: Login,
    /// For each request.
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    Token { file: PathBuf },
    AppRole { mount: String, role_id: String, secret_id_file: PathBuf },
}

impl Default for Credentials {
    fn default() -> Self {
        Credentials { source: Source::File(CREDENTIAL_FILE.into()), role_map: None, lifetime_days_max: None }
    }
}

impl Credentials {
    pub(super) fn resolve(&mut self, base: &Path) {
        self.role_map = self.role_map.as_ref().map(|path| base.join(path));
        match &mut self.source {
            Source::File(path) => *path = base.join(&*path),
            Source::Systemd(_) | Source::Exec(_) => {}
            Source::Vault(vault) => {
                vault.ca_file = vault.ca_file.as_ref().map(|path| base.join(path));
                match &mut vault.login {
                    Login::Token { file: path } | Login::AppRole { secret_id_file: path, .. } => {
                        *path = base.join(&*path);
                    }
                }
            }
        }
    }

    /// What a source needs to know of the environment, which nobody else reads.
    pub(super) fn look_around(&mut self, environment: &[(String, String)]) {
        match &mut self.source {
            Source::Systemd(systemd) => {
                let found =
                    environment.iter().find(|(name, value)| name == "CREDENTIALS_DIRECTORY" && !value.is_empty());
                systemd.directory = found.map(|(_, value)| value.into());
            }
            Source::Exec(exec) => exec.look_around(environment),
            Source::File(_) | Source::Vault(_) => {}
        }
    }
}

impl Exec {
    pub(super) fn look_around(&mut self, environment: &[(String, String)]) {
        let is_handed_on = |(name, _): &&(String, String)| HANDED_ON.contains(&name.as_str());
        self.environment = environment.iter().filter(is_handed_on).cloned().collect();
    }
}

impl Source {
    /// The file, when it is one that commands may edit.
    pub fn file(&self) -> Option<&Path> {
        match self {
            Source::File(path) => Some(path),
            _ => None,
        }
    }

    /// The key or section that names it.
    pub const fn section(&self) -> &'static str {
        match self {
            Source::File(_) => "credentials.file",
            Source::Systemd(_) => "credentials.systemd",
            Source::Exec(_) => "credentials.exec",
            Source::Vault(_) => "credentials.vault",
        }
    }
}

/// As the place of a fault.
impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(formatter, "{}", path.display()),
            Source::Systemd(systemd) => write!(formatter, "the systemd credential `{}`", systemd.name),
            Source::Exec(exec) => write!(formatter, "the output of {}", exec.program.display()),
            Source::Vault(vault) => write!(formatter, "`{}` in {} at {}", vault.field, vault.path, vault.url),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CredentialsSection {
    /// The credential file. It is read once, at start.
    #[schemars(extend("format" = "path", "default" = CREDENTIAL_FILE))]
    file: Option<PathBuf>,
    /// The approved list of actors and roles. If set, every credential must agree with it; required in production and with
    /// `oauth` or `mutual_tls` as identity mechanism.
    #[schemars(extend("format" = "path"))]
    role_map: Option<PathBuf>,
    /// The longest time, in days, that a credential in the file may be valid, from `not_before` to `expires_at`: 1 to 3650.
    /// If set, each credential needs both.
    #[schemars(range(min = 1, max = 3650))]
    lifetime_days_max: Option<u16>,
    /// systemd passes the credential file to the service, by `LoadCredential=` or a related option.
    systemd: Option<SystemdSection>,
    /// A program prints the credential file on standard output.
    exec: Option<ExecSection>,
    /// The credential file is a field in Vault, OpenBao or a compatible server. Set `token_file` or
    /// `[credentials.vault.approle]`, but not both.
    vault: Option<VaultSection>,
}

impl TryFrom<CredentialsSection> for Credentials {
    type Error = &'static str;

    fn try_from(section: CredentialsSection) -> Result<Credentials, &'static str> {
        let CredentialsSection { file, role_map, lifetime_days_max, systemd, exec, vault } = section;
        if lifetime_days_max.is_some_and(|days| !(1..=3650).contains(&days)) {
            return Err("[credentials] lifetime_days_max must be from 1 to 3650");
        }
        let source = match (file, systemd, exec, vault) {
            (None, None, None, None) => Credentials::default().source,
            (Some(file), None, None, None) => Source::File(file),
            (None, Some(systemd), None, None) => Source::Systemd(systemd.into()),
            (None, None, Some(exec), None) => Source::Exec(exec.into()),
            (None, None, None, Some(vault)) => Source::Vault(vault.try_into()?),
            _ => return Err("[credentials] has more than one of file, systemd, exec and vault; choose one"),
        };
        Ok(Credentials { source, role_map, lifetime_days_max })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SystemdSection {
    /// The name of the systemd credential: NAME in `LoadCredential=NAME:PATH`.
    #[serde(deserialize_with = "credential_name")]
    name: String,
}

impl From<SystemdSection> for Systemd {
    fn from(section: SystemdSection) -> Systemd {
        Systemd { name: section.name, directory: None }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExecSection {
    /// The full path of the program, followed by its arguments. It is not run by a shell.
    #[serde(deserialize_with = "command")]
    #[schemars(with = "Vec<String>")]
    command: (PathBuf, Vec<String>),
    /// How long the program may run.
    #[serde(default)]
    timeout_seconds: Seconds,
}

impl From<ExecSection> for Exec {
    fn from(section: ExecSection) -> Exec {
        let (program, arguments) = section.command;
        let Seconds(timeout) = section.timeout_seconds;
        Exec { program, arguments, timeout, environment: Vec::new() }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct VaultSection {
    /// The address of the server, such as `https://host:8200`.
    #[serde(deserialize_with = "vault_url")]
    #[schemars(extend("format" = "https-uri"))]
    url: String,
    /// The path of the secret, as it follows `/v1/` in the API: `secret/data/pilot` with version 2 of the key-value store,
    /// `secret/pilot` with version 1.
    #[serde(deserialize_with = "vault_path")]
    path: String,
    /// The field that contains the credential file, as text or as a JSON object.
    #[schemars(extend("default" = VAULT_FIELD))]
    field: Option<Word>,
    /// The namespace of the secret.
    namespace: Option<Word>,
    /// Certificate authorities to trust for the server, in addition to the system's. A PEM file.
    #[schemars(extend("format" = "path"))]
    ca_file: Option<PathBuf>,
    /// A file with a token for the server: one line, mode 0600.
    #[schemars(extend("format" = "path"))]
    token_file: Option<PathBuf>,
    /// The service signs in with an AppRole.
    approle: Option<AppRoleSection>,
    /// How long each request may take.
    #[serde(default)]
    timeout_seconds: Seconds,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppRoleSection {
    /// The id of the role.
    role_id: Word,
    /// A file with the secret id: one line, mode 0600.
    #[schemars(extend("format" = "path"))]
    secret_id_file: PathBuf,
    /// Where the auth method is mounted, without `auth/`.
    #[schemars(extend("default" = APPROLE_MOUNT))]
    mount: Option<Mount>,
}

impl TryFrom<VaultSection> for Vault {
    type Error = &'static str;

    fn try_from(section: VaultSection) -> Result<Vault, &'static str> {
        let login = match (section.token_file, section.approle) {
            (Some(file), None) => Login::Token { file },
            (None, Some(AppRoleSection { role_id, secret_id_file, mount })) => Login::AppRole {
                mount: mount.map_or_else(|| APPROLE_MOUNT.into(), |Mount(mount)| mount),
                role_id: role_id.0,
                secret_id_file,
            },
            (None, None) => {
                return Err("[credentials.vault] needs token_file, or a section [credentials.vault.approle]");
            }
            (Some(_), Some(_)) => {
                return Err("[credentials.vault] has both token_file and approle; choose one");
            }
        };
        Ok(Vault {
            url: section.url,
            path: section.path,
            field: section.field.map_or_else(|| VAULT_FIELD.into(), |Word(field)| field),
            namespace: section.namespace.map(|Word(namespace)| namespace),
            ca_file: section.ca_file,
            login,
            timeout: section.timeout_seconds.0,
        })
    }
}

/// A file's name, as systemd wants it: no directory of ours or of anyone else's can be named by it.
fn credential_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_usable = (1..=255).contains(&text.len())
        && !matches!(text.as_str(), "." | "..")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:".contains(&byte));
    let wrong = "is not the name of a systemd credential: give the NAME in LoadCredential=NAME:PATH, without a slash";
    if is_usable { Ok(text) } else { Err(D::Error::custom(wrong)) }
}

pub(super) fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(PathBuf, Vec<String>), D::Error> {
    let mut words = Vec::<String>::deserialize(deserializer)?.into_iter();
    let program = words.next().map(PathBuf::from).filter(|program| program.is_absolute());
    let wrong =
        "must begin with the full path of a program, such as \"/usr/local/bin/fetch\"; it is not run by a shell";
    let program = program.ok_or_else(|| D::Error::custom(wrong))?;
    Ok((program, words.collect()))
}

struct Seconds(Duration);

impl JsonSchema for Seconds {
    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": SOURCE_PATIENCE_MAX.as_secs() })
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0.as_secs())
    }
}

impl Default for Seconds {
    fn default() -> Self {
        Seconds(SOURCE_PATIENCE)
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        let seconds = u64::try_from(i64::deserialize(deserializer)?).unwrap_or(0);
        let most = SOURCE_PATIENCE_MAX.as_secs();
        if (1..=most).contains(&seconds) {
            return Ok(Seconds(Duration::from_secs(seconds)));
        }
        Err(D::Error::custom(format!("must be a whole number from 1 to {most}")))
    }
}

fn vault_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let uri: Option<Uri> = text.parse().ok();
    let host_is_here = |uri: &Uri| {
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
    };
    let is_usable = |uri: &Uri| {
        let is_plain = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        is_plain && uri.query().is_none() && !text.contains('#')
    };
    let wrong = match uri {
        Some(uri) if is_usable(&uri) && uri.scheme_str() == Some("https") => None,
        Some(uri) if is_usable(&uri) && uri.scheme_str() == Some("http") && host_is_here(&uri) => None,
        Some(uri) if uri.scheme_str() == Some("http") => Some(
            "must begin with https://, because over plain HTTP anyone could read and change the credentials; http:// is allowed only for this machine",
        ),
        _ => Some(
            "is not the address of a secret manager: give it as https://host:8200, without a user, a query or a fragment",
        ),
    };
    match wrong {
        None => Ok(text.trim_end_matches('/').to_owned()),
        Some(wrong) => Err(D::Error::custom(wrong)),
    }
}

/// Segments of letters, digits and a few signs: nothing that a URL would read as something else.
fn is_path(text: &str) -> bool {
    let is_segment = |segment: &str| {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~@:+=".contains(&byte);
        !segment.is_empty() && !matches!(segment, "." | "..") && segment.bytes().all(is_plain)
    };
    text.len() <= 512 && text.split('/').all(is_segment)
}

fn vault_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let wrong = "is not the path of a secret: give what follows /v1/ in the API, such as \"secret/data/pilot\" (KV version 2) or \"secret/pilot\" (version 1)";
    if is_path(&text) && !text.starts_with("v1/") { Ok(text) } else { Err(D::Error::custom(wrong)) }
}

#[derive(JsonSchema)]
struct Mount(String);

impl<'de> Deserialize<'de> for Mount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mount, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = "is not the mount of an auth method: give it without auth/ before it or a slash after it, such as \"approle\"";
        if is_path(&text) && !text.starts_with("auth/") { Ok(Mount(text)) } else { Err(D::Error::custom(wrong)) }
    }
}

#[derive(JsonSchema)]
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_usable = (1..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_usable { Ok(Word(text)) } else { Err(D::Error::custom("must be 1 to 256 visible ASCII characters")) }
    }
}

#[cfg(test)]
mod tests;
