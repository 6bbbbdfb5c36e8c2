//! Attacks, each for some seconds, and how long a well-behaved actor waits meanwhile; with the clients of the tests in
//! `crates/pilot/tests/hostile`, in their long form.

use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use super::load::Server;
use super::moves::{Directory, load_average, new_token};
use crate::step::{Failure, program};
use crate::tools::{self, WRK};

use beside::{Honest, Process, Waits};
use clients::exchange::{Exchange, PATIENCE, post};
use clients::{ATTACKS, Attack, Form, Run, Target};

#[path = "../../../crates/pilot/tests/hostile/beside.rs"]
mod beside;
#[path = "../../../crates/pilot/tests/hostile/clients.rs"]
mod clients;
#[path = "flood/limited.rs"]
mod limited;

/// A program without limits ends here, before it takes all of the machine's memory.
const LIMITED: &str = "ulimit -v 8388608; exec \"$0\" serve --config \"$1\"";
const QUIET: Duration = Duration::from_secs(8);
const ATTACKED: Duration = Duration::from_secs(8);

/// `--program PATH` measures another program instead of the one built here; words select attacks by name.
pub(super) fn run(arguments: &[&str]) -> Result<(), Failure> {
    let (pilot, words) = match arguments {
        ["--program", path, words @ ..] => (PathBuf::from(path), words),
        words => {
            super::moves::build_pilot()?;
            (super::moves::built(), words)
        }
    };
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return Err(Failure::usage(format!(
            "unknown option `{option}`; the only option is --program PATH, which comes first"
        )));
    }
    println!("load average before: {}", load_average());
    println!("                                     p99 in ms                 beside, ms      memory in MiB  processor");
    println!(
        "attack                                quiet  beside  ratio     p50   longest   quiet   peak    seconds   told"
    );
    let is_wanted = |attack: &&Attack| words.is_empty() || words.iter().any(|word| attack.name.contains(word));
    for attack in ATTACKS.iter().filter(is_wanted) {
        Figures::measure(&pilot, *attack)?.print(attack.name);
    }
    if words.is_empty() || words.contains(&"limits") {
        tools::install_missing(&[WRK])?;
        limited::run(&pilot)?;
    }
    println!("load average after: {}", load_average());
    Ok(())
}

/// Leaves the processors to the service, as if the attackers were on another machine: what they use of this one is not
/// what the service costs. Applies to the calling thread and those it will start.
fn step_back() {
    let thread = fs::read_link("/proc/thread-self").ok();
    let thread = thread.as_ref().and_then(|link| link.file_name()).and_then(|name| name.to_str());
    // If it is not permitted, the figures are worse than they need be.
    let _ = thread.map(|thread| program("renice", &["-n", "19", "-p", thread]).output());
}

/// A separate service for each attack, so that none is affected by what another left behind.
struct Stage {
    server: Server,
    target: Target,
    honest: String,
    item: String,
    _directory: Directory,
}

impl Stage {
    fn open(pilot: &Path) -> Result<Stage, Failure> {
        let directory = Directory::make("flood")?;
        let config = directory.path().join("pilot.toml");
        // Both address families, so that attackers and well-behaved clients come from different addresses.
        let text = "listen = \"[::]:0\"\n[credentials]\nfile = \"credentials.json\"\n";
        fs::write(&config, text).map_err(|error| Failure::environment(format!("{}: {error}", config.display())))?;
        let new = |actor: &str, role: &str| new_token(pilot, &config, actor, role);
        let (initiator, executor) = (new("mal", "initiator")?, new("max", "executor")?);
        let (auditor, honest) = (new("may", "auditor")?, new("ana", "initiator")?);
        let mut serve = program("sh", &["-c", LIMITED]);
        let server = Server::start(serve.arg(pilot).arg(&config), &directory.path().join("pilot.log"))?;
        let port = server.address().rsplit(':').next().and_then(|port| port.parse().ok());
        let port: u16 = port.ok_or_else(|| Failure::environment("the service did not print its port"))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let (theirs, item) = (new_item(address, &initiator)?, new_item(address, &honest)?);
        let target = Target { address, initiator, executor, auditor, item: theirs };
        Ok(Stage { server, target, honest, item, _directory: directory })
    }
}

fn new_item(address: SocketAddr, token: &str) -> Result<String, Failure> {
    let body = br#"{"workflow":"controlled-operation","title":"Rotate the signing key","payload":{"risk":"low"}}"#;
    let answer = Exchange::open(address).and_then(|mut exchange| exchange.ask(&post("/v1/items", token, body)));
    let answer = answer.map_err(|error| Failure::environment(format!("an item cannot be created: {error}")))?;
    answer.text("id").ok_or_else(|| Failure::environment(format!("an item cannot be created: {}", answer.verdict())))
}

/// One row of the table.
struct Figures {
    quiet: Waits,
    /// If the well-behaved actor was not answered as it should be, why.
    beside: Result<Waits, String>,
    quiet_kib: u64,
    /// `None` if the service did not survive the attack.
    peak: Option<(u64, Duration)>,
    told: String,
}

impl Figures {
    fn measure(pilot: &Path, attack: Attack) -> Result<Figures, Failure> {
        let stage = Stage::open(pilot)?;
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, stage.target.address.port()));
        let connect = move || TcpStream::connect_timeout(&address, PATIENCE);
        let honest = Honest { token: &stage.honest, item: &stage.item, connect: &connect };
        let peace = Run::new(Form::Short, QUIET);
        let quiet = honest.behave(1, || peace.is_over()).map_err(Failure::environment)?;
        let process = Process(stage.server.id());
        let unmeasured = |error| Failure::environment(format!("the service cannot be measured: {error}"));
        process.forget_peak().map_err(unmeasured)?;
        let (quiet_kib, cpu) = (process.held().map_err(unmeasured)?, process.cpu().map_err(unmeasured)?);
        let run = Run::new(Form::Long, ATTACKED);
        let beside = thread::scope(|scope| {
            let hostile = scope.spawn(|| {
                step_back();
                (attack.run)(&stage.target, &run);
            });
            honest.behave(1, || hostile.is_finished())
        });
        let told: Vec<_> = run.told().iter().map(|(verdict, times)| format!("{verdict}: {times}")).collect();
        Ok(Figures {
            quiet: Waits::of(quiet),
            beside: beside.map(Waits::of),
            quiet_kib,
            peak: process.peak().ok().zip(process.cpu().ok().map(|now| now.saturating_sub(cpu))),
            told: told.join(", "),
        })
    }

    fn print(&self, name: &str) {
        let millis = |wait: Duration| wait.as_secs_f64() * 1e3;
        let quiet = millis(self.quiet.p99);
        let beside = match &self.beside {
            Ok(waits) => {
                let beside = millis(waits.p99);
                let (p50, longest) = (millis(waits.p50), millis(waits.max));
                format!("{beside:>7.1} {:>6.1} {p50:>7.1} {longest:>9.1}", beside / quiet)
            }
            Err(why) => format!("failed: {why}"),
        };
        let peak = match self.peak {
            Some((kib, cpu)) => format!("{:>6} {:>10.1}", kib / 1024, cpu.as_secs_f64()),
            None => "the service has ended".to_owned(),
        };
        println!("{name:<36} {quiet:>6.1} {beside} {:>7} {peak}   {}", self.quiet_kib / 1024, self.told);
    }
}
