//! What else a team could use: maker and checker by hand on Fastify and PostgreSQL, and as virtual objects of Restate.
//! Both know the tokens of a service's installation, and are driven by the same load generator.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::super::load::Server;
use super::super::moves::{self, CLIENTS, Directory, ITEMS, Installation, Moves, WARM_UP_SECONDS};
use super::database;
use crate::step::{Failure, output_of, program, root};
use crate::tools::{self, IP, Tool, UNSHARE};

const FASTIFY: &str = "xtask/peers/fastify";
const RESTATE: &str = "xtask/peers/restate";
const NODE: Tool = Tool { program: "node", package: "nodejs" };

/// Restate looks for things on the internet when it starts, whatever its settings; here it only has a loopback of its
/// own.
const LOOPBACK_ONLY: [&str; 5] = ["--map-root-user", "--net", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
const NAMESPACE_LOOKS: u32 = 100;

pub(super) fn install() -> Result<(), Failure> {
    tools::install_missing(&[NODE, UNSHARE, IP])?;
    tools::install_packages("install Fastify", FASTIFY)?;
    tools::install_packages("install Restate", RESTATE)
}

/// A server with items to move, warmed up.
pub(super) struct Peer<'i> {
    /// Runs the rules; stopped before what it depends on.
    node: Server,
    engine: Engine,
    installation: &'i Installation,
    items: String,
    _directory: Directory,
}

enum Engine {
    Postgres(database::Server),
    Restate(Server),
}

impl<'i> Peer<'i> {
    pub(super) fn start_fastify(installation: &'i Installation) -> Result<Peer<'i>, Failure> {
        let directory = Directory::make("fastify")?;
        let database = database::Server::start()?;
        database.sql("postgres", "CREATE DATABASE peer")?;
        let mut command = program(NODE.program, &["server.js"]);
        command.current_dir(root().join(FASTIFY)).env("NODE_ENV", "production");
        command.env("CREDENTIALS", credentials(installation)).env("DATABASE", database.url("peer"));
        let node = Server::start(&mut command, &directory.path().join("node.log"))?;
        Peer { node, engine: Engine::Postgres(database), installation, items: String::new(), _directory: directory }
            .warmed_up()
    }

    pub(super) fn start_restate(installation: &'i Installation) -> Result<Peer<'i>, Failure> {
        let directory = Directory::make("restate")?;
        let engine = start_restate_server(directory.path())?;
        let mut command = inside(&engine, Path::new(NODE.program));
        command.arg("server.js").current_dir(root().join(RESTATE)).env("NODE_ENV", "production");
        // Otherwise it logs two lines for each call, which the server does not need.
        command.env("CREDENTIALS", credentials(installation)).env("RESTATE_LOGGING", "WARN");
        command.env("ADMIN", "http://127.0.0.1:9070").env("INGRESS", "http://127.0.0.1:8080");
        let node = Server::start(&mut command, &directory.path().join("node.log"))?;
        Peer { node, engine: Engine::Restate(engine), installation, items: String::new(), _directory: directory }
            .warmed_up()
    }

    fn warmed_up(mut self) -> Result<Peer<'i>, Failure> {
        self.items = self.load("prepare", &ITEMS.to_string())?;
        self.measure(WARM_UP_SECONDS)?;
        Ok(self)
    }

    pub(super) fn measure(&self, seconds: u32) -> Result<Moves, Failure> {
        let before = self.cpu_seconds()?;
        let report = self.load("run", &seconds.to_string())?;
        Moves::read(&report, Some(self.cpu_seconds()? - before))
    }

    fn load(&self, what: &str, number: &str) -> Result<String, Failure> {
        let arguments = [self.node.address(), CLIENTS, what, number];
        let mut command = match &self.engine {
            Engine::Postgres(_) => moves::example("transitions_load"),
            Engine::Restate(server) => inside(server, Path::new(moves::example("transitions_load").get_program())),
        };
        command.args(arguments);
        if let Engine::Restate(_) = &self.engine {
            command.arg("restate");
        }
        moves::output_with(&mut command, &format!("{}{}", self.installation.tokens(), self.items))
    }

    fn cpu_seconds(&self) -> Result<f64, Failure> {
        let engine = match &self.engine {
            Engine::Postgres(server) => server.cpu_seconds()?,
            Engine::Restate(server) => server.cpu_seconds()?,
        };
        Ok(engine + self.node.cpu_seconds()?)
    }
}

fn credentials(installation: &Installation) -> PathBuf {
    installation.path().join("credentials.json")
}

fn start_restate_server(directory: &Path) -> Result<Server, Failure> {
    let architecture = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    let package = format!("{RESTATE}/node_modules/@restatedev/restate-server-linux-{architecture}");
    let mut command = program("unshare", &LOOPBACK_ONLY);
    command.arg(root().join(package).join("bin/restate-server")).args(["--node-name", "peer", "--no-logo"]);
    command.args(["--bind-ip", "127.0.0.1", "--listen-mode", "tcp", "--base-dir"]).arg(directory.join("data"));
    command.env("RESTATE_DISABLE_TELEMETRY", "true").env("RESTATE_ADMIN__DISABLE_WEB_UI", "true");
    let server = Server::spawn(&mut command, "127.0.0.1:8080", &directory.join("restate.log"))?;
    let namespace = |process: &str| fs::read_link(format!("/proc/{process}/ns/net")).ok();
    for _ in 0..NAMESPACE_LOOKS {
        if namespace(&server.id().to_string()) != namespace("self") {
            return Ok(server);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(Failure::environment("Restate needs a network namespace, which could not be made"))
}

/// A program that shares the server's loopback.
fn inside(server: &Server, executable: &Path) -> Command {
    let target = server.id().to_string();
    let mut command = program("nsenter", &["--target", &target, "--user", "--net", "--preserve-credentials"]);
    command.arg(executable);
    command
}

/// The versions of everything that peers are made of.
pub(super) struct Versions {
    pub fastify: String,
    pub driver: String,
    pub postgres: String,
    pub restate: String,
    pub sdk: String,
    pub node: String,
}

impl Versions {
    pub(super) fn read() -> Result<Versions, Failure> {
        let text = |peer: &str| fs::read_to_string(root().join(peer).join("package.json")).unwrap_or_default();
        let (fastify, restate) = (text(FASTIFY), text(RESTATE));
        Ok(Versions {
            fastify: version_of(&fastify, "fastify"),
            driver: version_of(&fastify, "pg"),
            postgres: database::version()?,
            restate: version_of(&restate, "@restatedev/restate-server"),
            sdk: version_of(&restate, "@restatedev/restate-sdk"),
            node: output_of(&mut program(NODE.program, &["--version"]))?.trim().trim_start_matches('v').to_owned(),
        })
    }
}

/// `"fastify": "5.12.8"`
fn version_of(manifest: &str, package: &str) -> String {
    let after = manifest.split(&format!("\"{package}\": \"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_the_version_that_the_manifest_names() {
        let manifest = "{ \"dependencies\": { \"fastify\": \"5.12.8\", \"pg\": \"8.23.1\" } }";
        assert_eq!((version_of(manifest, "pg"), version_of(manifest, "y")), ("8.23.1".to_owned(), String::new()));
    }
}
