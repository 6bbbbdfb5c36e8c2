//! A server: its life, and what tests do with it.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::LazyLock;

use super::database::Database;
use super::home::Home;
use super::installation::{as_server, client, output, psql};
use super::processes::{self, until};
use crate::{Dice, fresh_seed};

/// What every server has, before the settings of a test.
const OPTIONS: &[(&str, &str)] = &[
    ("listen_addresses", "127.0.0.1"),
    ("max_connections", "300"),
    ("shared_buffers", "64MB"),
    ("max_wal_size", "256MB"),
    // A standby that was paused for long finds what it has missed.
    ("wal_keep_size", "256MB"),
    ("wal_retrieve_retry_interval", "200ms"),
    // As files among the others, which are removed with them.
    ("dynamic_shared_memory_type", "mmap"),
    ("log_checkpoints", "off"),
];

/// Below those that the kernel chooses for others, so that a server finds its port free when it starts again.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

const LOG_LINES_SHOWN: usize = 60;

/// How a server differs from the shared one.
#[derive(Default)]
pub struct Settings {
    /// Lines of `postgresql.conf`.
    pub options: Vec<(&'static str, &'static str)>,
    pub checksums: bool,
}

/// A PostgreSQL server on a loopback port of its own. When it is dropped, its processes are killed and its files
/// removed; the same happens when the test program ends in any other way.
pub struct Cluster {
    postmaster: Child,
    port: u16,
    is_shared: bool,
    // Dropped last.
    home: Home,
}

impl Cluster {
    /// One for the whole test program, started when it is first needed. What would disturb other tests panics.
    pub fn shared() -> &'static Cluster {
        static SHARED: LazyLock<Cluster> = LazyLock::new(|| {
            let mut cluster = Cluster::start(&Settings::default());
            cluster.is_shared = true;
            cluster
        });
        &SHARED
    }

    pub fn start(settings: &Settings) -> Cluster {
        let home = Home::new();
        let mut initdb = as_server("initdb", &[]);
        initdb.args(["--no-sync", "--no-instructions", "--auth=trust", "--username=postgres"]);
        initdb.args(["--locale=C.UTF-8", "--encoding=UTF8", "--pgdata"]).arg(home.data());
        if settings.checksums {
            initdb.arg("--data-checksums");
        }
        output(&mut initdb);
        append(&home, OPTIONS.iter().chain(&settings.options).copied());
        Cluster::start_in(home)
    }

    /// On data that is there, on a port that is free.
    fn start_in(home: Home) -> Cluster {
        append(&home, [("unix_socket_directories", home.path().to_str().unwrap())]);
        let mut dice = Dice::new(fresh_seed());
        // Another program may take the port between the look and the start.
        for _ in 0..10 {
            let port = free_port(&mut dice);
            append(&home, [("port", port.to_string().as_str())]);
            if let Ok(postmaster) = start_server(&home, port) {
                return Cluster { postmaster, port, is_shared: false, home };
            }
        }
        panic!("the server does not start; its log:\n{}", tail(&home))
    }

    /// An empty database with a name that no other test has.
    pub fn fresh_database(&self) -> Database {
        Database::create(self.own_url("postgres"), self.is_shared, |name| self.url(name))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// By way of the socket, where the harness needs no password.
    fn own_url(&self, database: &str) -> String {
        let socket = self.home.path().to_str().unwrap();
        format!("postgres:///{database}?host={socket}&port={}&user=postgres", self.port)
    }

    /// Runs statements as the superuser, each a transaction of its own. Returns what they print: one row per line, with
    /// `|` between columns.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        psql(&self.own_url(database), sql).unwrap_or_else(|error| panic!("{error}\n{sql}"))
    }

    /// The end of the server's log.
    pub fn log(&self) -> String {
        tail(&self.home)
    }

    /// Kills postmaster and children at once, as a power failure would.
    pub fn kill(&mut self) {
        processes::kill(&mut self.postmaster, &self.home.data());
    }

    /// After [`Cluster::kill`], on the same data and the same port.
    pub fn start_again(&mut self) {
        assert!(self.postmaster.try_wait().unwrap().is_some(), "the server is running");
        let started = start_server(&self.home, self.port);
        self.postmaster = started.unwrap_or_else(|()| panic!("the server does not start; its log:\n{}", self.log()));
    }

    /// Stops every process, as on a machine that hangs: connections stay open and nothing answers.
    pub fn pause(&self) {
        self.must_not_be_shared();
        processes::pause(&self.postmaster, &self.home.data());
    }

    pub fn resume(&self) {
        processes::resume(&self.home.data());
    }

    fn must_not_be_shared(&self) {
        assert!(!self.is_shared, "other tests use this server: start one of your own");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        processes::stop(&mut self.postmaster, &self.home.data());
    }
}

/// Appends lines to `postgresql.conf`: of several for the same name, the last is in effect.
fn append<'a>(home: &Home, options: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut file = File::options().append(true).open(home.data().join("postgresql.conf")).unwrap();
    for (name, value) in options {
        writeln!(file, "{name} = '{}'", value.replace('\'', "''")).unwrap();
    }
}

fn free_port(dice: &mut Dice) -> u16 {
    let mut tries = std::iter::repeat_with(|| PORTS.start + dice.below(PORTS.end - PORTS.start));
    tries.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Returns when the server accepts connections; fails when it ends instead.
fn start_server(home: &Home, port: u16) -> Result<Child, ()> {
    let log = File::options().create(true).append(true).open(home.log()).unwrap();
    let mut command = as_server("postgres", &["--pdeathsig=QUIT"]);
    command.arg("-D").arg(home.data());
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut postmaster = processes::start(command);
    let mut probe = client("pg_isready");
    probe.arg("--quiet").arg("--host").arg(home.path()).args(["--port", &port.to_string()]);
    until("the server to start", || {
        if postmaster.try_wait().unwrap().is_some() {
            return Some(Err(()));
        }
        probe.status().unwrap().success().then_some(Ok(()))
    })
    .map(|()| postmaster)
}

fn tail(home: &Home) -> String {
    let log = fs::read(home.log()).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<_> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..].join("\n")
}
