//! From a configuration to a running service: everything is checked before the first connection is accepted.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use pilot_core::credentials::Credentials;
use pilot_core::document::Document;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_ledger::clock::{Clock, ClockGuard, ClockKeeper, Elapsed, LedgerClock, SinceBoot, Wall};
use pilot_ledger::evidence::Exports;
use pilot_ledger::ids::Ids;
use pilot_ledger::refusals::Refusals;
use pilot_ledger::register::{NamedCredential, Register};
use pilot_ledger::reserve::Reserve;
use pilot_ledger::second_place::SecondPlace;
use pilot_ledger::settle::Ledger;
use pilot_ledger::signer::Signer;
use pilot_ledger::starts::{self, KnownCredentials, LastStart, Starting};
use pilot_ledger::workflows::Workflows;
use pilot_setup::config::{self, Config, Listen, Mechanism, Profile};
use pilot_setup::error::{StartError, no_such_store};
use pilot_setup::exposed::too_few_approvers;
use pilot_setup::log_key::LogKey;
use pilot_setup::{private_file, production, random};

use pilot_store::archive::{Hear, Now};
use pilot_store::postgres::{Identity as NodeIdentity, Postgres};
use pilot_store::sqlite::Sqlite;
use pilot_store::{Duty, Store};
use pilot_wire::clock::has_date;
use pilot_wire::listen::Listener;
use pilot_wire::socket_file::{SocketFileError, Wanted};
use tokio::sync::watch;

use crate::answer::Door;
use crate::app::{App, RequestIds};
use crate::budget::Budget;
use crate::client_trust::ClientIssuers;
use crate::edge::{Edge, is_place_of};
use crate::examined::{Examined, Peers, examine};
use crate::flood::Flood;
use crate::identity::Identity;
use crate::identity::credential_file::CredentialFile;
use crate::identity::mutual_tls::MutualTls;
use crate::identity::oauth::{Oauth, Trusted};
use crate::log::Log;
use crate::metrics::Metrics;
use crate::openapi;
use crate::permits::PermitIssuer;
use crate::rate::Limits;
use crate::routes::{Router, table};
use crate::run::Service;
use crate::spans::Spans;
use crate::workshop::Workshop;

/// Checks everything and binds the addresses. `adopt` puts this configuration in force for all nodes.
pub async fn start(
    config: &Config,
    log: &Log,
    stop: watch::Receiver<bool>,
    adopt: bool,
) -> Result<Service, StartError> {
    if !has_date() {
        let what = "the machine's clock is before 1970 or after 9999; set it, and start again";
        return Err(StartError::Environment { what: what.into(), source: None });
    }
    // Nodes that share a ledger share its database's clock; a node by itself has only the machine's.
    let ahead = Arc::new(AtomicI64::new(0));
    let clock_guard = Arc::new(ClockGuard::new(Wall::Shared(Arc::clone(&ahead)), SinceBoot::System));
    let clock = Clock::Guarded(Arc::clone(&clock_guard));
    let examined = examine(config, &clock)?;
    let Examined { clients, certificate, peers, credentials, role_map, guard, trusted, .. } = examined;
    log.guard_with(Arc::clone(&guard));
    let left_out = role_map.as_ref().and_then(|file| production::roles_left_out(config, &file.map));
    let of_role_map = role_map.as_ref().and_then(too_few_approvers).into_iter().chain(left_out);
    for warning in production::warnings(config).into_iter().chain(of_role_map) {
        tracing::warn!("{warning}");
    }
    make_data_dir(&config.data_dir)?;
    let clock_keeper = Arc::new(ClockKeeper::new(clock_guard, config.clock_path()));
    let (store, ledger_clock) = open_store(config, &clock, &clock_keeper, ahead)?;
    let signer = open_signer(config, &store).await?;
    let workflows = Workflows::load(config.workflows.dir.as_deref(), &*store).await?;
    let main = main_listener(config, &peers, certificate.as_ref().map(|certificate| certificate.tls()))?;
    let ops = match &config.ops {
        Some(ops) => Some(bind(ops.listen)?),
        None => None,
    };
    let issuer = PermitIssuer::open(config)?;
    let starting = Starting {
        credentials: credentials.entries().iter().map(NamedCredential::from).collect(),
        role_map: role_map.as_ref().map(|file| Document::role_map(&file.bytes)),
        permit_keys: issuer.as_ref().map(PermitIssuer::key_ids).unwrap_or_default(),
        adopt,
    };
    let register = open_register(config, &*store, &starting.credentials, &signer.verifier().name, clock.now()).await?;
    let recognised =
        Recognised { credentials, role_map: role_map.map(|file| file.map), trusted, clients: clients.clone() };
    let identity = open_identity(config, recognised, &guard, &register, &clock)?;
    let workshop = Workshop::open().map_err(|error| StartError::environment("threads for long work", error))?;
    let router = Router::new(table()).map_err(|error| StartError::environment("this build is faulty", error))?;
    let metrics = Arc::new(Metrics::new(router.routes().iter().map(|route| route.operation).collect()));
    if let Some(certificate) = &certificate {
        metrics.certificate_loaded(certificate.not_after());
    }
    let reserve = Arc::new(Reserve::new(config.data_dir.clone()));
    let run = u32::from_ne_bytes(random::bytes()?);
    let refusals = Arc::new(Refusals::of_run(&format!("{run:08x}")));
    let ledger = Ledger { store, signer, reserve, clock: ledger_clock, clock_keeper, refusals };
    let openapi = serde_json::to_vec_pretty(&openapi::document(router.routes()));
    let openapi = openapi.map_err(|error| StartError::environment("this build is faulty", error))?;
    let node_name = config.node.name()?;
    let spans = open_spans(config, &node_name, &guard)?;
    let app = App {
        openapi: Bytes::from(openapi),
        docs: Bytes::from(openapi::page(router.routes())),
        clients,
        identity,
        register,
        limits: config.rate_limits.as_ref().map(Limits::new),
        flood: Flood::default(),
        edge: edge(config, peers),
        guard,
        metrics,
        started: clock.now(),
        clock,
        log: log.clone(),
        spans,
        origin: config.logging.origin,
        ledger,
        workflows: Arc::new(workflows),
        figures: Arc::default(),
        work_metrics: Arc::default(),
        witnesses: examined.witnesses,
        timestamps: examined.timestamps,
        webhooks: examined.webhooks,
        notices: examined.notices,
        exports: Arc::new(Exports::of_evidence()),
        issuer,
        permits: Arc::new(Exports::of_permits()),
        attestations: Arc::new(Exports::of_attestations()),
        budget: Budget::default(),
        workshop,
        feeds: Arc::default(),
        ids: Ids::default(),
        node_name,
        stop,
        console: config.console.clone(),
        request_ids: RequestIds::new(run),
    };
    let applied = app.ledger.store.head().borrow().size();
    starts::write(&*app.ledger.store, &app.workflows, starting).await?;
    // Missing keys do not prevent a start: they may arrive while the service runs, and until then it reports that it is
    // not ready.
    if let Some(provider) = app.identity.provider() {
        provider.refresh().await;
    }
    // Unlike the main listener it is not announced, and with port 0 its address would be unknown.
    if let Some(address) = ops.as_ref().and_then(|ops| ops.address().ok()) {
        tracing::info!(%address, "operations listener");
    }
    let (logging, backup_record) = ((config.logging, config.log_settings_path()), config.backup_record_path());
    let door = Arc::new(Door { router, app: Arc::new(app) });
    Ok(Service { door, main, ops, certificate, logging, backup_record, applied })
}

/// Where spans of requests go, if they go anywhere.
fn open_spans(config: &Config, node: &str, guard: &Arc<LeakGuard>) -> Result<Option<Arc<Spans>>, StartError> {
    let spans = config.traces.as_ref().map(|traces| Spans::new(traces, node, Arc::clone(guard)));
    let spans = spans.transpose().map_err(|error| StartError::Refused(format!("traces.ca_file: {error}")))?;
    Ok(spans.map(Arc::new))
}

/// What is known about credentials: those in force, and those that ended.
async fn open_register(
    config: &Config,
    store: &dyn Store,
    credentials: &BTreeSet<NamedCredential>,
    log_name: &str,
    now: Time,
) -> Result<Arc<Register>, StartError> {
    let former = KnownCredentials::read(store).await?.former(credentials);
    let path = config.revocations_path();
    let (keeps_record, outside) = (config.identity.is_some(), (path.as_path(), log_name));
    let register = Register::open(store, credentials, &former, keeps_record, outside, now).await?;
    if let Some(doubt) = register.doubt() {
        let before = doubt.before;
        tracing::warn!(%before, "credentials issued before {before} are not accepted: the ledger was restored with a loss, and it is not known which of them were revoked. Rotate them, or run `pilot credential trust`");
    }
    Ok(Arc::new(register))
}

/// A signer for this ledger, if it is the one that was signed before.
async fn open_signer(config: &Config, store: &Arc<dyn Store>) -> Result<Arc<Signer>, StartError> {
    let place = SecondPlace::open(&config.checkpoint_path(), store.is_shared())?;
    let is_begun = store.head().borrow().size() > 0 || place.path().exists();
    let key = LogKey::open(config, is_begun).await?;
    let was_kept = LastStart::read(&**store).await?.second_place;
    Signer::open(key, Arc::clone(store), place, was_kept).await
}

fn bind_main(config: &Config, socket: Option<&Wanted>) -> Result<Listener, StartError> {
    match (&config.listen, socket) {
        (Listen::Unix(_), Some(wanted)) => Listener::bind_file(wanted).map_err(|error| {
            let what = error.to_string();
            match error {
                // Someone has to change something; the same start would fail again.
                SocketFileError::NotASocket { .. } | SocketFileError::OpenDirectory { .. } => StartError::Refused(what),
                SocketFileError::Directory { source, .. }
                | SocketFileError::Owner { source, .. }
                | SocketFileError::Other { source, .. } => StartError::environment(what, source),
                SocketFileError::InUse { .. } | SocketFileError::Locked { .. } => {
                    StartError::Environment { what, source: None }
                }
            }
        }),
        (Listen::Tcp(address), _) => bind(*address),
        (Listen::Unix(_), None) => Err(StartError::Refused("listen: names a socket that was not examined".into())),
    }
}

fn main_listener(
    config: &Config,
    peers: &Peers,
    tls: Option<Arc<pilot_wire::tls::Tls>>,
) -> Result<Listener, StartError> {
    let mut main = bind_main(config, peers.socket.as_ref())?;
    main.limit_connections(connections_possible());
    if let Some(tls) = tls {
        main.encrypt(tls);
    }
    if let Some(config::Tls::Mesh(mesh)) = &config.tls {
        let (mesh, users) = (mesh.clone(), peers.mesh_users.clone());
        main.share_addresses(move |address| is_place_of(&mesh, &users, address));
    }
    Ok(main)
}

/// What callers can be recognised by; each mechanism uses its part.
struct Recognised {
    credentials: Credentials,
    role_map: Option<RoleMap>,
    trusted: Option<Trusted>,
    clients: Option<Arc<ClientIssuers>>,
}

fn open_identity(
    config: &Config,
    recognised: Recognised,
    guard: &Arc<LeakGuard>,
    register: &Arc<Register>,
    clock: &Clock,
) -> Result<Identity, StartError> {
    let Recognised { credentials, role_map, trusted, clients } = recognised;
    let (guard, register, clock) = (Arc::clone(guard), Arc::clone(register), clock.clone());
    if let Some(trusted) = trusted {
        let role_map = role_map.unwrap_or_else(RoleMap::empty);
        return Ok(Identity::Oauth(Box::new(Oauth::new(trusted, role_map, register, clock))));
    }
    let settings = config.identity.as_ref().and_then(|identity| identity.mutual_tls.as_ref());
    match (config.mechanism(), clients, role_map) {
        (Mechanism::MutualTls, Some(clients), Some(role_map)) => {
            Ok(Identity::MutualTls(MutualTls::new(clients, settings, role_map, register, clock)))
        }
        (Mechanism::MutualTls, ..) => {
            Err(StartError::Refused("identity: certificates need [tls] client_ca and a role map".into()))
        }
        (_, _, role_map) => {
            let file = CredentialFile::new(credentials, role_map, guard, register, clock);
            Ok(Identity::CredentialFile(file))
        }
    }
}

fn edge(config: &Config, peers: Peers) -> Edge {
    match &config.tls {
        Some(config::Tls::Mesh(mesh)) => {
            Edge::new(Some(mesh.clone()), config.profile == Profile::Production, peers.mesh_secrets)
                .with_users(peers.mesh_users)
        }
        Some(config::Tls::Here(_)) => Edge::encrypted(config.profile == Profile::Production),
        None => Edge::default(),
    }
}

fn make_data_dir(path: &Path) -> Result<(), StartError> {
    private_file::make_directory(path).map_err(|error| {
        StartError::environment(format!("{}: the data directory cannot be created", path.display()), error)
    })
}

/// The store and the clock it dates entries with, which continues from the last entry.
fn open_store(
    config: &Config,
    machine: &Clock,
    keeper: &ClockKeeper,
    ahead: Arc<AtomicI64>,
) -> Result<(Arc<dyn Store>, LedgerClock), StartError> {
    // A ledger's clock never goes back, so it is not created before the machine's clock is known to be right. Until
    // then the store dates nothing.
    let of_store = Arc::new(OnceLock::new());
    let given = Arc::clone(&of_store);
    let now: Now = Arc::new(move || given.get().map_or(Time::EPOCH, LedgerClock::now));
    let (store, last_at): (Arc<dyn Store>, Time) = if let Some(path) = config.sqlite_path() {
        let store = Sqlite::open(&path, now)?;
        let last_at = store.last_at();
        (Arc::new(store), last_at)
    } else {
        let identity = NodeIdentity { name: config.node.name()?, build: env!("CARGO_PKG_VERSION").to_owned() };
        let hear: Hear = Arc::new(move |time| {
            let difference = time.unix_micros().saturating_sub(Clock::System.now().unix_micros());
            ahead.store(difference, Ordering::Release);
        });
        let store = Postgres::open(&config.postgres().ok_or_else(no_such_store)?, identity, now, hear)?;
        let last_at = store.last_at();
        (Arc::new(store), last_at)
    };
    if config.webhooks.is_empty() && config.notices.is_empty() {
        // A node that has the duty and no endpoints would keep the others from sending.
        store.decline(Duty::Webhooks);
    }
    let is_begun = store.head().borrow().size() > 0;
    keeper.begin(is_begun.then_some(last_at), config.clock.outage());
    let clock = LedgerClock::new(machine.clone(), Elapsed::measured());
    clock.begin_at(last_at);
    let _ = of_store.set(clock.clone());
    Ok((store, clock))
}

fn bind(address: std::net::SocketAddr) -> Result<Listener, StartError> {
    let bound = Listener::bind(address);
    bound.map_err(|error| {
        StartError::environment(
            format!("{address}: cannot listen on this address; is another service using the port?"),
            error,
        )
    })
}

/// Raises the limit for open files as far as possible; some are reserved for the store and the log.
fn connections_possible() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    const KEPT: u64 = 64;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok() {
        return maximum
            .map_or(usize::MAX, |files| usize::try_from(files.saturating_sub(KEPT)).unwrap_or(usize::MAX))
            .max(1);
    }
    current.map_or(usize::MAX, |files| usize::try_from(files.saturating_sub(KEPT)).unwrap_or(usize::MAX)).max(1)
}
