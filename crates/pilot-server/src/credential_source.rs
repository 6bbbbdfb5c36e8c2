//! Where the credential file comes from. Whoever keeps it, it is read once, whole, and by the same strict rules.

use std::future::Future;
use std::path::Path;

use zeroize::Zeroizing;

use crate::config::{Config, Source, Systemd};
use crate::private_file::{self, FileError, Others};
use crate::start::{StartError, others, with_cause};

mod exec;
mod vault;

/// A word this long in what others print may be a secret of theirs; a word of a sentence never is.
const WORD_CHARS_MAX: usize = 20;

pub struct Fetched {
    pub bytes: Zeroizing<Vec<u8>>,
    /// Set when others may read a file though they should not.
    pub exposed: Option<FileError>,
    /// What a helper had to say, without words that could be a secret.
    pub remarks: Vec<String>,
}

impl Fetched {
    pub fn new(bytes: Vec<u8>, exposed: Option<FileError>) -> Fetched {
        Fetched { bytes: Zeroizing::new(bytes), exposed, remarks: Vec::new() }
    }
}

/// The file's bytes, as its keeper has them now. What does not answer is the environment's fault; what answers with a no
/// is someone's to change.
pub fn fetch(config: &Config) -> Result<Fetched, StartError> {
    let others = others(config);
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

/// Runs on a thread of its own: a start is under way in a runtime that must not be blocked from inside, and the other
/// commands have none.
fn wait_for<T: Send>(work: impl Future<Output = T> + Send) -> Result<T, StartError> {
    let run =
        || tokio::runtime::Builder::new_current_thread().enable_all().build().map(|runtime| runtime.block_on(work));
    match std::thread::scope(|scope| scope.spawn(run).join()) {
        Ok(done) => done.map_err(|error| StartError::environment("the runtime", error)),
        Err(_) => Err(StartError::Environment { what: "fetching the credentials panicked".into(), source: None }),
    }
}

/// Someone else's text for our log: one line, no long word.
fn plain_words(text: &str) -> String {
    let word = |word: &str| {
        if word.chars().count() < WORD_CHARS_MAX { word.replace(char::is_control, "") } else { "(withheld)".to_owned() }
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_print_loses_every_word_that_could_be_a_secret() {
        let token = "s.abcdefghijklmnopqrst";
        assert_eq!(plain_words(&format!("denied:\n\t* no  {token}, \"a\"")), "denied: * no (withheld) \"a\"");
        assert_eq!(plain_words("bell\u{7}s \u{1b}[31mred"), "bells [31mred");
    }
}
