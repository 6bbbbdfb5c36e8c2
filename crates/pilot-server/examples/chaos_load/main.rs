//! Load and judge for `cargo xtask chaos`: writers, readers of feeds and checkpoints, and people whose credentials are
//! revoked, on three nodes. It records every answer, and compares the ledger with it.
//!
//! `chaos_load TOKENS WRITERS GUESTS ADDRESS ADDRESS ADDRESS`, where TOKENS is a directory with a file for each actor:
//! ben, sol and ada, and initiators `writer1` and `guest1` onwards. Every line of standard input is a command, and is
//! answered by one line that begins with `ok`, after a line `violation …` for everything found so far that must never
//! be:
//!
//! - `mark`: counts begin again
//! - `round`: the counts, and for each node the longest time without an acknowledgement and the time since the last
//! - `silence`, `noise`: from now on no write can be acknowledged, or can again
//! - `revoke`: revoke the credential of the next guest
//! - `check`: read the ledger and compare
//! - `end`: let everyone finish, then read the ledger once more, from each node, and compare all of it
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "the command that runs this reads its answers")]

use std::error::Error;
use std::fmt::Write as _;
use std::io::BufRead as _;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use crate::clock::millis;
use crate::journal::{Journal, NODES};
use crate::ledger::Ledger;
use crate::revocations::{Guest, Revocations};
use crate::wire::Connection;
use crate::writers::Writer;

mod clock;
mod journal;
mod ledger;
mod readers;
mod revocations;
mod wire;
mod writers;

type Anything = Box<dyn Error>;

struct Setting {
    tokens: String,
    writers: usize,
    guests: usize,
    addresses: Vec<SocketAddr>,
}

impl Setting {
    fn read() -> Result<Setting, Anything> {
        let arguments: Vec<String> = std::env::args().skip(1).collect();
        let [tokens, writers, guests, addresses @ ..] = arguments.as_slice() else {
            return Err("usage: chaos_load TOKENS WRITERS GUESTS ADDRESS ADDRESS ADDRESS".into());
        };
        let addresses = addresses.iter().map(|address| address.parse()).collect::<Result<Vec<_>, _>>()?;
        if addresses.len() != NODES {
            return Err("three addresses are needed".into());
        }
        Ok(Setting { tokens: tokens.clone(), writers: writers.parse()?, guests: guests.parse()?, addresses })
    }

    fn token(&self, actor: &str) -> Result<String, Anything> {
        let text = std::fs::read_to_string(Path::new(&self.tokens).join(actor));
        Ok(text.map_err(|error| format!("the token of {actor}: {error}"))?.trim().to_owned())
    }
}

fn main() -> Result<(), Anything> {
    let setting = Setting::read()?;
    let mut load = Load::start(&setting)?;
    for line in std::io::stdin().lock().lines() {
        let answer = match line?.as_str() {
            "mark" => {
                load.journal.mark();
                String::new()
            }
            "round" => load.round(),
            "silence" => {
                load.journal.silence(true);
                String::new()
            }
            "noise" => {
                load.journal.silence(false);
                String::new()
            }
            "revoke" => {
                // Without a guest left, there is nobody to revoke.
                let _ = load.revoke.send(());
                String::new()
            }
            "check" => load.check(),
            "end" => load.end(&setting.addresses),
            other => return Err(format!("unknown command `{other}`").into()),
        };
        for violation in load.journal.violations() {
            println!("violation {violation}");
        }
        println!("ok {answer}");
    }
    Ok(())
}

struct Load {
    journal: Arc<Journal>,
    revocations: Arc<Revocations>,
    revoke: Sender<()>,
    writers: Vec<JoinHandle<()>>,
    ledger: Ledger,
    nodes: Vec<Connection>,
    auditor: String,
}

impl Load {
    fn start(setting: &Setting) -> Result<Load, Anything> {
        let (journal, revocations) = (Arc::new(Journal::default()), Arc::new(Revocations::default()));
        let (auditor, addresses) = (setting.token("ada")?, &setting.addresses);
        let mut writers = Vec::new();
        for number in 1..=setting.writers {
            let name = format!("writer{number}");
            let writer = Writer {
                token: setting.token(&name)?,
                name,
                approver: ("ben".to_owned(), setting.token("ben")?),
                home: number % NODES,
                journal: Arc::clone(&journal),
                connections: Writer::connections(addresses),
                repeats: addresses.iter().map(|address| Connection::briefly_to(*address)).collect(),
            };
            writers.push(std::thread::spawn(move || writer.run()));
        }
        for (node, address) in addresses.iter().copied().enumerate() {
            let (journal, token, addresses) = (Arc::clone(&journal), auditor.clone(), addresses.clone());
            let (again, revocations) = (Arc::clone(&journal), Arc::clone(&revocations));
            let (third, other_token) = (Arc::clone(&journal), auditor.clone());
            std::thread::spawn(move || readers::follow(&journal, &addresses, &token, node));
            std::thread::spawn(move || readers::poll_checkpoints(&third, address, &other_token, node));
            std::thread::spawn(move || revocations.probe(&again, address, node));
        }
        let revoke = revoke_when_asked(setting, &journal, &revocations)?;
        let nodes = Writer::connections(addresses);
        Ok(Load { journal, revocations, revoke, writers, ledger: Ledger::default(), nodes, auditor })
    }

    fn round(&self) -> String {
        let counts = self.journal.counts();
        let now = millis();
        let mut text = format!(
            "acknowledged={} unavailable={} unknown={} revoked={}",
            counts.acknowledged,
            counts.unavailable,
            counts.unknown,
            self.revocations.count()
        );
        for (number, pulse) in (1..).zip(&counts.pulses) {
            let _ = write!(text, " pause{number}={} since{number}={}", pulse.longest, now - pulse.last);
        }
        text
    }

    fn check(&mut self) -> String {
        // Taken first: everything in it was acknowledged before the ledger is read.
        let acknowledged = self.journal.acknowledged();
        if self.ledger.read(&self.journal, &mut self.nodes, &self.auditor, &acknowledged).is_some() {
            self.ledger.judge(&self.journal, &acknowledged);
        }
        format!("size={} acknowledged={} lost={}", self.ledger.size(), acknowledged.len(), self.ledger.lost)
    }

    fn end(&mut self, addresses: &[SocketAddr]) -> String {
        self.journal.stop();
        for writer in self.writers.drain(..) {
            if writer.join().is_err() {
                self.journal.violate("a writer failed".to_owned());
            }
        }
        let acknowledged = self.journal.acknowledged();
        self.check();
        self.ledger.judge_end(&self.journal, &acknowledged);
        // Each node tells the whole of it by itself.
        for address in addresses {
            let mut again = Ledger::default();
            let mut node = [Connection::to(*address)];
            if again.read(&self.journal, &mut node, &self.auditor, &acknowledged).is_some() {
                again.judge(&self.journal, &acknowledged);
                again.judge_end(&self.journal, &acknowledged);
                self.ledger.lost = self.ledger.lost.max(again.lost);
            }
        }
        let (feeds, checkpoints) = (self.journal.feeds(), self.journal.checkpoints());
        format!(
            "size={} acknowledged={} lost={} shown={} checkpoints={} revoked={}",
            self.ledger.size(),
            acknowledged.len(),
            self.ledger.lost,
            feeds.iter().map(Vec::len).sum::<usize>(),
            checkpoints.len(),
            self.revocations.count()
        )
    }
}

fn revoke_when_asked(
    setting: &Setting,
    journal: &Arc<Journal>,
    revocations: &Arc<Revocations>,
) -> Result<Sender<()>, Anything> {
    let (revoke, requests) = channel();
    let mut guests = Vec::new();
    for number in 1..=setting.guests {
        let name = format!("guest{number}");
        guests.push(Guest { token: setting.token(&name)?, name });
    }
    let (token, addresses) = (setting.token("sol")?, setting.addresses.clone());
    let (journal, revocations) = (Arc::clone(journal), Arc::clone(revocations));
    std::thread::spawn(move || revocations.revoke_all(&journal, &addresses, &token, guests, &requests));
    Ok(revoke)
}
