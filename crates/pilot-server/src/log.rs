//! The service's log: one line per event, to standard error, through the leak guard.
//!
//! Lines are gathered in memory and written by one thread every few milliseconds, so that a request never waits for a
//! terminal or a full pipe. There is a space between the members of a JSON line, and a token has none: so a request's
//! line can contain one only if a member is as long as one, and such lines are searched when they are written.

use std::cell::Cell;
use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use pilot_core::leak::LeakGuard;
use pilot_core::limits::TOKEN_BYTES_MIN;
use pilot_core::time::Time;
use pilot_core::visible;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::{Layer, Registry, reload};

use pilot_ledger::clock::Clock;
use pilot_wire::exposition::Exposition;

/// How long the writing thread lets lines gather.
const GATHERING: Duration = Duration::from_millis(10);
/// Beyond this much waiting text, new lines are dropped and counted: a blocked log must not stop the service.
const WAITING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How much memory is kept for the next lines; after a burst the rest is freed.
const KEPT_BYTES: usize = 1024 * 1024;

/// How much memory a thread keeps for its next line.
const KEPT_LINE_BYTES: usize = 4 * 1024;

/// A value of this length is shorter than any token, with the quotes and the comma that follow it without a space.
const SHORT_VALUE_BYTES_MAX: usize = TOKEN_BYTES_MIN - 4;

/// Enough to see who is trying, and too few to fill a disk.
const STRANGERS_PER_SECOND: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// One JSON object per line, for machines.
    Json,
    /// Short lines, for a person at a terminal.
    Text,
}

/// A handle to the log; give it the guard as soon as the credentials are loaded, and flush it before the end.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    /// What is in force, which can change at any time.
    shown: RwLock<Shown>,
    /// The level for events, which the tracing library keeps for itself.
    filter: OnceLock<reload::Handle<Targets, Registry>>,
    /// Lines that were never written.
    dropped: AtomicU64,
    clock: Clock,
    guard: OnceLock<Arc<LeakGuard>>,
    /// Lines about requests without a known caller.
    strangers: Strangers,
    queue: Mutex<Queue>,
    arrived: Condvar,
    written: Condvar,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    format: Format,
    level: LevelFilter,
}

#[derive(Default)]
struct Queue {
    /// Complete lines. One growing text, not a list, so that a line needs no allocation that another thread frees.
    text: String,
    dropped: u64,
    /// Lines taken by the writing thread and not yet written.
    under_way: bool,
    in_a_hurry: bool,
    /// Some line has a word that is long enough to be a token.
    has_long_words: bool,
}

thread_local! {
    /// The memory of the last line of this thread, for its next one.
    static LINE: Cell<String> = const { Cell::new(String::new()) };
}

/// What is true of a line as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Marks {
    in_a_hurry: bool,
    has_long_words: bool,
}

impl Log {
    fn new(format: Format, level: LevelFilter, clock: Clock) -> Log {
        let shared = Shared {
            shown: RwLock::new(Shown { format, level }),
            filter: OnceLock::new(),
            dropped: AtomicU64::new(0),
            clock,
            guard: OnceLock::new(),
            strangers: Strangers::default(),
            queue: Mutex::new(Queue::default()),
            arrived: Condvar::new(),
            written: Condvar::new(),
        };
        Log(Arc::new(shared))
    }

    /// Starts the writing thread and makes this the log of the whole process.
    pub fn start(format: Format, level: LevelFilter, clock: Clock) -> Log {
        let log = Log::new(format, level, clock);
        let writer = log.clone();
        // If no thread can be started, lines wait until flush writes them.
        let _ = std::thread::Builder::new().name("log".into()).spawn(move || writer.write_for_ever());
        let (ours, filter) = reload::Layer::new(ours(level));
        let _ = log.0.filter.set(filter);
        let subscriber = tracing_subscriber::registry().with(log.clone().with_filter(ours));
        // Fails only if a log was already set, which then stays.
        let _ = tracing::subscriber::set_global_default(subscriber);
        log
    }

    /// From now on the log shows this much, and in this way.
    pub fn show(&self, format: Format, level: LevelFilter) {
        let shown = Shown { format, level };
        if self.shown() == shown {
            return;
        }
        *self.0.shown.write().unwrap_or_else(PoisonError::into_inner) = shown;
        if let Some(filter) = self.0.filter.get() {
            // Fails only if the process has no log any more.
            let _ = filter.reload(ours(level));
        }
    }

    fn shown(&self) -> Shown {
        *self.0.shown.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn metrics(&self, text: &mut Exposition) {
        let help = "Log lines that were dropped because nobody read the log fast enough.";
        text.counter("pilot_log_lines_dropped_total", help, self.0.dropped.load(Ordering::Relaxed));
    }

    pub fn guard_with(&self, guard: Arc<LeakGuard>) {
        let _ = self.0.guard.set(guard);
    }

    /// The line for a request, written without going through an event: every request has one, always with the same
    /// members. Empty members are left out.
    pub fn request(&self, request: &RequestLine<'_>) {
        let level = if request.status >= 500 { Level::ERROR } else { Level::INFO };
        let shown = self.shown();
        if shown.level < level {
            return;
        }
        // Anyone can cause these without a credential, as fast as the network allows.
        let now = self.0.clock.now();
        if request.actor_id.is_empty() && level == Level::INFO && !self.0.strangers.takes(now) {
            return;
        }
        let mut line = Line::begin(shown.format, now, level, "pilot_server::answer");
        line.text("message", if request.status >= 500 { "request failed" } else { "request answered" });
        let members = [
            (member!("request_id"), request.request_id),
            (member!("method"), request.method),
            (member!("operation"), request.operation),
            (member!("actor_id"), request.actor_id),
            (member!("role"), request.role),
            (member!("origin"), request.origin),
            (member!("client_id"), request.client_id),
            (member!("cause"), request.cause),
        ];
        for (member, value) in members {
            line.member(member, value);
        }
        line.number("status", u64::from(request.status));
        line.number("micros", request.micros);
        let has_long_words = members.iter().any(|(_, value)| value.len() > SHORT_VALUE_BYTES_MAX);
        self.push(line, Marks { in_a_hurry: level <= Level::WARN, has_long_words });
    }

    /// Returns when every line logged before the call has been written.
    pub fn flush(&self) {
        let mut queue = self.queue();
        queue.in_a_hurry = true;
        self.0.arrived.notify_one();
        let done = |queue: &mut Queue| !queue.text.is_empty() || queue.under_way;
        let _ = self.0.written.wait_timeout_while(queue, Duration::from_secs(2), done);
    }

    fn queue(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: Line, Marks { in_a_hurry, has_long_words }: Marks) {
        let line = line.end();
        let mut queue = self.queue();
        // The last part is for warnings: nobody can hide one by filling the log with requests.
        let room = if in_a_hurry { WAITING_BYTES_MAX } else { WAITING_BYTES_MAX / 4 * 3 };
        if queue.text.len() >= room {
            queue.dropped += 1;
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let was_empty = queue.text.is_empty();
        queue.text.push_str(&line);
        queue.in_a_hurry |= in_a_hurry;
        queue.has_long_words |= has_long_words;
        drop(queue);
        if line.capacity() <= KEPT_LINE_BYTES {
            LINE.set(line);
        }
        if was_empty || in_a_hurry {
            self.0.arrived.notify_one();
        }
    }

    fn write_for_ever(&self) {
        let mut text = String::new();
        loop {
            let mut queue = self.queue();
            while queue.text.is_empty() {
                queue = self.0.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if !queue.in_a_hurry {
                let gather = self.0.arrived.wait_timeout_while(queue, GATHERING, |queue| !queue.in_a_hurry);
                queue = gather.unwrap_or_else(PoisonError::into_inner).0;
            }
            std::mem::swap(&mut queue.text, &mut text);
            let dropped = std::mem::take(&mut queue.dropped);
            let has_long_words = std::mem::take(&mut queue.has_long_words);
            queue.in_a_hurry = false;
            queue.under_way = true;
            drop(queue);
            self.write(&text, has_long_words, dropped);
            text.clear();
            text.shrink_to(KEPT_BYTES);
            self.queue().under_way = false;
            self.0.written.notify_all();
        }
    }

    fn write(&self, text: &str, has_long_words: bool, dropped: u64) {
        let fallback = OnceLock::new();
        let guard =
            self.0.guard.get().unwrap_or_else(|| fallback.get_or_init(|| Arc::new(LeakGuard::for_generated_tokens())));
        let mut stderr = std::io::stderr();
        // Line by line, so that a token takes only its own line with it, and each line is searched equally thoroughly.
        if has_long_words && text.lines().any(|line| guard.is_in(line)) {
            let clean: String = text.lines().flat_map(|line| [guard.redact(line), "\n".into()]).collect();
            let _ = stderr.write_all(clean.as_bytes());
        } else {
            let _ = stderr.write_all(text.as_bytes());
        }
        if dropped > 0 {
            let mut line = Line::begin(self.shown().format, self.0.clock.now(), Level::WARN, "pilot_server::log");
            line.text("message", &format!("{dropped} log lines were dropped"));
            let _ = stderr.write_all(line.end().as_bytes());
        }
    }
}

/// Only our own events: at its finer levels, the HTTP library quotes what clients send (paths, hosts, debug data).
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target("pilot", level)
}

/// How many lines per second are written about requests without a caller. The rest are counted, in the metrics and
/// here.
#[derive(Default)]
struct Strangers(Mutex<(i64, u64)>);

impl Strangers {
    fn takes(&self, now: Time) -> bool {
        let second = now.unix_micros() / 1_000_000;
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = seen.1.saturating_sub(STRANGERS_PER_SECOND);
        if seen.0 != second {
            *seen = (second, 0);
        }
        seen.1 += 1;
        let (is_first, takes) = (seen.1 == 1, seen.1 <= STRANGERS_PER_SECOND);
        drop(seen);
        if is_first && left_out > 0 {
            tracing::info!(left_out, "requests without a valid credential were answered and not logged one by one");
        }
        takes
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Line::begin(self.shown().format, self.0.clock.now(), *metadata.level(), metadata.target());
        event.record(&mut line);
        self.push(line, Marks { in_a_hurry: *metadata.level() <= Level::WARN, has_long_words: true });
    }
}

/// What is logged about a request: our own words, names that were checked, and in a cause the subject of a certificate. No
/// header, body, path or query can get into it.
#[derive(Default)]
pub struct RequestLine<'a> {
    pub request_id: &'a str,
    pub method: &'a str,
    pub operation: &'a str,
    pub actor_id: &'a str,
    pub role: &'a str,
    /// The address the request came from, if that is to be recorded.
    pub origin: &'a str,
    pub client_id: &'a str,
    pub cause: &'a str,
    pub status: u16,
    pub micros: u64,
}

/// A member of a line about a request: what comes before its value, in either format.
#[derive(Clone, Copy)]
struct Member {
    json: &'static str,
    text: &'static str,
}

macro_rules! member {
    ($name:literal) => {
        Member { json: concat!(", \"", $name, "\": \""), text: concat!(" ", $name, "=") }
    };
}
use member;

/// A line being built. Each request makes one, so fixed parts are copied and only variable ones are formatted.
struct Line {
    text: String,
    format: Format,
}

impl Line {
    fn begin(format: Format, now: Time, level: Level, target: &str) -> Line {
        let mut text = LINE.take();
        text.clear();
        match format {
            Format::Json => {
                text.push_str("{\"time\": \"");
                now.push_to(&mut text);
                for part in ["\", \"level\": \"", level.as_str(), "\", \"target\": \"", target, "\""] {
                    text.push_str(part);
                }
            }
            Format::Text => {
                let _ = write!(text, "{now} {level:>5} ");
            }
        }
        Line { text, format }
    }

    fn end(mut self) -> String {
        self.text.push_str(match self.format {
            Format::Json => "}\n",
            Format::Text => "\n",
        });
        self.text
    }

    fn name(&mut self, name: &str) {
        let (before, after) = match (self.format, name) {
            (Format::Json, _) => (", \"", "\": "),
            (Format::Text, "message") => return,
            (Format::Text, _) => (" ", "="),
        };
        self.text.push_str(before);
        self.text.push_str(name);
        self.text.push_str(after);
    }

    fn plain(&mut self, field: &Field, value: impl fmt::Display) {
        self.name(field.name());
        let _ = write!(self.text, "{value}");
    }

    fn text(&mut self, name: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        self.name(name);
        self.quote();
        let _ = self.write_str(value);
        self.quote();
    }

    /// As [`Line::text`], in fewer steps.
    fn member(&mut self, Member { json, text }: Member, value: &str) {
        if value.is_empty() {
            return;
        }
        self.text.push_str(if self.format == Format::Json { json } else { text });
        let _ = self.write_str(value);
        self.quote();
    }

    fn number(&mut self, name: &str, value: u64) {
        self.name(name);
        let _ = write!(self.text, "{value}");
    }

    fn quote(&mut self) {
        if self.format == Format::Json {
            self.text.push('"');
        }
    }
}

/// For text that must not be able to end its field or its line.
impl fmt::Write for Line {
    fn write_str(&mut self, value: &str) -> fmt::Result {
        // Printable, except the quote and the backslash.
        let is_harmless = |byte: u8| matches!(byte, b' '..=b'!' | b'#'..=b'[' | b']'..=b'~');
        // No early exit, so that the compiler can check many bytes at a time.
        if value.bytes().fold(true, |harmless, byte| harmless & is_harmless(byte)) {
            self.text.push_str(value);
            return Ok(());
        }
        match self.format {
            Format::Json => {
                let quoted = serde_json::to_string(value).map_err(|_| fmt::Error)?;
                for character in quoted.get(1..quoted.len() - 1).unwrap_or_default().chars() {
                    // A terminal that shows the line must not obey it.
                    if visible::is_hidden(character) {
                        let mut units = [0; 2];
                        for unit in character.encode_utf16(&mut units) {
                            write!(self.text, "\\u{unit:04x}")?;
                        }
                    } else {
                        self.text.push(character);
                    }
                }
                Ok(())
            }
            Format::Text => write!(self.text, "{}", value.escape_debug()),
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.plain(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.plain(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.plain(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field.name());
        self.quote();
        let _ = write!(self, "{value:?}");
        self.quote();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(format: Format, expected: &Expect) {
        let log = Log::new(format, LevelFilter::INFO, Clock::manual(Time::EPOCH));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(log.clone()), || {
            let (text, nothing, cause) = ("a\"b\\c\nd é", "", "disk \"full\"\n");
            tracing::info!(target: "t", text, nothing, count = 3_u16, delta = -1, yes = true, error = %cause, "it {}", "is");
        });
        expected.assert_eq(&log.queue().text);
    }

    #[test]
    fn of_requests_without_a_caller_only_so_many_a_second_are_logged() {
        let strangers = Strangers::default();
        let at = |second: i64| Time::from_unix_micros(second * 1_000_000 + 7);
        assert_eq!((0..500).filter(|_| strangers.takes(at(9))).count(), 50);
        assert_eq!((0..500).filter(|_| strangers.takes(at(10))).count(), 50);
    }

    #[test]
    fn lines_are_searched_for_tokens_as_soon_as_one_value_could_be_a_token() {
        let log = Log::new(Format::Json, LevelFilter::INFO, Clock::manual(Time::EPOCH));
        for (length, is_searched) in [(1, false), (SHORT_VALUE_BYTES_MAX, false), (TOKEN_BYTES_MIN, true), (1, true)] {
            let value = "x".repeat(length);
            log.request(&RequestLine { actor_id: "ana", cause: &value, status: 200, ..RequestLine::default() });
            assert_eq!(log.queue().has_long_words, is_searched, "{length}");
        }
    }

    #[test]
    fn a_terminal_that_shows_a_line_does_not_obey_it() {
        for format in [Format::Json, Format::Text] {
            let mut line = Line::begin(format, Time::EPOCH, Level::INFO, "t");
            line.text("cause", "a\u{202e}b\u{9b}31mc\u{1b}[2J");
            let text = line.end();
            assert!(!text.contains(['\u{202e}', '\u{9b}', '\u{1b}']), "{text:?}");
        }
    }

    #[test]
    fn a_value_can_end_neither_its_field_nor_its_line() {
        check(
            Format::Json,
            &expect![[r#"
                {"time": "1970-01-01T00:00:00.000000Z", "level": "INFO", "target": "t", "message": "it is", "text": "a\"b\\c\nd é", "count": 3, "delta": -1, "yes": true, "error": "disk \"full\"\n"}
            "#]],
        );
        check(
            Format::Text,
            &expect![[r#"
                1970-01-01T00:00:00.000000Z  INFO it is text=a\"b\\c\nd é count=3 delta=-1 yes=true error=disk \"full\"\n
            "#]],
        );
    }
}
