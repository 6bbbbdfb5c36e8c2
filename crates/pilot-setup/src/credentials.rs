//! The credential file and the role map, wherever they are stored, and everything that is wrong with both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use pilot_core::credentials::Credentials;
use pilot_core::fault::Fault;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;

use crate::config::{Config, Mechanism, Profile};
use crate::credential_source::{self, Fetched};
use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};
use crate::random;

/// The role map with the file it was read from, whose digest goes into the ledger.
pub struct RoleMapFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub map: RoleMap,
}

/// Finds tokens that must not be written anywhere, for the mechanism and credentials of this configuration.
pub fn leak_guard(config: &Config, credentials: &Credentials) -> Result<LeakGuard, random::NoRandomness> {
    let guard = LeakGuard::new(credentials.clone(), random::number()?);
    Ok(if config.mechanism() == Mechanism::Oauth || config.permits.is_some() {
        guard.with_signed_tokens()
    } else {
        guard
    })
}

/// The credential file from wherever it is stored, if the mechanism has one, and the role map; or every fault of both
/// at once.
pub fn load_credentials(config: &Config) -> Result<(Credentials, Option<RoleMapFile>), StartError> {
    let mut faults = Vec::new();
    let source = &config.credentials.source;
    let has_file = config.mechanism() == Mechanism::CredentialFile;
    let credentials = match has_file.then(|| credential_source::fetch(config)) {
        None => Some(Credentials::none()),
        Some(Ok(fetched)) => parse_credentials(&fetched, config, &mut faults),
        Some(Err(StartError::Refused(refusal))) => {
            faults.push(refusal);
            None
        }
        Some(Err(environment)) => return Err(environment),
    };
    let role_map = read_role_map(config, &mut faults);
    if let (Some(credentials), Some(RoleMapFile { map, .. })) = (&credentials, &role_map) {
        faults.extend(credentials.check_against(map).iter().map(|fault| line(source, fault)));
    }
    if let Some(RoleMapFile { path, map, .. }) = &role_map {
        check_machines(config.profile, path, map, &mut faults);
    }
    if let (Some(credentials), Some(days)) = (&credentials, config.credentials.lifetime_days_max) {
        faults.extend(check_lifetimes(credentials, days).iter().map(|fault| line(source, fault)));
    }
    match credentials {
        Some(credentials) if faults.is_empty() => Ok((
            match &role_map {
                Some(file) => credentials.operated_as(&file.map),
                None => credentials,
            },
            role_map,
        )),
        _ => Err(StartError::Refused(faults.join("\n"))),
    }
}

/// In production, machines are held to the rules for machines. Pilots that run today must still start, so there it is a
/// warning.
fn check_machines(profile: Profile, path: &Path, map: &RoleMap, faults: &mut Vec<String>) {
    let loose = map.loose_machines();
    match profile {
        Profile::Production => faults.extend(loose.iter().map(|fault| line(path.display(), fault))),
        Profile::Pilot => {
            for fault in &loose {
                tracing::warn!("{}; the production profile refuses this", line(path.display(), fault));
            }
        }
    }
}

fn check_lifetimes(credentials: &Credentials, days: u16) -> Vec<Fault> {
    let longest = Duration::from_hours(24 * u64::from(days));
    let too_long = credentials.entries().iter().enumerate().filter_map(|(index, credential)| {
        let detail = match (credential.not_before, credential.expires_at) {
            (Some(from), Some(to)) if to.since(from) <= longest => return None,
            (Some(_), Some(_)) => format!("is valid for more than the {days} day(s) of credentials.lifetime_days_max"),
            _ => "needs not_before and expires_at, because credentials.lifetime_days_max is set".to_owned(),
        };
        Some(Fault::new(format!("/credentials/{index}"), detail))
    });
    too_long.collect()
}

fn read_role_map(config: &Config, faults: &mut Vec<String>) -> Option<RoleMapFile> {
    let path = config.credentials.role_map.as_deref()?;
    let parse = |bytes: &[u8]| RoleMap::parse(bytes).map(|map| (map, bytes.to_vec()));
    let (map, bytes) = read(path, Others::MayRead, parse, faults)?;
    Some(RoleMapFile { path: path.to_owned(), bytes, map })
}

fn parse_credentials(fetched: &Fetched, config: &Config, faults: &mut Vec<String>) -> Option<Credentials> {
    let source = &config.credentials.source;
    if let Some(exposed) = &fetched.exposed {
        tracing::warn!("{exposed}");
    }
    for remark in &fetched.remarks {
        tracing::warn!("the credential helper reported: {remark}");
    }
    let parsed = credential_format(config)(&fetched.bytes);
    parsed.map_err(|found| faults.extend(found.iter().map(|fault| line(source, fault)))).ok()
}

pub type CredentialFormat = fn(&[u8]) -> Result<Credentials, Vec<Fault>>;

/// Which version of the credential file this configuration reads: in production, only the one whose credentials expire.
pub fn credential_format(config: &Config) -> CredentialFormat {
    match (config.profile, &config.identity) {
        (Profile::Production, _) => Credentials::parse_expiring,
        (Profile::Pilot, Some(_)) => Credentials::parse_either,
        (Profile::Pilot, None) => Credentials::parse,
    }
}

fn read<T>(
    path: &Path,
    others: Others,
    parse: fn(&[u8]) -> Result<T, Vec<Fault>>,
    faults: &mut Vec<String>,
) -> Option<T> {
    let file = match private_file::read(path, others) {
        Ok(file) => file,
        Err(error) => {
            faults.push(with_cause(&error));
            return None;
        }
    };
    if let Some(exposed) = file.exposed {
        tracing::warn!("{exposed}");
    }
    parse(&file.bytes).map_err(|found| faults.extend(found.iter().map(|fault| line(path.display(), fault)))).ok()
}

fn line(place: impl std::fmt::Display, fault: &Fault) -> String {
    format!("{place}{}{fault}", if fault.pointer.is_empty() { " " } else { " at " })
}
