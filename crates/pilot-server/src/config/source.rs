//! The section `[credentials]`: where the credential file comes from, and the role map it is held against.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

const TIMEOUT_SECONDS: u64 = 10;
/// A start that takes longer is taken for one that hangs, by people and by supervisors.
const TIMEOUT_SECONDS_MAX: u64 = 60;
/// What a helper finds of our environment.
const HANDED_ON: [&str; 3] = ["PATH", "HOME", "CREDENTIALS_DIRECTORY"];

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "CredentialsSection")]
pub struct Credentials {
    pub source: Source,
    pub role_map: Option<PathBuf>,
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

/// A program that prints the file.
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
        Credentials { source: Source::File("credentials.json".into()), role_map: None }
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
            Source::Exec(exec) => {
                let is_handed_on = |(name, _): &&(String, String)| HANDED_ON.contains(&name.as_str());
                exec.environment = environment.iter().filter(is_handed_on).cloned().collect();
            }
            Source::File(_) | Source::Vault(_) => {}
        }
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

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CredentialsSection {
    file: Option<PathBuf>,
    role_map: Option<PathBuf>,
    systemd: Option<SystemdSection>,
    exec: Option<ExecSection>,
    vault: Option<VaultSection>,
}

impl TryFrom<CredentialsSection> for Credentials {
    type Error = &'static str;

    fn try_from(section: CredentialsSection) -> Result<Credentials, &'static str> {
        let CredentialsSection { file, role_map, systemd, exec, vault } = section;
        let source = match (file, systemd, exec, vault) {
            (None, None, None, None) => Credentials::default().source,
            (Some(file), None, None, None) => Source::File(file),
            (None, Some(systemd), None, None) => Source::Systemd(systemd.into()),
            (None, None, Some(exec), None) => Source::Exec(exec.into()),
            (None, None, None, Some(vault)) => Source::Vault(vault.try_into()?),
            _ => return Err("[credentials] has more than one of file, systemd, exec and vault; one keeps the file"),
        };
        Ok(Credentials { source, role_map })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SystemdSection {
    #[serde(deserialize_with = "credential_name")]
    name: String,
}

impl From<SystemdSection> for Systemd {
    fn from(section: SystemdSection) -> Systemd {
        Systemd { name: section.name, directory: None }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExecSection {
    #[serde(deserialize_with = "command")]
    command: (PathBuf, Vec<String>),
    timeout_seconds: Option<Seconds>,
}

impl From<ExecSection> for Exec {
    fn from(section: ExecSection) -> Exec {
        let (program, arguments) = section.command;
        let Seconds(timeout) = section.timeout_seconds.unwrap_or_default();
        Exec { program, arguments, timeout, environment: Vec::new() }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VaultSection {
    #[serde(deserialize_with = "vault_url")]
    url: String,
    #[serde(deserialize_with = "vault_path")]
    path: String,
    field: Option<Word>,
    namespace: Option<Word>,
    ca_file: Option<PathBuf>,
    token_file: Option<PathBuf>,
    approle: Option<AppRoleSection>,
    timeout_seconds: Option<Seconds>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AppRoleSection {
    role_id: Word,
    secret_id_file: PathBuf,
    mount: Option<Mount>,
}

impl TryFrom<VaultSection> for Vault {
    type Error = &'static str;

    fn try_from(section: VaultSection) -> Result<Vault, &'static str> {
        let login = match (section.token_file, section.approle) {
            (Some(file), None) => Login::Token { file },
            (None, Some(AppRoleSection { role_id, secret_id_file, mount })) => Login::AppRole {
                mount: mount.map_or_else(|| "approle".into(), |Mount(mount)| mount),
                role_id: role_id.0,
                secret_id_file,
            },
            (None, None) => {
                return Err("[credentials.vault] needs token_file, or a section [credentials.vault.approle]");
            }
            (Some(_), Some(_)) => {
                return Err("[credentials.vault] has both token_file and approle; it signs in one way");
            }
        };
        Ok(Vault {
            url: section.url,
            path: section.path,
            field: section.field.map_or_else(|| "credentials".into(), |Word(field)| field),
            namespace: section.namespace.map(|Word(namespace)| namespace),
            ca_file: section.ca_file,
            login,
            timeout: section.timeout_seconds.unwrap_or_default().0,
        })
    }
}

/// A file's name, as systemd wants it: no directory of ours or of anyone else's can be named by it.
fn credential_name<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_usable = (1..=255).contains(&text.len())
        && !matches!(text.as_str(), "." | "..")
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:".contains(&byte));
    let wrong = "is no name of a systemd credential: give the one in LoadCredential=NAME:PATH, without a slash";
    if is_usable { Ok(text) } else { Err(D::Error::custom(wrong)) }
}

fn command<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(PathBuf, Vec<String>), D::Error> {
    let mut words = Vec::<String>::deserialize(deserializer)?.into_iter();
    let program = words.next().map(PathBuf::from).filter(|program| program.is_absolute());
    let wrong = "must begin with a program's whole path, such as \"/usr/local/bin/fetch\"; no shell reads it";
    let program = program.ok_or_else(|| D::Error::custom(wrong))?;
    Ok((program, words.collect()))
}

struct Seconds(Duration);

impl Default for Seconds {
    fn default() -> Self {
        Seconds(Duration::from_secs(TIMEOUT_SECONDS))
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Seconds, D::Error> {
        let seconds = u64::try_from(i64::deserialize(deserializer)?).unwrap_or(0);
        if (1..=TIMEOUT_SECONDS_MAX).contains(&seconds) {
            return Ok(Seconds(Duration::from_secs(seconds)));
        }
        Err(D::Error::custom(format!("must be a whole number from 1 to {TIMEOUT_SECONDS_MAX}")))
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
            "must begin with https://: on a plain wire anyone could read and change the credentials; http:// is for this machine alone",
        ),
        _ => Some(
            "is no address of a secret manager: give it as https://host:8200, without a user, a query or a fragment",
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
    let wrong = "is no path of a secret: give it as in the API after /v1/, such as \"secret/data/pilot\" (KV version 2) or \"secret/pilot\" (version 1)";
    if is_path(&text) && !text.starts_with("v1/") { Ok(text) } else { Err(D::Error::custom(wrong)) }
}

struct Mount(String);

impl<'de> Deserialize<'de> for Mount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Mount, D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong =
            "is no mount of an auth method: give it without auth/ before it and a slash behind, such as \"approle\"";
        if is_path(&text) && !text.starts_with("auth/") { Ok(Mount(text)) } else { Err(D::Error::custom(wrong)) }
    }
}

struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        let text = String::deserialize(deserializer)?;
        let is_usable = (1..=256).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if is_usable { Ok(Word(text)) } else { Err(D::Error::custom("must be 1 to 256 visible ASCII characters")) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use expect_test::{Expect, expect};

    #[expect(clippy::needless_pass_by_value, reason = "expect![] reads best as the last argument")]
    fn check(text: &str, environment: &[(&str, &str)], expected: Expect) {
        let environment: Vec<_> =
            environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let verdict = match Config::parse(Path::new("pilot.toml"), text, &environment) {
            Ok(mut config) => {
                config.resolve(Path::new("/etc/pilot"));
                config.credentials.look_around(&environment);
                format!("{:?}", config.credentials.source)
            }
            Err(error) => error.to_string(),
        };
        expected.assert_eq(&verdict);
    }

    const TOKEN: &str = "url = 'https://v:8200/'\npath = 'secret/pilot'\ntoken_file = 't'";

    #[test]
    fn a_file_is_the_default_and_any_one_source_may_stand_in_its_place() {
        check("", &[], expect![[r#"File("/etc/pilot/credentials.json")"#]]);
        check("[credentials]\nfile = 'c.json'", &[], expect![[r#"File("/etc/pilot/c.json")"#]]);
        check(
            "[credentials.systemd]\nname = 'pilot-credentials'",
            &[("CREDENTIALS_DIRECTORY", "/run/credentials/pilot.service")],
            expect![[
                r#"Systemd(Systemd { name: "pilot-credentials", directory: Some("/run/credentials/pilot.service") })"#
            ]],
        );
        check(
            "[credentials.systemd]\nname = 'pilot-credentials'",
            &[("CREDENTIALS_DIRECTORY", "")],
            expect![[r#"Systemd(Systemd { name: "pilot-credentials", directory: None })"#]],
        );
        check(
            "[credentials.exec]\ncommand = ['/bin/fetch', '--env', 'prod']",
            &[("PATH", "/bin"), ("HOME", "/root"), ("AWS_SECRET_ACCESS_KEY", "x"), ("PILOT_LISTEN", "127.0.0.1:1")],
            expect![[
                r#"Exec(Exec { program: "/bin/fetch", arguments: ["--env", "prod"], timeout: 10s, environment: [("PATH", "/bin"), ("HOME", "/root")] })"#
            ]],
        );
        check(
            &format!("[credentials.vault]\n{TOKEN}"),
            &[],
            expect![[
                r#"Vault(Vault { url: "https://v:8200", path: "secret/pilot", field: "credentials", namespace: None, ca_file: None, login: Token { file: "/etc/pilot/t" }, timeout: 10s })"#
            ]],
        );
        check(
            "[credentials.vault]\nurl = 'http://127.0.0.1:8200'\npath = 'kv/data/pilot'\nfield = 'file'\nnamespace = 'team/a'\nca_file = 'ca.pem'\ntimeout_seconds = 2\n[credentials.vault.approle]\nrole_id = 'r'\nsecret_id_file = '/s'\nmount = 'machines'",
            &[("PILOT_CREDENTIALS__VAULT__TIMEOUT_SECONDS", "3")],
            expect![[
                r#"Vault(Vault { url: "http://127.0.0.1:8200", path: "kv/data/pilot", field: "file", namespace: Some("team/a"), ca_file: Some("/etc/pilot/ca.pem"), login: AppRole { mount: "machines", role_id: "r", secret_id_file: "/s" }, timeout: 3s })"#
            ]],
        );
    }

    #[test]
    fn two_sources_at_once_are_refused_wherever_they_are_named() {
        check(
            "[credentials]\nfile = 'c'\n[credentials.systemd]\nname = 'n'",
            &[],
            expect![
                "pilot.toml, line 1, column 1: [credentials] has more than one of file, systemd, exec and vault; one keeps the file"
            ],
        );
        check(
            &format!("[credentials.exec]\ncommand = ['/f']\n[credentials.vault]\n{TOKEN}"),
            &[],
            expect![
                "pilot.toml, line 1, column 2: [credentials] has more than one of file, systemd, exec and vault; one keeps the file"
            ],
        );
        check(
            "[credentials.systemd]\nname = 'n'",
            &[("PILOT_CREDENTIALS__FILE", "c")],
            expect![
                "the environment overrides the configuration with a faulty value: [credentials] has more than one of file, systemd, exec and vault; one keeps the file (set by PILOT_CREDENTIALS__FILE)"
            ],
        );
    }

    #[test]
    fn a_fault_in_a_source_has_its_line_and_a_remedy() {
        check(
            "[credentials.vault]\nurl = 'https://v'\npath = 'a/b'",
            &[],
            expect![
                "pilot.toml, line 1, column 2: [credentials.vault] needs token_file, or a section [credentials.vault.approle]"
            ],
        );
        check(
            &format!("[credentials.vault]\n{TOKEN}\n[credentials.vault.approle]\nrole_id = 'r'\nsecret_id_file = 's'"),
            &[],
            expect![
                "pilot.toml, line 1, column 2: [credentials.vault] has both token_file and approle; it signs in one way"
            ],
        );
        check(
            &format!("[credentials.vault]\n{TOKEN}\ntoken = 'x'"),
            &[],
            expect![
                "pilot.toml, line 5, column 1: unknown field `token`, expected one of `url`, `path`, `field`, `namespace`, `ca_file`, `token_file`, `approle`, `timeout_seconds`"
            ],
        );
        check(
            "[credentials.vault.approle]\nrole_id = 'r'\nsecret_id = 's'",
            &[],
            expect![
                "pilot.toml, line 3, column 1: unknown field `secret_id`, expected one of `role_id`, `secret_id_file`, `mount`"
            ],
        );
        check(
            "[credentials.exec]\ncommand = ['fetch']",
            &[],
            expect![[
                r#"pilot.toml, line 2, column 11: must begin with a program's whole path, such as "/usr/local/bin/fetch"; no shell reads it"#
            ]],
        );
        check(
            "[credentials.exec]\ncommand = []",
            &[],
            expect![[
                r#"pilot.toml, line 2, column 11: must begin with a program's whole path, such as "/usr/local/bin/fetch"; no shell reads it"#
            ]],
        );
        check(
            "[credentials.exec]\ncommand = '/bin/fetch'",
            &[],
            expect!["pilot.toml, line 2, column 11: is of the wrong kind, expected a sequence"],
        );
        check(
            "[credentials.exec]\ncommand = ['/f']\ntimeout_seconds = 61",
            &[],
            expect!["pilot.toml, line 3, column 19: must be a whole number from 1 to 60"],
        );
        for name in ["", "a/b", "..", "a b"] {
            let text = format!("[credentials.systemd]\nname = '{name}'");
            check(
                &text,
                &[],
                expect![
                    "pilot.toml, line 2, column 8: is no name of a systemd credential: give the one in LoadCredential=NAME:PATH, without a slash"
                ],
            );
        }
    }

    #[test]
    fn a_secret_manager_is_asked_over_tls_unless_it_is_on_this_machine() {
        let at = |url: &str| format!("[credentials.vault]\nurl = '{url}'\npath = 'a/b'\ntoken_file = 't'");
        for here in ["http://localhost:8200", "http://127.0.0.1:8200", "http://[::1]:8200", "https://v.example/vault"] {
            assert!(Config::parse(Path::new("pilot.toml"), &at(here), &[]).is_ok(), "{here}");
        }
        check(
            &at("http://v.example:8200"),
            &[],
            expect![
                "pilot.toml, line 2, column 7: must begin with https://: on a plain wire anyone could read and change the credentials; http:// is for this machine alone"
            ],
        );
        for wrong in
            ["v.example", "ftp://v.example", "https://user:pw@v.example", "https://v.example/?a", "https://v/#a"]
        {
            check(
                &at(wrong),
                &[],
                expect![
                    "pilot.toml, line 2, column 7: is no address of a secret manager: give it as https://host:8200, without a user, a query or a fragment"
                ],
            );
        }
    }

    #[test]
    fn a_path_holds_nothing_that_a_url_would_read_otherwise() {
        let at = |path: &str| format!("[credentials.vault]\nurl = 'https://v'\npath = '{path}'\ntoken_file = 't'");
        for path in ["", "/secret/pilot", "secret/", "secret/../sys", "v1/secret/pilot", "a?b", "a%2fb", "a b", "a#b"] {
            check(
                &at(path),
                &[],
                expect![[
                    r#"pilot.toml, line 3, column 8: is no path of a secret: give it as in the API after /v1/, such as "secret/data/pilot" (KV version 2) or "secret/pilot" (version 1)"#
                ]],
            );
        }
    }
}
