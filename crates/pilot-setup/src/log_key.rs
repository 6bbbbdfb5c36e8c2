//! The key that signs the log: in a file, or with a program that signs.

use std::path::Path;
use std::sync::Arc;

use pilot_evidence::note::{NoteKey, VerifierKey};

use crate::config::{Config, Signer};
use crate::error::{StartError, with_cause};
use crate::private_file::{self, Others};
use crate::random;

mod helper;

use helper::Helper;
pub use helper::{Haste, SignatureError};

pub enum LogKey {
    File(Box<NoteKey>),
    Helper(Arc<Helper>),
}

impl From<NoteKey> for LogKey {
    fn from(key: NoteKey) -> LogKey {
        LogKey::File(Box::new(key))
    }
}

impl LogKey {
    /// The key as it is configured: a file is made on the first start, the key of a program is remembered then.
    pub async fn open(config: &Config, is_begun: bool) -> Result<LogKey, StartError> {
        let Some(signer) = &config.log.signer else { return Ok(load_or_make(config, is_begun)?.into()) };
        let path = config.log_public_key_path();
        if is_begun && !is_known(config) {
            return Err(lost(&path, "public key"));
        }
        let offered = LogKey::expected(config, signer).await?;
        if !path.exists() {
            remember(&path, &offered.verifier())?;
        }
        if config.log_key_path().exists() {
            let path = config.log_key_path();
            let path = path.display();
            tracing::warn!(
                "{path} is no longer used: log.signer has the key. Keep a copy offline, and remove the file"
            );
        }
        Ok(offered)
    }

    /// The key of a program, if it is the one that is known.
    pub async fn expected(config: &Config, signer: &Signer) -> Result<LogKey, StartError> {
        // Before the program runs: its PIN is not spent on a configuration that is wrong.
        let known = is_known(config).then(|| verifier(config)).transpose()?;
        let offered = LogKey::offered(signer).await?;
        if let Some(known) = known {
            check_same(&known, &offered.verifier())?;
        }
        Ok(offered)
    }

    /// The key that a program has now, whatever it had before.
    pub async fn offered(signer: &Signer) -> Result<LogKey, StartError> {
        Ok(LogKey::Helper(Helper::start(signer).await?))
    }

    pub fn verifier(&self) -> VerifierKey {
        match self {
            LogKey::File(key) => key.verifier(),
            LogKey::Helper(helper) => helper.verifier().clone(),
        }
    }

    pub async fn sign(&self, message: &[u8], haste: Haste) -> Result<[u8; 64], SignatureError> {
        match self {
            LogKey::File(key) => Ok(key.sign_bytes(message)),
            LogKey::Helper(helper) => helper.sign(message, haste).await,
        }
    }

    /// The text as a signed note.
    pub async fn note(&self, text: String, haste: Haste) -> Result<String, SignatureError> {
        let signature = self.sign(text.as_bytes(), haste).await?;
        Ok(self.verifier().note(text, &signature)?)
    }
}

/// The public half of the configured key. It needs no program: what is known of it is in a file.
pub fn verifier(config: &Config) -> Result<VerifierKey, StartError> {
    let path = config.log_public_key_path();
    let Some(signer) = &config.log.signer else { return Ok(load_checked(config)?.verifier()) };
    if !path.exists() {
        // A key that was in a file until now.
        return Ok(load(&config.log_key_path())?.verifier());
    }
    let known = read_public(&path)?;
    if known.name == signer.name {
        return Ok(known);
    }
    let (path, name) = (path.display(), &known.name);
    Err(StartError::Refused(format!("log.signer.name: the log is named {name} ({path}); its name cannot be changed")))
}

/// Whether a file tells which key this log has.
pub fn is_known(config: &Config) -> bool {
    config.log_key_path().exists() || config.log_public_key_path().exists()
}

/// The public half as it was remembered, for a log whose key is in no file.
pub fn read_public(path: &Path) -> Result<VerifierKey, StartError> {
    let file = private_file::read(path, Others::MayRead).map_err(|error| StartError::Refused(with_cause(&error)))?;
    let wrong = |error| StartError::Refused(format!("{}: {error}", path.display()));
    VerifierKey::parse(&String::from_utf8_lossy(&file.bytes)).map_err(wrong)
}

pub fn remember(path: &Path, key: &VerifierKey) -> Result<(), StartError> {
    let written = private_file::write_new(path, format!("{key}\n").as_bytes());
    written.map_err(|error| StartError::environment(format!("{}: cannot be written", path.display()), error))
}

/// The signer must have the key that this log began with.
fn check_same(known: &VerifierKey, offered: &VerifierKey) -> Result<(), StartError> {
    if known == offered {
        return Ok(());
    }
    Err(StartError::Refused(format!(
        "log.signer: the program has a different key from this log.\n\
         the log's key: {known}\n\
         the program's: {offered}\n\
         Fix: let log.signer name the log's key and its name, or put the log.key file back; another key would begin another log."
    )))
}

fn lost(path: &Path, what: &str) -> StartError {
    let remedy = "restore it from your copy: another key would begin another log";
    let path = path.display();
    StartError::Refused(format!("{path}: the log's {what} is missing, but the ledger is not empty; {remedy}"))
}

/// The key from a file: generated on the first start, refused if it is damaged or accessible to others.
fn load_or_make(config: &Config, is_begun: bool) -> Result<NoteKey, StartError> {
    let path = config.log_key_path();
    if is_known(config) {
        return load_checked(config);
    }
    if is_begun {
        return Err(lost(&path, "signing key"));
    }
    let name = format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?));
    make(&path, &name)
}

/// The key from a file. If a program held the log's key before, it must be the same key.
pub fn load_checked(config: &Config) -> Result<NoteKey, StartError> {
    let (path, public) = (config.log_key_path(), config.log_public_key_path());
    if !public.exists() {
        return load(&path);
    }
    let known = read_public(&public)?;
    let refused = |what: String| StartError::Refused(format!("{}: {what}", path.display()));
    if !path.exists() {
        let public = public.display();
        return Err(refused(format!(
            "there is no such file: the log's key is held by a program ({public}); configure log.signer, or put the key back"
        )));
    }
    let key = load(&path)?;
    if key.verifier() == known {
        return Ok(key);
    }
    Err(refused(format!("is not the key of this log, which is {known} according to {}", public.display())))
}

/// Reads the key from a file that nobody else may read.
pub fn load(path: &Path) -> Result<NoteKey, StartError> {
    let file = private_file::read(path, Others::MayNothing).map_err(|error| StartError::Refused(with_cause(&error)))?;
    let text = String::from_utf8_lossy(&file.bytes);
    NoteKey::parse(&text).map_err(|error| StartError::Refused(format!("{}: {error}", path.display())))
}

/// Writes a new log key; never over an old one, because then the old log could not be continued.
pub fn make(path: &Path, name: &str) -> Result<NoteKey, StartError> {
    let key = NoteKey::generate(name, &random::bytes()?).map_err(|error| StartError::Refused(error.to_string()))?;
    let written = private_file::write_new(path, key.to_line().as_bytes());
    written.map_err(|error| StartError::environment(format!("{}: cannot be written", path.display()), error))?;
    Ok(key)
}
