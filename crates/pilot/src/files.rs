//! The files an operator works with: where they are, and how they are changed.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use pilot_core::credentials::{Credential, Credentials, Schema};
use pilot_core::fault::Fault;
use pilot_core::role_map::RoleMap;
use pilot_server::config::{Config, Profile, Source};
use pilot_server::credential_source::{self, Fetched};
use pilot_server::private_file::{self, FileError, Others};
use pilot_server::start::{self, CredentialFormat, StartError};

use crate::environment::Environment;
use crate::exit::Failure;

/// Which files a command works on: those of a configuration, or a credential file named directly.
#[derive(clap::Args, Clone)]
pub struct FileArguments {
    /// The configuration that names the files [default: pilot.toml, when there is one here]
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub config: Option<PathBuf>,
    /// The credential file itself
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The approved role map to compare with [default: the configuration's]
    #[arg(long, value_name = "FILE")]
    pub role_map: Option<PathBuf>,
}

pub struct Files {
    /// Where the credential file is, or who has it.
    pub source: Source,
    config: Option<Config>,
    pub role_map: Option<PathBuf>,
    pub rotation_record: PathBuf,
    /// The format a credential file begins with; one that exists keeps its own.
    pub schema: Schema,
    /// What the service would read.
    pub format: CredentialFormat,
}

impl FileArguments {
    pub fn find(&self, environment: &Environment) -> Result<Files, Failure> {
        if let Some(file) = &self.file {
            let beside = file.parent().unwrap_or(Path::new(""));
            return Ok(Files {
                source: Source::File(file.clone()),
                config: None,
                role_map: self.role_map.clone(),
                rotation_record: beside.join("rotation-record.jsonl"),
                schema: Schema::One,
                format: Credentials::parse_either,
            });
        }
        let here = PathBuf::from("pilot.toml");
        let config = match &self.config {
            Some(config) => config.clone(),
            None if here.exists() => here,
            None => {
                return Err(Failure::Usage("say which files: --config pilot.toml or --file credentials.json".into()));
            }
        };
        let config = Config::load(&config, environment.variables())?;
        Ok(Files {
            format: start::credential_format(&config),
            source: config.credentials.source.clone(),
            role_map: self.role_map.clone().or_else(|| config.credentials.role_map.clone()),
            rotation_record: config.data_dir.join("rotation-record.jsonl"),
            schema: if config.profile == Profile::Production { Schema::Two } else { Schema::One },
            config: Some(config),
        })
    }
}

impl Files {
    /// The file that a command is about to change. What someone else keeps is changed there.
    pub fn editable(&self) -> Result<&Path, Failure> {
        self.source.file().ok_or_else(|| {
            let source = &self.source;
            let remedy = "change them there. With `--file FILE` this command works on a copy of the file instead";
            Failure::Usage(format!("the credentials come from {source}; {remedy}"))
        })
    }

    /// What the service would read, from wherever it would read it.
    pub fn fetch(&self) -> Result<Fetched, Failure> {
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

/// Serialises changes to a file between operators; the lock is gone when it is dropped.
pub struct Lock(#[expect(dead_code, reason = "held, not read")] File);

pub fn lock(path: &Path) -> Result<Lock, Failure> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = path.with_file_name(format!(".{name}.lock"));
    let failed = |error| Failure::environment(beside.display(), error);
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&beside).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(Lock(file))
}

pub fn read_credentials(path: &Path) -> Result<Credentials, Failure> {
    read(path, Credentials::parse_either)
}

pub fn read_role_map(path: &Path) -> Result<RoleMap, Failure> {
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

pub fn list_faults(place: impl std::fmt::Display, faults: &[Fault]) -> String {
    let lines: Vec<_> = faults.iter().map(|fault| format!("  {fault}")).collect();
    format!("{place} has {} fault(s):\n{}", faults.len(), lines.join("\n"))
}

/// Writes the credential file in one step, after making sure that the service would accept it.
pub fn write_credentials(path: &Path, schema: Schema, entries: Vec<Credential>) -> Result<(), Failure> {
    let text = Credentials::new(schema, entries).to_json();
    Credentials::parse_either(text.as_bytes())
        .map_err(|faults| Failure::Refused(list_faults(path.display(), &faults)))?;
    private_file::replace(path, text.as_bytes()).map_err(|error| Failure::environment(path.display(), error))
}
