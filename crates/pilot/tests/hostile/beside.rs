//! Someone who means no harm, beside those who do; and what the service costs meanwhile.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use super::clients::exchange::{Exchange, get, post};
use super::clients::now;

/// A request every so often, whatever becomes of the one before.
pub(super) const PACE: Duration = Duration::from_millis(20);
/// How long a write may be told to try again. A machine that stands still for seconds makes a checkpoint late, and until
/// there is one nothing is written; afterwards it has to go on by itself.
pub(super) const UNAVAILABLE_MAX: Duration = Duration::from_secs(10);
/// Long enough to be looked at with those of strangers.
const LIST: &str = "/v1/items?limit=1&workflow=controlled-operation&state=draft&created_by=somebody-with-a-rather-long-name&\
                    q=what+people+look+for+is+rarely+as+short+as+they+think";
/// After so many requests, the next comes on a new connection.
const REQUESTS_PER_CONNECTION: usize = 12;

/// Another actor than those who mean harm: reads the session, reads an item, comments on it, looks at the inbox with a
/// filter as long as the console's, and begins again.
pub(super) struct Honest<'a> {
    pub token: &'a str,
    pub item: &'a str,
    pub connect: &'a (dyn Fn() -> io::Result<TcpStream> + Sync),
}

impl Honest<'_> {
    /// How long each answer took, until `is_over` and at least for `least` requests; or what went wrong.
    pub(super) fn behave(&self, least: usize, is_over: impl Fn() -> bool) -> Result<Vec<Duration>, String> {
        let item = format!("/v1/items/{}", self.item);
        let requests = [
            (200, get("/v1/session", self.token)),
            (200, get(&item, self.token)),
            (201, post(&format!("{item}/comments"), self.token, b"{\"text\":\"still here\"}")),
            (200, get(LIST, self.token)),
        ];
        let (mut waits, mut exchange, began) = (Vec::new(), None, now());
        for (number, (wanted, request)) in requests.iter().cycle().enumerate() {
            if number >= least && is_over() {
                break;
            }
            let due = PACE * u32::try_from(number).unwrap_or(u32::MAX);
            thread::sleep(due.saturating_sub(began.elapsed()));
            let asked = now();
            if number % REQUESTS_PER_CONNECTION == 0 {
                exchange = None;
            }
            let answer = loop {
                let answer = self.ask(&mut exchange, request).map_err(|error| format!("request {number}: {error}"))?;
                let is_unwritten = *wanted == 201 && answer.status == 503;
                if !is_unwritten || asked.elapsed() > UNAVAILABLE_MAX {
                    break answer;
                }
                thread::sleep(PACE);
            };
            if answer.status != *wanted {
                return Err(format!("request {number} was answered {}: {answer:?}", answer.verdict()));
            }
            waits.push(asked.elapsed());
        }
        Ok(waits)
    }

    fn ask(&self, exchange: &mut Option<Exchange>, request: &[u8]) -> io::Result<super::clients::exchange::Answer> {
        if exchange.is_none() {
            *exchange = Some(Exchange::over((self.connect)()?)?);
        }
        let open = exchange.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        open.ask(request)
    }
}

/// The shares of waits that people ask about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    pub p50: Duration,
    pub p99: Duration,
    pub max: Duration,
}

impl Waits {
    pub(super) fn of(mut waits: Vec<Duration>) -> Waits {
        waits.sort_unstable();
        let at = |hundredths: usize| {
            let place = (waits.len() * hundredths / 100).min(waits.len().saturating_sub(1));
            waits.get(place).copied().unwrap_or_default()
        };
        Waits { p50: at(50), p99: at(99), max: at(100) }
    }
}

/// A process, as the kernel sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process(pub u32);

impl Process {
    /// What it holds of the machine's memory for itself, in KiB: without the program's own file.
    pub(super) fn held(self) -> io::Result<u64> {
        self.status("RssAnon:")
    }

    /// The most it has held since [`Process::forget_peak`], in KiB. The kernel counts pages of the program's file too, of
    /// which ever more are used; as many as are used now are left out.
    pub(super) fn peak(self) -> io::Result<u64> {
        Ok(self.status("VmHWM:")?.saturating_sub(self.status("RssFile:")?))
    }

    pub(super) fn forget_peak(self) -> io::Result<()> {
        fs::write(format!("/proc/{}/clear_refs", self.0), "5")
    }

    fn status(self, name: &str) -> io::Result<u64> {
        let text = fs::read_to_string(format!("/proc/{}/status", self.0))?;
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        number.ok_or_else(|| io::Error::other(format!("the kernel says nothing of {name}")))
    }

    /// Processor time so far, of all threads, to a hundredth of a second.
    pub(super) fn cpu(self) -> io::Result<Duration> {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0))?;
        // The program's name may hold anything, so fields are counted from its closing parenthesis.
        let fields = text.rsplit(") ").next().unwrap_or("").split(' ');
        let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
        Ok(Duration::from_millis(ticks * 10))
    }
}
