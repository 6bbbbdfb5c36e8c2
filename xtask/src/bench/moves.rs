//! What `bench transitions` and `bench growth` share: a service with its own directory on the disk, and clients that
//! move items on it.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use super::load::Server;
use crate::step::{Failure, cannot_start, cargo, program, quiet_output_of, run_timed, shown, target_dir};

pub(super) const CLIENTS: &str = "64";
/// Four for each client.
pub(super) const ITEMS: usize = 256;
pub(super) const WARM_UP_SECONDS: u32 = 2;

/// The peers, load generators and makers of large files.
const EXAMPLES: [(&str, &[&str]); 4] = [
    ("pilot-core", &["many_credentials"]),
    ("pilot-evidence", &["judge", "log_cost"]),
    ("pilot-server", &["readers_load", "session_peers", "transitions_load"]),
    ("pilot-store", &["fill_store", "raw_commit"]),
];

/// Builds everything the benchmarks run, optimised.
pub(super) fn build() -> Result<(), Failure> {
    build_pilot()?;
    // All at once: what they depend on is compiled for each set of packages that is asked for.
    let mut build = cargo(&["build", "--release"]);
    for (package, examples) in EXAMPLES {
        build.args(["--package", package]);
        for example in examples {
            build.args(["--example", example]);
        }
    }
    run_timed("build", &mut build)
}

/// By itself, as it is built for users: examples would add features to the packages that they share with it.
pub(super) fn build_pilot() -> Result<(), Failure> {
    run_timed("build", &mut cargo(&["build", "--release", "--package", "pilot"]))
}

pub(super) fn example(name: &str) -> Command {
    let path = target_dir().join("release/examples").join(name);
    program(&path.to_string_lossy(), &[])
}

pub(super) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// A directory next to what cargo builds, because the usual one for temporary files may be in memory; removed when
/// dropped.
pub(super) struct Directory(pub PathBuf);

impl Directory {
    pub(super) fn make(name: &str) -> Result<Directory, Failure> {
        // While a round is measured again, the files of the one before it are still there.
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let path = target_dir().join(format!("bench-{name}-{}-{number}", std::process::id()));
        let made = fs::DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| Failure::environment(format!("{}: {error}", path.display())))?;
        Ok(Directory(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A configured service with an initiator and an approver.
pub(super) struct Installation {
    directory: Directory,
    /// One per line, as the load generator expects them.
    tokens: String,
}

impl Installation {
    pub(super) fn make(name: &str) -> Result<Installation, Failure> {
        Installation::make_with(name, "")
    }

    /// With more sections in the configuration.
    pub(super) fn make_with(name: &str, sections: &str) -> Result<Installation, Failure> {
        let directory = Directory::make(name)?;
        let config = directory.path().join("pilot.toml");
        let text = format!("listen = \"127.0.0.1:0\"\n[credentials]\nfile = \"credentials.json\"\n{sections}");
        fs::write(&config, text).map_err(|error| Failure::environment(format!("{}: {error}", config.display())))?;
        let mut tokens = String::new();
        for (actor, role) in [("ana", "initiator"), ("ben", "approver")] {
            let token = new_credential(&directory, actor, role)?;
            let text = fs::read_to_string(&token)
                .map_err(|error| Failure::environment(format!("{}: {error}", token.display())))?;
            tokens.push_str(text.trim());
            tokens.push('\n');
        }
        // As in any service: as long as a credential has not been used, requests are searched for its token by hashing.
        new_credential(&directory, "eve", "auditor")?;
        Ok(Installation { directory, tokens })
    }

    /// Another node of the same service: the same credentials and key, with a directory of its own.
    pub(super) fn another(&self, name: &str, sections: &str) -> Result<Installation, Failure> {
        let installation = Installation::make_with(name, sections)?;
        let data = installation.path().join("data");
        let made = fs::DirBuilder::new().mode(0o700).create(&data);
        made.map_err(|error| Failure::environment(format!("{}: {error}", data.display())))?;
        for file in ["credentials.json", "data/log.key"] {
            let copied = fs::copy(self.path().join(file), installation.path().join(file));
            copied.map_err(|error| Failure::environment(format!("{file}: {error}")))?;
        }
        Ok(Installation { tokens: self.tokens.clone(), ..installation })
    }

    /// The file with the token of an auditor, who may export evidence; for a service that has not started yet.
    pub(super) fn auditor(&self) -> Result<PathBuf, Failure> {
        new_credential(&self.directory, "ada", "auditor")
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Of the initiator and the approver, one per line.
    pub(super) fn tokens(&self) -> &str {
        &self.tokens
    }

    /// Where the service keeps its store.
    pub(super) fn store(&self) -> PathBuf {
        self.directory.path().join("data/pilot.db")
    }

    pub(super) fn start(&self) -> Result<Server, Failure> {
        self.start_program(&built())
    }

    /// Like `start`, with another build of the program.
    pub(super) fn start_program(&self, path: &Path) -> Result<Server, Failure> {
        let mut serve = program(&path.to_string_lossy(), &["serve", "--config"]);
        serve.arg(self.directory.path().join("pilot.toml"));
        Server::start(&mut serve, &self.directory.path().join("pilot.log"))
    }

    /// Creates and submits items; returns one per line with its content digest.
    pub(super) fn prepare(&self, server: &Server, items: usize) -> Result<String, Failure> {
        load(server.address(), CLIENTS, ("prepare", &items.to_string()), &self.tokens)
    }

    pub(super) fn measure(&self, server: &Server, items: &str, seconds: u32) -> Result<Moves, Failure> {
        self.measure_nodes(&[server], CLIENTS, items, seconds)
    }

    /// Spreads the clients over all nodes of one ledger.
    pub(super) fn measure_nodes(
        &self,
        nodes: &[&Server],
        clients: &str,
        items: &str,
        seconds: u32,
    ) -> Result<Moves, Failure> {
        let used = || nodes.iter().map(|node| node.cpu_seconds()).sum::<Result<f64, Failure>>();
        let addresses: Vec<_> = nodes.iter().map(|node| node.address()).collect();
        let before = used()?;
        let input = format!("{}{items}", self.tokens);
        let report = load(&addresses.join(","), clients, ("run", &seconds.to_string()), &input)?;
        Moves::read(&report, Some(used()? - before))
    }
}

/// Creates a credential, and returns the file with its token.
fn new_credential(directory: &Directory, actor: &str, role: &str) -> Result<PathBuf, Failure> {
    let (config, token) = (directory.path().join("pilot.toml"), directory.path().join(actor));
    let mut new = pilot(&["credential", "new", "--actor", actor, "--role", role]);
    quiet_output_of(new.arg("--config").arg(&config).arg("--token-out").arg(&token))?;
    Ok(token)
}

pub(super) fn pilot(arguments: &[&str]) -> Command {
    program(&built().to_string_lossy(), arguments)
}

/// The program that `build` builds.
pub(super) fn built() -> PathBuf {
    target_dir().join("release/pilot")
}

fn load(addresses: &str, clients: &str, (what, number): (&str, &str), input: &str) -> Result<String, Failure> {
    let mut command = example("transitions_load");
    output_with(command.args([addresses, clients, what, number]), input)
}

/// Standard output of a program that is given its input.
pub(super) fn output_with(command: &mut Command, input: &str) -> Result<String, Failure> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let line = shown(command);
    let mut child = command.spawn().map_err(|error| cannot_start(&line, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(|error| cannot_start(&line, &error))?;
    }
    let output = child.wait_with_output().map_err(|error| cannot_start(&line, &error))?;
    if !output.status.success() {
        return Err(Failure::environment(format!("`{line}` failed ({})", output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The result of one round of moves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Moves {
    pub per_second: f64,
    pub p50_micros: f64,
    pub p99_micros: f64,
    /// Of the server; NaN if there is none.
    pub cpu_micros: f64,
}

impl Moves {
    pub(super) fn read(report: &str, cpu_seconds: Option<f64>) -> Result<Moves, Failure> {
        let figure = |name: &str| {
            let found = report.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<f64>().ok());
            found.ok_or_else(|| Failure::environment(format!("no `{name}` in the report:\n{report}")))
        };
        let transitions = figure("transitions ")?;
        Ok(Moves {
            per_second: transitions / figure("seconds ")?,
            p50_micros: figure("p50_micros ")?,
            p99_micros: figure("p99_micros ")?,
            cpu_micros: cpu_seconds.map_or(f64::NAN, |seconds| seconds * 1e6 / transitions),
        })
    }

    pub(super) fn print(&self, what: &str, round: &str) {
        let Moves { per_second, p50_micros, p99_micros, cpu_micros } = self;
        let cpu = if cpu_micros.is_nan() { String::new() } else { format!("{cpu_micros:.1}") };
        println!("{what:<20} {round:<6} {per_second:>9.0} {p50_micros:>8.0} {p99_micros:>8.0}   {cpu:>6}");
    }
}

pub(super) fn print_heading() {
    println!("what                 round    moves/s   p50 µs   p99 µs   server CPU µs per move");
}

/// Runs one round of moves.
pub(super) type Round<'r> = &'r dyn Fn() -> Result<Moves, Failure>;

/// A figure and its target.
pub(super) fn print_figure(what: &str, figure: &str, target: &str) {
    println!("{what:<40} {figure:>10}   (to reach: {target})");
}

/// Creates a credential for an actor; returns its token.
pub(super) fn new_token(pilot: &Path, config: &Path, actor: &str, role: &str) -> Result<String, Failure> {
    let mut new = program(&pilot.to_string_lossy(), &["credential", "new", "--output", "json"]);
    new.args(["--actor", actor, "--role", role, "--config"]).arg(config);
    let made = quiet_output_of(&mut new)?;
    let token = made.split("\"token\":").nth(1).and_then(|rest| rest.split('"').nth(1));
    token.map(str::to_owned).ok_or_else(|| Failure::environment("`pilot credential new` printed no token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_that_is_measured_again_has_a_directory_of_its_own() {
        let [first, again] = ["twice", "twice"].map(|name| Directory::make(name).unwrap());
        assert!(first.path() != again.path() && first.path().is_dir() && again.path().is_dir());
        let paths = [first.path().to_owned(), again.path().to_owned()];
        drop((first, again));
        assert!(paths.iter().all(|path| !path.exists()), "and both are removed");
    }

    #[test]
    fn the_figures_of_a_report_are_read() {
        let report = "transitions 40000\nseconds 2.000\np50_micros 900\np99_micros 4000\n";
        let expected = Moves { per_second: 20_000.0, p50_micros: 900.0, p99_micros: 4_000.0, cpu_micros: 25.0 };
        assert_eq!(Moves::read(report, Some(1.0)).unwrap(), expected);
        assert!(Moves::read("transitions 1\n", None).is_err());
    }
}
