//! Deadlines of a connection: the first byte, the headers of a request, and idling between requests.
//!
//! The HTTP library has none that fit, so the socket is wrapped: it records by when the peer has to do something, and a
//! single task checks all connections a few times a second. That way a request needs no timer.

mod state;

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use http::Version;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub use self::state::{Deadlines, Lasts, TICK};
use self::state::{End, Event, State};
use crate::peer::Address;

/// In the extensions of an answer: the peer is late, so the connection ends as soon as nothing else is in progress on
/// it.
#[derive(Debug, Clone, Copy)]
pub struct PeerIsLate;

/// All open connections of a listener.
pub struct Watchdog {
    deadlines: Deadlines,
    /// Ticks since the start. Deliberately coarse: reading it costs nothing.
    tick: Arc<AtomicU64>,
    connections: Mutex<Vec<Weak<Connection>>>,
    /// Addresses for which no connection could be closed in this tick. Searching all connections for each new one is
    /// exactly what a flood would want.
    crowded: Mutex<HashMap<Option<Address>, u64>>,
}

impl Watchdog {
    pub fn new(deadlines: Deadlines) -> Arc<Watchdog> {
        let (tick, connections) = (Arc::new(AtomicU64::new(0)), Mutex::new(Vec::new()));
        Arc::new(Watchdog { deadlines, tick, connections, crowded: Mutex::default() })
    }

    pub fn watch(&self, address: Option<Address>) -> Arc<Connection> {
        let (deadlines, tick) = (self.deadlines, Arc::clone(&self.tick));
        let state = Mutex::new(Heard { state: State::new(tick.load(Ordering::Relaxed), &deadlines), waker: None });
        let connection = Arc::new(Connection { deadlines, tick, address, state });
        self.connections().push(Arc::downgrade(&connection));
        connection
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Weak<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs as long as the listener does. Calls `also` at every tick.
    pub async fn run(&self, also: impl Fn() + Send + Sync) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            self.tick();
            also();
        }
    }

    fn tick(&self) {
        self.tick.fetch_add(1, Ordering::Relaxed);
        self.crowded.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.connections().retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            connection.note(Event::Tick);
            true
        });
    }

    /// Closes the anonymous connections that have idled longest, to make room for others: one percent of all, and at
    /// least one; only those of one address, if given. Returns how many.
    pub fn make_room(&self, address: Option<Address>) -> usize {
        let now = self.tick.load(Ordering::Relaxed);
        let mut crowded = self.crowded.lock().unwrap_or_else(PoisonError::into_inner);
        if crowded.get(&address) == Some(&now) {
            return 0;
        }
        let connections = self.connections();
        let mut idle: Vec<_> = connections
            .iter()
            .filter_map(Weak::upgrade)
            .filter(|connection| address.is_none() || connection.address == address)
            .filter_map(|connection| Some((connection.spared_since()?, connection)))
            .collect();
        let leaving = (connections.len() / 100).max(1).min(idle.len());
        if leaving == 0 {
            crowded.insert(address, now);
            return 0;
        }
        idle.select_nth_unstable_by_key(leaving - 1, |(since, _)| *since);
        idle.iter().take(leaving).for_each(|(_, connection)| connection.expire());
        leaving
    }

    /// Tells every connection to finish what it has begun and end.
    pub fn stop(&self) {
        for connection in &*self.connections() {
            if let Some(connection) = connection.upgrade() {
                connection.end();
            }
        }
    }
}

/// One connection, and what has happened on it.
pub struct Connection {
    deadlines: Deadlines,
    tick: Arc<AtomicU64>,
    address: Option<Address>,
    state: Mutex<Heard>,
}

struct Heard {
    state: State,
    /// Woken when there is something to tell.
    waker: Option<Waker>,
}

/// What a connection is told while it is being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The peer has missed its deadline.
    Expired,
    /// The service is stopping: finish what was begun.
    Stop,
}

/// Receives what a connection is told.
pub struct Hearing<'c> {
    connection: &'c Connection,
    has_heard_stop: bool,
}

impl Hearing<'_> {
    pub fn poll(&mut self, context: &Context<'_>) -> Poll<Told> {
        let mut heard = self.connection.heard();
        match heard.state.end() {
            End::Expired => return Poll::Ready(Told::Expired),
            End::Stopping if !self.has_heard_stop => {
                self.has_heard_stop = true;
                return Poll::Ready(Told::Stop);
            }
            End::Open | End::Stopping => {}
        }
        if !heard.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker())) {
            heard.waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

impl Connection {
    pub fn hear(&self) -> Hearing<'_> {
        Hearing { connection: self, has_heard_stop: false }
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, event: Event) {
        let mut heard = self.heard();
        let after = heard.state.after(event, self.tick.load(Ordering::Relaxed), &self.deadlines);
        let is_news = after.end() != heard.state.end();
        heard.state = after;
        if is_news && let Some(waker) = &heard.waker {
            waker.wake_by_ref();
        }
    }

    /// Since when it has been idle, if it can be closed.
    fn spared_since(&self) -> Option<u64> {
        self.heard().state.spared_since()
    }

    /// Accepts nothing new and finishes what was begun. HTTP/1 then ends by itself; an HTTP/2 peer could keep the
    /// connection open as long as it likes with frames that do not matter, so it is not waited for.
    pub fn end(&self) {
        self.note(Event::Stop);
    }

    /// Closes the connection immediately, whatever is in progress.
    pub fn expire(&self) {
        self.note(Event::Expire);
    }

    /// Someone with a valid credential was answered on it.
    pub fn caller_is_known(&self) {
        self.note(Event::CallerKnown);
    }

    fn on_read(&self) {
        self.note(Event::Read);
    }

    fn on_write(&self) {
        self.note(Event::Written);
    }

    /// The headers of a request are complete. The body has its own deadline, where it is read.
    pub fn request_began(&self, version: Version) {
        self.note(Event::RequestBegan { is_multiplexed: version == Version::HTTP_2 });
    }

    pub fn request_ended(&self) {
        self.note(Event::RequestEnded);
    }

    /// From now until [`Connection::stream_ended`], only a peer that stops reading can miss a deadline.
    pub fn stream_began(&self, lasts: Lasts) {
        self.note(Event::StreamBegan(lasts));
    }

    pub fn stream_ended(&self, lasts: Lasts) {
        self.note(Event::StreamEnded(lasts));
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
    use std::net::IpAddr;

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

        /// Like [`Watch::expires_after`], once it has been told to stop.
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
        let origin = |last| Some(Address::Ip(IpAddr::from([127, 0, 0, last])));
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
    fn where_nobody_can_be_spared_the_connections_are_looked_through_once_a_tick() {
        let watch = Watch::new();
        watch.connection.request_began(Version::HTTP_11);
        assert_eq!(watch.watchdog.make_room(None), 0);
        watch.connection.request_ended();
        assert_eq!(watch.watchdog.make_room(None), 0, "asked again in the same tick, it does not look");
        watch.pass(1);
        assert_eq!(watch.watchdog.make_room(None), 1);
    }

    #[test]
    fn the_stop_leaves_http_1_its_time() {
        let watch = Watch::new();
        watch.connection.on_read();
        watch.watchdog.stop();
        watch.ends_after(5);
    }
}
