//! The files that open a PostgreSQL database, as a start checks them.

use crate::config::Config;
use crate::error::{StartError, with_cause};
use crate::private_file::{self, FileError};

/// Refuses files that cannot be used, and those that others can write to. Returns the secret files that others can
/// read although they should not.
pub fn check_files(config: &Config) -> Result<Vec<FileError>, StartError> {
    let Some(access) = config.postgres() else { return Ok(Vec::new()) };
    let mut exposed = Vec::new();
    let secrets = [("password_file", &access.password_file), ("client_key", &access.client_key)];
    for (name, path) in secrets {
        let Some(path) = path else { continue };
        let refused = |error| StartError::Refused(format!("store.{name}: {}", with_cause(&error)));
        exposed.extend(private_file::read(path, config.others()).map_err(refused)?.exposed);
    }
    access.check_files()?;
    Ok(exposed)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_password_is_in_a_private_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let check = |profile: &str, mode: u32| {
            let url = "postgres://u@localhost/d";
            let text = format!("profile = '{profile}'\n[store]\nurl = '{url}'\npassword_file = '{}'", path.display());
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let found = check_files(&toml::from_str(&text).unwrap());
            found.map(|exposed| exposed.len()).map_err(|error| error.to_string())
        };
        fs::write(&path, "hunter2\n").unwrap();
        assert_eq!(check("pilot", 0o600), Ok(0));
        assert_eq!(check("production", 0o600), Ok(0));
        assert_eq!(check("pilot", 0o644), Ok(1));
        for (profile, mode) in [("pilot", 0o666), ("production", 0o644)] {
            let refusal = check(profile, mode).unwrap_err();
            assert!(refusal.starts_with("store.password_file: ") && refusal.contains("chmod 600"), "{refusal}");
        }
        fs::write(&path, "hunter2\nhunter3\n").unwrap();
        let refusal = check("pilot", 0o600).unwrap_err();
        assert!(refusal.contains("on one line") && !refusal.contains("hunter"), "{refusal}");
        fs::write(&path, "").unwrap();
        assert!(check("pilot", 0o600).is_err());
    }

    #[test]
    fn what_is_not_there_is_refused_with_its_setting() {
        for name in ["password_file", "ca_file"] {
            let text = format!("[store]\nurl = 'postgres://u@localhost/d'\n{name} = '/nowhere'");
            let refusal = check_files(&toml::from_str(&text).unwrap()).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("store.{name}: /nowhere: cannot be")), "{refusal}");
        }
        assert!(check_files(&Config::default()).unwrap().is_empty());
    }
}
