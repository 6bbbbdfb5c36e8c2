//! `pilot restore`: a backup in the place of a lost ledger. It never makes a second history under the same key: either
//! something outside of the backup says that nothing is missing, or the log goes on under a new key and says what it lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_evidence::note::NoteKey;
use pilot_ledger::clock::Clock;
use pilot_ledger::second_place::SecondPlace;
use pilot_setup::config::Config;
use pilot_setup::error::StartError;
use pilot_setup::log_key;
use pilot_setup::{private_file, random};
use pilot_store::Store;
use pilot_store::archive::Archive as _;
use pilot_store::sqlite::LedgerFile;
use serde_json::json;

use crate::cmd::backup::{self, Manifest};
use crate::cmd::clock;
use crate::cmd::log::{examine, in_words};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::reason;

mod entry;
mod outside;
mod places;
mod revocations;

use entry::{Credentials, Restored};
use outside::{Outside, Verdict};
use places::Places;
use revocations::Revocations;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory made by `pilot backup`; without it, the existing database is used as it is (--accept-loss)
    #[arg(value_name = "BACKUP", required_unless_present = "accept_loss")]
    backup: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    /// The newest checkpoint of the log that you have: from an auditor, a witness, another disk
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Move the existing database aside
    #[arg(long, requires = "backup")]
    replace: bool,
    /// Continue although acknowledged entries are lost or may be: under a new log key, with an entry that records the reason
    #[arg(long, value_name = "WHY")]
    accept_loss: Option<String>,
    /// Accept credentials older than this restore, although their revocation may be among the lost entries
    #[arg(long, requires = "accept_loss")]
    trust_credentials: bool,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    files::refuse_root(&config)?;
    let database = config.sqlite_path();
    let database =
        database.ok_or_else(|| Failure::Usage("store.url: this command can restore only an embedded store".into()))?;
    if let Some(why) = &arguments.accept_loss {
        reason::check("--accept-loss", why, &config)?;
    }
    clock::check(&config)?;
    make_directory(&config.data_dir)?;
    // Both are held to the end: no service can start in the middle.
    let place = SecondPlace::open(&config.checkpoint_path()).map_err(StartError::from).map_err(busy)?;
    let _running = LedgerFile::at(&database).hold().map_err(|error| busy(error.into()))?;
    let places = Places::new(database, &config);
    if let Some(backup) = &arguments.backup {
        let manifest = verify(backup, arguments, &places)?;
        places.stage(backup)?;
        return restore(arguments, &config, environment, &places, &place, Some((backup, &manifest)));
    }
    if !places.database.exists() {
        return Err(Failure::Usage(format!("{}: there is no database to continue with", places.database.display())));
    }
    places.stage_present()?;
    restore(arguments, &config, environment, &places, &place, None)
}

fn busy(error: StartError) -> Failure {
    match error {
        StartError::Refused(why) => Failure::Usage(format!("nothing was restored; is the service stopped?\n{why}")),
        error @ StartError::Environment { .. } => error.into(),
    }
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    private_file::make_directory(path).map_err(|error| Failure::environment(path.display(), error))
}

fn verify(backup: &Path, arguments: &Arguments, places: &Places) -> Result<Manifest, Failure> {
    if places.database.exists() && !arguments.replace {
        return Err(Failure::Usage(format!(
            "{}: a database already exists; --replace moves it aside (it is kept)",
            places.database.display()
        )));
    }
    let manifest = Manifest::read(backup)?;
    let report = examine(&LedgerFile::at(backup.join(backup::DATABASE)))?;
    if !report.faults.is_empty() {
        return Err(Failure::Refused(format!("the database in the backup has faults:\n{}", in_words(&report))));
    }
    manifest.check_claims(backup, &report)?;
    Ok(manifest)
}

fn restore(
    arguments: &Arguments,
    config: &Config,
    environment: &Environment,
    places: &Places,
    place: &SecondPlace,
    backup: Option<(&Path, &Manifest)>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
    let key = find_key(config, backup.map(|(path, _)| path))?;
    let clock = Clock::System;
    let store = LedgerFile::at(&places.staged).open(Arc::new(move || clock.now()));
    let store = store.map_err(|error| Failure::Refused(error.to_string()))?;
    let outside = Outside { config, place, given: arguments.checkpoint.as_deref(), is_present: backup.is_none() };
    let verdict = runtime.block_on(outside.judge(key.as_ref(), &store))?;
    let old_log = key.as_ref().map(|key| key.verifier().name);
    let (key, is_new) = match (key, &verdict, &arguments.accept_loss) {
        (Some(key), Verdict::Whole(_), _) => (key, false),
        (key, _, Some(_)) => (new_key(key.as_ref())?, true),
        (_, Verdict::Whole(why) | Verdict::Refused(why), None) => {
            drop(store);
            places.discard();
            return Err(Failure::Refused(format!("nothing was restored: {why}")));
        }
    };
    let old_log = old_log.filter(|_| is_new).unwrap_or_else(|| key.verifier().name);
    let ended = Revocations::gather(config, Some(&old_log), backup.map(|(path, _)| path), &places.database)?;
    let credentials = match (is_new && !ended.is_complete, arguments.trust_credentials) {
        (false, _) => Credentials::Known,
        (true, false) => Credentials::Doubted,
        (true, true) => Credentials::Trusted,
    };
    let restored = Restored {
        credentials,
        manifest: backup.map(|(_, manifest)| manifest),
        verdict: &verdict,
        reason: arguments.accept_loss.as_deref().filter(|_| is_new),
        operator: environment.operator(),
        previous: outside.previous().filter(|_| is_new),
    };
    let entries = store.head().borrow().size();
    runtime.block_on(restored.write(&*store))?;
    let note = sign(&*store, &key);
    drop(store);
    let mut remarks = ended.remarks.clone();
    // Before the database is in its place: a restore that is cut off in between has lost none.
    let revoked = ended.write(config, &key.verifier().name)?;
    remarks.push(format!("{revoked} revoked credentials are known, and stay revoked."));
    remarks.extend(revocations::in_words(credentials));
    places.put_in_place(&key, is_new)?;
    let written = private_file::replace(place.path(), note.as_bytes());
    written.map_err(|error| Failure::environment(place.path().display(), error))?;
    let mut files = backup.map_or(Ok(Vec::new()), |(path, _)| places::put_files(path, config))?;
    files.append(&mut remarks);
    let new_key = is_new.then(|| key.verifier().to_string());
    match arguments.output.output {
        Output::Table => print(&in_short(entries, new_key, &verdict, &files)),
        Output::Json => {
            let (Verdict::Whole(because) | Verdict::Refused(because)) = &verdict;
            print_json(&json!({
                "restored_entries": entries,
                "is_whole": matches!(verdict, Verdict::Whole(_)),
                "because": because,
                "new_verifier_key": new_key,
                "remarks": files,
            }))
        }
    }
}

/// The key that is there, or the one in the backup.
fn find_key(config: &Config, backup: Option<&Path>) -> Result<Option<NoteKey>, Failure> {
    let here = config.log_key_path();
    if here.exists() {
        return Ok(Some(log_key::load(&here)?));
    }
    let there = backup.map(|path| path.join(backup::KEY)).filter(|path| path.exists());
    Ok(there.map(|path| log_key::load(&path)).transpose()?)
}

/// Another name too: to witnesses and auditors it is another log, which begins with what is left of this one.
fn new_key(old: Option<&NoteKey>) -> Result<NoteKey, Failure> {
    let name = match old.map(|key| key.verifier().name) {
        Some(name) => match name.rsplit_once(".r").and_then(|(base, number)| Some((base, number.parse::<u32>().ok()?)))
        {
            Some((base, number)) => format!("{base}.r{}", number + 1),
            None => format!("{name}.r2"),
        },
        None => format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?)),
    };
    NoteKey::generate(&name, &random::bytes()?).map_err(|error| Failure::Environment(error.to_string()))
}

fn sign(store: &dyn Store, key: &NoteKey) -> String {
    let head = Arc::clone(&store.head().borrow());
    Checkpoint { origin: key.verifier().name, size: head.size(), root: head.root() }.sign(key)
}

fn in_short(entries: u64, new_key: Option<String>, verdict: &Verdict, files: &[String]) -> String {
    let (Verdict::Whole(why) | Verdict::Refused(why)) = verdict;
    let key = match new_key {
        Some(key) => {
            format!("THE LOG HAS A NEW KEY. Give this line to everyone who checks it, and to its witnesses:\n{key}")
        }
        None => format!("Nothing is missing: {why}."),
    };
    let mut lines = vec![format!("Restored {entries} entries; one more records the restore."), key];
    lines.extend_from_slice(files);
    lines.push("Next: check the credential file, then start the service.\n".into());
    lines.join("\n")
}
