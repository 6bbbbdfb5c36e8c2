//! Deadlines of a connection: the first byte, the headers of a request, and idling between requests.
//!
//! The HTTP library has none of its own that fit, so the socket is wrapped: it notes in one atomic number until when
//! the peer has to do something, and a single task looks at all connections a few times a second. A request costs no
//! timer that way.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::Version;
use pilot_core::limits;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How long a streamed answer goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    UntilDone,
    UntilStopped,
}

/// How often the connections are looked at; a deadline is met to this precision.
pub const TICK: Duration = Duration::from_millis(250);

/// How long a connection that is to end may idle, and how long it may take the last answer in.
const ENDING: Duration = Duration::from_secs(1);
const ENDING_MAX: Duration = Duration::from_secs(5);

/// In the extensions of an answer: its peer is late, so the connection ends as soon as nothing else is under way on it.
#[derive(Debug, Clone, Copy)]
pub struct PeerIsLate;

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

/// All open connections of a listener.
pub struct Watchdog {
    deadlines: Deadlines,
    /// Ticks since the start. Coarse on purpose: reading it costs nothing.
    tick: Arc<AtomicU64>,
    connections: Mutex<Vec<Weak<Connection>>>,
}

impl Watchdog {
    pub fn new(deadlines: Deadlines) -> Arc<Watchdog> {
        Arc::new(Watchdog { deadlines, tick: Arc::new(AtomicU64::new(0)), connections: Mutex::new(Vec::new()) })
    }

    pub fn watch(&self, address: Option<IpAddr>) -> Arc<Connection> {
        let connection = Arc::new(Connection {
            deadlines: self.deadlines,
            tick: Arc::clone(&self.tick),
            waiting: AtomicBool::new(true),
            requests: AtomicUsize::new(0),
            streams: AtomicUsize::new(0),
            endless: AtomicUsize::new(0),
            anonymous: AtomicBool::new(true),
            idle_since: AtomicU64::new(self.tick.load(Ordering::Relaxed)),
            address,
            served: AtomicBool::new(false),
            multiplexed: AtomicBool::new(false),
            until: AtomicU64::new(0),
            ends_by: AtomicU64::new(u64::MAX),
            told: AtomicU8::new(0),
            waker: Mutex::new(None),
        });
        connection.allow(self.deadlines.first_byte);
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&connection));
        connection
    }

    /// Runs for as long as the listener does.
    pub async fn run(&self) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.tick();
        }
    }

    fn tick(&self) {
        let now = self.tick.fetch_add(1, Ordering::Relaxed) + 1;
        self.connections.lock().unwrap_or_else(PoisonError::into_inner).retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            if connection.until.load(Ordering::Relaxed) < now {
                connection.tell(EXPIRED);
            }
            true
        });
    }

    /// Lets go of those anonymous connections that have idled longest, so that there is room for others: the hundredth part
    /// of all, and at least one; of those of one address, when one is given. How many went.
    pub fn make_room(&self, address: Option<IpAddr>) -> usize {
        let connections = self.connections.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle: Vec<_> = connections
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|connection| address.is_none() || connection.address == address)
            .filter(|connection| connection.can_be_spared())
            .collect();
        let leaving = (connections.len() / 100).max(1).min(idle.len());
        if leaving == 0 {
            return 0;
        }
        idle.select_nth_unstable_by_key(leaving - 1, |connection| connection.idle_since.load(Ordering::Relaxed));
        idle.iter().take(leaving).for_each(|connection| connection.tell(EXPIRED));
        leaving
    }

    /// Tells every connection to end with what it has begun.
    pub fn stop(&self) {
        for connection in &*self.connections.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Some(connection) = connection.upgrade() {
                connection.end();
            }
        }
    }
}

/// What one connection is waiting for, and until when.
pub struct Connection {
    deadlines: Deadlines,
    tick: Arc<AtomicU64>,
    /// No request is under way and none of its bytes has been seen.
    waiting: AtomicBool,
    requests: AtomicUsize,
    /// Answers that are still being streamed, and those of them that have no end of their own.
    streams: AtomicUsize,
    endless: AtomicUsize,
    /// Nobody with a valid credential has been heard on it.
    anonymous: AtomicBool,
    /// Since when nothing has been under way.
    idle_since: AtomicU64,
    address: Option<IpAddr>,
    /// At least one request was answered.
    served: AtomicBool,
    /// HTTP/2: bytes between requests are not the beginning of one (settings, pings, flow control).
    multiplexed: AtomicBool,
    until: AtomicU64,
    /// Until when a connection that is to end may take in its last answer.
    ends_by: AtomicU64,
    /// What there is to hear, a bit for each.
    told: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

const EXPIRED: u8 = 1;
const STOP: u8 = 2;

/// What a connection is told while it is being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The peer has missed its deadline.
    Expired,
    /// The service stops: what was begun is to be finished.
    Stop,
}

/// Hears what a connection is told. It asks to be woken once and not at every turn: a request must not cost a lock.
pub struct Hearing<'c> {
    connection: &'c Connection,
    waker: Option<Waker>,
    has_heard_stop: bool,
}

impl Hearing<'_> {
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<Told> {
        if !self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            let waker = self.waker.insert(context.waker().clone());
            *self.connection.waker() = Some(waker.clone());
        }
        // Looked at after the waker is in its place, and told before it is used: nothing is missed in between.
        let told = self.connection.told.load(Ordering::Acquire);
        if told & EXPIRED != 0 {
            return Poll::Ready(Told::Expired);
        }
        if told & STOP != 0 && !self.has_heard_stop {
            self.has_heard_stop = true;
            return Poll::Ready(Told::Stop);
        }
        Poll::Pending
    }
}

impl Connection {
    pub fn hear(&self) -> Hearing<'_> {
        Hearing { connection: self, waker: None, has_heard_stop: false }
    }

    fn waker(&self) -> MutexGuard<'_, Option<Waker>> {
        self.waker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, what: u8) {
        self.told.fetch_or(what, Ordering::AcqRel);
        if let Some(waker) = &*self.waker() {
            waker.wake_by_ref();
        }
    }

    /// The tick this far from now.
    fn after(&self, span: Duration) -> u64 {
        let ticks = u64::try_from(span.as_millis() / TICK.as_millis()).unwrap_or(u64::MAX);
        self.tick.load(Ordering::Relaxed).saturating_add(ticks)
    }

    fn allow(&self, span: Duration) {
        self.until.store(self.after(span), Ordering::Relaxed);
    }

    /// Nothing new is taken, and what was begun is finished. HTTP/1 ends by itself then; an HTTP/2 peer may go on
    /// saying nothing of importance for as long as it likes, so it is not waited for.
    pub fn end(&self) {
        self.tell(STOP);
        if self.is_ending() && self.is_free() {
            self.allow_the_end();
        }
    }

    /// HTTP/1 ends by itself once its answer is given; a feed has an end only when its reader takes it in.
    fn is_ending(&self) -> bool {
        let lingers = self.multiplexed.load(Ordering::Relaxed) || self.endless.load(Ordering::Relaxed) > 0;
        lingers && self.told.load(Ordering::Relaxed) & STOP != 0
    }

    /// No request and no stream is under way that has to be finished.
    fn is_free(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
            && self.streams.load(Ordering::Relaxed) == self.endless.load(Ordering::Relaxed)
    }

    /// Lets go of the peer at once, whatever is under way.
    pub fn expire(&self) {
        self.tell(EXPIRED);
    }

    fn can_be_spared(&self) -> bool {
        self.anonymous.load(Ordering::Relaxed)
            && self.requests.load(Ordering::Relaxed) == 0
            && self.streams.load(Ordering::Relaxed) == 0
            && self.told.load(Ordering::Relaxed) & EXPIRED == 0
    }

    /// Someone with a valid credential was answered on it.
    pub fn caller_is_known(&self) {
        if self.anonymous.load(Ordering::Relaxed) {
            self.anonymous.store(false, Ordering::Relaxed);
        }
    }

    fn allow_the_end(&self) {
        self.ends_by.store(self.after(ENDING_MAX), Ordering::Relaxed);
        self.allow(ENDING);
    }

    /// A request or a stream has ended, and no request is under way.
    fn allow_to_idle(&self) {
        self.idle_since.store(self.tick.load(Ordering::Relaxed), Ordering::Relaxed);
        if self.is_ending() && self.is_free() { self.allow_the_end() } else { self.allow(self.deadlines.idle) }
    }

    fn on_read(&self) {
        if self.waiting.load(Ordering::Relaxed) && !self.multiplexed.load(Ordering::Relaxed) {
            self.waiting.store(false, Ordering::Relaxed);
            self.allow(self.deadlines.headers);
        }
    }

    /// An answer that the peer takes in keeps the connection. Settings and pings of HTTP/2 are written too, and must not.
    fn on_write(&self) {
        let is_answer = !self.multiplexed.load(Ordering::Relaxed)
            && self.served.load(Ordering::Relaxed)
            && self.requests.load(Ordering::Relaxed) == 0;
        if self.is_ending() && self.is_free() {
            // What is written may be the last of an answer. It may also be told to a peer that never stops asking.
            let until = self.after(ENDING).min(self.ends_by.load(Ordering::Relaxed));
            self.until.store(until, Ordering::Relaxed);
        } else if is_answer || self.streams.load(Ordering::Relaxed) > 0 {
            self.allow(self.deadlines.idle);
        }
    }

    /// The headers of a request are complete. The body has its own deadline where it is read.
    pub fn request_began(&self, version: Version) {
        if version == Version::HTTP_2 {
            self.multiplexed.store(true, Ordering::Relaxed);
        }
        self.waiting.store(false, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.until.store(u64::MAX, Ordering::Relaxed);
    }

    /// From now until [`Connection::stream_ended`], only a peer that stops reading can miss a deadline.
    pub fn stream_began(&self, lasts: Lasts) {
        self.streams.fetch_add(1, Ordering::Relaxed);
        if lasts == Lasts::UntilStopped {
            self.endless.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn stream_ended(&self, lasts: Lasts) {
        self.streams.fetch_sub(1, Ordering::Relaxed);
        if lasts == Lasts::UntilStopped {
            self.endless.fetch_sub(1, Ordering::Relaxed);
        }
        if self.requests.load(Ordering::Relaxed) == 0 {
            self.allow_to_idle();
        }
    }

    pub fn request_ended(&self) {
        self.served.store(true, Ordering::Relaxed);
        if self.requests.fetch_sub(1, Ordering::Relaxed) == 1 {
            self.allow_to_idle();
            self.waiting.store(true, Ordering::Relaxed);
        }
    }
}

/// A socket that reports to its [`Connection`].
pub struct Watched<S> {
    pub socket: S,
    pub connection: Arc<Connection>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.socket).poll_read(context, buffer);
        if buffer.filled().len() > before {
            self.connection.on_read();
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write(context, bytes);
        if polled.is_ready() {
            self.connection.on_write();
        }
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.socket).poll_write_vectored(context, parts);
        if polled.is_ready() {
            self.connection.on_write();
        }
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 4;

    struct Watch {
        watchdog: Arc<Watchdog>,
        connection: Arc<Connection>,
    }

    impl Watch {
        fn new() -> Watch {
            let watchdog = Watchdog::new(Deadlines::default());
            let connection = watchdog.watch(None);
            Watch { watchdog, connection }
        }

        fn pass(&self, ticks: u64) {
            (0..ticks).for_each(|_| self.watchdog.tick());
        }

        fn told(&self) -> Poll<Told> {
            self.connection.hear().poll(&Context::from_waker(Waker::noop()))
        }

        /// As [`Watch::expires_after`], once it has heard of the stop.
        #[track_caller]
        fn ends_after(&self, seconds: u64) {
            let (mut hearing, context) = (self.connection.hear(), Context::from_waker(Waker::noop()));
            assert_eq!(hearing.poll(&context), Poll::Ready(Told::Stop));
            self.pass(seconds * SECOND);
            assert_eq!(hearing.poll(&context), Poll::Pending, "before {seconds} s were over");
            self.pass(1);
            assert_eq!(hearing.poll(&context), Poll::Ready(Told::Expired), "after {seconds} s");
        }

        #[track_caller]
        fn expires_after(&self, seconds: u64) {
            self.pass(seconds * SECOND);
            assert_eq!(self.told(), Poll::Pending, "before {seconds} s were over");
            self.pass(1);
            assert_eq!(self.told(), Poll::Ready(Told::Expired), "after {seconds} s");
        }
    }

    #[test]
    fn a_connection_that_never_says_a_word_is_let_go_after_5_s() {
        Watch::new().expires_after(5);
    }

    #[test]
    fn headers_have_5_s_from_their_first_byte_however_they_trickle() {
        let watch = Watch::new();
        watch.pass(4 * SECOND);
        watch.connection.on_read();
        watch.pass(4 * SECOND);
        watch.connection.on_read();
        watch.expires_after(1);
    }

    #[test]
    fn between_requests_a_connection_may_idle_for_60_s() {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let watch = Watch::new();
            watch.connection.on_read();
            watch.connection.request_began(version);
            watch.pass(300 * SECOND);
            watch.connection.request_ended();
            watch.expires_after(60);
        }
    }

    #[test]
    fn pings_and_settings_do_not_keep_an_idle_http_2_connection() {
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_2);
        watch.connection.request_ended();
        watch.pass(50 * SECOND);
        watch.connection.on_read();
        watch.connection.on_write();
        watch.expires_after(10);
    }

    #[test]
    fn a_feed_lasts_for_as_long_as_its_reader_takes_something_in_within_60_s() {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let watch = Watch::new();
            watch.connection.request_began(version);
            watch.connection.stream_began(Lasts::UntilDone);
            watch.connection.request_ended();
            for _ in 0..10 {
                watch.pass(59 * SECOND);
                watch.connection.on_write();
            }
            watch.expires_after(60);
        }
    }

    #[test]
    fn a_connection_hears_of_the_stop_once_and_still_of_its_deadline() {
        let watch = Watch::new();
        let mut hearing = watch.connection.hear();
        let context = Context::from_waker(Waker::noop());
        watch.watchdog.stop();
        assert_eq!(hearing.poll(&context), Poll::Ready(Told::Stop));
        assert_eq!(hearing.poll(&context), Poll::Pending);
        watch.pass(5 * SECOND + 1);
        assert_eq!(hearing.poll(&context), Poll::Ready(Told::Expired));
    }

    #[test]
    fn after_the_stop_an_http_2_connection_with_nothing_under_way_has_1_s() {
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_2);
        watch.connection.request_ended();
        watch.watchdog.stop();
        watch.ends_after(1);
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_2);
        watch.watchdog.stop();
        watch.pass(29 * SECOND);
        watch.connection.request_ended();
        watch.ends_after(1);
    }

    #[test]
    fn a_stream_under_way_is_not_cut_by_the_stop() {
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_2);
        watch.connection.stream_began(Lasts::UntilDone);
        watch.connection.request_ended();
        watch.watchdog.stop();
        watch.pass(29 * SECOND);
        watch.connection.request_began(Version::HTTP_2);
        watch.connection.stream_ended(Lasts::UntilDone);
        watch.pass(29 * SECOND);
        watch.connection.request_ended();
        watch.ends_after(1);
    }

    #[test]
    fn an_ending_connection_may_take_its_last_answer_in_for_5_s() {
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_2);
        watch.connection.end();
        watch.connection.request_ended();
        for _ in 0..20 {
            watch.pass(1);
            watch.connection.on_write();
            watch.connection.on_read();
        }
        watch.ends_after(0);
    }

    #[test]
    fn a_feed_nobody_reads_does_not_delay_the_stop() {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let watch = Watch::new();
            watch.connection.request_began(version);
            watch.connection.stream_began(Lasts::UntilStopped);
            watch.connection.request_ended();
            watch.pass(SECOND);
            watch.watchdog.stop();
            watch.connection.on_write();
            watch.ends_after(1);
        }
    }

    #[test]
    fn room_is_made_by_those_who_have_idled_longest_and_are_not_known() {
        let watchdog = Watchdog::new(Deadlines::default());
        let origin = |last| Some(IpAddr::from([127, 0, 0, last]));
        let names = ["known", "oldest", "busy", "feeding", "of another address", "youngest"];
        let connections: Vec<_> = names
            .iter()
            .map(|name| {
                watchdog.tick();
                watchdog.watch(origin(if *name == "of another address" { 2 } else { 1 }))
            })
            .collect();
        connections[0].caller_is_known();
        connections[2].request_began(Version::HTTP_11);
        connections[3].stream_began(Lasts::UntilStopped);
        let gone = || {
            let heard = |connection: &Arc<Connection>| connection.hear().poll(&Context::from_waker(Waker::noop()));
            let gone = |(_, connection): &(&&str, &Arc<Connection>)| heard(connection) == Poll::Ready(Told::Expired);
            names.iter().zip(&connections).filter(gone).map(|(name, _)| *name).collect::<Vec<_>>()
        };
        assert_eq!((watchdog.make_room(origin(2)), gone()), (1, vec!["of another address"]));
        assert_eq!((watchdog.make_room(None), gone()), (1, vec!["oldest", "of another address"]));
        assert_eq!((watchdog.make_room(None), gone()), (1, vec!["oldest", "of another address", "youngest"]));
        assert_eq!(watchdog.make_room(None), 0);
    }

    #[test]
    fn the_stop_leaves_http_1_its_time() {
        let watch = Watch::new();
        watch.connection.on_read();
        watch.watchdog.stop();
        watch.ends_after(5);
    }
}
