//! `pilot permit get`: what an executor takes to a target.

use std::path::PathBuf;

use pilot_core::item::ItemId;
use serde_json::json;

use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::part::Part;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The item's id
    item: ItemId,
    /// Where to write the permit; an existing file is replaced [default: permit-ID.zip, here]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let item = &arguments.item;
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(format!("permit-{item}.zip")));
    let client = Client::new(&arguments.client, environment)?;
    let (mut part, mut bytes) = (Part::create(&out)?, 0);
    client.download(&format!("/v1/items/{item}/permit"), |_, piece| {
        bytes += piece.len();
        part.write(piece)
    })?;
    part.finish(&out)?;
    match arguments.output.output {
        Output::Json => print_json(&json!({ "permit": out, "bytes": bytes })),
        Output::Table => print(&format!("{}: {bytes} bytes\n", out.display())),
    }
}
