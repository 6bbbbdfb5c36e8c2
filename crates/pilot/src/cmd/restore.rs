//! `pilot restore`: replaces a lost ledger with a backup. It never creates a second history under the same key: either
//! something outside the backup shows that nothing is missing, or the log continues under a new key and records what
//! was lost.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pilot_evidence::checkpoint::Checkpoint;
use pilot_ledger::clock::Clock;
use pilot_ledger::second_place::SecondPlace;
use pilot_setup::config::Config;
use pilot_setup::error::StartError;
use pilot_setup::log_key::{Haste, LogKey};
use pilot_setup::private_file;
use pilot_store::archive::{Archive, Staged};
use pilot_store::engines;
use pilot_store::{Store, StoreError};
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
mod keys;
mod outside;
mod places;
mod revocations;

use entry::{Credentials, Restored};
use keys::Keys;
use outside::{Outside, Verdict};
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
    let ledger = files::ledger(&config, "restore")?;
    if let Some(why) = &arguments.accept_loss {
        reason::check("--accept-loss", why, &config)?;
    }
    clock::check(&config)?;
    make_directory(&config.data_dir)?;
    // Both are locked to the end, so that no service can start in between.
    let place = SecondPlace::open(&config.checkpoint_path(), false).map_err(StartError::from).map_err(busy)?;
    let _running = ledger.hold().map_err(|error| busy(error.into()))?;
    ledger.check_replaceable().map_err(not_replaced)?;
    let backup = match &arguments.backup {
        Some(directory) => Some(Backup::verified(directory, arguments, &*ledger)?),
        None if !ledger.exists() => {
            return Err(Failure::Usage(format!("{}: there is no database to continue with", ledger.place())));
        }
        None => None,
    };
    let from = backup.as_ref().map_or(&*ledger, |backup| &*backup.ledger);
    let staged = ledger.stage(from).map_err(|error| Failure::Environment(error.to_string()))?;
    restore(arguments, &config, environment, (&*ledger, staged), &place, backup.as_ref())
}

fn busy(error: StartError) -> Failure {
    match error {
        StartError::Refused(why) => Failure::Usage(format!("nothing was restored; is the service stopped?\n{why}")),
        error @ StartError::Environment { .. } => error.into(),
    }
}

fn not_replaced(error: StoreError) -> Failure {
    match error {
        StoreError::Refused(why) => Failure::Usage(format!("nothing was restored: {why}")),
        other => Failure::Environment(other.to_string()),
    }
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    private_file::make_directory(path).map_err(|error| Failure::environment(path.display(), error))
}

/// What `pilot backup` made, once it has shown itself to be whole.
struct Backup<'a> {
    directory: &'a Path,
    manifest: Manifest,
    ledger: Box<dyn Archive>,
}

impl<'a> Backup<'a> {
    fn verified(directory: &'a Path, arguments: &Arguments, present: &dyn Archive) -> Result<Backup<'a>, Failure> {
        if present.exists() && !arguments.replace {
            return Err(Failure::Usage(format!(
                "{}: a database already exists; --replace moves it aside (it is kept)",
                present.place()
            )));
        }
        let manifest = Manifest::read(directory)?;
        let ledger = engines::archive_in_file(directory.join(backup::DATABASE));
        let report = examine(&*ledger)?;
        if !report.faults.is_empty() {
            return Err(Failure::Refused(format!("the database in the backup has faults:\n{}", in_words(&report))));
        }
        manifest.check_claims(directory, &report)?;
        Ok(Backup { directory, manifest, ledger })
    }
}

fn restore(
    arguments: &Arguments,
    config: &Config,
    environment: &Environment,
    (ledger, staged): (&dyn Archive, Box<dyn Staged>),
    place: &SecondPlace,
    backup: Option<&Backup>,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::environment("the runtime", error))?;
    let directory = backup.map(|backup| backup.directory);
    let made = backup.map(|backup| (backup.directory, &backup.manifest));
    let keys = match runtime.block_on(Keys::find(config, made)) {
        Ok(keys) => keys,
        Err(failure) => {
            staged.discard();
            return Err(failure);
        }
    };
    let store = staged.open(Arc::new(|| Clock::System.now()));
    let store = match store {
        Ok(store) => store,
        Err(error) => {
            staged.discard();
            return Err(Failure::Refused(error.to_string()));
        }
    };
    let outside = Outside { config, place, given: arguments.checkpoint.as_deref(), is_present: backup.is_none() };
    let verdict = runtime.block_on(outside.judge(&keys, &store))?;
    let old_log = keys.known.as_ref().map(|key| key.name.clone());
    let is_new = matches!(verdict, Verdict::Refused(_));
    let key = match (&verdict, &arguments.accept_loss) {
        (Verdict::Whole(_), _) => keys.keep(),
        (Verdict::Refused(_), Some(_)) => keys.renew(config),
        (Verdict::Refused(why), None) => Err(Failure::Refused(format!("nothing was restored: {why}"))),
    };
    let key = match key {
        Ok(key) => key,
        Err(failure) => {
            drop(store);
            staged.discard();
            return Err(failure);
        }
    };
    let old_log = old_log.filter(|_| is_new).unwrap_or_else(|| key.verifier().name);
    let ended = Revocations::gather(config, Some(&old_log), directory, ledger)?;
    let credentials = match (is_new && !ended.is_complete, arguments.trust_credentials) {
        (false, _) => Credentials::Known,
        (true, false) => Credentials::Doubted,
        (true, true) => Credentials::Trusted,
    };
    let restored = Restored {
        credentials,
        manifest: backup.map(|backup| &backup.manifest),
        verdict: &verdict,
        reason: arguments.accept_loss.as_deref().filter(|_| is_new),
        operator: environment.operator(),
        previous: outside.previous().filter(|_| is_new),
    };
    let entries = store.head().borrow().size();
    runtime.block_on(restored.write(&*store))?;
    let note = runtime.block_on(sign(&*store, &key));
    drop(store);
    let note = match note {
        Ok(note) => note,
        Err(failure) => {
            staged.discard();
            return Err(failure);
        }
    };
    let mut remarks = ended.remarks.clone();
    // Before the database is in place: a restore that is interrupted in between has lost none.
    let revoked = ended.write(config, &key.verifier().name)?;
    remarks.push(format!("{revoked} revoked credentials are known, and stay revoked."));
    remarks.extend(revocations::in_words(credentials));
    // Database, key, second place: interrupted at any point, this leaves something that the service refuses to start
    // from, and the restore can be run again.
    let stamp = Clock::System.now().unix_micros().to_string();
    staged.put_in_place(&stamp).map_err(|error| Failure::Environment(error.to_string()))?;
    places::put_key(&key, is_new, &stamp, config)?;
    let written = private_file::replace(place.path(), note.as_bytes());
    written.map_err(|error| Failure::environment(place.path().display(), error))?;
    let _ = std::fs::remove_file(keys::next_name_path(config));
    let mut files = directory.map_or(Ok(Vec::new()), |path| places::put_files(path, config))?;
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

async fn sign(store: &dyn Store, key: &LogKey) -> Result<String, Failure> {
    let head = Arc::clone(&store.head().borrow());
    let checkpoint = Checkpoint { origin: key.verifier().name, size: head.size(), root: head.root() };
    Ok(key.note(checkpoint.text(), Haste::Checkpoint).await.map_err(StartError::from)?)
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
