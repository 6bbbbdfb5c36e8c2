//! What a start can check from its files alone. All problems are reported at once, so that fixing them does not take
//! one restart each.

use std::sync::Arc;

use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;

use pilot_ledger::clock::Clock;
use pilot_ledger::timestamps::Timestamps;
use pilot_ledger::webhooks::Webhooks;
use pilot_ledger::witnesses::Witnesses;
use pilot_notices::Notices;
use pilot_setup::config::{self, Config, Mechanism, Tls as TlsSection};
use pilot_setup::credentials::{RoleMapFile, leak_guard, load_credentials};
use pilot_setup::error::{StartError, with_cause};
use pilot_setup::exposed::{refuse_tokens_in_definitions, tokens_in_names};
use pilot_setup::{database, definitions, permit_key};
use pilot_setup::{private_file, production};
use pilot_wire::socket_file::Wanted;

use crate::client_trust::ClientIssuers;
use crate::edge;
use crate::identity::oauth::Trusted;
use crate::socket;
use crate::tls::CertificateFiles;

pub(crate) struct Examined {
    pub(crate) clients: Option<Arc<ClientIssuers>>,
    pub(crate) certificate: Option<Arc<CertificateFiles>>,
    pub(crate) peers: Peers,
    pub(crate) credentials: Credentials,
    pub(crate) role_map: Option<RoleMapFile>,
    pub(crate) guard: Arc<LeakGuard>,
    pub(crate) witnesses: Arc<Witnesses>,
    pub(crate) timestamps: Arc<Timestamps>,
    pub(crate) webhooks: Arc<Webhooks>,
    pub(crate) notices: Arc<Notices>,
    pub(crate) trusted: Option<Trusted>,
}

/// How others connect, and how the mesh is recognised among them.
pub(crate) struct Peers {
    pub(crate) mesh_secrets: Vec<Digest>,
    /// The users that count as the mesh on a Unix socket.
    pub(crate) mesh_users: Vec<u32>,
    /// If the service listens on one.
    pub(crate) socket: Option<Wanted>,
}

fn peers(config: &Config, found: &mut Found) -> Option<Peers> {
    let mesh_secrets = found.take(mesh_secrets(config));
    let mesh_users = found.take(socket::trusted_users(config));
    let socket = found.take(socket::wanted(config));
    Some(Peers { mesh_secrets: mesh_secrets?, mesh_users: mesh_users?, socket: socket? })
}

pub(crate) fn examine(config: &Config, clock: &Clock) -> Result<Examined, StartError> {
    let mut found = Found::default();
    found.refused.extend(production::refusal(config));
    let peers = peers(config, &mut found);
    for exposed in found.take(database::check_files(config)).into_iter().flatten() {
        tracing::warn!("{exposed}");
    }
    let loaded = found.take(load_credentials(config));
    let role_map = loaded.as_ref().and_then(|(_, role_map)| role_map.as_ref()).map(|file| &file.map);
    let clients = found.take(open_clients(config, role_map, clock.now()));
    let certificate = found.take(open_certificate(config, clients.clone().flatten(), clock.now()));
    let guard = loaded.as_ref().and_then(|(credentials, role_map)| {
        let guard = found.take(leak_guard(config, credentials).map_err(StartError::from))?;
        found.refused.extend(tokens_in_names(config, credentials, role_map.as_ref(), &guard));
        Some(guard)
    });
    let dir = config.workflows.dir.as_deref();
    if found.take(definitions::check_dir(config)).is_some() {
        // Even without the credentials, generated tokens are found.
        let without = LeakGuard::for_generated_tokens();
        let clean = found.take(refuse_tokens_in_definitions(dir, guard.as_ref().unwrap_or(&without)));
        // They are proved when they are loaded; this is only to report what else is wrong. A flaw is shown with its
        // line, so only after it is certain that none of them contains a token.
        if clean.is_some() && !found.refused.is_empty() {
            found.take(definitions::offered(dir));
        }
    }
    if config.permits.is_some() && config.permit_key_path().exists() {
        found.take(permit_key::load(&config.permit_key_path()));
    }
    let witnesses = found.take(Witnesses::new(&config.log).map_err(|error| StartError::Refused(error.to_string())));
    let timestamps = found.take(Timestamps::new(&config.log).map_err(|error| StartError::Refused(error.to_string())));
    let (webhooks, notices) =
        (found.take(open_webhooks(config, guard.as_ref())), found.take(open_notices(config, guard.as_ref())));
    let told = webhooks.zip(notices);
    let trusted = found.take(Trusted::open(config, clock));
    match (found.settle()?, clients, certificate, peers, loaded, guard, (witnesses, timestamps, told), trusted) {
        (
            (),
            Some(clients),
            Some(certificate),
            Some(peers),
            Some((credentials, role_map)),
            Some(guard),
            (Some(witnesses), Some(timestamps), Some((webhooks, notices))),
            Some(trusted),
        ) => Ok(Examined {
            clients,
            certificate,
            peers,
            credentials,
            role_map,
            guard: Arc::new(guard),
            witnesses: Arc::new(witnesses),
            timestamps: Arc::new(timestamps),
            webhooks: Arc::new(webhooks),
            notices: Arc::new(notices),
            trusted,
        }),
        _ => Err(StartError::Refused("something is missing, but it is not known what".to_owned())),
    }
}

/// The endpoints that are told about entries. Nothing that is logged or recorded may contain their secrets.
fn open_webhooks(config: &Config, guard: Option<&LeakGuard>) -> Result<Webhooks, StartError> {
    let webhooks = Webhooks::open(config)?;
    if let Some(guard) = guard {
        webhooks.make_known(guard);
    }
    Ok(webhooks)
}

/// Where people are told that something waits for them; the same holds for the secrets of these.
fn open_notices(config: &Config, guard: Option<&LeakGuard>) -> Result<Notices, StartError> {
    let notices = Notices::open(config)?;
    notices.warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if let Some(guard) = guard {
        notices.make_known(guard);
    }
    Ok(notices)
}

/// The secrets by which the mesh is recognised in addition to its address; empty if it has none, or there is no mesh.
pub(crate) fn mesh_secrets(config: &Config) -> Result<Vec<Digest>, StartError> {
    let file = config.tls.as_ref().and_then(TlsSection::mesh).and_then(|mesh| mesh.secret_file.as_deref());
    let Some(path) = file else { return Ok(Vec::new()) };
    let refused = |what: String| StartError::Refused(format!("tls: {what}"));
    let read = private_file::read(path, config.others()).map_err(|error| refused(with_cause(&error)))?;
    if let Some(exposed) = read.exposed {
        tracing::warn!("{exposed}");
    }
    edge::parse_mesh_secrets(&read.bytes).map_err(|fault| refused(format!("{}: {fault}", path.display())))
}

/// Whose client certificates count, wherever TLS ends.
fn open_clients(
    config: &Config,
    role_map: Option<&RoleMap>,
    now: Time,
) -> Result<Option<Arc<ClientIssuers>>, StartError> {
    let Some(files) = config.tls.as_ref().and_then(TlsSection::clients) else { return Ok(None) };
    let named = role_map.filter(|_| config.mechanism() == Mechanism::MutualTls);
    let opened = ClientIssuers::open(files, named.cloned());
    let clients = opened.map_err(|error| StartError::Refused(format!("tls: {}", with_cause(&error))))?;
    clients.warn(now);
    Ok(Some(Arc::new(clients)))
}

/// Certificate and key, if the service terminates TLS itself.
fn open_certificate(
    config: &Config,
    clients: Option<Arc<ClientIssuers>>,
    now: Time,
) -> Result<Option<Arc<CertificateFiles>>, StartError> {
    let Some(config::Tls::Here(files)) = &config.tls else { return Ok(None) };
    let opened = CertificateFiles::open(files, config.others(), clients);
    let certificate = opened.map_err(|error| StartError::Refused(format!("tls: {}", with_cause(&error))))?;
    for warning in certificate.warnings(now) {
        tracing::warn!("{warning}");
    }
    Ok(Some(Arc::new(certificate)))
}

#[derive(Default)]
struct Found {
    refused: Vec<String>,
    environment: Option<StartError>,
}

impl Found {
    fn take<T>(&mut self, outcome: Result<T, StartError>) -> Option<T> {
        match outcome {
            Ok(value) => return Some(value),
            Err(StartError::Refused(refusal)) => self.refused.push(refusal),
            Err(environment) => self.environment = self.environment.take().or(Some(environment)),
        }
        None
    }

    /// What someone has to change comes first, because retrying would not help.
    fn settle(self) -> Result<(), StartError> {
        match self.environment {
            _ if !self.refused.is_empty() => Err(StartError::Refused(self.refused.join("\n"))),
            Some(environment) => Err(environment),
            None => Ok(()),
        }
    }
}
