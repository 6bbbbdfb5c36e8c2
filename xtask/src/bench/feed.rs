//! What a thousand live feeds cost: memory, processor time for each write, and how long until the last one has it.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::load::Server;
use super::moves::{self, Installation};
use super::quiet;
use super::readers::{self, figure};
use super::report::{Section, Table, Target};
use super::rounds::Rounds;
use crate::step::{Failure, cannot_start, shown};

const FEEDS: u32 = 1_000;
/// An actor may have 64 feeds.
const LISTENERS: usize = 20;
const ROUNDS: usize = 5;
const STEADY_WRITES: u32 = 1_000;
const ALONE_WRITES: u32 = 50;

pub(super) fn measure(_: &[&str]) -> Result<Section, Failure> {
    let mut measured = Measured::default();
    for _ in 0..ROUNDS {
        measured.round()?;
    }
    Ok(measured.section())
}

/// Round by round.
#[derive(Default)]
struct Measured {
    quiet_mib: Rounds,
    feeds_mib: Rounds,
    quiet_steady: Writes,
    steady: Writes,
    quiet_alone: Writes,
    alone: Writes,
}

/// One way to write.
#[derive(Default)]
struct Writes {
    cpu_micros: Rounds,
    p50_millis: Rounds,
    p99_millis: Rounds,
    per_second: Rounds,
}

impl Measured {
    /// With a service of its own, so that none is affected by what another left behind.
    fn round(&mut self) -> Result<(), Failure> {
        let installation = Installation::make("feed")?;
        let mut tokens = readers::tokens(&installation, "initiator", 1)?;
        tokens.extend(readers::tokens(&installation, "approver", LISTENERS)?);
        let server = installation.start()?;
        let mut audience = Audience::open(&server, &tokens)?;
        // Warms up; the buffers that a busy service keeps are not those of the feeds.
        audience.ask(&format!("steady {STEADY_WRITES}"))?;
        self.quiet_steady.add(&server, &mut audience, "steady", STEADY_WRITES)?;
        self.quiet_alone.add(&server, &mut audience, "alone", ALONE_WRITES)?;
        self.quiet_mib.add(server.resident_mib()?);
        audience.ask(&format!("open {FEEDS}"))?;
        self.alone.add(&server, &mut audience, "alone", ALONE_WRITES)?;
        self.steady.add(&server, &mut audience, "steady", STEADY_WRITES)?;
        self.feeds_mib.add(server.resident_mib()?);
        Ok(())
    }

    fn section(&self) -> Section {
        let cost = |with: &Writes, without: &Writes| {
            with.cpu_micros.minus(&without.cpu_micros).over(&[1e3; ROUNDS].into_iter().collect())
        };
        let steady = cost(&self.steady, &self.quiet_steady);
        let alone = cost(&self.alone, &self.quiet_alone);
        let figures = vec![
            self.feeds_mib.minus(&self.quiet_mib).figure("memory of 1,000 feeds", "MiB", Target::AtMost(64.0)),
            steady.figure("CPU of 1,000 feeds for one of many writes", "ms", Target::AtMost(1.0)),
            alone.figure("CPU of 1,000 feeds for a write by itself", "ms", Target::AtMost(10.0)),
            self.alone.p99_millis.figure("until the last feed has a write, p99", "ms", Target::AtMost(150.0)),
        ];
        let columns =
            vec!["writes", "feeds", "writes/s", "CPU µs per write", "p50 ms", "p99 ms", "what the times are of"];
        let rows = [
            ("one after the other", "0", &self.quiet_steady, "the write"),
            ("one after the other", "1,000", &self.steady, "the write"),
            ("each when all have the last", "1,000", &self.alone, "from its answer to the last feed"),
        ];
        let row = |(what, feeds, writes, of): (&str, &str, &Writes, &str)| {
            let Writes { cpu_micros, p50_millis, p99_millis, per_second } = writes;
            let (count, cpu) = (format!("{:.0}", per_second.median()), format!("{:.0}", cpu_micros.median()));
            let (p50, p99) = (format!("{:.2}", p50_millis.median()), format!("{:.2}", p99_millis.median()));
            vec![what.to_owned(), feeds.to_owned(), count, cpu, p50, p99, of.to_owned()]
        };
        let about = format!(
            "{FEEDS} live feeds of {LISTENERS} actors on as many connections, and one client that comments on an item. \
             Feeds are woken together, after a pause that grows with their number, so many writes cost little more \
             than one. Memory is what the process uses of the machine's with feeds, after the writes, less what it \
             used before they were opened."
        );
        let tables = vec![Table { columns, rows: rows.map(row).into() }];
        Section { title: "Live feeds", about, figures, tables, plots: vec![] }
    }
}

impl Writes {
    fn add(&mut self, server: &Server, audience: &mut Audience, how: &str, count: u32) -> Result<(), Failure> {
        let (report, cpu) = quiet::undisturbed(|| {
            let before = server.cpu_seconds()?;
            let report = audience.ask(&format!("{how} {count}"))?;
            Ok((report, server.cpu_seconds()? - before))
        })?;
        self.cpu_micros.add(cpu * 1e6 / f64::from(count));
        self.p50_millis.add(figure(&report, "p50_micros ")? / 1e3);
        self.p99_millis.add(figure(&report, "p99_micros ")? / 1e3);
        self.per_second.add(f64::from(count) / figure(&report, "seconds ")?);
        Ok(())
    }
}

/// The program that keeps the feeds open and writes.
struct Audience {
    child: Child,
    commands: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Audience {
    fn open(server: &Server, tokens: &[String]) -> Result<Audience, Failure> {
        let mut command = moves::example("readers_load");
        command.args([server.address(), "feeds"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let line = shown(&command);
        let mut child = command.spawn().map_err(|error| cannot_start(&line, &error))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, output) = pipes.ok_or_else(|| Failure::environment(format!("`{line}` has no pipes")))?;
        let mut audience = Audience { child, commands, answers: BufReader::new(output).lines() };
        audience.ask(&tokens.join(" "))?;
        Ok(audience)
    }

    /// Gives what is answered before `done`.
    fn ask(&mut self, command: &str) -> Result<String, Failure> {
        // Not the command itself, which may be tokens.
        let failed = || Failure::environment("the program that keeps feeds open has failed");
        writeln!(self.commands, "{command}").map_err(|_| failed())?;
        let mut report = String::new();
        loop {
            match self.answers.next() {
                Some(Ok(line)) if line == "done" => return Ok(report),
                Some(Ok(line)) => report.extend([line.as_str(), "\n"]),
                Some(Err(_)) | None => return Err(failed()),
            }
        }
    }
}

impl Drop for Audience {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
