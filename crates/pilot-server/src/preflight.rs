//! Checks everything a start would check, without starting and without changing anything.

use std::path::Path;
use std::time::Duration;

use pilot_core::credentials::{Credential, Credentials};
use pilot_core::leak::LeakGuard;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_ledger::clock::Clock;
use pilot_ledger::witnesses::Witnesses;
use pilot_notices::Notices;
use pilot_setup::config::{self, Config, Listen, Mechanism, Profile};
use pilot_setup::credentials::{self, RoleMapFile};
use pilot_setup::error::{StartError, with_cause};
use pilot_setup::exposed;
use pilot_setup::private_file::{self, FileError, Others};
use pilot_setup::webhook_key::WebhookKey;
use pilot_setup::webhooks::Endpoint;
use pilot_setup::{database, definitions};
use pilot_setup::{log_key, permit_key, production};
use pilot_wire::socket_file::{self, SocketFileError};
use rustix::fs::Access;
use serde::Serialize;

use crate::client_trust::Trust;
use crate::examined::mesh_secrets;
use crate::identity::oauth::Trusted;
use crate::socket;
use crate::tls::{Described, Pair};

mod network;

pub use network::reach;

/// A certificate that expires sooner is worth a warning.
const CERTIFICATE_WARNING: Duration = Duration::from_hours(14 * 24);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Ok,
    /// The service would start, but someone should look at this.
    Warning,
    /// The service would refuse to start until someone changes this.
    Refused,
    /// The environment failed (disk, port, permissions).
    Environment,
}

impl Verdict {
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Refused => "refused",
            Verdict::Environment => "environment",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub check: &'static str,
    pub verdict: Verdict,
    pub detail: String,
}

impl Finding {
    fn new(check: &'static str, verdict: Verdict, detail: impl Into<String>) -> Finding {
        Finding { check, verdict, detail: detail.into() }
    }

    fn failed(check: &'static str, error: &StartError) -> Finding {
        match error {
            StartError::Refused(detail) => Finding::new(check, Verdict::Refused, detail),
            StartError::Environment { .. } => Finding::new(check, Verdict::Environment, with_cause(error)),
        }
    }
}

/// Returns a finding for every check; `now` decides how long the certificate is still valid.
pub fn check(config: &Config, now: Time) -> Vec<Finding> {
    let loaded = credentials::load_credentials(config);
    let mut findings = check_profile(config);
    findings.push(check_listener(config));
    findings.extend(check_tls(config, &loaded, now));
    findings.push(check_rate_limits(config));
    findings.extend(check_credentials(config, &loaded, now));
    findings.push(check_workflows(config, &loaded));
    findings.push(check_data_dir(&config.data_dir));
    findings.extend(check_store(config));
    findings.push(check_log_key(config));
    findings.extend(check_permits(config));
    findings.push(check_witnesses(config));
    findings.extend(check_webhooks(config));
    findings.extend(check_notices(config));
    findings
}

fn check_profile(config: &Config) -> Vec<Finding> {
    let missing = production::missing(config);
    let detail = match config.profile {
        Profile::Production => "production; everything it requires is configured",
        Profile::Pilot => "pilot",
    };
    let warnings = production::warnings(config).into_iter().map(|it| Finding::new("profile", Verdict::Warning, it));
    if missing.is_empty() {
        return [Finding::new("profile", Verdict::Ok, detail)].into_iter().chain(warnings).collect();
    }
    missing.into_iter().map(|line| Finding::new("profile", Verdict::Refused, line)).chain(warnings).collect()
}

fn check_listener(config: &Config) -> Finding {
    let listen = match &config.listen {
        Listen::Tcp(address) => address,
        Listen::Unix(path) => return check_socket(config, path),
    };
    if config.tls.is_none() && !listen.ip().is_loopback() {
        let detail = format!("{listen}, without TLS: anyone on the network path can read every token");
        return Finding::new("listen", Verdict::Warning, detail);
    }
    Finding::new("listen", Verdict::Ok, listen.to_string())
}

fn check_socket(config: &Config, path: &Path) -> Finding {
    if let Err(error) = socket::wanted(config) {
        return Finding::failed("listen", &error);
    }
    if let Err(error) = socket_file::check(path) {
        let verdict = match error {
            SocketFileError::NotASocket { .. } | SocketFileError::OpenDirectory { .. } => Verdict::Refused,
            _ => Verdict::Environment,
        };
        return Finding::new("listen", verdict, with_cause(&error));
    }
    let listen = &config.listen;
    if config.tls.is_none() {
        let detail = "without [tls] trusted_users: if a proxy connects, all of its callers count as one user";
        return Finding::new("listen", Verdict::Warning, format!("{listen}, {detail}"));
    }
    Finding::new("listen", Verdict::Ok, listen.to_string())
}

fn check_tls(config: &Config, loaded: &Loaded, now: Time) -> Vec<Finding> {
    let mut findings = check_termination(config, now);
    if let Some(clients) = config.tls.as_ref().and_then(config::Tls::clients) {
        let role_map = loaded.as_ref().ok().and_then(|(_, role_map)| role_map.as_ref()).map(|file| &file.map);
        let named = role_map.filter(|_| config.mechanism() == Mechanism::MutualTls);
        match Trust::load(clients, named) {
            Ok(trust) => {
                findings
                    .extend(trust.warnings(named, now).into_iter().map(|it| Finding::new("tls", Verdict::Warning, it)));
            }
            Err(error) => findings.push(Finding::new("tls", Verdict::Refused, with_cause(&error))),
        }
    }
    findings
}

fn check_termination(config: &Config, now: Time) -> Vec<Finding> {
    let ok = |detail: String| vec![Finding::new("tls", Verdict::Ok, detail)];
    let files = match &config.tls {
        None => return ok("off".into()),
        Some(config::Tls::Mesh(mesh)) => {
            if let Err(error) = mesh_secrets(config).and_then(|_| socket::trusted_users(config)) {
                return vec![Finding::failed("tls", &error)];
            }
            if !mesh.trusted_users.is_empty() {
                let users: Vec<_> = mesh.trusted_users.iter().map(ToString::to_string).collect();
                return ok(format!("ends at the mesh, which runs as {}", users.join(", ")));
            }
            let trusted: Vec<_> = mesh.trusted.iter().map(ToString::to_string).collect();
            return ok(format!("ends at the mesh, which is at {}", trusted.join(", ")));
        }
        Some(config::Tls::Here(files)) => files,
    };
    let pair = match Pair::load(files, config.others()) {
        Ok(pair) => pair,
        Err(error) => return vec![Finding::new("tls", Verdict::Refused, with_cause(&error))],
    };
    let Described { names, is_issuer, not_before, not_after } = pair.certificate;
    let names = if names.is_empty() { "no name".to_owned() } else { names.join(", ") };
    let soon = i64::try_from(CERTIFICATE_WARNING.as_micros()).unwrap_or(i64::MAX);
    let left = not_after.unix_micros().saturating_sub(now.unix_micros());
    let (verdict, state) = match () {
        () if left <= 0 => (Verdict::Warning, "has expired: clients will refuse it. It was valid"),
        () if not_before > now => (Verdict::Warning, "is not valid yet: clients will refuse it. It is valid"),
        () if is_issuer => {
            (Verdict::Warning, "is a CA certificate (CA:TRUE): strict clients will refuse it. It is valid")
        }
        () if left < soon => (Verdict::Warning, "expires soon: it is valid"),
        () => (Verdict::Ok, "is valid"),
    };
    let detail = format!("the certificate for {names} {state} from {not_before} to {not_after}");
    let exposed = pair.exposed.map(|exposed| Finding::new("tls", Verdict::Warning, exposed.to_string()));
    [Finding::new("tls", verdict, detail)].into_iter().chain(exposed).collect()
}

fn check_rate_limits(config: &Config) -> Finding {
    let detail = match &config.rate_limits {
        None => "off".to_owned(),
        Some(limits) => format!(
            "per minute: {} reads and {} writes per actor, {} anonymous and {} failed requests per address",
            limits.reads_per_minute.get(),
            limits.writes_per_minute.get(),
            limits.anonymous_per_minute.get(),
            limits.failed_per_minute.get(),
        ),
    };
    Finding::new("rate limits", Verdict::Ok, detail)
}

type Loaded = Result<(Credentials, Option<RoleMapFile>), StartError>;

fn check_credentials(config: &Config, loaded: &Loaded, now: Time) -> Vec<Finding> {
    let (credentials, role_map) = match loaded {
        Ok((credentials, role_map)) => (credentials, role_map.as_ref()),
        Err(error) => return vec![Finding::failed("credentials", error)],
    };
    let actors = role_map.map_or(0, |file| file.map.actors.len());
    let mut findings = match config.mechanism() {
        Mechanism::Oauth => vec![check_oauth(config, actors)],
        Mechanism::MutualTls => {
            let detail = format!("mutual_tls; the role map has {actors} actor(s)");
            vec![Finding::new("identity", Verdict::Ok, detail)]
        }
        Mechanism::CredentialFile => check_credential_file(config, credentials, role_map, now),
    };
    let left_out = role_map.and_then(|file| production::roles_left_out(config, &file.map));
    let warnings = role_map.and_then(exposed::too_few_approvers).into_iter().chain(left_out);
    findings.extend(warnings.map(|warning| Finding::new("credentials", Verdict::Warning, warning)));
    match credentials::leak_guard(config, credentials) {
        Err(error) => findings.push(Finding::new("credentials", Verdict::Environment, error.to_string())),
        Ok(guard) => {
            let refusals = exposed::tokens_in_names(config, credentials, role_map, &guard);
            findings.extend(refusals.into_iter().map(|it| Finding::new("credentials", Verdict::Refused, it)));
        }
    }
    findings
}

fn check_credential_file(
    config: &Config,
    credentials: &Credentials,
    role_map: Option<&RoleMapFile>,
    now: Time,
) -> Vec<Finding> {
    let (count, source) = (credentials.entries().len(), &config.credentials.source);
    let compared = if role_map.is_some() { "all agree with the role map" } else { "there is no role map" };
    let mut findings =
        vec![Finding::new("credentials", Verdict::Ok, format!("{count} credential(s) from {source}; {compared}"))];
    findings.extend(check_dates(config.profile, credentials, now));
    let files = [source.file(), role_map.map(|file| file.path.as_path())];
    for path in files.into_iter().flatten() {
        let exposed = private_file::read(path, Others::MayRead).ok().and_then(|file| file.exposed);
        findings.extend(exposed.map(|exposed| Finding::new("credentials", Verdict::Warning, exposed.to_string())));
    }
    findings
}

/// Which credentials are valid now, and what that leaves nobody able to do.
fn check_dates(profile: Profile, credentials: &Credentials, now: Time) -> Vec<Finding> {
    let is_live = |credential: &&Credential| {
        credential.not_before.is_none_or(|from| from <= now) && credential.expires_at.is_none_or(|end| now < end)
    };
    let all = credentials.entries();
    let live: Vec<_> = all.iter().filter(is_live).collect();
    let finding = |verdict, detail: String| vec![Finding::new("credentials", verdict, detail)];
    if live.is_empty() {
        let detail = "all of them have expired or are not valid yet, so nobody could sign in; rotate them with `pilot rotation`, or issue new ones with `pilot credential new`";
        return finding(Verdict::Refused, detail.to_owned());
    }
    let mut findings = Vec::new();
    let others = all.len() - live.len();
    if others > 0 {
        let detail =
            format!("{others} of {} have expired or are not valid yet; `pilot credential list` shows them", all.len());
        findings.extend(finding(Verdict::Warning, detail));
    }
    let can_revoke = live.iter().any(|credential| credential.actor.role == Role::SecurityAdmin);
    if profile == Profile::Production && !can_revoke {
        let detail = "no security_admin could sign in, so nobody could revoke a credential through the service";
        findings.extend(finding(Verdict::Warning, detail.to_owned()));
    }
    findings
}

/// What the section says; whether the provider answers is another finding.
fn check_oauth(config: &Config, actors: usize) -> Finding {
    match Trusted::open(config, &Clock::System) {
        Ok(trusted) => {
            let issuer = trusted.map_or_else(String::new, |trusted| trusted.provider.config().issuer.text.clone());
            let detail = format!("access tokens of {issuer}; the role map has {actors} actor(s)");
            Finding::new("credentials", Verdict::Ok, detail)
        }
        Err(error) => Finding::failed("credentials", &error),
    }
}

fn check_workflows(config: &Config, loaded: &Loaded) -> Finding {
    let dir = config.workflows.dir.as_deref();
    // Credentials that cannot be read are refused elsewhere; generated tokens are found without them.
    let guard = match loaded {
        Ok((credentials, _)) => credentials::leak_guard(config, credentials).map_err(StartError::from),
        Err(_) => Ok(LeakGuard::for_generated_tokens()),
    };
    let offered = definitions::check_dir(config)
        .and(guard)
        .and_then(|guard| exposed::refuse_tokens_in_definitions(dir, &guard))
        .and_then(|()| definitions::offered(dir));
    match offered {
        Ok((offered, _)) => {
            let names: Vec<_> = offered.in_force().map(|definition| definition.name().to_string()).collect();
            Finding::new("workflows", Verdict::Ok, names.join(", "))
        }
        Err(error) => Finding::failed("workflows", &error),
    }
}

fn check_data_dir(path: &Path) -> Finding {
    let shown = path.display();
    // What does not exist yet is created inside the nearest existing directory; a relative path ends at the current
    // one.
    let here = Path::new(".");
    let existing = path.ancestors().find(|path| path.exists()).unwrap_or(here);
    if !existing.is_dir() {
        let detail = format!("{}: is not a directory; name another data_dir", existing.display());
        return Finding::new("data directory", Verdict::Environment, detail);
    }
    match rustix::fs::access(existing, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) if existing == path => Finding::new("data directory", Verdict::Ok, format!("{shown} can be written")),
        Ok(()) => Finding::new("data directory", Verdict::Ok, format!("{shown} will be created at the start")),
        Err(error) => {
            let detail =
                format!("{}: cannot be written; make the service's user its owner ({error})", existing.display());
            Finding::new("data directory", Verdict::Environment, detail)
        }
    }
}

fn check_store(config: &Config) -> Vec<Finding> {
    match config.sqlite_path() {
        None => check_database(config),
        Some(path) if !path.exists() => {
            vec![Finding::new("store", Verdict::Ok, format!("{} will be created at the start", path.display()))]
        }
        Some(path) => {
            let detail = format!("{} exists; `pilot log fsck` checks all of it", path.display());
            vec![Finding::new("store", Verdict::Ok, detail)]
        }
    }
}

/// What the section says; whether the database answers is another finding.
fn check_database(config: &Config) -> Vec<Finding> {
    let Some(access) = config.postgres() else { return Vec::new() };
    let checked = database::check_files(config).and_then(|exposed| Ok((access.place()?, config.node.name()?, exposed)));
    match checked {
        Ok((place, node, exposed)) => {
            let warning = |exposed: FileError| Finding::new("store", Verdict::Warning, exposed.to_string());
            let detail = format!("{place}, as node {node}");
            let place = Finding::new("store", Verdict::Ok, detail);
            [place].into_iter().chain(exposed.into_iter().map(warning)).collect()
        }
        Err(error) => vec![Finding::failed("store", &error)],
    }
}

fn check_witnesses(config: &Config) -> Finding {
    match Witnesses::new(&config.log) {
        Ok(_) => Finding::new("witnesses", Verdict::Ok, format!("{} configured", config.log.witnesses.len())),
        Err(error) => Finding::new("witnesses", Verdict::Refused, error.to_string()),
    }
}

/// What the sections and their files say. `pilot notice test` says whether a message arrives.
fn check_notices(config: &Config) -> Vec<Finding> {
    if config.notices.is_empty() {
        return Vec::new();
    }
    match Notices::open(config) {
        Ok(notices) => {
            let shown = |(name, place): (&str, &str)| format!("`{name}` tells people at {place}");
            let told = notices.shown().map(shown).map(|detail| Finding::new("notices", Verdict::Ok, detail));
            let warnings = notices.warnings.iter().map(|warning| Finding::new("notices", Verdict::Warning, warning));
            let no_links = config.public_url.is_none().then(|| {
                let detail = "public_url is not set, so messages have no links; set it to the address of the console";
                Finding::new("notices", Verdict::Warning, detail)
            });
            let offered = offered_names(config);
            let unknown = config
                .notices
                .iter()
                .flat_map(|notice| unknown_workflows(&notice.name, &notice.workflows, offered.as_deref()));
            let unknown = unknown.map(|warning| Finding::new("notices", Verdict::Warning, warning));
            told.chain(warnings).chain(no_links).chain(unknown).collect()
        }
        Err(error) => vec![Finding::failed("notices", &error)],
    }
}

/// What the sections and their files say; whether receivers answer is seen when something is delivered.
fn check_webhooks(config: &Config) -> Vec<Finding> {
    let offered = offered_names(config);
    let one = |webhook: &config::Webhook| match Endpoint::open(config, webhook) {
        Ok(endpoint) => {
            let (name, signing, host) = (&webhook.name, webhook.signing.as_str(), endpoint.target.shown());
            let public: Vec<_> = endpoint.keys.iter().filter_map(WebhookKey::public).collect();
            let keys = if public.is_empty() { String::new() } else { format!("; verify with {}", public.join(", ")) };
            let detail =
                format!("`{name}` is told at {host}, signed by {} key(s) ({signing}){keys}", endpoint.keys.len());
            let warning = |warning: String| Finding::new("webhooks", Verdict::Warning, warning);
            let found = Finding::new("webhooks", Verdict::Ok, detail);
            let unknown = unknown_workflows(&webhook.name, &webhook.workflows, offered.as_deref());
            [found].into_iter().chain(endpoint.warnings.into_iter().chain(unknown).map(warning)).collect::<Vec<_>>()
        }
        Err(error) => vec![Finding::failed("webhooks", &error)],
    };
    config.webhooks.iter().flat_map(one).collect()
}

/// A name that is misspelt would match nothing, without a word.
fn unknown_workflows(section: &str, workflows: &[String], offered: Option<&[String]>) -> Vec<String> {
    let is_unknown = |name: &&String| offered.is_some_and(|offered| !offered.contains(name));
    let warning = |name: &String| format!("`{section}`: workflows: there is no definition named `{name}`");
    workflows.iter().filter(is_unknown).map(warning).collect()
}

/// The names of the definitions; `None` if they cannot be read, which is refused elsewhere.
fn offered_names(config: &Config) -> Option<Vec<String>> {
    let (offered, _) = definitions::offered(config.workflows.dir.as_deref()).ok()?;
    Some(offered.in_force().map(|definition| definition.name().to_string()).collect())
}

/// Nothing if no permit tokens are asked for.
fn check_permits(config: &Config) -> Option<Finding> {
    let permits = config.permits.as_ref()?;
    let path = config.permit_key_path();
    if !path.exists() {
        let detail = format!("{}, which the first start creates; all nodes need the same file", path.display());
        return Some(Finding::new("permit key", Verdict::Ok, detail));
    }
    Some(match permit_key::load(&path) {
        Ok(keys) => {
            Finding::new("permit key", Verdict::Ok, format!("{} signs for {}", keys.signing_id(), permits.issuer))
        }
        Err(error) => Finding::failed("permit key", &error),
    })
}

fn check_log_key(config: &Config) -> Finding {
    let has_signer = config.log.signer.is_some();
    let path = if has_signer { config.log_public_key_path() } else { config.log_key_path() };
    let shown = path.display();
    if log_key::is_known(config) {
        return match log_key::verifier(config) {
            Ok(key) if has_signer => Finding::new("log key", Verdict::Ok, format!("log.signer has to sign for {key}")),
            Ok(_) => Finding::new("log key", Verdict::Ok, format!("{shown} can be used")),
            Err(error) => Finding::failed("log key", &error),
        };
    }
    if config.sqlite_path().is_some_and(|store| store.exists()) || config.checkpoint_path().exists() {
        let detail = format!("{shown}: is missing, but the store exists; restore it from your copy");
        return Finding::new("log key", Verdict::Refused, detail);
    }
    Finding::new("log key", Verdict::Ok, format!("{shown} will be created at the start"))
}
