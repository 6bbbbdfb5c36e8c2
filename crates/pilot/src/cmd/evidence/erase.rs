//! `pilot evidence erase`: erases what people wrote about an item; the proof of what happened, and by whom, stays
//! valid.

use std::path::PathBuf;
use std::sync::Arc;

use pilot_core::entry::Entry;
use pilot_core::entry::details::{Details, Erased};
use pilot_core::item::ItemId;
use pilot_ledger::clock::Clock;
use pilot_ledger::erasures;
use pilot_setup::config::Config;
use pilot_store::{Outcome, Record, Situation, Store, StoreError, Subject, Write};
use serde_json::json;

use crate::cmd::clock;
use crate::environment::Environment;
use crate::exit::Failure;
use crate::files;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::reason;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The item, which must have ended
    #[arg(long, value_name = "ID")]
    item: ItemId,
    /// The reason, which the ledger keeps forever
    #[arg(long, value_name = "TEXT")]
    why: String,
    /// The configuration file of the service, which must be stopped unless its store is PostgreSQL
    #[arg(long, value_name = "FILE", default_value = "pilot.toml")]
    config: PathBuf,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let config = Config::load(&arguments.config, environment.variables())?;
    files::refuse_root(&config)?;
    let ledger = files::ledger(&config, "change")?;
    reason::check("--why", &arguments.why, &config)?;
    if !ledger.exists() {
        return Err(Failure::Usage(format!("{}: there is no database", ledger.place())));
    }
    clock::check(&config)?;
    let clock = Clock::System;
    let store = ledger.open(Arc::new(move || clock.now())).map_err(failed)?;
    let documents = ledger.erasable(&arguments.item).map_err(failed)?;
    if documents > 0 {
        // Recorded before it is done: what disappears without a record would look like damage.
        write_entry(&*store, arguments, environment, documents)?;
    }
    drop(store);
    let erased = ledger.erase(&arguments.item).map_err(failed)?;
    match arguments.output.output {
        Output::Json => print_json(&json!({ "item": arguments.item, "erased": erased })),
        Output::Table if erased == 0 => print("There was nothing left to erase.\n"),
        Output::Table => print(&format!(
            "{erased} documents of item {} were erased; its entries and their proofs remain.\nBackups, exported bundles and the terminals of people who read it may still contain them: take care of those too.\n",
            arguments.item
        )),
    }
}

fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Refused(what) => Failure::Refused(what),
        error => Failure::Environment(error.to_string()),
    }
}

fn write_entry(
    store: &dyn Store,
    arguments: &Arguments,
    environment: &Environment,
    documents: u64,
) -> Result<(), Failure> {
    let details = Details::DocumentsErased(Erased {
        documents,
        item: arguments.item.clone(),
        operator: environment.operator().map(str::to_owned),
        why: arguments.why.clone(),
    });
    let item = arguments.item.clone();
    let decide = move |situation: &Situation<'_>| {
        let entry = Entry::of_service(situation.index, situation.now, None, &details);
        Ok(Record { facts: vec![erasures::fact(&item, situation.index)], ..Record::of(entry) })
    };
    let write = Write::new(Subject::Ledger, None, decide);
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.map_err(|error| Failure::environment("runtime", error))?;
    match runtime.block_on(store.settle(write)) {
        Ok(Outcome::Recorded { .. }) => Ok(()),
        Ok(other) => Err(Failure::Environment(format!("the erasure cannot be written to the ledger: {other:?}"))),
        Err(error) => Err(failed(error)),
    }
}
