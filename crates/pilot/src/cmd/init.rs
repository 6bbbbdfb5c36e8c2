//! `pilot init`: creates an installation that is ready to be filled in.

use std::path::{Path, PathBuf};

use pilot_core::role_map::RoleMap;
use pilot_evidence::note::NoteKey;
use pilot_setup::log_key;
use pilot_setup::{private_file, random};

use crate::exit::Failure;
use crate::output::print;

const CONFIG: &str = include_str!("init/pilot.toml");

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The directory of the new installation; created if needed
    directory: PathBuf,
    /// The log's name, which its signatures carry forever; preferably a host name you own
    #[arg(long, value_name = "NAME")]
    log_name: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let config = directory.join("pilot.toml");
    if config.exists() {
        return Err(Failure::Usage(format!(
            "{}: already contains an installation; nothing was changed",
            config.display()
        )));
    }
    let name = match &arguments.log_name {
        Some(name) => name.clone(),
        None => format!("pilot.local/{:08x}", u32::from_ne_bytes(random::bytes()?)),
    };
    NoteKey::check_name(&name).map_err(|error| Failure::Usage(format!("--log-name: {error}")))?;
    let data = directory.join("data");
    make_directory(directory)?;
    make_directory(&data)?;
    // Existing files, from an interrupted run or made by hand, are kept.
    let key = data.join("log.key");
    if !key.exists() {
        log_key::make(&key, &name)?;
    }
    let role_map = directory.join("role-map.json");
    if !role_map.exists() {
        write_new(&role_map, &RoleMap::empty().to_json())?;
    }
    // Last: its presence means that the installation is complete.
    write_new(&config, CONFIG)?;
    let directory = directory.display();
    print(&format!(
        "Created in {directory}:\n  \
         pilot.toml      the configuration\n  \
         role-map.json   who has which role; fill it in\n  \
         data/log.key    signs the log; keep it private and keep a copy\n\n\
         Next:\n  \
         1. Agree on the role map: list each actor in {directory}/role-map.json, and those who approved it.\n  \
         2. For each actor: pilot credential new --config {directory}/pilot.toml --actor NAME --role ROLE\n  \
         3. pilot serve --config {directory}/pilot.toml\n  \
         4. Each actor: PILOT_URL=http://127.0.0.1:7450 pilot session --role-map role-map.json\n"
    ))
}

fn make_directory(path: &Path) -> Result<(), Failure> {
    private_file::make_directory(path).map_err(|error| Failure::environment(path.display(), error))
}

fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    private_file::write_new(path, text.as_bytes()).map_err(|error| Failure::environment(path.display(), error))
}
