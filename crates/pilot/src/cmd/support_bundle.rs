//! `pilot support-bundle`: one text file for support, to be read before it is sent.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pilot_core::leak::LeakGuard;
use pilot_ledger::clock::Clock;
use pilot_ledger::second_place;
use pilot_setup::config::Config;
use pilot_setup::credentials;
use pilot_setup::private_file;
use pilot_setup::secret_line;
use pilot_store::engines;
use pilot_wire::outgoing::Outgoing;

use crate::cmd::backup::redact_config;
use crate::cmd::log::{examine_signed, in_words};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::print;

/// Enough to see what led to the problem, and more than anyone reads.
const LOG_BYTES_MAX: u64 = 4 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    /// The file to create; it must not exist
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// A file with the service's log; its last 4 MiB are taken
    #[arg(long, value_name = "FILE")]
    log_file: Option<PathBuf>,
    /// Skip the check of the whole ledger, which takes a while on a large one
    #[arg(long)]
    no_fsck: bool,
}

pub(crate) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    // If something is wrong with the credentials, the bundle is needed all the more, but can be guarded less well.
    let credentials = credentials::load_credentials(&config);
    let (guard, guarded_by) = match &credentials {
        Ok((credentials, _)) => {
            let guard = credentials::leak_guard(&config, credentials)?;
            (guard, "generated tokens, and every live token of the credential file".to_owned())
        }
        Err(_) => {
            (LeakGuard::for_generated_tokens(), "generated tokens only: the credential file cannot be read".into())
        }
    };
    let unread = secret_line::make_all_known(&config, &guard);
    let guarded_by = match &unread[..] {
        [] => guarded_by,
        unread => format!("{guarded_by}; not secrets that cannot be read: {}", unread.join("; ")),
    };
    let mut bundle = Bundle { text: String::new(), guard };
    bundle.section("bundle", &format!("made at {}\nlooked for: {guarded_by}", Clock::System.now()));
    bundle.section("version", &version(&config));
    let text = fs::read_to_string(&arguments.config)
        .map_err(|error| Failure::environment(arguments.config.display(), error))?;
    bundle.section("configuration", &redact_config(&text));
    bundle.section(
        "start",
        &credentials
            .err()
            .map_or_else(|| "the credential file and the role map are fine".into(), |error| error.to_string()),
    );
    bundle.section("files", &list_files(&config));
    bundle.section("tree head", &head(&config));
    bundle.section("ledger", &ledger(&config, arguments.no_fsck));
    bundle.section("metrics", &metrics(&config));
    if let Some(path) = &arguments.log_file {
        bundle.section("log", &tail(path)?);
    }
    let written = private_file::write_new(&arguments.out, bundle.text.as_bytes());
    written.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            Failure::Usage(format!("{}: already exists; name a new file", arguments.out.display()))
        }
        _ => Failure::environment(arguments.out.display(), error),
    })?;
    print(&format!("{}: read it before you send it\n", arguments.out.display()))
}

/// The file being built. Everything that goes into it passes the leak guard.
struct Bundle {
    text: String,
    guard: LeakGuard,
}

impl Bundle {
    fn section(&mut self, name: &str, content: &str) {
        let _ = writeln!(self.text, "==== {name} ====");
        for line in content.lines() {
            self.text.push_str(&self.guard.redact(line));
            self.text.push('\n');
        }
        self.text.push('\n');
    }
}

fn version(config: &Config) -> String {
    let kernel = fs::read_to_string("/proc/version").unwrap_or_default();
    let engine = files::store_address(config)
        .map_or_else(String::new, |address| engines::archive(address, &config.data_dir).engine());
    format!("pilot {}\n{engine}\n{kernel}", env!("CARGO_PKG_VERSION"))
}

/// Names, sizes and modes; never the contents.
fn list_files(config: &Config) -> String {
    use std::os::unix::fs::MetadataExt;
    let mut text = String::new();
    let mut paths = vec![config.checkpoint_path()];
    paths.extend(config.credentials.source.file().map(Path::to_owned));
    paths.extend(config.credentials.role_map.clone());
    let entries = fs::read_dir(&config.data_dir).into_iter().flatten().flatten();
    paths.extend(entries.map(|entry| entry.path()));
    paths.sort();
    paths.dedup();
    for path in paths {
        let _ = match fs::metadata(&path) {
            Ok(metadata) => {
                writeln!(text, "{:04o} {:>12} {}", metadata.mode() & 0o7777, metadata.len(), path.display())
            }
            Err(error) => writeln!(text, "{}: {error}", path.display()),
        };
    }
    text
}

fn head(config: &Config) -> String {
    match second_place::read(&config.checkpoint_path()) {
        Ok(Some(note)) => note,
        Ok(None) => "there is no checkpoint".into(),
        Err(error) => error.to_string(),
    }
}

fn ledger(config: &Config, is_short: bool) -> String {
    match files::store_address(config).map(|address| engines::archive(address, &config.data_dir)) {
        None => "store.url names no store that is known".into(),
        Some(ledger) if !ledger.exists() => format!("{}: does not exist", ledger.place()),
        Some(_) if is_short => "not checked".into(),
        Some(ledger) => match examine_signed(config, &*ledger) {
            Ok(report) => in_words(&report),
            Err(failure) => failure.text().to_owned(),
        },
    }
}

fn metrics(config: &Config) -> String {
    let Some(ops) = &config.ops else { return "there is no ops listener".into() };
    let asked = || -> Result<String, Box<dyn std::error::Error>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = format!("http://{}/metrics", ops.listen).parse()?;
        let reply = runtime.block_on(Outgoing::new(false, None)?.get(&url, PATIENCE))?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    };
    asked().unwrap_or_else(|error| format!("the ops listener at {} does not answer: {error}", ops.listen))
}

fn tail(path: &Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| Failure::environment(path.display(), error);
    let mut file = fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(LOG_BYTES_MAX))).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(LOG_BYTES_MAX).read_to_end(&mut bytes).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // A line cut in two could hide half a token from the guard.
    Ok(if length > LOG_BYTES_MAX {
        text.split_once('\n').map_or(String::new(), |(_, rest)| rest.to_owned())
    } else {
        text
    })
}
