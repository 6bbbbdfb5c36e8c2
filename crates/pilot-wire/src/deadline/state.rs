//! What is known about a connection, and by when its peer has to do something.

use std::time::Duration;

use pilot_core::limits;

/// How long a streamed answer lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    UntilDone,
    UntilStopped,
}

/// How often connections are checked; deadlines are kept to this precision.
pub const TICK: Duration = Duration::from_millis(TICK_MILLIS);
const TICK_MILLIS: u64 = 250;

#[derive(Debug, Clone, Copy)]
pub struct Deadlines {
    pub first_byte: Duration,
    pub headers: Duration,
    pub idle: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            first_byte: limits::FIRST_BYTE_DEADLINE,
            headers: limits::HEADERS_DEADLINE,
            idle: limits::IDLE_DEADLINE,
        }
    }
}

/// How long a connection that is ending may idle, and how long it may take to receive the last answer.
const ENDING: Duration = Duration::from_secs(1);
const ENDING_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
pub(super) enum Event {
    /// Some time has passed.
    Tick,
    Read,
    Written,
    RequestBegan {
        is_multiplexed: bool,
    },
    RequestEnded,
    StreamBegan(Lasts),
    StreamEnded(Lasts),
    CallerKnown,
    /// The service is stopping.
    Stop,
    /// Close the connection.
    Expire,
}

/// Times are ticks of the watchdog.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct State {
    /// No request is in progress, and no byte of one has arrived.
    is_waiting: bool,
    requests: usize,
    /// Answers still being streamed, and how many of them never end by themselves.
    streams: usize,
    endless: usize,
    /// Nobody with a valid credential has used it.
    is_anonymous: bool,
    /// Since when nothing has been in progress.
    idle_since: u64,
    /// At least one request was answered.
    has_served: bool,
    framing: Framing,
    /// `None` while the peer owes nothing.
    until: Option<u64>,
    /// By when a connection that is ending must have received its last answer.
    ends_by: Option<u64>,
    end: End,
}

/// Whether the connection continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Open,
    /// The service is stopping: what was begun is finished.
    Stopping,
    /// The connection is closed immediately.
    Expired,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Framing {
    OneByOne,
    /// HTTP/2: bytes between requests are not the beginning of one (settings, pings, flow control).
    Multiplexed,
}

impl State {
    pub(super) fn new(now: u64, deadlines: &Deadlines) -> State {
        State {
            is_waiting: true,
            requests: 0,
            streams: 0,
            endless: 0,
            is_anonymous: true,
            idle_since: now,
            has_served: false,
            framing: Framing::OneByOne,
            until: Some(later(now, deadlines.first_byte)),
            ends_by: None,
            end: End::Open,
        }
    }

    pub(super) fn end(&self) -> End {
        self.end
    }

    /// Since when it has been idle, if nobody would miss it.
    pub(super) fn spared_since(&self) -> Option<u64> {
        let is_spare = self.is_anonymous && self.requests == 0 && self.streams == 0 && self.end != End::Expired;
        is_spare.then_some(self.idle_since)
    }

    pub(super) fn after(self, event: Event, now: u64, deadlines: &Deadlines) -> State {
        match event {
            Event::Tick if self.until.is_some_and(|until| until < now) => State { end: End::Expired, ..self },
            Event::Expire => State { end: End::Expired, ..self },
            Event::CallerKnown => State { is_anonymous: false, ..self },
            Event::Stop if self.end == End::Open => {
                let stopping = State { end: End::Stopping, ..self };
                if stopping.is_at_its_end() { stopping.ending(now) } else { stopping }
            }
            Event::Read if self.is_waiting && self.framing == Framing::OneByOne => {
                State { is_waiting: false, until: Some(later(now, deadlines.headers)), ..self }
            }
            Event::Written => self.written(now, deadlines),
            Event::RequestBegan { is_multiplexed } => State {
                framing: if is_multiplexed { Framing::Multiplexed } else { self.framing },
                is_waiting: false,
                requests: self.requests + 1,
                until: None,
                ..self
            },
            Event::RequestEnded => {
                let ended = State { has_served: true, requests: self.requests - 1, ..self };
                if ended.requests > 0 { ended } else { State { is_waiting: true, ..ended.idling(now, deadlines) } }
            }
            Event::StreamBegan(lasts) => {
                State { streams: self.streams + 1, endless: self.endless + counted(lasts), ..self }
            }
            Event::StreamEnded(lasts) => {
                let ended = State { streams: self.streams - 1, endless: self.endless - counted(lasts), ..self };
                if ended.requests > 0 { ended } else { ended.idling(now, deadlines) }
            }
            // In time, already stopping, or in the middle of something.
            Event::Tick | Event::Stop | Event::Read => self,
        }
    }

    /// A peer that is still receiving an answer keeps the connection. HTTP/2 settings and pings are written too, and
    /// must not keep it.
    fn written(self, now: u64, deadlines: &Deadlines) -> State {
        let is_answer = self.framing == Framing::OneByOne && self.has_served && self.requests == 0;
        if self.is_at_its_end() {
            // This may be the last part of an answer. It may also go to a peer that never stops asking.
            let until = later(now, ENDING);
            State { until: Some(self.ends_by.map_or(until, |ends_by| until.min(ends_by))), ..self }
        } else if is_answer || self.streams > 0 {
            State { until: Some(later(now, deadlines.idle)), ..self }
        } else {
            self
        }
    }

    /// A request or a stream has ended, and no request is in progress.
    fn idling(self, now: u64, deadlines: &Deadlines) -> State {
        let idle = State { idle_since: now, ..self };
        if idle.is_at_its_end() { idle.ending(now) } else { State { until: Some(later(now, deadlines.idle)), ..idle } }
    }

    fn ending(self, now: u64) -> State {
        State { ends_by: Some(later(now, ENDING_MAX)), until: Some(later(now, ENDING)), ..self }
    }

    /// The connection is ending, and nothing is in progress that has to be finished. HTTP/1 ends by itself once its
    /// answer is sent; a feed ends only when its reader receives the end.
    fn is_at_its_end(&self) -> bool {
        let lingers = self.framing == Framing::Multiplexed || self.endless > 0;
        self.end == End::Stopping && lingers && self.requests == 0 && self.streams == self.endless
    }
}

fn counted(lasts: Lasts) -> usize {
    usize::from(lasts == Lasts::UntilStopped)
}

/// The tick this far from now.
fn later(now: u64, span: Duration) -> u64 {
    now.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX) / TICK_MILLIS)
}
