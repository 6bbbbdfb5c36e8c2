//! What an endpoint's files contain: its address if that is a secret, and its keys.

use std::sync::Arc;

use pilot_core::leak::LeakGuard;
use pilot_wire::outgoing::{Outgoing, Reach, Target};
use zeroize::Zeroizing;

use crate::config::{Config, Webhook};
use crate::error::StartError;
use crate::secret_line;
use crate::webhook_key::WebhookKey;

/// An endpoint that can be delivered to.
pub struct Endpoint {
    pub target: Target,
    pub reach: Reach,
    pub outgoing: Outgoing,
    /// Each signs.
    pub keys: Arc<[WebhookKey]>,
    /// What the leak guard has to know.
    secrets: Vec<Zeroizing<String>>,
    /// Secret files that others can read although they should not.
    pub warnings: Vec<String>,
}

impl Endpoint {
    pub fn open(config: &Config, webhook: &Webhook) -> Result<Endpoint, StartError> {
        let refused = |what: String| StartError::Refused(format!("webhook `{}`: {what}", webhook.name));
        let (mut secrets, mut warnings, mut keys) = (Vec::new(), Vec::new(), Vec::new());
        let reach = webhook.reach();
        let url = match (&webhook.url_file, &webhook.url) {
            (Some(path), _) => {
                let url = secret_line::read(config, path, &mut warnings).map_err(refused)?;
                secrets.push(url.clone());
                url
            }
            (None, url) => Zeroizing::new(url.clone().unwrap_or_default()),
        };
        let target = Target::parse(&url, &reach).map_err(|error| refused(format!("its address {error}")))?;
        for path in &webhook.secret_files {
            let text = secret_line::read(config, path, &mut warnings).map_err(refused)?;
            let key = WebhookKey::parse(webhook.signing, &text);
            keys.push(key.map_err(|error| refused(format!("{}: {error}", path.display())))?);
            secrets.push(text);
        }
        let outgoing = Outgoing::new(target.is_https(), webhook.ca_file.as_deref());
        let outgoing = outgoing.map_err(|error| refused(error.to_string()))?;
        Ok(Endpoint { target, reach, outgoing, keys: keys.into(), secrets, warnings })
    }

    /// From then on the keys, and an address that is a secret, are found wherever tokens are looked for.
    pub fn make_known(&self, guard: &LeakGuard) {
        self.secrets.iter().for_each(|secret| secret_line::remember(secret, guard));
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use pilot_core::credentials::Credentials;

    use super::*;
    use crate::config::Signing;

    const URL: &str = "https://receiver.example/hooks/T0001/abcdefghijklmnopqrstuvwxyz0123456789/B0002\
                       ?key=9876543210zyxwvutsrqponmlkjihgfedcba&n=7";
    const SEGMENT: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
    const VALUE: &str = "9876543210zyxwvutsrqponmlkjihgfedcba";

    fn open(directory: &Path, mode: u32, url: &str) -> Result<Endpoint, String> {
        let key = WebhookKey::generate(Signing::Ed25519).unwrap();
        for (name, text) in [("url", url), ("key", key.as_str())] {
            fs::write(directory.join(name), format!("{text}\n")).unwrap();
            fs::set_permissions(directory.join(name), Permissions::from_mode(mode)).unwrap();
        }
        let file = directory.join("pilot.toml");
        let text = "profile = 'production'\n[[webhooks]]\nname = 'chat'\nurl_file = 'url'\nsecret_files = ['key']\n";
        fs::write(&file, text).unwrap();
        let config = Config::load(&file, &[]).map_err(|error| error.to_string())?;
        Endpoint::open(&config, &config.webhooks[0]).map_err(|error| error.to_string())
    }

    #[test]
    fn an_address_and_keys_in_files_are_read_and_known_to_the_leak_guard() {
        let directory = tempfile::tempdir().unwrap();
        let endpoint = open(directory.path(), 0o600, URL).unwrap();
        assert_eq!((endpoint.target.shown().as_str(), endpoint.keys.len()), ("receiver.example", 1));
        let guard = LeakGuard::new(Credentials::none(), 7);
        endpoint.make_known(&guard);
        assert!(guard.is_in(SEGMENT) && guard.is_in(VALUE), "also the parts of an address");
        let key = fs::read_to_string(directory.path().join("key")).unwrap();
        let bare = key.trim().trim_start_matches("whsk_");
        for leaked in [URL, URL.trim_start_matches("https://receiver.example"), key.trim(), bare] {
            assert!(guard.is_in(&format!("see {leaked} there")), "{leaked}");
        }
        assert!(!guard.is_in("see https://receiver.example/ there"));
    }

    #[test]
    fn a_file_that_others_can_read_and_an_address_that_is_forbidden_are_refused_without_being_quoted() {
        let directory = tempfile::tempdir().unwrap();
        let refused = |mode, url| open(directory.path(), mode, url).err().unwrap();
        assert!(refused(0o644, URL).contains("chmod 600"));
        let said = refused(0o600, "https://10.0.0.1/hidden");
        assert!(said.contains("webhook `chat`: its address leads to 10.0.0.1") && !said.contains("hidden"), "{said}");
        let said = refused(0o600, "https://user:hidden@receiver.example/");
        assert!(said.contains("must not contain a user") && !said.contains("hidden"), "{said}");
    }
}
