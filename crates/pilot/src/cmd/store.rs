//! `pilot store`: moves the ledger from one store to another.

use std::fs;
use std::path::{Path, PathBuf};

use pilot_setup::private_file;
use pilot_store::StoreError;
use pilot_store::archive::{Archive as _, Progress};
use pilot_store::engines::StoreAddress;
use pilot_store::postgres::{Access, LedgerDatabase};
use pilot_store::sqlite::LedgerFile;
use pilot_store::transfer::{self, Transferred};
use serde_json::json;

use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, ProgressLine, print, print_json};

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// Copy a whole ledger into an empty store of another kind, and verify the copy; if it is interrupted, run it again
    Migrate(Arguments),
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The ledger, whose service must be stopped: sqlite:PATH or postgres://user@host/database
    #[arg(long, value_name = "URL")]
    from: String,
    /// The empty store to copy it into: postgres://user@host/database or sqlite:PATH
    #[arg(long, value_name = "URL")]
    to: String,
    /// The file with the password for the database
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The certificates to trust for the database's server, in PEM [default: those the system trusts]
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The certificate to show to the database's server, in PEM
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_certificate: Option<PathBuf>,
    /// The private key of that certificate
    #[arg(long, value_name = "FILE", requires = "client_certificate")]
    client_key: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArguments,
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Migrate(arguments) => migrate(arguments),
    }
}

fn migrate(arguments: &Arguments) -> Result<(), Failure> {
    let (from, to) = (address("--from", &arguments.from, arguments)?, address("--to", &arguments.to, arguments)?);
    let line = ProgressLine::default();
    let mut show = |Progress { step, done, of }: Progress| {
        let percent = done.saturating_mul(100).checked_div(of).unwrap_or(100);
        line.show(&format!("copying {step}: {percent} %"));
    };
    let copied = match (&from, &to) {
        (StoreAddress::Sqlite(from), StoreAddress::Postgres(to)) => {
            files::refuse_root_at(&directory_of(from))?;
            transfer::to_postgres(from, to, &mut show).map_err(|error| failed(error, "--to"))
        }
        (StoreAddress::Postgres(from), StoreAddress::Sqlite(to)) => to_file(from, to, &mut show),
        _ => Err(Failure::Usage("a ledger is moved from sqlite:PATH to postgres://… or the other way".into())),
    };
    drop(line);
    tell(copied?, arguments, &to)
}

fn address(option: &str, url: &str, arguments: &Arguments) -> Result<StoreAddress, Failure> {
    if let Some(path) = url.strip_prefix("sqlite:") {
        return Ok(StoreAddress::Sqlite(PathBuf::from(path)));
    }
    if !StoreAddress::is_postgres(url) {
        // The text is not repeated: it may have a password in it.
        let forms = "write sqlite:PATH or postgres://user@host/database";
        return Err(Failure::Usage(format!("{option}: is not the address of a store; {forms}")));
    }
    if has_password(url) {
        return Err(Failure::Usage(format!(
            "{option}: has a password in it, which every user of this machine can see; leave it out, and name a private \
             file with --password-file"
        )));
    }
    Ok(StoreAddress::Postgres(Access {
        url: url.to_owned(),
        password_file: arguments.password_file.clone(),
        ca_file: arguments.ca_file.clone(),
        client_certificate: arguments.client_certificate.clone(),
        client_key: arguments.client_key.clone(),
        // A whole ledger goes over this connection.
        binds_channel: true,
    }))
}

fn has_password(url: &str) -> bool {
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = place.split('/').next().unwrap_or_default();
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    user.contains(':') || options.split('&').any(|option| option.starts_with("password="))
}

/// What an earlier run left is of no use: it begins again.
fn to_file(from: &Access, to: &Path, show: &mut dyn FnMut(Progress)) -> Result<Transferred, Failure> {
    files::refuse_root_at(&directory_of(to))?;
    if to.exists() {
        return Err(Failure::Refused(format!("{}: already exists; name a new file", to.display())));
    }
    let ledger = LedgerDatabase::at(from.clone(), directory_of(to));
    if !ledger.exists() {
        return Err(Failure::Refused(format!("{}: the database has no ledger in it", ledger.place())));
    }
    let _alone = ledger.hold().map_err(|error| failed(error, "--from"))?;
    // One at a time: each would remove the other's file.
    let _lock = LedgerFile::at(to).hold().map_err(|error| failed(error, "--to"))?;
    let mut partial = to.as_os_str().to_owned();
    partial.push(".partial");
    let partial = PathBuf::from(partial);
    let _ = fs::remove_file(&partial);
    let copied = transfer::to_file(from, &partial, show).map_err(|error| failed(error, "--from"))?;
    if ledger.acknowledged().map_err(|error| failed(error, "--from"))? != Some(copied.head) {
        let _ = fs::remove_file(&partial);
        return Err(Failure::Refused("a service has written to the database meanwhile; stop it first".into()));
    }
    let renamed = fs::rename(&partial, to).and_then(|()| private_file::sync_directory(to));
    renamed.map_err(|error| Failure::environment(to.display(), error))?;
    Ok(copied)
}

fn directory_of(path: &Path) -> PathBuf {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

/// What the settings of a store are called here.
const OPTIONS: [(&str, &str); 4] = [
    ("store.password_file", "--password-file"),
    ("store.ca_file", "--ca-file"),
    ("store.client_certificate", "--client-certificate"),
    ("store.client_key", "--client-key"),
];

/// `option` is where the address of the database came from.
fn failed(error: StoreError, option: &str) -> Failure {
    let named = |text: String| {
        let options = OPTIONS.into_iter().chain([("store.url", option)]);
        options.fold(text, |text, (setting, option)| text.replace(setting, option))
    };
    match error {
        StoreError::Refused(why) => Failure::Refused(format!("nothing was moved: {}", named(why))),
        StoreError::Damaged(what) => Failure::Refused(format!("the ledger was not moved: {}", named(what))),
        other => Failure::Environment(named(other.to_string())),
    }
}

fn tell(copied: Transferred, arguments: &Arguments, to: &StoreAddress) -> Result<(), Failure> {
    let (entries, root) = (copied.head.size, copied.head.root.to_base64());
    if arguments.output.output == Output::Json {
        return print_json(&json!({ "entries": entries, "root": root, "was_finished": copied.was_finished }));
    }
    let done = if copied.was_finished { "had already been copied" } else { "were copied and verified" };
    let setting = match to {
        StoreAddress::Sqlite(path) => format!("sqlite:{}", path.display()),
        StoreAddress::Postgres(access) => access.url.clone(),
    };
    print(&format!(
        "{entries} entries {done}: both sides have the root {root}.\n\
         Next: set `url = \"{setting}\"` under [store] in the configuration of every node, check it with \
         `pilot check-config`, and start the service.\n\
         The old ledger is unchanged. Move it aside: a service that goes on with it would begin a second history.\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_noticed_wherever_it_is_in_an_address() {
        for url in ["postgres://a:b@h/d", "postgresql://a:@h", "postgres://a@h/d?password=x", "postgres://a%3A:b@h,i/d"]
        {
            assert!(has_password(url), "{url}");
        }
        for url in
            ["postgres://a@h:5432/d", "postgres://h/d?user=a", "postgres:///d?host=/run&port=1", "postgres://a@[::1]/d"]
        {
            assert!(!has_password(url), "{url}");
        }
    }
}
