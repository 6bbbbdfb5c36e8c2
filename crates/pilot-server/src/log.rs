//! The log: one line an event, to standard error, past the leak guard.
//!
//! Lines are gathered in memory and written by one thread every few milliseconds, so that a request never waits for a
//! terminal or a full pipe. Between the members of a JSON line stands a space: a token has none, so a line in which no
//! word is as long as a token passes the guard at the cost of one look.

use std::collections::VecDeque;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use pilot_core::leak::LeakGuard;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};

use crate::clock::Clock;

/// How long the writing thread lets lines gather.
const GATHERING: Duration = Duration::from_millis(10);
/// Beyond this many waiting lines, new ones are dropped and counted: a blocked log must not stop the service.
const WAITING_LINES_MAX: usize = 100_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line, for machines.
    Json,
    /// Short lines, for a person at a terminal.
    Text,
}

/// Keeps the log flowing; give it the guard as soon as the credentials are loaded, and flush it before the end.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    format: Format,
    clock: Clock,
    guard: OnceLock<Arc<LeakGuard>>,
    queue: Mutex<Queue>,
    arrived: Condvar,
    written: Condvar,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<String>,
    dropped: u64,
    /// Lines taken by the writing thread and not yet written.
    under_way: bool,
    in_a_hurry: bool,
}

impl Log {
    /// Starts the writing thread and makes this the log of the whole process.
    pub fn start(format: Format, level: LevelFilter, clock: Clock) -> Log {
        let shared = Shared {
            format,
            clock,
            guard: OnceLock::new(),
            queue: Mutex::new(Queue::default()),
            arrived: Condvar::new(),
            written: Condvar::new(),
        };
        let log = Log(Arc::new(shared));
        let writer = log.clone();
        // If no thread can be had, lines wait and are written by flush.
        let _ = std::thread::Builder::new().name("log".into()).spawn(move || writer.write_for_ever());
        // Our own words alone: the HTTP library quotes what clients send (paths, hosts, debug data) at its finer levels.
        let ours = Targets::new().with_target("pilot", level);
        let subscriber = tracing_subscriber::registry().with(log.clone().with_filter(ours));
        // Only fails when a log has been set already, which then goes on.
        let _ = tracing::subscriber::set_global_default(subscriber);
        log
    }

    pub fn guard_with(&self, guard: Arc<LeakGuard>) {
        let _ = self.0.guard.set(guard);
    }

    /// Returns when every line that was logged before the call has been written.
    pub fn flush(&self) {
        let mut queue = self.queue();
        queue.in_a_hurry = true;
        self.0.arrived.notify_one();
        let done = |queue: &mut Queue| !queue.lines.is_empty() || queue.under_way;
        let _ = self.0.written.wait_timeout_while(queue, Duration::from_secs(2), done);
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: String, in_a_hurry: bool) {
        let mut queue = self.queue();
        if queue.lines.len() >= WAITING_LINES_MAX {
            queue.dropped += 1;
            return;
        }
        let was_empty = queue.lines.is_empty();
        queue.lines.push_back(line);
        queue.in_a_hurry |= in_a_hurry;
        drop(queue);
        if was_empty || in_a_hurry {
            self.0.arrived.notify_one();
        }
    }

    fn write_for_ever(&self) {
        loop {
            let mut queue = self.queue();
            while queue.lines.is_empty() {
                queue = self.0.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if !queue.in_a_hurry {
                let gather = self.0.arrived.wait_timeout_while(queue, GATHERING, |queue| !queue.in_a_hurry);
                queue = gather.unwrap_or_else(PoisonError::into_inner).0;
            }
            let lines = std::mem::take(&mut queue.lines);
            let dropped = std::mem::take(&mut queue.dropped);
            queue.in_a_hurry = false;
            queue.under_way = true;
            drop(queue);
            self.write(&lines, dropped);
            self.queue().under_way = false;
            self.0.written.notify_all();
        }
    }

    fn write(&self, lines: &VecDeque<String>, dropped: u64) {
        let fallback = OnceLock::new();
        let guard =
            self.0.guard.get().unwrap_or_else(|| fallback.get_or_init(|| Arc::new(LeakGuard::for_generated_tokens())));
        let mut text = String::with_capacity(lines.iter().map(String::len).sum());
        for line in lines {
            text.push_str(&guard.redact(line));
            text.push('\n');
        }
        if dropped > 0 {
            let _ = writeln!(text, "{{\"level\": \"WARN\", \"message\": \"{dropped} log lines were dropped\"}}");
        }
        let _ = std::io::stderr().write_all(text.as_bytes());
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let level = *event.metadata().level();
        let now = self.0.clock.now();
        let mut line = match self.0.format {
            Format::Json => JsonLine::begin(now, level, event.metadata().target()),
            Format::Text => JsonLine { text: format!("{now} {level:>5} "), format: Format::Text },
        };
        event.record(&mut line);
        self.push(line.end(), level <= Level::WARN);
    }
}

struct JsonLine {
    text: String,
    format: Format,
}

impl JsonLine {
    fn begin(now: impl fmt::Display, level: Level, target: &str) -> JsonLine {
        let mut text = String::with_capacity(320);
        let _ = write!(text, "{{\"time\": \"{now}\", \"level\": \"{level}\", \"target\": \"{target}\"");
        JsonLine { text, format: Format::Json }
    }

    fn end(mut self) -> String {
        if self.format == Format::Json {
            self.text.push('}');
        }
        self.text
    }

    fn name(&mut self, field: &Field) {
        match (self.format, field.name()) {
            (Format::Json, name) => {
                let _ = write!(self.text, ", \"{name}\": ");
            }
            (Format::Text, "message") => {}
            (Format::Text, name) => {
                let _ = write!(self.text, " {name}=");
            }
        }
    }

    fn value(&mut self, value: impl fmt::Display) {
        let _ = write!(self.text, "{value}");
    }
}

impl Visit for JsonLine {
    fn record_str(&mut self, field: &Field, value: &str) {
        if value.is_empty() {
            return;
        }
        self.name(field);
        match self.format {
            Format::Json => self.value(serde_json::Value::from(value)),
            Format::Text => self.value(value.escape_debug()),
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.name(field);
        self.value(value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.name(field);
        self.value(value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.name(field);
        self.value(value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
