//! A PostgreSQL server on the disk for a benchmark, and pgbench on it.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::super::length;
use super::super::moves::{CLIENTS, Directory, Moves};
use crate::postgres;
use crate::processor;
use crate::step::{Failure, cannot_start, output_of, program, quiet_output_of, root, run};

/// Otherwise as PostgreSQL comes, with room for the connections of a few nodes and of pgbench.
const SETTINGS: &[&str] =
    &["listen_addresses=127.0.0.1", "max_connections=300", "max_wal_size=4GB", "logging_collector=off"];
const START_LOOKS: u32 = 120;

/// Who the server runs as: it refuses root.
const USER: &str = "postgres";

pub(super) struct Server {
    child: Child,
    port: u16,
    _directory: Directory,
}

impl Server {
    pub(super) fn start() -> Result<Server, Failure> {
        postgres::install()?;
        let directory = Directory::make("postgres")?;
        if is_root()? {
            run(program("chown", &[USER]).arg(directory.path()))?;
        }
        let mut initdb = as_server("initdb")?;
        initdb.args(["--auth=trust", "--username=postgres", "--locale=C.UTF-8", "--encoding=UTF8", "--data-checksums"]);
        quiet_output_of(initdb.arg("--pgdata").arg(data(&directory)))?;
        let port = free_port()?;
        let mut command = as_server("postgres")?;
        command.arg("-D").arg(data(&directory)).args(["-p", &port.to_string()]).arg("-k").arg(directory.path());
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let log = directory.path().join("log");
        let file = fs::File::create(&log).map_err(|error| cannot_start("postgres", &error))?;
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file).spawn();
        let child = spawned.map_err(|error| cannot_start("postgres", &error))?;
        let server = Server { child, port, _directory: directory };
        for _ in 0..START_LOOKS {
            let mut look = server.client("pg_isready", "postgres");
            if look.stdout(Stdio::null()).status().is_ok_and(|found| found.success()) {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(250));
        }
        let log = fs::read_to_string(log).unwrap_or_default();
        Err(Failure::environment(format!("the database server does not start; its log:\n{log}")))
    }

    pub(super) fn url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Processor time used so far by all its processes.
    pub(super) fn cpu_seconds(&self) -> Result<f64, Failure> {
        processor::seconds_of_tree(self.child.id())
    }

    /// A program of PostgreSQL, with a database to connect to.
    fn client(&self, name: &str, database: &str) -> Command {
        let mut command = Command::new(postgres::programs().join(name));
        command.env("PGHOST", "127.0.0.1").env("PGPORT", self.port.to_string());
        command.env("PGUSER", "postgres").env("PGDATABASE", database);
        command
    }

    pub(super) fn sql(&self, database: &str, statement: &str) -> Result<String, Failure> {
        let mut psql = self.client("psql", database);
        psql.args(["-XAtqw", "-v", "ON_ERROR_STOP=1"]).args(["-c", statement]);
        output_of(&mut psql)
    }

    /// Makes every commit take this much longer, with its locks held, as a distant standby would.
    pub(super) fn delay_commits(&self, milliseconds: u32) -> Result<(), Failure> {
        self.sql("postgres", &format!("ALTER SYSTEM SET commit_delay = {}", milliseconds * 1_000))?;
        self.sql("postgres", "ALTER SYSTEM SET commit_siblings = 0")?;
        self.sql("postgres", "SELECT pg_reload_conf()").map(drop)
    }

    /// Runs a script with as many clients as pilot has, one transaction for each transition.
    pub(super) fn pgbench(&self, database: &str, script: &Path) -> Result<Moves, Failure> {
        let logs = Directory::make("pgbench")?;
        let mut command = self.client("pgbench", database);
        command.args(["--no-vacuum", "--protocol=prepared", "--jobs=1", "--client", CLIENTS, "--log"]);
        command
            .args(["--time", &length::round_seconds().to_string()])
            .arg("--log-prefix")
            .arg(logs.path().join("moves"));
        command.arg("--file").arg(script);
        let report = quiet_output_of(&mut command)?;
        let mut micros = Vec::new();
        for entry in fs::read_dir(logs.path()).into_iter().flatten().flatten() {
            let text = fs::read_to_string(entry.path()).unwrap_or_default();
            // Client, number, microseconds, …
            micros.extend(text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok()));
        }
        read_report(&report, micros)
    }
}

/// `tps = 5931.804 (without initial connection time)`
fn read_report(report: &str, mut micros: Vec<f64>) -> Result<Moves, Failure> {
    let rate = report.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse::<f64>().ok());
    let failed = report.lines().find(|line| line.contains("failed transactions") && !line.contains(": 0 "));
    let (Some(per_second), None, false) = (rate, failed, micros.is_empty()) else {
        return Err(Failure::environment(format!("pgbench reported:\n{report}")));
    };
    micros.sort_by(f64::total_cmp);
    let percentile = |percent: usize| micros.get(micros.len() * percent / 100).copied().unwrap_or(f64::NAN);
    Ok(Moves { per_second, p50_micros: percentile(50), p99_micros: percentile(99), cpu_micros: f64::NAN })
}

impl Drop for Server {
    fn drop(&mut self) {
        // A fast shutdown. If it cannot be asked for, the process that holds the files has to go all the same.
        let mut interrupt = program("kill", &["-INT", &self.child.id().to_string()]);
        if !interrupt.status().is_ok_and(|status| status.success()) {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// `PostgreSQL 15.18`
pub(super) fn version() -> Result<String, Failure> {
    let mut server = Command::new(postgres::programs().join("postgres"));
    // `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)`
    let text = output_of(server.arg("--version"))?;
    Ok(format!("PostgreSQL {}", text.split_whitespace().nth(2).unwrap_or_default()))
}

fn data(directory: &Directory) -> PathBuf {
    directory.path().join("data")
}

fn is_root() -> Result<bool, Failure> {
    Ok(output_of(&mut program("id", &["--user"]))?.trim() == "0")
}

/// A program that works on the server's files; it ends when this one does.
fn as_server(name: &str) -> Result<Command, Failure> {
    let mut command = program("setpriv", &["--pdeathsig", "INT"]);
    if is_root()? {
        command.args([&format!("--reuid={USER}"), &format!("--regid={USER}"), "--clear-groups"]);
    }
    command.arg(postgres::programs().join(name)).current_dir("/");
    Ok(command)
}

fn free_port() -> Result<u16, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found.map(|address| address.port()).map_err(|error| cannot_start("postgres", &error))
}

/// The tables of a ledger.
pub(super) fn schema() -> Result<String, Failure> {
    let path = root().join("crates/pilot-store/src/schema/postgres.sql");
    fs::read_to_string(&path).map_err(|error| Failure::environment(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_pgbench_is_read_and_one_with_failures_is_refused() {
        let report = |failed: u32| {
            format!(
                "number of failed transactions: {failed} (0.000%)\ntps = 5931.804 (without initial connection time)\n"
            )
        };
        let moves = read_report(&report(0), vec![900.0, 1_000.0, 1_100.0]).unwrap();
        assert_eq!((moves.per_second, moves.p50_micros, moves.p99_micros), (5931.804, 1_000.0, 1_100.0));
        assert!(read_report(&report(3), vec![900.0]).is_err());
        assert!(read_report(&report(0), Vec::new()).is_err());
    }
}
