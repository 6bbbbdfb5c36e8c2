//! The files an operator works with: where they are, and how they are changed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use pilot_core::credentials::{Credential, Credentials, Schema};
use pilot_core::fault::Fault;
use pilot_core::role_map::RoleMap;
use pilot_setup::config::{Config, Profile, Source};
use pilot_setup::credential_source::{self, Fetched};
use pilot_setup::credentials::{self, CredentialFormat};
use pilot_setup::error::StartError;
use pilot_setup::private_file::{self, FileError, Others};
use pilot_store::archive::Archive;
use pilot_store::engines::{self, StoreAddress};

use crate::environment::Environment;
use crate::exit::Failure;

/// Which files a command works on: those of a configuration, or a credential file named directly.
#[derive(clap::Args, Clone)]
pub(crate) struct FileArguments {
    /// The configuration that names the files [default: pilot.toml, if it exists here]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The credential file itself, instead of the one the configuration names
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The approved role map to compare with [default: the configuration's]
    #[arg(long, value_name = "FILE")]
    pub role_map: Option<PathBuf>,
}

const ROTATION_RECORD: &str = "rotation-record.jsonl";

pub(crate) struct Files {
    /// Where the credential file is or comes from.
    pub source: Source,
    config: Option<Config>,
    pub role_map: Option<PathBuf>,
    pub rotation_record: PathBuf,
    /// The format of a new credential file, if the configuration determines it; an existing file keeps its own.
    pub schema: Option<Schema>,
    /// What the service would read.
    pub format: CredentialFormat,
}

impl FileArguments {
    pub(crate) fn find(&self, environment: &Environment) -> Result<Files, Failure> {
        let here = PathBuf::from("pilot.toml");
        let config = match (&self.config, &self.file) {
            (Some(config), _) => config.clone(),
            (None, Some(file)) => return Ok(self.without_config(file)),
            (None, None) if here.exists() => here,
            (None, None) => {
                return Err(Failure::Usage("say which files: --config pilot.toml or --file credentials.json".into()));
            }
        };
        let config = Config::load(&config, environment.variables())?;
        Ok(Files {
            format: credentials::credential_format(&config),
            source: self.file.clone().map_or_else(|| config.credentials.source.clone(), Source::File),
            role_map: self.role_map.clone().or_else(|| config.credentials.role_map.clone()),
            rotation_record: config.data_dir.join(ROTATION_RECORD),
            schema: Some(if config.profile == Profile::Production { Schema::Two } else { Schema::One }),
            config: Some(config),
        })
    }

    fn without_config(&self, file: &Path) -> Files {
        Files {
            source: Source::File(file.to_owned()),
            config: None,
            role_map: self.role_map.clone(),
            rotation_record: file.with_file_name(ROTATION_RECORD),
            schema: None,
            format: Credentials::parse_either,
        }
    }
}

impl Files {
    /// The file that a command is about to change. A file from a secret manager is changed there.
    pub(crate) fn editable(&self) -> Result<&Path, Failure> {
        self.source.file().ok_or_else(|| {
            let source = &self.source;
            let remedy = "change them there. With `--file FILE` this command works on a copy of the file instead";
            Failure::Usage(format!("the credentials come from {source}; {remedy}"))
        })
    }

    /// What the service would read, from wherever it would read it.
    pub(crate) fn fetch(&self) -> Result<Fetched, Failure> {
        match (&self.config, self.source.file()) {
            (Some(config), None) => credential_source::fetch(config).map_err(|error| match error {
                StartError::Refused(text) => Failure::Usage(text),
                StartError::Environment { what, source: Some(cause) } => Failure::environment(what, cause),
                StartError::Environment { what, source: None } => Failure::Environment(what),
            }),
            (_, path) => {
                let path = path.unwrap_or(Path::new(""));
                let file = private_file::read(path, Others::MayRead).map_err(|error| unreadable(&error))?;
                Ok(Fetched::new(file.bytes, file.exposed))
            }
        }
    }
}

/// The ledger of this installation. `verb` says what the command does to it, for messages.
pub(crate) fn ledger(config: &Config, verb: &str) -> Result<Box<dyn Archive>, Failure> {
    let address = store_address(config).ok_or_else(|| {
        let forms = "write sqlite:PATH or postgres://user@host/database";
        Failure::Usage(format!("store.url: this command cannot {verb} such a store; {forms}"))
    })?;
    Ok(engines::archive(address, &config.data_dir))
}

/// Where the ledger of this installation is; none if no engine knows such an address.
pub(crate) fn store_address(config: &Config) -> Option<StoreAddress> {
    let file = config.sqlite_path().map(StoreAddress::Sqlite);
    file.or_else(|| config.postgres().map(StoreAddress::Postgres))
}

/// The service could not open files that root creates in the data directory. So commands that read or change the
/// service's data run as the user who owns it.
pub(crate) fn refuse_root(config: &Config) -> Result<(), Failure> {
    refuse_root_at(&config.data_dir)
}

pub(crate) fn refuse_root_at(directory: &Path) -> Result<(), Failure> {
    let Ok(owner) = std::fs::metadata(directory).map(|found| found.uid()) else { return Ok(()) };
    if !rustix::process::geteuid().is_root() || owner == 0 {
        return Ok(());
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(owner)).then(|| name.to_owned())
    });
    let (directory, name) = (directory.display(), name.unwrap_or_else(|| format!("#{owner}")));
    Err(Failure::Usage(format!(
        "{directory} belongs to the user {name}, and the service cannot open files that root creates there; run \
         this as that user: runuser -u {name} -- pilot …"
    )))
}

/// Serialises changes to a file between operators; released when dropped.
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not read")] File);

pub(crate) fn lock(path: &Path) -> Result<Lock, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.lock"));
    let failed = |error| Failure::environment(beside.display(), error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&beside).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(Lock(file))
}

pub(crate) fn read_credentials(path: &Path) -> Result<Credentials, Failure> {
    read(path, Credentials::parse_either)
}

pub(crate) fn read_role_map(path: &Path) -> Result<RoleMap, Failure> {
    read(path, RoleMap::parse)
}

fn read<T>(path: &Path, parse: fn(&[u8]) -> Result<T, Vec<Fault>>) -> Result<T, Failure> {
    let file = private_file::read(path, Others::MayRead).map_err(|error| unreadable(&error))?;
    parse(&file.bytes).map_err(|faults| Failure::Usage(list_faults(path.display(), &faults)))
}

fn unreadable(error: &FileError) -> Failure {
    match error {
        FileError::Open { source, .. } | FileError::Read { source, .. } => Failure::environment(error, source),
        _ => Failure::Usage(error.to_string()),
    }
}

pub(crate) fn list_faults(place: impl std::fmt::Display, faults: &[Fault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| format!("  {fault}")).collect();
    let count: usize = faults.iter().map(|fault| fault.times).sum();
    format!("{place} has {count} fault(s):\n{}", lines.join("\n"))
}

/// Replaces the credential file atomically, after making sure that the service would accept it.
pub(crate) fn write_credentials(path: &Path, schema: Schema, entries: Vec<Credential>) -> Result<(), Failure> {
    let text = Credentials::new(schema, entries).to_json();
    Credentials::parse_either(text.as_bytes())
        .map_err(|faults| Failure::Refused(list_faults(path.display(), &faults)))?;
    private_file::replace(path, text.as_bytes()).map_err(|error| Failure::environment(path.display(), error))
}
