//! Why an operator did something to the ledger itself. The reason is stored there permanently, so it is checked first.

use pilot_core::leak::LeakGuard;
use pilot_setup::config::Config;
use pilot_setup::credentials;

use crate::exit::Failure;

const CHARS_MAX: usize = 1_000;

/// `option` is the option with which the reason was given.
pub(crate) fn check(option: &str, reason: &str, config: &Config) -> Result<(), Failure> {
    if reason.trim().is_empty() || reason.chars().count() > CHARS_MAX {
        return Err(Failure::Usage(format!("{option}: say why, in 1 to 1,000 characters")));
    }
    let guard = match credentials::load_credentials(config) {
        Ok((credentials, _)) => credentials::leak_guard(config, &credentials)?,
        Err(_) => LeakGuard::for_generated_tokens(),
    };
    if guard.is_in(reason) {
        let remedy = "the reason contains a clear token; leave it out, and have the token rotated";
        return Err(Failure::Refused(format!("{option}: {remedy}")));
    }
    Ok(())
}
