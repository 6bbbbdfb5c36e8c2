//! What the agent tells those who watch over it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pilot_wire::exposition::{Exposition, Kind};
use pilot_wire::traffic::Traffic;

#[derive(Default)]
pub(crate) struct Gauges {
    pub(crate) traffic: Traffic,
    is_reached: AtomicBool,
    is_draining: AtomicBool,
    journal_fails: AtomicBool,
    running: AtomicU64,
    succeeded: AtomicU64,
    failed: AtomicU64,
    unknown: AtomicU64,
}

impl Gauges {
    pub(crate) fn reached(&self, is_reached: bool) {
        if self.is_reached.swap(is_reached, Ordering::Relaxed) != is_reached && is_reached {
            tracing::info!("the service answers");
        }
    }

    pub(crate) fn draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn running(&self, running: usize) {
        self.running.store(running as u64, Ordering::Relaxed);
    }

    pub(crate) fn journal_failed(&self, error: &std::io::Error) {
        self.journal_fails.store(true, Ordering::Relaxed);
        tracing::error!(%error, "the journal cannot be written; nothing is started until it can");
    }

    pub(crate) fn journal_works(&self) {
        self.journal_fails.store(false, Ordering::Relaxed);
    }

    pub(crate) fn reported(&self, action: &str) {
        let counter = match action {
            "succeed" => &self.succeeded,
            "fail" => &self.failed,
            _ => &self.unknown,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// What keeps the agent from working, if anything.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        if self.is_draining.load(Ordering::Relaxed) {
            Some("draining")
        } else if self.journal_fails.load(Ordering::Relaxed) {
            Some("the journal cannot be written")
        } else if !self.is_reached.load(Ordering::Relaxed) {
            Some("the service does not answer")
        } else {
            None
        }
    }

    pub(crate) fn exposition(&self) -> String {
        let mut text = Exposition::default();
        let flag = |flag: &AtomicBool| u8::from(flag.load(Ordering::Relaxed));
        text.gauge("pilot_work_running", "Commands that are running.", self.running.load(Ordering::Relaxed));
        text.gauge("pilot_work_service_reached", "1 if the service answered last.", flag(&self.is_reached));
        text.gauge("pilot_work_journal_fails", "1 if the journal cannot be written.", flag(&self.journal_fails));
        text.gauge("pilot_work_draining", "1 if nothing more is started.", flag(&self.is_draining));
        text.family("pilot_work_attempts_total", Kind::Counter, "Attempts that were reported, by outcome.");
        for (outcome, count) in [("succeeded", &self.succeeded), ("failed", &self.failed), ("unknown", &self.unknown)] {
            text.sample("pilot_work_attempts_total", &[("outcome", &outcome)], count.load(Ordering::Relaxed));
        }
        text.into_text()
    }
}
