//! `pilot credential trust`: after a loss, an operator accepts older credentials.

use std::path::PathBuf;
use std::sync::Arc;

use pilot_core::credentials::CredentialId;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, TrustedCredentials};
use pilot_ledger::clock::Clock;
use pilot_ledger::register::Doubt;
use pilot_setup::config::Config;
use pilot_store::{Fact, Outcome, Record, Situation, Store, StoreError, Subject, Write};

use crate::cmd::clock;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::print;
use crate::reason;

/// They are all named in one entry, which must be shorter than 64 KiB.
const IDS_MAX: usize = 100;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A credential that is known not to have been revoked; may be repeated
    #[arg(long = "id", value_name = "CREDENTIAL_ID", required_unless_present = "all")]
    ids: Vec<CredentialId>,
    /// Every credential, though any of them may have been revoked since the backup
    #[arg(long, conflicts_with = "ids")]
    all: bool,
    /// The reason, which the ledger keeps forever
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// The configuration file of the service, which must be stopped
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    let ledger = files::ledger(&config, "change")?;
    reason::check("--why", &arguments.why, &config)?;
    if arguments.ids.len() > IDS_MAX {
        return Err(Failure::Usage(format!("--id: at most {IDS_MAX} at a time")));
    }
    if !ledger.exists() {
        return Err(Failure::Usage(format!("{}: there is no database", ledger.place())));
    }
    clock::check(&config)?;
    let clock = Clock::System;
    let store = ledger.open(Arc::new(move || clock.now())).map_err(failed)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::environment("runtime", error))?;
    runtime.block_on(trust(&*store, arguments, environment))
}

async fn trust(store: &dyn Store, arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let doubt = store.fact(Doubt::FACT).await.map_err(failed)?.map(|bytes| Doubt::parse(&bytes)).transpose();
    let Some(mut doubt) = doubt.map_err(failed)?.filter(|doubt| !doubt.is_over) else {
        return print("No credential is in doubt. There is nothing to do.\n");
    };
    doubt.is_over = arguments.all;
    doubt.trusted.extend(arguments.ids.iter().cloned());
    let details = Details::CredentialsTrusted(TrustedCredentials {
        all: arguments.all,
        before: doubt.before,
        credentials: arguments.ids.clone(),
        operator: environment.operator().map(str::to_owned),
        why: arguments.why.clone(),
    });
    let bytes = doubt.to_bytes();
    let decide = move |situation: &Situation<'_>| {
        let entry = Entry::of_service(situation.index, situation.now, None, &details);
        let facts = vec![Fact { name: Doubt::FACT.to_owned(), value: Some(bytes.clone()) }];
        Ok(Record { facts, ..Record::of(entry) })
    };
    match store.settle(Write::new(Subject::Ledger, None, decide)).await {
        Ok(Outcome::Recorded { .. }) => {
            print("They are accepted from the next start on, and an entry of the ledger records it.\n")
        }
        Ok(other) => Err(Failure::Environment(format!("it cannot be written to the ledger: {other:?}"))),
        Err(error) => Err(failed(error)),
    }
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Refused(what) => Failure::Refused(what),
        error => Failure::Environment(error.to_string()),
    }
}
