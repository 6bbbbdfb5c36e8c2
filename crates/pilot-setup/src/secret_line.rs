//! Secrets that are one line of a private file: addresses of receivers and chats, keys, the password of a mail account.

use std::path::{Path, PathBuf};

use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use zeroize::Zeroizing;

use crate::config::Config;
use crate::error::with_cause;
use crate::private_file;

/// Adds to `warnings` if others can read the file although they should not.
pub fn read(config: &Config, path: &Path, warnings: &mut Vec<String>) -> Result<Zeroizing<String>, String> {
    let file = private_file::read(path, config.others()).map_err(|error| with_cause(&error))?;
    warnings.extend(file.exposed.map(|exposed| exposed.to_string()));
    let bytes = Zeroizing::new(file.bytes);
    let text = std::str::from_utf8(&bytes).map_err(|_| format!("{}: is not text", path.display()))?;
    Ok(Zeroizing::new(text.trim().to_owned()))
}

/// All of it, and the parts that are a secret by themselves if they are long enough for the guard: a key without its
/// prefix; of an address, the path, each segment of it, and each value of the query.
pub fn remember(secret: &str, guard: &LeakGuard) {
    let address = secret.split_once("://").map(|(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let inner = address.or_else(|| secret.split_once('_').map(|(_, key)| key));
    let parts = address.unwrap_or_default().split(['/', '?', '&', '=']);
    for text in [Some(secret), inner].into_iter().flatten().chain(parts) {
        guard.remember(text.as_bytes(), Digest::of(text.as_bytes()));
    }
}

/// Makes the secrets of every webhook and every notice known, even of one that cannot work. Says what could not be read.
pub fn make_all_known(config: &Config, guard: &LeakGuard) -> Vec<String> {
    let of_webhooks = config.webhooks.iter().flat_map(|webhook| webhook.url_file.iter().chain(&webhook.secret_files));
    let of_notices = config.notices.iter().flat_map(|notice| notice.url_file.iter().chain(&notice.password_file));
    let make_known = |path: &PathBuf| match read(config, path, &mut Vec::new()) {
        Ok(secret) => {
            remember(&secret, guard);
            None
        }
        Err(error) => Some(error),
    };
    of_webhooks.chain(of_notices).filter_map(make_known).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use pilot_core::credentials::Credentials;

    use super::*;

    const SECTIONS: &str = "contacts_file = 'c'\n\
        [[webhooks]]\nname = 'siem'\nurl_file = 'siem'\nsecret_files = ['missing']\n\
        [[notices]]\nname = 'ops'\nkind = 'slack'\nurl_file = 'ops'\n\
        [[notices]]\nname = 'mail'\nkind = 'mail'\nserver = 's'\nfrom = 'p@example.com'\nuser = 'p'\npassword_file = 'password'\n";

    #[test]
    fn secrets_of_webhooks_and_notices_are_known_even_where_one_cannot_work() {
        let directory = tempfile::tempdir().unwrap();
        let secrets = [
            "abcdefghijklmnopqrstuvwxyz0123456789",
            "bcdefghijklmnopqrstuvwxyz0123456789a",
            "a-password-of-more-than-32-characters",
        ];
        let [siem, ops, password] = secrets;
        let write = |name: &str, text: String| {
            fs::write(directory.path().join(name), text).unwrap();
            fs::set_permissions(directory.path().join(name), Permissions::from_mode(0o600)).unwrap();
        };
        write("siem", format!("https://10.0.0.1/{siem}\n"));
        write("ops", format!("https://chat.example/services/T0/{ops}\n"));
        write("password", format!("{password}\n"));
        write("pilot.toml", SECTIONS.to_owned());
        let config = Config::load(&directory.path().join("pilot.toml"), &[]).unwrap();
        let guard = LeakGuard::new(Credentials::none(), 7);
        let unread = make_all_known(&config, &guard);
        for secret in secrets {
            assert!(guard.is_in(&format!("see {secret} there")), "{secret}");
        }
        assert!(matches!(&unread[..], [one] if one.contains("missing")), "{unread:?}");
    }
}
