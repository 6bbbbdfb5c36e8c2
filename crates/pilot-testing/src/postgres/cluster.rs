//! A server: its life, and what tests do with it.

use std::fs;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::sync::OnceLock;

use super::database::Database;
use super::home::Home;
use super::installation::{as_server, client, output, psql};
use super::processes::{self, poll};
use super::tls::{self, CERTIFIED, ClientFiles, ServerKey};
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

const PORTS_TRIED: u32 = 10;

const ASKS_FOR_PASSWORD: &str = "host all all 127.0.0.1/32 scram-sha-256\n";

/// How a server differs from the shared one.
#[derive(Default)]
pub struct Settings {
    /// Lines of `postgresql.conf`.
    pub options: Vec<(&'static str, &'static str)>,
    pub checksums: bool,
    pub access: Access,
}

/// Who may connect to the port.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Anyone, without TLS.
    #[default]
    Trust,
    /// With [`Cluster::password`] and SCRAM, without TLS.
    Password,
    /// With TLS only: [`CERTIFIED`] with its client certificate, others with [`Cluster::password`] and SCRAM.
    Tls(ServerKey),
}

/// A PostgreSQL server on a loopback port of its own. When it is dropped, it is stopped and its files are removed; the
/// same happens when the test program ends, however it ends.
#[must_use = "a server that is dropped is stopped"]
pub struct Cluster {
    postmaster: Child,
    port: u16,
    pub(super) password: Option<String>,
    is_shared: bool,
    pub(super) home: Home,
}

impl Cluster {
    /// One for the whole test program, started when it is first needed. Anything that would disturb other tests
    /// panics.
    pub fn shared() -> &'static Cluster {
        // Not a `LazyLock`, which would give the reason of a failure to the first test only.
        static SHARED: OnceLock<Cluster> = OnceLock::new();
        SHARED.get_or_init(|| {
            let mut cluster = Cluster::start(&Settings::default());
            cluster.is_shared = true;
            cluster
        })
    }

    pub fn start(settings: &Settings) -> Cluster {
        // Before the directory: without PostgreSQL, there may be no user to give it to.
        let mut initdb = as_server("initdb", &[]);
        let home = Home::new();
        initdb.args(["--no-sync", "--no-instructions", "--auth=trust", "--username=postgres"]);
        initdb.args(["--locale=C.UTF-8", "--encoding=UTF8", "--pgdata"]).arg(home.data());
        if settings.checksums {
            initdb.arg("--data-checksums");
        }
        output(&mut initdb);
        home.configure(OPTIONS.iter().chain(&settings.options).copied());
        match settings.access {
            Access::Trust => Cluster::start_in(home, None),
            Access::Password => Cluster::start_guarded(home, ASKS_FOR_PASSWORD),
            Access::Tls(key) => {
                tls::prepare(&home, key);
                Cluster::start_guarded(home, tls::ACCESS)
            }
        }
    }

    /// With rules for those who come by way of the port. The harness itself uses the socket.
    fn start_guarded(home: Home, rules: &str) -> Cluster {
        let own = "local all all trust\nlocal replication all trust\n";
        fs::write(home.data().join("pg_hba.conf"), format!("{own}{rules}")).unwrap();
        let password = format!("{:x}", fresh_seed());
        let cluster = Cluster::start_in(home, Some(password.clone()));
        cluster.sql("postgres", &format!("ALTER ROLE postgres PASSWORD '{password}'"));
        cluster.sql("postgres", &format!("CREATE ROLE {CERTIFIED} SUPERUSER LOGIN"));
        cluster
    }

    /// On data that is there, on a port that is free.
    pub(super) fn start_in(home: Home, password: Option<String>) -> Cluster {
        home.configure([("unix_socket_directories", home.path().to_str().unwrap())]);
        let mut dice = Dice::new(fresh_seed());
        // Another program may take the port between the look and the start.
        for _ in 0..PORTS_TRIED {
            let port = free_port(&mut dice);
            home.configure([("port", port.to_string().as_str())]);
            match start_server(&home, port) {
                Ok(postmaster) => return Cluster { postmaster, port, password, is_shared: false, home },
                Err(()) if home.end_of_log().contains("Address already in use") => {}
                Err(()) => break,
            }
        }
        panic!("the server does not start; its log:\n{}", home.end_of_log())
    }

    /// An empty database with a name that no other test has.
    pub fn fresh_database(&self) -> Database {
        Database::create(self.own_url("postgres"), self.is_shared, |name| self.url(name))
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// For the superuser, with the password if there is one.
    pub fn url(&self, database: &str) -> String {
        match &self.password {
            None => self.url_for("postgres", database),
            Some(password) => self.url_for(&format!("postgres:{password}"), database),
        }
    }

    /// `user` is a name, or a name and a password with a colon between them.
    pub fn url_for(&self, user: &str, database: &str) -> String {
        format!("postgres://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// The superuser's.
    pub fn password(&self) -> &str {
        self.password.as_deref().unwrap_or_else(|| panic!("this server asks for no password"))
    }

    /// The files that clients of a server with TLS need.
    pub fn tls(&self) -> ClientFiles {
        ClientFiles::of(&self.home)
    }

    /// By way of the socket, which asks for nothing.
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
        self.home.end_of_log()
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

    pub(super) fn must_not_be_shared(&self) {
        assert!(!self.is_shared, "other tests use this server: start one of your own");
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        processes::stop(&mut self.postmaster, &self.home.data());
    }
}

fn free_port(dice: &mut Dice) -> u16 {
    let mut tries = std::iter::repeat_with(|| PORTS.start + dice.below(PORTS.end - PORTS.start));
    tries.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).unwrap()
}

/// Returns when the server accepts connections; fails when it ends instead, or takes longer than a minute.
fn start_server(home: &Home, port: u16) -> Result<Child, ()> {
    let log = home.log();
    let mut command = as_server("postgres", &["--pdeathsig=QUIT"]);
    command.arg("-D").arg(home.data());
    command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
    let mut postmaster = processes::start(command);
    let mut probe = client("pg_isready");
    probe.arg("--quiet").arg("--host").arg(home.path()).args(["--port", &port.to_string()]);
    let has_started = poll(|| {
        let has_ended = postmaster.try_wait().unwrap().is_some();
        if has_ended { Some(false) } else { probe.status().unwrap().success().then_some(true) }
    });
    if has_started == Some(true) {
        return Ok(postmaster);
    }
    processes::kill(&mut postmaster, &home.data());
    Err(())
}
