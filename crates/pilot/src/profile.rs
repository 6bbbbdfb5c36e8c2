//! Profiles: the services a person works with, and where the token for each of them comes from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use pilot_setup::config::read_strictly;
use pilot_setup::private_file::{self, FileError, Others};
use serde::Deserialize;

use crate::environment::Environment;
use crate::exit::Failure;

pub(crate) mod helper;
pub(crate) mod kept;
pub(crate) mod keyring;

/// `PILOT_PROFILE` already means something else: it overrides `profile` in the service's configuration.
pub(crate) const VARIABLE: &str = "PILOT_CLIENT_PROFILE";

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct Written {
    default: Option<String>,
    #[serde(default)]
    profile: BTreeMap<String, WrittenProfile>,
}

#[derive(Deserialize, Clone)]
#[serde(deny_unknown_fields)]
struct WrittenProfile {
    url: String,
    ca_file: Option<PathBuf>,
    client_cert: Option<PathBuf>,
    client_key: Option<PathBuf>,
    token_file: Option<PathBuf>,
    token_command: Option<Vec<String>>,
    keyring: Option<Ring>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "snake_case")]
enum Ring {
    Session,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Profile {
    pub name: String,
    pub url: String,
    pub ca_file: Option<PathBuf>,
    /// A certificate and its key.
    pub pair: Option<(PathBuf, PathBuf)>,
    pub token: Option<TokenSource>,
}

/// Where a profile's token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TokenSource {
    File(PathBuf),
    /// A program and its arguments; no shell reads them.
    Command(Vec<String>),
    /// The kernel's session keyring.
    Keyring,
}

impl TokenSource {
    pub(crate) const fn in_words(&self) -> &'static str {
        match self {
            TokenSource::File(_) => "a file",
            TokenSource::Command(_) => "a command",
            TokenSource::Keyring => "the session keyring",
        }
    }
}

/// Every profile of this person.
#[derive(Debug, Default)]
pub(crate) struct Profiles {
    /// None if no directory for settings is known.
    pub path: Option<PathBuf>,
    pub default: Option<String>,
    pub all: Vec<Profile>,
}

impl Profiles {
    /// Empty if there is no such file.
    pub(crate) fn read(environment: &Environment) -> Result<Profiles, Failure> {
        let Some(path) = path(environment) else { return Ok(Profiles::default()) };
        let bytes = match private_file::read(&path, Others::MayNothing) {
            Ok(file) => file.bytes,
            Err(FileError::Open { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Profiles { path: Some(path), ..Profiles::default() });
            }
            Err(error @ (FileError::Open { .. } | FileError::Read { .. })) => {
                return Err(Failure::Environment(error.to_string()));
            }
            Err(error) => return Err(Failure::Usage(error.to_string())),
        };
        let text =
            String::from_utf8(bytes).map_err(|_| Failure::Usage(format!("{}: is not UTF-8 text", path.display())))?;
        Profiles::parse(&path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Profiles, Failure> {
        let place = path.display();
        let written: Written = read_strictly(text).map_err(|faults| {
            let lines: Vec<_> = faults.iter().map(|fault| format!("{place}: {fault}")).collect();
            Failure::Usage(lines.join("\n"))
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let all = written.profile.into_iter().map(|(name, written)| {
            written.checked(name.clone(), directory).map_err(|why| format!("{place}: profile {name}: {why}"))
        });
        let all: Vec<Profile> = all.collect::<Result<_, _>>().map_err(Failure::Usage)?;
        let profiles = Profiles { path: Some(path.to_owned()), default: written.default, all };
        if let Some(name) = profiles.default.as_deref() {
            profiles.find(name, "default")?;
        }
        Ok(profiles)
    }

    /// `by` says who asked for it.
    fn find(&self, name: &str, by: &str) -> Result<&Profile, Failure> {
        let found = self.all.iter().find(|profile| profile.name == name);
        found.ok_or_else(|| {
            let place = self.path.as_ref().map_or("profiles.toml".into(), |path| path.display().to_string());
            let known: Vec<_> = self.all.iter().map(|profile| &*profile.name).collect();
            let known =
                if known.is_empty() { "it has no profiles".into() } else { format!("it has {}", known.join(", ")) };
            Failure::Usage(format!("{by}: {place} has no profile with this name; {known}"))
        })
    }

    /// The profile that was asked for, or the default one; `true` if it was named on the command line.
    pub(crate) fn chosen(
        &self,
        argument: Option<&str>,
        environment: &Environment,
    ) -> Result<Option<(&Profile, bool)>, Failure> {
        match (argument, environment.get(VARIABLE), self.default.as_deref()) {
            (Some(name), ..) => self.find(name, "--profile").map(|profile| Some((profile, true))),
            (None, Some(name), _) => self.find(name, VARIABLE).map(|profile| Some((profile, false))),
            (None, None, Some(name)) => self.find(name, "default").map(|profile| Some((profile, false))),
            (None, None, None) => Ok(None),
        }
    }
}

/// `$XDG_CONFIG_HOME/pilot/profiles.toml`.
fn path(environment: &Environment) -> Option<PathBuf> {
    Some(environment.directory("XDG_CONFIG_HOME", ".config")?.join("pilot/profiles.toml"))
}

impl WrittenProfile {
    fn checked(self, name: String, directory: &Path) -> Result<Profile, &'static str> {
        let WrittenProfile { url, ca_file, client_cert, client_key, token_file, token_command, keyring } = self;
        if name.is_empty()
            || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
        {
            return Err("a name has letters, digits and - _ . only");
        }
        let below = |path: Option<PathBuf>| path.map(|path| directory.join(path));
        let pair = match (below(client_cert), below(client_key)) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return Err("client_cert and client_key go together"),
        };
        if token_command.as_ref().is_some_and(Vec::is_empty) {
            return Err("token_command needs a program: token_command = [\"pass\", \"show\", \"pilot\"]");
        }
        let token = match (below(token_file), token_command, keyring) {
            (None, None, None) => None,
            (Some(path), None, None) => Some(TokenSource::File(path)),
            (None, Some(command), None) => Some(TokenSource::Command(command)),
            (None, None, Some(Ring::Session)) => Some(TokenSource::Keyring),
            _ => return Err("token_file, token_command and keyring exclude each other; keep one"),
        };
        Ok(Profile { name, url, ca_file: below(ca_file), pair, token })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(text: &str, words: &[&str]) {
        let Err(Failure::Usage(said)) = Profiles::parse(Path::new("/c/profiles.toml"), text) else { panic!("{text}") };
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(!said.contains("sesame"), "{said}");
    }

    #[test]
    fn a_fault_is_named_with_its_line_and_never_with_a_value() {
        refused("[profile.work]\nurl = 'https://a'\ntoken = 'open-sesame'\n", &["line 3", "token"]);
        refused("[profile.work]\nurl = 'https://a'\nkeyring = 'open-sesame'\n", &["line 3", "session"]);
        refused("[profile.work]\nurl = 'https://a'\ntoken_command = 'open-sesame'\n", &["line 3"]);
        refused("[profile.work]\n", &["line 1", "url"]);
        refused("default = 'home'\n[profile.work]\nurl = 'https://a'\n", &["default", "it has work"]);
        refused("[profile.work]\nurl = 'https://a'\ntoken_file = 'a'\nkeyring = 'session'\n", &["exclude each other"]);
        refused("[profile.work]\nurl = 'https://a'\nclient_key = 'a'\n", &["go together"]);
        refused("[profile.work]\nurl = 'https://a'\ntoken_command = []\n", &["needs a program"]);
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let text = "[profile.work]\nurl = 'https://a'\ntoken_file = 'token'\nca_file = '/etc/ca.pem'\n";
        let profiles = Profiles::parse(Path::new("/c/profiles.toml"), text).unwrap();
        let [work] = profiles.all.as_slice() else { panic!("{profiles:?}") };
        assert_eq!(work.token, Some(TokenSource::File("/c/token".into())));
        assert_eq!(work.ca_file, Some("/etc/ca.pem".into()));
    }
}
