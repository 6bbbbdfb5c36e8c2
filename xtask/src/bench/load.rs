//! A server on one core, wrk on another, and the figures of both.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::processor;
use crate::step::{Failure, cannot_start, output_of, program, quiet_output_of, shown};

const SERVER_CORE: &str = "0";
const LOAD_CORE: &str = "1";
const LOOK: Duration = Duration::from_millis(100);
/// How often a server that does not announce itself is tried.
const START_LOOKS: u32 = 300;
/// How often a server is looked at that was asked to stop, before it is killed.
const STOP_LOOKS: u32 = 100;

/// A running server; stopped when dropped.
pub(super) struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts a program that says nothing once it listens; waits until it accepts connections.
    pub(super) fn start_silent(command: &mut Command, address: &str, log: &Path) -> Result<Server, Failure> {
        let mut server = Server::spawn(command, address, log)?;
        for _ in 0..START_LOOKS {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            if server.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                break;
            }
            std::thread::sleep(LOOK);
        }
        let said = fs::read_to_string(log).unwrap_or_default();
        Err(Failure::environment(format!("`{}` did not start listening; it said:\n{said}", shown(command))))
    }

    /// Starts a program and does not wait.
    pub(super) fn spawn(command: &mut Command, address: &str, log: &Path) -> Result<Server, Failure> {
        let line = shown(command);
        let log = File::create(log).map_err(|error| cannot_start(&line, &error))?;
        let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        let child = spawned.map_err(|error| cannot_start(&line, &error))?;
        Ok(Server { child, url: format!("http://{address}") })
    }

    /// Starts a program that prints `listening on URL` to standard output; its log goes to a file, as it would under a
    /// service manager.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Server, Failure> {
        let line = shown(command);
        let log = File::create(log).map_err(|error| cannot_start(&line, &error))?;
        let spawned = command.stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = spawned.map_err(|error| cannot_start(&line, &error))?;
        let mut announcement = String::new();
        if let Some(output) = child.stdout.take() {
            // If it ends without a line, the text stays empty, which is handled below.
            let _ = BufReader::new(output).read_line(&mut announcement);
        }
        let url = announcement.trim().strip_prefix("listening on ").map(str::to_owned);
        let mut server = Server { child, url: String::new() };
        server.url = url.ok_or_else(|| Failure::environment(format!("`{line}` did not start listening")))?;
        Ok(server)
    }

    pub(super) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Stops it as a service manager would, and waits for its end.
    pub(super) fn stop(mut self) -> Result<(), Failure> {
        output_of(&mut program("kill", &["-TERM", &self.child.id().to_string()]))?;
        self.child.wait().map_err(|error| Failure::environment(error.to_string()))?;
        Ok(())
    }

    /// How much of the machine's memory the process uses.
    pub(super) fn resident_mib(&self) -> Result<f64, Failure> {
        let path = format!("/proc/{}/status", self.child.id());
        let text = fs::read_to_string(&path).map_err(|error| Failure::environment(format!("{path}: {error}")))?;
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kib.map(|kib| kib / 1024.0).ok_or_else(|| Failure::environment(format!("{path}: has no VmRSS")))
    }

    /// Processor time used so far, user and system together, by all threads and by the processes it has started.
    pub(super) fn cpu_seconds(&self) -> Result<f64, Failure> {
        processor::seconds_of_tree(self.child.id())
    }

    pub(super) fn measure(&self, path: &str, header: &str, seconds: u32) -> Result<Figures, Failure> {
        let before = self.cpu_seconds()?;
        let report = output_of(&mut self.wrk(path, header, seconds))?;
        let cpu_seconds = self.cpu_seconds()? - before;
        Figures::read(&report, cpu_seconds)
            .ok_or_else(|| Failure::environment(format!("the load failed; wrk reported:\n{report}")))
    }

    fn wrk(&self, path: &str, header: &str, seconds: u32) -> Command {
        let mut command = program("taskset", &["--cpu-list", LOAD_CORE, "wrk", "-t1", "-c32", "--latency"]);
        command.args(["-d", &format!("{seconds}s"), "-H", header, &format!("{}{path}", self.url)]);
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Asked first: a server that is killed leaves its own processes behind.
        let _ = quiet_output_of(&mut program("kill", &["-TERM", &self.child.id().to_string()]));
        for _ in 0..STOP_LOOKS {
            if self.child.try_wait().is_ok_and(|ended| ended.is_some()) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program on the core for servers.
pub(super) fn pinned(executable: &Path, arguments: &[&str]) -> Command {
    let mut command = program("taskset", &["--cpu-list", SERVER_CORE]);
    command.arg(executable).args(arguments);
    command
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    pub requests: f64,
    pub per_second: f64,
    pub cpu_seconds: f64,
    pub per_cpu_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
}

impl Figures {
    /// `None` if a figure is missing, or an answer was not a success.
    fn read(report: &str, cpu_seconds: f64) -> Option<Figures> {
        if report.contains("Non-2xx") || report.contains("Socket errors") {
            return None;
        }
        let after = |key: &str| report.lines().find_map(|line| line.trim().strip_prefix(key)).map(str::trim);
        let requests = report.lines().find(|line| line.contains(" requests in "))?.split_whitespace().next()?;
        let requests: f64 = requests.parse().ok()?;
        let figures = Figures {
            requests,
            per_second: after("Requests/sec:")?.parse().ok()?,
            cpu_seconds,
            per_cpu_second: requests / cpu_seconds,
            p50_micros: micros(after("50%")?)?,
            p99_micros: micros(after("99%")?)?,
        };
        (figures.requests > 0.0 && cpu_seconds > 0.0).then_some(figures)
    }
}

/// `87.00us`, `1.20ms` or `2.00s`.
fn micros(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    units.iter().find_map(|(unit, factor)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORT: &str = "\
Running 5s test @ http://127.0.0.1:7450/v1/session
  1 threads and 32 connections
  Latency Distribution
     50%  512.00us
     75%    0.90ms
     99%    1.25ms
  250000 requests in 5.00s, 41.00MB read
Requests/sec:  50000.12
";

    #[test]
    fn the_figures_of_a_report_are_read() {
        let figures = Figures::read(REPORT, 4.0).unwrap();
        let Figures { requests, per_second, per_cpu_second, p50_micros, p99_micros, .. } = figures;
        let read = format!("{requests} {per_second} {per_cpu_second} {p50_micros} {p99_micros}");
        assert_eq!(read, "250000 50000.12 62500 512 1250");
    }

    #[test]
    fn a_report_with_failed_answers_gives_no_figures() {
        assert_eq!(Figures::read(&format!("{REPORT}  Non-2xx or 3xx responses: 1\n"), 4.0), None);
        assert_eq!(Figures::read("unable to connect", 4.0), None);
    }
}
