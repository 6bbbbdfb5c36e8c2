//! `pilot backup`: everything a service needs, in a new directory, verified before it gets its name.

use std::fs;
use std::path::{Path, PathBuf};

use pilot_evidence::checkpoint::Checkpoint;
use pilot_ledger::clock::Clock;
use pilot_ledger::second_place;
use pilot_setup::backup_record::BackupRecord;
use pilot_setup::config::Config;
use pilot_setup::log_key;
use pilot_setup::private_file;
use pilot_store::archive::{Archive, Report};
use pilot_store::engines;

use crate::cmd::log::{examine, in_words};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, note, print, print_json};

mod layout;
mod manifest;

pub(crate) use layout::{CHECKPOINT, CONFIG, DATABASE, KEY, REVOCATIONS, ROLE_MAP, WORKFLOWS};
pub(crate) use manifest::{Manifest, redact_config};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    /// The directory to create; it must not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Include the log signing key in the backup; anyone who has it can sign in the log's name
    #[arg(long)]
    with_key: bool,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    files::refuse_root(&config)?;
    let out = &arguments.out;
    if out.exists() {
        return Err(Failure::Usage(format!("{}: already exists; name a new directory", out.display())));
    }
    let mut partial = out.clone().into_os_string();
    partial.push(".partial");
    let partial = Partial::make(PathBuf::from(partial))?;
    let (manifest, report) = fill(&partial.0, arguments, &config)?;
    partial.becomes(out)?;
    let (path, record) = (config.backup_record_path(), BackupRecord::new(manifest.made_at, manifest.entries));
    if let Err(error) = record.write(&path) {
        let path = path.display();
        note(&format!(
            "the backup is complete, but monitoring will not know of it: {path}: cannot be written ({error})"
        ))?;
    }
    match arguments.output.output {
        Output::Json => print_json(&manifest),
        Output::Table => print(&format!("{}{}\n", in_words(&report), manifest.in_words(out))),
    }
}

/// The backup while it is being made: removed again unless it is finished.
struct Partial(PathBuf);

impl Partial {
    fn make(path: PathBuf) -> Result<Partial, Failure> {
        use std::os::unix::fs::DirBuilderExt;
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(Failure::Usage(format!(
                "{}: is left over from an interrupted backup, or another backup is running; if none is running, remove it",
                path.display()
            ))),
            Err(error) => Err(Failure::environment(path.display(), error)),
            Ok(()) => Ok(Partial(path)),
        }
    }

    fn becomes(self, out: &Path) -> Result<(), Failure> {
        let renamed = fs::File::open(&self.0).and_then(|directory| directory.sync_all());
        let renamed = renamed.and_then(|()| fs::rename(&self.0, out));
        renamed
            .and_then(|()| private_file::sync_directory(out))
            .map_err(|error| Failure::environment(out.display(), error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn fill(directory: &Path, arguments: &Arguments, config: &Config) -> Result<(Manifest, Report), Failure> {
    let from = files::ledger(config, "back up")?;
    if !from.exists() {
        return Err(Failure::Usage(format!(
            "{}: there is no database yet, so there is nothing to back up",
            from.place()
        )));
    }
    let key = log_key::verifier(config)?;
    if arguments.with_key && config.log.signer.is_some() {
        let remedy =
            "make the backup without --with-key; the key is backed up with the device or service that holds it";
        return Err(Failure::Usage(format!("--with-key: the log's key is in no file (log.signer); {remedy}")));
    }
    // Before the database: then the copy has everything the checkpoint covers.
    let place = config.checkpoint_path();
    let note = second_place::read(&place).map_err(|error| Failure::environment(place.display(), error))?;
    let head = from.acknowledged().map_err(|error| Failure::Environment(error.to_string()))?;
    let database = directory.join(DATABASE);
    from.copy(&database).map_err(|error| Failure::Environment(error.to_string()))?;
    let copy = engines::archive_in_file(database);
    if let Some(head) = head.filter(|head| head.size > 0) {
        let root = copy.root_at(head.size).map_err(|error| Failure::Environment(error.to_string()))?;
        if root != Some(head.root) {
            let what =
                "the ledger lacks entries that were acknowledged; no backup was made, because it would lack them too";
            return Err(Failure::Refused(format!("{what}; run `pilot log fsck` for details")));
        }
    }
    let report = examine(&*copy)?;
    if !report.faults.is_empty() {
        let faults = in_words(&report);
        return Err(Failure::Refused(format!(
            "the copy has faults, and so does the ledger; no backup was made:\n{faults}"
        )));
    }
    if let Some(note) = &note {
        check(note, &key, &*copy)?;
        write(&directory.join(CHECKPOINT), note.as_bytes())?;
    }
    let revocations = config.revocations_path();
    if revocations.exists() {
        // After the database: what is revoked in it is in this too.
        let bytes = fs::read(&revocations).map_err(|error| Failure::environment(revocations.display(), error))?;
        write(&directory.join(REVOCATIONS), &bytes)?;
    }
    if arguments.with_key {
        write(&directory.join(KEY), log_key::load(&config.log_key_path())?.to_line().as_bytes())?;
    }
    copy_files(directory, &arguments.config, config)?;
    let manifest = Manifest::make(directory, Clock::System.now(), &report, note.as_deref(), &key)?;
    write(&directory.join(manifest::NAME), &manifest.to_bytes()?)?;
    Ok((manifest, report))
}

/// The copy must begin with what was signed.
fn check(note: &str, key: &pilot_evidence::note::VerifierKey, copy: &dyn Archive) -> Result<(), Failure> {
    let wrong = |what: &dyn std::fmt::Display| {
        Failure::Refused(format!(
            "the checkpoint in the second place does not match the ledger ({what}); no backup was made"
        ))
    };
    let checkpoint = Checkpoint::open(note, key).map_err(|error| wrong(&error))?;
    match copy.root_at(checkpoint.size).map_err(|error| Failure::Environment(error.to_string()))? {
        Some(root) if root == checkpoint.root => Ok(()),
        Some(_) => Err(wrong(&format!("another root at {} entries", checkpoint.size))),
        None => Err(wrong(&format!("fewer than the {} entries that were signed", checkpoint.size))),
    }
}

/// The files, other than the database, that a service needs to start. The credential file is not copied.
fn copy_files(directory: &Path, path: &Path, config: &Config) -> Result<(), Failure> {
    let read = |path: &Path| fs::read(path).map_err(|error| Failure::environment(path.display(), error));
    let text = String::from_utf8_lossy(&read(path)?).into_owned();
    write(&directory.join(CONFIG), redact_config(&text).as_bytes())?;
    if let Some(path) = &config.credentials.role_map {
        write(&directory.join(ROLE_MAP), &read(path)?)?;
    }
    let Some(from) = &config.workflows.dir else { return Ok(()) };
    let failed = |error| Failure::environment(from.display(), error);
    let to = directory.join(WORKFLOWS);
    fs::create_dir(&to).map_err(failed)?;
    for entry in fs::read_dir(from).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let (Some(name), true) = (path.file_name(), path.extension().is_some_and(|extension| extension == "toml")) {
            write(&to.join(name), &read(&path)?)?;
        }
    }
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    private_file::write_new(path, bytes).map_err(|error| Failure::environment(path.display(), error))
}
