//! From a configuration to a running service: everything is checked before the first connection is accepted.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_core::credentials::Credentials;
use pilot_core::fault::Fault;
use pilot_core::leak::LeakGuard;
use pilot_core::role_map::RoleMap;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Store, StoreError};
use tokio::sync::watch;

use crate::answer::answer;
use crate::api::ops::answer_ops;
use crate::app::{App, Parts};
use crate::clock::Clock;
use crate::config::{Config, Profile};
use crate::identity::{Identity, credential_file::CredentialFile};
use crate::listen::Listener;
use crate::log::Log;
use crate::private_file::{self, Others};
use crate::random;
use crate::refusals;
use crate::signer;
use crate::starts::{self, Starting};
use crate::timers;
use crate::witnesses::{self, Witnesses};
use crate::workflows::Workflows;

mod signing;

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
            StoreError::Unavailable(_) | StoreError::DiskFailed(_) => {
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
}

impl Service {
    pub async fn start(config: &Config, log: &Log, stop: watch::Receiver<bool>) -> Result<Service, StartError> {
        if config.profile == Profile::Production {
            let missing = "profile: \"production\" needs TLS, rate limits and an identity mechanism, which this version does not have; use \"pilot\"";
            return Err(StartError::Refused(missing.into()));
        }
        let (credentials, role_map) = load_credentials(config)?;
        let guard = Arc::new(LeakGuard::new(credentials.clone(), random::number()?));
        if let Some(RoleMapFile { path, bytes, .. }) = &role_map
            && guard.find(bytes).is_some()
        {
            let remedy = "holds a live token; remove it from there, and rotate the credential";
            return Err(StartError::Refused(format!("{}: {remedy}", path.display())));
        }
        log.guard_with(Arc::clone(&guard));
        check_workflows_dir(config)?;
        let witnesses = Witnesses::new(&config.log).map_err(|error| StartError::Refused(error.to_string()))?;
        let witnesses = Arc::new(witnesses);
        make_data_dir(&config.data_dir)?;
        let clock = Clock::System;
        let store = open_store(config, &clock)?;
        let signer = signing::open(config, &store).await?;
        let workflows = Workflows::load(config.workflows.dir.as_deref(), &*store).await?;
        let mut main = bind(config.listen)?;
        main.limit_connections(connections_possible());
        let ops = match &config.ops {
            Some(ops) => Some(bind(ops.listen)?),
            None => None,
        };
        let starting = Starting::new(&credentials, role_map.as_ref());
        let run = u32::from_ne_bytes(random::bytes()?);
        let identity =
            CredentialFile::new(credentials, role_map.map(|file| file.map), Arc::clone(&guard), clock.clone());
        let parts = Parts {
            identity: Identity::CredentialFile(identity),
            guard,
            clock,
            log: log.clone(),
            store,
            workflows,
            signer,
            witnesses,
            stop,
            run,
            console: config.console.clone(),
        };
        let app = App::new(parts).map_err(|error| StartError::environment("this build is faulty", error))?;
        let app = Arc::new(app);
        starts::write(&app, starting).await?;
        Ok(Service { app, main, ops })
    }

    /// The line for standard output, with the real port.
    pub fn announcement(&self) -> io::Result<String> {
        Ok(format!("listening on http://{}", self.main.address()?))
    }

    /// Serves until the service is told to stop, then finishes what is under way and writes down what is left.
    pub async fn run(self) {
        let stop = self.app.stop.clone();
        let timers = tokio::spawn(timers::run(Arc::clone(&self.app)));
        let refusals = tokio::spawn(refusals::write_down(Arc::clone(&self.app)));
        let signing = tokio::spawn(signer::run(Arc::clone(&self.app)));
        let witnessing = tokio::spawn(witnesses::run(Arc::clone(&self.app)));
        let main = self.main.serve(Arc::clone(&self.app), answer, stop.clone());
        match self.ops {
            Some(ops) => {
                let ops = ops.serve(Arc::clone(&self.app), answer_ops, stop);
                tokio::join!(main, ops);
            }
            None => main.await,
        }
        timers.abort();
        refusals.abort();
        refusals::flush(&self.app, true).await;
        signing.abort();
        witnessing.abort();
        if let Err(error) = self.app.signer.checkpoint().await {
            tracing::error!(cause = %error, "the last entries are not under a checkpoint; the next start signs them");
        }
    }
}

/// The role map with the file it was read from, whose digest goes into the ledger.
pub struct RoleMapFile {
    pub path: PathBuf,
    pub bytes: Vec<u8>,
    pub map: RoleMap,
}

/// The credential file and the role map, or every fault of both at once.
pub fn load_credentials(config: &Config) -> Result<(Credentials, Option<RoleMapFile>), StartError> {
    let mut faults = Vec::new();
    let path = &config.credentials.file;
    if matches!(path.try_exists(), Ok(false)) {
        let remedy = "does not exist yet; make the first credential with `pilot credential new`";
        return Err(StartError::Refused(format!("{}: {remedy}", path.display())));
    }
    let others = match config.profile {
        Profile::Pilot => Others::MayRead,
        Profile::Production => Others::MayNothing,
    };
    let credentials = read(path, others, Credentials::parse, &mut faults);
    let role_map = config.credentials.role_map.as_deref().and_then(|path| {
        let parse = |bytes: &[u8]| RoleMap::parse(bytes).map(|map| (map, bytes.to_vec()));
        let (map, bytes) = read(path, Others::MayRead, parse, &mut faults)?;
        Some(RoleMapFile { path: path.to_owned(), bytes, map })
    });
    if let (Some(credentials), Some(RoleMapFile { map, .. })) = (&credentials, &role_map) {
        faults.extend(credentials.check_against(map).iter().map(|fault| line(path, fault)));
    }
    match credentials {
        Some(credentials) if faults.is_empty() => Ok((credentials, role_map)),
        _ => Err(StartError::Refused(faults.join("\n"))),
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
    parse(&file.bytes).map_err(|found| faults.extend(found.iter().map(|fault| line(path, fault)))).ok()
}

fn line(path: &Path, fault: &Fault) -> String {
    format!("{}{}{fault}", path.display(), if fault.pointer.is_empty() { " " } else { " at " })
}

fn with_cause(error: &impl std::error::Error) -> String {
    match error.source() {
        Some(cause) => format!("{error} ({cause})"),
        None => error.to_string(),
    }
}

/// Definitions are read from here; a misspelt directory must not silently mean "none".
fn check_workflows_dir(config: &Config) -> Result<(), StartError> {
    match &config.workflows.dir {
        Some(path) if !path.is_dir() => Err(StartError::Refused(format!(
            "{}: workflows.dir is not a directory; make it, or leave it out",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn make_data_dir(path: &Path) -> Result<(), StartError> {
    use std::os::unix::fs::DirBuilderExt;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| {
        StartError::environment(format!("{}: the data directory cannot be made", path.display()), error)
    })
}

fn open_store(config: &Config, clock: &Clock) -> Result<Arc<dyn Store>, StartError> {
    let Some(path) = config.sqlite_path() else {
        let refused = "store.url: this version has the embedded store alone; give it as \"sqlite:pilot.db\"";
        return Err(StartError::Refused(refused.into()));
    };
    let clock = clock.clone();
    Ok(Arc::new(Sqlite::open(&path, Arc::new(move || clock.now()))?))
}

fn bind(address: std::net::SocketAddr) -> Result<Listener, StartError> {
    let bound = Listener::bind(address);
    bound.map_err(|error| {
        StartError::environment(format!("{address}: cannot listen there; is another service using the port?"), error)
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
