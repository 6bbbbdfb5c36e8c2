//! From a configuration to a running service: everything is checked before the first connection is accepted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pilot_core::credentials::Credentials;
use pilot_core::digest::Digest;
use pilot_core::document::Document;
use pilot_core::fault::Fault;
use pilot_core::leak::LeakGuard;
use pilot_core::limits::HANG_TOLERATED;
use pilot_core::role_map::RoleMap;
use pilot_core::time::Time;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Store, StoreError};
use tokio::sync::{oneshot, watch};

use crate::answer::answer;
use crate::api::ops::answer_ops;
use crate::app::{App, Parts};
use crate::clock::{self, Clock, ClockGuard, ClockKeeper, Elapsed, LedgerClock, SinceBoot};
use crate::config::{self, Config, Mechanism, Profile};
use crate::credential_source::{self, Fetched};
use crate::feed;
use crate::identity::Identity;
use crate::identity::credential_file::CredentialFile;
use crate::identity::mutual_tls::MutualTls;
use crate::identity::oauth::{Oauth, Trusted};
use crate::listen::Listener;
use crate::log::Log;
use crate::peer::Edge;
use crate::private_file::{self, Others};
use crate::production;
use crate::random;
use crate::rate::Limits;
use crate::refusals;
use crate::register::{self, NamedCredential, Register};
use crate::reserve::{self, Reserve};
use crate::signer;
use crate::starts::{self, LastStart, Starting};
use crate::timers;
use crate::tls::Tls;
use crate::witnesses;
use crate::workflows::Workflows;
use crate::workshop::Workshop;

mod examined;
mod exposed;
mod signing;

pub(crate) use examined::mesh_secrets;
use examined::{Examined, examine};

pub(crate) use exposed::{refuse_tokens_in_definitions, tokens_in_names, too_few_approvers};
pub use signing::{load_key, make_log_key, open_place};

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The operator has to change something: exit code 2.
    #[error("{0}")]
    Refused(String),
    /// The machine does not play along: exit code 3.
    #[error("{what}")]
    Environment { what: String, source: Option<Box<dyn std::error::Error + Send + Sync>> },
}

impl StartError {
    pub fn environment(what: impl Into<String>, source: impl std::error::Error + Send + Sync + 'static) -> StartError {
        StartError::Environment { what: what.into(), source: Some(Box::new(source)) }
    }
}

impl From<random::NoRandomness> for StartError {
    fn from(error: random::NoRandomness) -> Self {
        StartError::environment("no random numbers", error)
    }
}

impl From<StoreError> for StartError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused(_) | StoreError::Damaged(_) => StartError::Refused(error.to_string()),
            StoreError::Unavailable(_) | StoreError::DiskFailed(_) | StoreError::Hangs(_) => {
                StartError::Environment { what: error.to_string(), source: None }
            }
        }
    }
}

/// A service that is ready to run: its addresses are bound.
pub struct Service {
    app: Arc<App>,
    main: Listener,
    ops: Option<Listener>,
    tls: Option<Arc<Tls>>,
}

impl Service {
    pub async fn start(config: &Config, log: &Log, stop: watch::Receiver<bool>) -> Result<Service, StartError> {
        if !clock::has_date() {
            let what = "the machine's clock is before 1970 or after 9999; set it, and start again";
            return Err(StartError::Environment { what: what.into(), source: None });
        }
        let clock_guard = Arc::new(ClockGuard::new(Clock::System, SinceBoot::System));
        let clock = Clock::Guarded(Arc::clone(&clock_guard));
        let Examined { tls, mesh_secrets, credentials, role_map, guard, witnesses, trusted } = examine(config, &clock)?;
        log.guard_with(Arc::clone(&guard));
        for warning in production::warnings(config).into_iter().chain(role_map.as_ref().and_then(too_few_approvers)) {
            tracing::warn!("{warning}");
        }
        make_data_dir(&config.data_dir)?;
        let clock_keeper = ClockKeeper::new(clock_guard, config.clock_path());
        let (store, ledger_clock) = open_store(config, &clock, &clock_keeper)?;
        let signer = signing::open(config, &store).await?;
        let workflows = Workflows::load(config.workflows.dir.as_deref(), &*store).await?;
        let mut main = bind(config.listen)?;
        main.limit_connections(connections_possible());
        if let Some((tls, _)) = &tls {
            main.encrypt(Arc::clone(tls));
        }
        // Where nobody is known, long work is shared out by address.
        main.tell_peers();
        if let Some(config::Tls::Mesh(mesh)) = &config.tls {
            let mesh = mesh.clone();
            main.share_addresses(move |address| mesh.trusts(address));
        }
        let ops = match &config.ops {
            Some(ops) => Some(bind(ops.listen)?),
            None => None,
        };
        let starting = Starting {
            credentials: credentials.entries().iter().map(NamedCredential::from).collect(),
            role_map: role_map.as_ref().map(|file| Document::role_map(&file.bytes)),
        };
        let former = LastStart::read(&*store).await?.former(&starting.credentials);
        let (path, log_name) = (config.revocations_path(), signer.verifier().name);
        let (keeps_record, outside) = (config.identity.is_some(), (path.as_path(), log_name.as_str()));
        let register =
            Register::open(&*store, &starting.credentials, &former, keeps_record, outside, clock.now()).await?;
        if let Some(doubt) = register.doubt() {
            let before = doubt.before;
            tracing::warn!(%before, "credentials issued before {before} are not accepted: the ledger was restored with a loss, and it is not known which of them were revoked. Rotate them, or run `pilot credential trust`");
        }
        let register = Arc::new(register);
        let run = u32::from_ne_bytes(random::bytes()?);
        let role_map = role_map.map(|file| file.map);
        let identity = open_identity(config, credentials, role_map, trusted, &guard, &register, &clock)?;
        let workshop = Workshop::open().map_err(|error| StartError::environment("threads for long work", error))?;
        let parts = Parts {
            workshop,
            identity,
            register,
            limits: config.rate_limits.as_ref().map(Limits::new),
            edge: edge(config, mesh_secrets),
            guard,
            clock,
            ledger_clock,
            clock_keeper,
            log: log.clone(),
            store,
            workflows,
            signer,
            reserve: Reserve::new(config.data_dir.clone()),
            witnesses,
            stop,
            run,
            console: config.console.clone(),
        };
        let app = App::new(parts).map_err(|error| StartError::environment("this build is faulty", error))?;
        let app = Arc::new(app);
        let tls = tls.map(|(tls, not_after)| {
            app.metrics.certificate_loaded(not_after);
            tls
        });
        starts::write(&app, starting).await?;
        // Not having the keys refuses nothing: they may come while the service runs, and it says that it is not ready.
        if let Some(provider) = app.identity.provider() {
            provider.refresh().await;
        }
        // Not announced like the other one, and with port 0 nobody could know it otherwise.
        if let Some(address) = ops.as_ref().and_then(|ops| ops.address().ok()) {
            tracing::info!(%address, "operations listener");
        }
        Ok(Service { app, main, ops, tls })
    }

    /// The line for standard output, with the real port.
    pub fn announcement(&self) -> io::Result<String> {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        Ok(format!("listening on {scheme}://{}", self.main.address()?))
    }

    /// The line by which others check what this log signs.
    pub fn verifier_key(&self) -> String {
        self.app.signer.verifier().to_string()
    }

    /// Serves until the service is told to stop, then finishes what is under way and writes down what is left. An error
    /// says that the disk failed meanwhile.
    pub async fn run(self) -> Result<(), StoreError> {
        let stop = self.app.stop.clone();
        let timers = tokio::spawn(timers::run(Arc::clone(&self.app)));
        let clock = tokio::spawn(clock::run(Arc::clone(&self.app)));
        let refusals = tokio::spawn(refusals::write_down(Arc::clone(&self.app)));
        let (done, is_done) = oneshot::channel();
        let credentials = tokio::spawn(register::run(Arc::clone(&self.app), is_done));
        let reloading = self.tls.map(|tls| tokio::spawn(tls.follow(Arc::clone(&self.app))));
        let app = Arc::clone(&self.app);
        let following = tokio::spawn(async move { app.identity.follow().await });
        let signing = tokio::spawn(signer::run(Arc::clone(&self.app)));
        let witnessing = tokio::spawn(witnesses::run(Arc::clone(&self.app)));
        let watching = tokio::spawn(reserve::run(Arc::clone(&self.app)));
        let feeding = tokio::spawn(feed::run(Arc::clone(&self.app)));
        let main = self.main.serve(Arc::clone(&self.app), answer, stop.clone());
        match self.ops {
            Some(ops) => {
                let ops = ops.serve(Arc::clone(&self.app), answer_ops, stop);
                tokio::join!(main, ops);
            }
            None => main.await,
        }
        if let Some(reloading) = reloading {
            reloading.abort();
        }
        following.abort();
        watching.abort();
        feeding.abort();
        timers.abort();
        clock.abort();
        refusals.abort();
        refusals::flush(&self.app, true).await;
        drop(done);
        let _ = credentials.await;
        signing.abort();
        witnessing.abort();
        if let Err(error) = self.app.signer.checkpoint().await {
            tracing::error!(cause = %error, "the last entries are not covered by a checkpoint; the next start signs them");
        }
        if let Err(cause) = self.app.clock_keeper.leave() {
            tracing::warn!(%cause, "the clock record could not be saved for the next start");
        }
        let store = Arc::clone(&self.app.store);
        let stopped = tokio::task::spawn_blocking(move || store.stop()).await;
        stopped.unwrap_or_else(|error| Err(StoreError::Unavailable(error.to_string())))
    }

    /// Whether a supervisor may be told that all is well. A disk may be slow; one that stays silent is another matter.
    pub fn is_alive(&self) -> impl Fn() -> bool + Send + 'static {
        let store = Arc::clone(&self.app.store);
        move || store.pulse().hanging.is_none_or(|hanging| hanging < HANG_TOLERATED)
    }
}

/// The role map with the file it was read from, whose digest goes into the ledger.
pub struct RoleMapFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub map: RoleMap,
}

/// Finds what must not be written anywhere, by the tokens this configuration lets in.
pub fn leak_guard(config: &Config, credentials: &Credentials) -> Result<LeakGuard, random::NoRandomness> {
    let guard = LeakGuard::new(credentials.clone(), random::number()?);
    Ok(if config.mechanism() == Mechanism::Oauth { guard.with_signed_tokens() } else { guard })
}

/// The credential file from wherever it is kept, where the mechanism has one, and the role map, or every fault of both
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
    match credentials {
        Some(credentials) if faults.is_empty() => Ok((credentials, role_map)),
        _ => Err(StartError::Refused(faults.join("\n"))),
    }
}

fn read_role_map(config: &Config, faults: &mut Vec<String>) -> Option<RoleMapFile> {
    let path = config.credentials.role_map.as_deref()?;
    let parse = |bytes: &[u8]| RoleMap::parse(bytes).map(|map| (map, bytes.to_vec()));
    let (map, bytes) = read(path, Others::MayRead, parse, faults)?;
    Some(RoleMapFile { path: path.to_owned(), bytes, map })
}

fn open_identity(
    config: &Config,
    credentials: Credentials,
    role_map: Option<RoleMap>,
    trusted: Option<Trusted>,
    guard: &Arc<LeakGuard>,
    register: &Arc<Register>,
    clock: &Clock,
) -> Result<Identity, StartError> {
    let (guard, register, clock) = (Arc::clone(guard), Arc::clone(register), clock.clone());
    if let Some(trusted) = trusted {
        let role_map = role_map.unwrap_or_else(RoleMap::empty);
        return Ok(Identity::Oauth(Box::new(Oauth::new(trusted, role_map, register, clock))));
    }
    let settings = config.identity.as_ref().and_then(|identity| identity.mutual_tls.as_ref());
    let clients = config.tls.as_ref().and_then(config::Tls::clients);
    match (config.mechanism(), clients, role_map) {
        (Mechanism::MutualTls, Some(clients), Some(role_map)) => {
            let opened = MutualTls::open(clients, settings, role_map, register, clock);
            opened.map(Identity::MutualTls).map_err(|error| StartError::Refused(format!("tls: {}", with_cause(&error))))
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

/// Which version of the credential file this configuration reads: in production only the one whose credentials expire.
pub fn credential_format(config: &Config) -> CredentialFormat {
    match (config.profile, &config.identity) {
        (Profile::Production, _) => Credentials::parse_expiring,
        (Profile::Pilot, Some(_)) => Credentials::parse_either,
        (Profile::Pilot, None) => Credentials::parse,
    }
}

/// What the group and the rest of the world may do with a secret file.
pub(crate) fn others(config: &Config) -> Others {
    match config.profile {
        Profile::Pilot => Others::MayRead,
        Profile::Production => Others::MayNothing,
    }
}

/// Certificate and key, when TLS ends here, and until when the certificate is valid.
fn open_tls(config: &Config) -> Result<Option<(Arc<Tls>, Time)>, StartError> {
    let Some(config::Tls::Here(files)) = &config.tls else { return Ok(None) };
    let opened = Tls::open(files, others(config));
    let (tls, loaded) = opened.map_err(|error| StartError::Refused(format!("tls: {}", with_cause(&error))))?;
    if let Some(exposed) = loaded.exposed {
        tracing::warn!("{exposed}");
    }
    Ok(Some((Arc::new(tls), loaded.certificate.not_after)))
}

fn edge(config: &Config, mesh_secrets: Vec<Digest>) -> Edge {
    match &config.tls {
        Some(config::Tls::Mesh(mesh)) => {
            Edge::new(Some(mesh.clone()), config.profile == Profile::Production, mesh_secrets)
        }
        Some(config::Tls::Here(_)) => Edge::encrypted(config.profile == Profile::Production),
        None => Edge::default(),
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

pub(crate) fn with_cause(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

/// Definitions are read from here; a misspelt directory must not silently mean "none".
pub(crate) fn check_workflows_dir(config: &Config) -> Result<(), StartError> {
    match &config.workflows.dir {
        Some(path) if !path.is_dir() => Err(StartError::Refused(format!(
            "{}: workflows.dir is not a directory; create it, or remove the setting",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn make_data_dir(path: &Path) -> Result<(), StartError> {
    private_file::make_directory(path).map_err(|error| {
        StartError::environment(format!("{}: the data directory cannot be created", path.display()), error)
    })
}

/// The store, and the clock it dates entries by, which goes on from the last one.
fn open_store(
    config: &Config,
    machine: &Clock,
    keeper: &ClockKeeper,
) -> Result<(Arc<dyn Store>, LedgerClock), StartError> {
    let path = config.sqlite_path().ok_or_else(no_such_store)?;
    // A ledger's clock never goes back, so it is not made before the machine's is known to be right. Until then the store
    // dates nothing.
    let of_store = Arc::new(OnceLock::new());
    let given = Arc::clone(&of_store);
    let store = Sqlite::open(&path, Arc::new(move || given.get().map_or(Time::EPOCH, LedgerClock::now)))?;
    let is_begun = store.head().borrow().size() > 0;
    keeper.begin(is_begun.then(|| store.last_at()), config.clock.outage());
    let clock = LedgerClock::new(machine.clone(), Elapsed::measured());
    clock.begin_at(store.last_at());
    let _ = of_store.set(clock.clone());
    Ok((Arc::new(store), clock))
}

pub(crate) fn no_such_store() -> StartError {
    let refused = "store.url: this version supports only the embedded store; give it as \"sqlite:pilot.db\"";
    StartError::Refused(refused.into())
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

/// Raises the limit of open files as far as it goes; some are kept for the store and the log.
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
