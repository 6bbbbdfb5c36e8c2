//! A service with people who mean harm and one who does not, and what became of both.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::process::Command;
use std::thread;
use std::time::Duration;

use serde_json::json;
use tokio::net::TcpSocket;

use crate::hostile::beside::{Honest, PACE, Process, UNAVAILABLE_MAX, Waits};
use crate::hostile::clients::{ATTACKS, Form, Run, Target, now};
use crate::support::harness::{Installation, Server};
use crate::support::team::{installation_of, payload, person, token};

/// Mal, Max and May mean harm. Ana does not.
const PEOPLE: [(&str, &str); 5] =
    [("ana", "initiator"), ("mal", "initiator"), ("max", "executor"), ("may", "auditor"), ("sol", "security_admin")];

/// Memory is counted in pages. Of a huge one, the first byte counts as two mebibytes.
const SMALL_PAGES: (&str, &str) = ("MIMALLOC_ALLOW_THP", "0");
/// How long an attack goes on. Long enough for each to have reached what it is after, in a build without optimisation.
const SPAN: Duration = Duration::from_millis(1_500);
/// How many answers Ana waits for at least.
const ANSWERS_MIN: usize = 30;

pub struct Stage {
    pub server: Server,
    pub target: Target,
    item: String,
    _installation: Installation,
}

/// What an attack came to.
pub struct Outcome {
    pub name: &'static str,
    /// What those who meant harm were told, and how often.
    pub told: BTreeMap<String, u64>,
    pub waits: Waits,
    pub quiet_kib: u64,
    pub peak_kib: u64,
    pub cpu: Duration,
}

impl Stage {
    pub fn open() -> Stage {
        let installation = installation_of(&PEOPLE);
        let server = installation.serve_with(&[], &[SMALL_PAGES]);
        Stage::on(installation, server)
    }

    /// A service that may have no more than so many connections.
    pub fn with_connections(count: usize) -> Stage {
        let installation = installation_of(&PEOPLE);
        let mut command = Command::new("sh");
        // 64 files are kept for the store and the log.
        let limit = format!("ulimit -n {}; exec \"$0\" serve --config pilot.toml", count + 64);
        command.args(["-c", &limit, env!("CARGO_BIN_EXE_pilot")]);
        let mut command = installation.prepare(command);
        command.env(SMALL_PAGES.0, SMALL_PAGES.1);
        let server = installation.start(command);
        Stage::on(installation, server)
    }

    fn on(installation: Installation, server: Server) -> Stage {
        let item = |name| person(&server, name).creates("controlled-operation", &payload("low"));
        let target = Target {
            address: server.address,
            initiator: token("mal"),
            executor: token("max"),
            auditor: token("may"),
            item: item("mal"),
        };
        let item = item("ana");
        Stage { server, target, item, _installation: installation }
    }

    /// One attack, and Ana beside it: she comes from another address, and every answer has to be the right one.
    #[track_caller]
    pub fn attack(&self, name: &str) -> Outcome {
        self.attack_beside(name, Ipv4Addr::new(127, 0, 0, 2))
    }

    /// The same with Ana at this address; those who mean harm are at 127.0.0.1.
    #[track_caller]
    pub fn attack_beside(&self, name: &str, source: Ipv4Addr) -> Outcome {
        let attack = ATTACKS.iter().find(|attack| attack.name == name).expect("an attack of this name");
        let (address, ana) = (self.server.address, token("ana"));
        let connect = move || connect_from(source, address);
        let honest = Honest { token: &ana, item: &self.item, connect: &connect };
        honest.behave(ANSWERS_MIN, || true).expect("answers in peace");
        let process = Process(self.server.id());
        process.forget_peak().expect("the peak can be forgotten");
        let (quiet_kib, cpu) = (process.held().unwrap(), process.cpu().unwrap());
        let (run, target) = (Run::new(Form::Short, SPAN), &self.target);
        let waits = thread::scope(|scope| {
            let hostile = scope.spawn(|| (attack.run)(target, &run));
            honest.behave(ANSWERS_MIN, || hostile.is_finished())
        });
        let waits = waits.unwrap_or_else(|error| panic!("{name}: {error}; log: {}", self.server.last_lines()));
        let peak_kib = process.peak().unwrap();
        let cpu = process.cpu().unwrap().saturating_sub(cpu);
        let outcome =
            Outcome { name: attack.name, told: run.told(), waits: Waits::of(waits), quiet_kib, peak_kib, cpu };
        outcome.print();
        outcome
    }

    #[track_caller]
    pub fn readiness(&self) -> serde_json::Value {
        let began = now();
        loop {
            let answer = self.server.get("/readyz", &[]);
            if answer.status == 200 {
                return answer.json();
            }
            assert!(began.elapsed() < UNAVAILABLE_MAX, "{}", answer.text());
            thread::sleep(PACE);
        }
    }
}

impl Outcome {
    fn print(&self) {
        let Outcome { name, told, waits, quiet_kib, cpu, .. } = self;
        println!(
            "{name:<36} p50 {:>6.1?} p99 {:>6.1?} max {:>6.1?} | {:>3} MiB, +{:>3} at its peak | {cpu:.1?} of processor | {}",
            waits.p50,
            waits.p99,
            waits.max,
            quiet_kib / 1024,
            self.grown_mib(),
            json!(told)
        );
    }

    fn grown_mib(&self) -> u64 {
        self.peak_kib.saturating_sub(self.quiet_kib).div_ceil(1024)
    }

    /// The most memory this may have taken at any time.
    #[track_caller]
    pub fn costs_at_most(&self, mebibytes: u64) -> &Outcome {
        assert!(self.grown_mib() <= mebibytes, "{}: {} MiB more than in peace", self.name, self.grown_mib());
        self
    }

    #[track_caller]
    pub fn was_told(&self, verdict: &str) -> &Outcome {
        assert!(self.told.contains_key(verdict), "{}: nobody was told {verdict}, but {:?}", self.name, self.told);
        self
    }

    /// Nothing else was answered.
    #[track_caller]
    pub fn was_told_only(&self, verdicts: &[&str]) -> &Outcome {
        let other: Vec<_> = self.told.keys().filter(|told| !verdicts.contains(&told.as_str())).collect();
        assert!(other.is_empty() && !self.told.is_empty(), "{}: {:?}", self.name, self.told);
        self
    }
}

/// A connection from an address of this machine's own choice.
pub fn connect_from(source: Ipv4Addr, address: SocketAddr) -> io::Result<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let stream = runtime.block_on(async {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from((source, 0)))?;
        socket.connect(address).await?.into_std()
    })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}
