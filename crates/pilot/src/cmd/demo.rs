//! `pilot demo`: a complete service for a first look, deleted when it ends.

use std::net::SocketAddr;
use std::path::PathBuf;

use pilot_core::actor::Actor;
use pilot_core::credentials::{Credential, Schema};
use pilot_core::role::Role;
use pilot_core::role_map::{Kind, MappedActor, RoleMap};
use pilot_core::token::Token;
use pilot_ledger::clock::Clock;
use pilot_server::log::{Format, Log};
use pilot_server::run::Service;
use pilot_setup::config::{self, Config};
use pilot_setup::{private_file, random};
use tracing::level_filters::LevelFilter;
use zeroize::Zeroizing;

use crate::cmd::serve::serve;
use crate::exit::Failure;
use crate::files::write_credentials;
use crate::output::{print, table};
use crate::supervisor::Supervisor;

mod samples;
mod stories;

const ACTORS: [(&str, Role); 6] = [
    ("ana", Role::Initiator),
    ("ben", Role::Approver),
    ("bea", Role::Approver),
    ("sol", Role::SecurityAdmin),
    ("eli", Role::Executor),
    ("ada", Role::Auditor),
];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where to listen [default: 127.0.0.1:7450, or any free port if that is taken]
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Keep everything in this new directory instead of deleting it at the end
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let place = Place::make(arguments.dir.clone())?;
    let tokens = make_actors(&place)?;
    let mut config = Config { data_dir: place.path.clone(), ..Config::default() };
    config.credentials = config::Credentials {
        source: config::Source::File(place.path.join("credentials.json")),
        role_map: Some(place.path.join("role-map.json")),
        lifetime_days_max: None,
    };
    config.console.name = Some("Demo".to_owned());
    let free = || config.listen.address().map(free_address);
    if let Some(address) = arguments.listen.or_else(free) {
        config.listen = config::Listen::Tcp(address);
    }
    config.logging =
        config::Logging { level: config::LogLevel::Warn, format: config::LogFormat::Text, ..config.logging };
    let log = Log::start(Format::Text, LevelFilter::WARN, Clock::System);
    let served = serve(&config, &log, &Supervisor::default(), false, |service| {
        let url = url(service)?;
        introduce(&url, &service.verifier_key(), &tokens)?;
        // The service answers as soon as this returns; the samples are created through the API like everything else.
        std::thread::spawn(move || samples::make(&url, tokens));
        Ok(())
    });
    log.flush();
    served
}

/// The demo's own directory; removed at the end unless it was named explicitly.
struct Place {
    path: PathBuf,
    is_kept: bool,
}

impl Place {
    fn make(dir: Option<PathBuf>) -> Result<Place, Failure> {
        use std::os::unix::fs::DirBuilderExt;
        let is_kept = dir.is_some();
        let path = match dir {
            Some(path) => path,
            None => std::env::temp_dir().join(format!("pilot-demo-{:08x}", u32::from_ne_bytes(random::bytes()?))),
        };
        let made = std::fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                Failure::Usage(format!("{}: already exists; name a new directory", path.display()))
            }
            _ => Failure::environment(path.display(), error),
        })?;
        Ok(Place { path, is_kept })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

fn make_actors(place: &Place) -> Result<Vec<(Actor, Zeroizing<String>)>, Failure> {
    let mut tokens = Vec::new();
    let mut entries = Vec::new();
    let mut role_map = RoleMap { approved_by: vec!["Ina".into(), "Jo".into()], ..RoleMap::empty() };
    for (name, role) in ACTORS {
        let actor_id = name.parse().map_err(|error| Failure::environment(name, error))?;
        let actor = Actor::new(actor_id, role);
        let token = Token::generate(&random::bytes()?);
        entries.push(Credential::new(actor.clone(), &token));
        role_map.actors.push(MappedActor {
            actor: actor.clone(),
            kind: Kind::Human,
            max_open_items: None,
            subject: None,
            issuers: Vec::new(),
        });
        tokens.push((actor, token.hand_over()));
    }
    write_credentials(&place.path.join("credentials.json"), Schema::One, entries)?;
    let path = place.path.join("role-map.json");
    let written = private_file::write_new(&path, role_map.to_json().as_bytes());
    written.map_err(|error| Failure::environment(path.display(), error))?;
    Ok(tokens)
}

fn free_address(wanted: SocketAddr) -> SocketAddr {
    match std::net::TcpListener::bind(wanted) {
        Ok(_) => wanted,
        Err(_) => SocketAddr::new(wanted.ip(), 0),
    }
}

fn url(service: &Service) -> Result<String, Failure> {
    let announcement = service.announcement().map_err(|error| Failure::environment("the address", error))?;
    Ok(announcement.trim_start_matches("listening on ").to_owned())
}

fn introduce(url: &str, verifier_key: &str, tokens: &[(Actor, Zeroizing<String>)]) -> Result<(), Failure> {
    let rows =
        tokens.iter().map(|(actor, token)| vec![actor.actor_id.to_string(), actor.role.to_string(), token.to_string()]);
    let first = tokens.first().map_or("", |(_, token)| token.as_str());
    print(&format!(
        "Pilot demo\n\n{}\nConsole and API   {url}/\nDocumentation     {url}/docs\nVerifier key      {verifier_key}\n\n\
         Try:\n  printf 'Authorization: Bearer {first}' | curl -H @- {url}/v1/session\n\n\
         The tokens are shown only once. Press Ctrl-C to stop.\nlistening on {url}\n",
        table(&["actor", "role", "token"], rows)
    ))
}
