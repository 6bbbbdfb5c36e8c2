//! `pilot credential convert`: from a pilot's format to the one that production reads. Digests do not change, so tokens
//! keep working.

use pilot_core::credentials::{Credential, Credentials, Schema};
use pilot_ledger::clock::Clock;

use super::life::end;
use super::view::print_list;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files::{FileArguments, list_faults, lock, read_credentials, write_credentials};
use crate::output::{OutputArguments, note};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// After how many days every converted credential expires [default: 90]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    expires_in: Option<u32>,
    #[command(flatten)]
    files: FileArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let files = arguments.files.find(environment)?;
    let path = files.editable()?;
    let _lock = lock(path)?;
    let before = read_credentials(path)?;
    if before.schema() == Schema::Two {
        note(&format!("{}: already has schema_version 2; nothing was changed", path.display()))?;
        return print_list(&before, arguments.output.output);
    }
    let expires_at = end(arguments.expires_in, Clock::System.now());
    // Without a not_before: a token that works now must not stop because two clocks disagree.
    let convert = |credential: &Credential| Credential { expires_at: Some(expires_at), ..credential.clone() };
    let after = Credentials::new(Schema::Two, before.entries().iter().map(convert).collect());
    // The configuration decides what is read; with a file that it refuses, the service would not start.
    (files.format)(after.to_json().as_bytes()).map_err(|faults| {
        let what = list_faults(path.display(), &faults);
        let remedy = "set profile = \"production\" or add an [identity] section to the configuration first";
        Failure::Refused(format!(
            "the service would not read the converted file; {remedy}. Nothing was changed\n{what}"
        ))
    })?;
    write_credentials(path, Schema::Two, after.entries().to_vec())?;
    print_list(&after, arguments.output.output)?;
    note(&format!(
        "{}: now has schema_version 2. Every token keeps working until {expires_at}; rotate each before then \
         (`pilot rotation begin`). Next: `pilot check-config`, then restart the service",
        path.display()
    ))
}
