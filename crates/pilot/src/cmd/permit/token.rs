//! `pilot permit token`: a token for one target, written to a file and never to a terminal.

use std::path::PathBuf;

use pilot_api::permits::PermitTokenView;
use pilot_core::item::ItemId;
use serde_json::json;
use zeroize::Zeroizing;

use crate::client::{Client, ClientArguments};
use crate::environment::Environment;
use crate::exit::Failure;
use crate::output::{Output, OutputArguments, print, print_json};
use crate::part::Part;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The item's id
    item: ItemId,
    /// For whom the token is: one of the service's [permits] audiences
    #[arg(long, value_name = "NAME")]
    audience: String,
    /// How many seconds it is valid at most [default: 600]
    #[arg(long, value_name = "SECONDS")]
    expires_in: Option<u64>,
    /// Where to write the token, with mode 0600; an existing file is replaced
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    #[command(flatten)]
    client: ClientArguments,
    #[command(flatten)]
    output: OutputArguments,
}

pub(super) fn run(arguments: &Arguments, environment: &Environment) -> Result<(), Failure> {
    let mut body = json!({ "audience": arguments.audience });
    if let (Some(seconds), Some(body)) = (arguments.expires_in, body.as_object_mut()) {
        body.insert("expires_in_s".to_owned(), seconds.into());
    }
    let client = Client::new(&arguments.client, environment)?;
    let reply = client.post(&format!("/v1/items/{}/permit-token", arguments.item), &body)?;
    let PermitTokenView { token, audience, expires_at, jti, key_id, entry } = reply.read()?;
    let token = Zeroizing::new(token);
    let mut part = Part::create(&arguments.out)?;
    part.write(token.as_bytes())?;
    part.finish(&arguments.out)?;
    let out = &arguments.out;
    match arguments.output.output {
        Output::Json => print_json(&json!({
            "file": out, "audience": audience, "expires_at": expires_at, "jti": jti, "key_id": key_id, "entry": entry,
        })),
        Output::Table => print(&format!("{}: for {audience}, until {expires_at}, entry {entry}\n", out.display())),
    }
}
