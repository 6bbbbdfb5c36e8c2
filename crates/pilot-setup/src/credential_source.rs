//! Where the credential file comes from. Wherever that is, it is read once, completely, and by the same strict rules.

use std::future::Future;
use std::path::Path;

use crate::config::{Config, Source, Systemd};
use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};

mod exec;
mod fetched;
mod vault;

pub use fetched::Fetched;

/// The current bytes of the file. If the source does not answer, the environment failed; if it refuses, someone has to
/// change something.
pub fn fetch(config: &Config) -> Result<Fetched, StartError> {
    let others = config.others();
    match &config.credentials.source {
        Source::File(path) => read_file(path, others),
        Source::Systemd(systemd) => read_from_systemd(systemd),
        Source::Exec(exec) => wait_for(exec::run(exec))?,
        Source::Vault(vault) => wait_for(vault::fetch(vault, others))?,
    }
}

fn read_file(path: &Path, others: Others) -> Result<Fetched, StartError> {
    if matches!(path.try_exists(), Ok(false)) {
        let remedy = "does not exist yet; create the first credential with `pilot credential new`";
        return Err(StartError::Refused(format!("{}: {remedy}", path.display())));
    }
    let file = private_file::read(path, others).map_err(|error| StartError::Refused(with_cause(&error)))?;
    Ok(Fetched::new(file.bytes, file.exposed))
}

fn read_from_systemd(systemd: &Systemd) -> Result<Fetched, StartError> {
    let Systemd { name, directory } = systemd;
    let refused = |what: &str| {
        let remedy = format!("start the service from a unit with LoadCredential={name}:PATH");
        StartError::Refused(format!("credentials.systemd: `{name}`: {what}; {remedy}"))
    };
    let Some(directory) = directory else {
        return Err(refused("CREDENTIALS_DIRECTORY is not set, so systemd passed no credentials"));
    };
    let path = directory.join(name);
    if matches!(path.try_exists(), Ok(false)) {
        return Err(refused("systemd passed other credentials, but not this one"));
    }
    let read = private_file::read(&path, Others::GroupMayReadOfRoot);
    let file = read.map_err(|error| StartError::Refused(format!("credentials.systemd: {}", with_cause(&error))))?;
    Ok(Fetched::new(file.bytes, None))
}

/// Runs on its own thread: a start runs in a runtime that must not be blocked from inside, and the other commands have
/// none.
fn wait_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, StartError> {
    let run =
        || tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| runtime.block_on(work));
    match std::thread::scope(|scope| scope.spawn(run).join()) {
        Ok(done) => done.map_err(|error| StartError::environment("the runtime", error)),
        Err(_) => Err(StartError::Environment { what: "fetching the credentials panicked".into(), source: None }),
    }
}
