//! Who holds how many connections, and which ones are closed when there are too many.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pilot_core::limits::{
    ADDRESS_ARRIVALS_MAX, ADDRESS_ARRIVALS_PER_SECOND, ADDRESS_CONNECTIONS_PART, ADDRESS_HTTP2_STREAMS_MAX,
    HTTP2_STREAMS_IN_ALL_MAX,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::caps::Cap;
use crate::deadline::Watchdog;
use crate::peer::{Address, origin};
use crate::served::Served;

pub(super) type Shared = Box<dyn Fn(Address) -> bool + Send + Sync>;

/// How long a newly accepted connection waits for another to end. After that it is turned away: others are waiting
/// behind it, and one of them may be a known caller.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many connections each address holds.
pub(super) struct Crowd {
    of_address_max: usize,
    shared: Shared,
    held: Mutex<HashMap<Address, usize>>,
    /// How many connections each address has opened recently: each second, as many are forgotten as may be opened in
    /// one.
    arrived: Mutex<HashMap<Address, usize>>,
    /// HTTP/2 requests, of which one connection may have many: by address, and in total.
    streams: Mutex<(HashMap<Address, usize>, usize)>,
}

impl Crowd {
    pub(super) fn new(connections_max: usize, shared: Shared) -> Crowd {
        let of_address_max = (connections_max / ADDRESS_CONNECTIONS_PART).max(1);
        Crowd { of_address_max, shared, held: Mutex::default(), arrived: Mutex::default(), streams: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Address, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this address may open one more connection now.
    fn admits(&self, address: Address) -> bool {
        let mut arrived = self.arrived();
        let lately = arrived.entry(origin(address)).or_default();
        let is_admitted = *lately < ADDRESS_ARRIVALS_MAX || (self.shared)(address);
        *lately += usize::from(is_admitted);
        is_admitted
    }

    /// Called as time passes.
    pub(super) fn forget_arrivals(&self, passed: Duration) {
        let millis = usize::try_from(passed.as_millis()).unwrap_or(usize::MAX);
        let forgotten = ADDRESS_ARRIVALS_PER_SECOND.saturating_mul(millis) / 1_000;
        self.arrived().retain(|_, lately| {
            *lately = lately.saturating_sub(forgotten);
            *lately > 0
        });
    }

    fn arrived(&self) -> MutexGuard<'_, HashMap<Address, usize>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_full_for(&self, address: Address) -> bool {
        let held = self.held().get(&origin(address)).copied().unwrap_or(0);
        held >= self.of_address_max && !(self.shared)(address)
    }
}

/// A connection's place: one of all, and one of its address's.
pub(super) struct Place {
    crowd: Arc<Crowd>,
    origin: Address,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    pub(super) fn origin(&self) -> Address {
        self.origin
    }

    fn new(crowd: &Arc<Crowd>, address: Address, permit: OwnedSemaphorePermit) -> Place {
        let origin = origin(address);
        *crowd.held().entry(origin).or_default() += 1;
        Place { crowd: Arc::clone(crowd), origin, _permit: permit }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.crowd.held();
        if let Some(count) = held.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.origin);
            }
        }
    }
}

/// An HTTP/2 request, until its answer has been received.
pub(super) struct Stream {
    crowd: Arc<Crowd>,
    origin: Address,
}

impl Place {
    /// `None` if this address has too many, or there are too many in total.
    pub(super) fn begin_stream(&self) -> Option<Stream> {
        let crowd = &self.crowd;
        let mut streams = crowd.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let (by_address, all) = &mut *streams;
        let of_address = by_address.get(&self.origin).copied().unwrap_or(0);
        let is_full = of_address >= ADDRESS_HTTP2_STREAMS_MAX && !(crowd.shared)(self.origin);
        if is_full || *all >= HTTP2_STREAMS_IN_ALL_MAX {
            return None;
        }
        by_address.insert(self.origin, of_address + 1);
        *all += 1;
        Some(Stream { crowd: Arc::clone(crowd), origin: self.origin })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut streams = self.crowd.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.1 -= 1;
        if let Some(count) = streams.0.get_mut(&self.origin) {
            *count -= 1;
            if *count == 0 {
                streams.0.remove(&self.origin);
            }
        }
    }
}

/// A place for an accepted connection. If there is none, idle connections of unknown callers are closed; if none can be
/// closed, this one is.
pub(super) async fn find_place(
    app: &impl Served,
    places: &Arc<Semaphore>,
    crowd: &Arc<Crowd>,
    watchdog: &Watchdog,
    address: Address,
    stop: &mut watch::Receiver<bool>,
) -> Option<Place> {
    let caps = &app.traffic().caps;
    if !crowd.admits(address) {
        caps.reached(Cap::AddressArrivals, &address);
        return None;
    }
    if crowd.is_full_for(address) {
        caps.reached(Cap::AddressConnections, &address);
        if watchdog.make_room(Some(origin(address))) == 0 {
            return None;
        }
    }
    if let Ok(permit) = Arc::clone(places).try_acquire_owned() {
        return Some(Place::new(crowd, address, permit));
    }
    caps.reached(Cap::Connections, &address);
    watchdog.make_room(None);
    tokio::select! {
        biased;
        _ = stop.wait_for(|stop| *stop) => None,
        waited = tokio::time::timeout(PATIENCE, Arc::clone(places).acquire_owned()) => {
            waited.ok()?.ok().map(|permit| Place::new(crowd, address, permit))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn at(address: [u8; 4]) -> Address {
        Address::Ip(IpAddr::from(address))
    }

    #[test]
    fn one_address_holds_a_quarter_of_all_places_unless_many_come_from_it() {
        let crowd = Arc::new(Crowd::new(16, Box::new(|address| address == at([192, 0, 2, 9]))));
        let places = Arc::new(Semaphore::new(16));
        let take = |address: [u8; 4]| {
            let address = at(address);
            (!crowd.is_full_for(address))
                .then(|| Place::new(&crowd, address, Arc::clone(&places).try_acquire_owned().unwrap()))
        };
        let mut held: Vec<_> = (0..4).map(|_| take([192, 0, 2, 1]).unwrap()).collect();
        assert!(take([192, 0, 2, 1]).is_none());
        held.extend((0..8).map(|_| take([192, 0, 2, 9]).unwrap()));
        drop(held.remove(0));
        assert!(take([192, 0, 2, 1]).is_some());
        drop(held);
        assert!(crowd.held().is_empty());
    }

    #[test]
    fn one_address_opens_so_many_connections_a_second_unless_many_come_from_it() {
        let crowd = Crowd::new(16, Box::new(|address| address == at([192, 0, 2, 9])));
        let arrive = |last: u8, times: usize| (0..times).filter(|_| crowd.admits(at([192, 0, 2, last]))).count();
        assert_eq!(arrive(1, ADDRESS_ARRIVALS_MAX + 100), ADDRESS_ARRIVALS_MAX);
        assert_eq!((arrive(2, 10), arrive(9, ADDRESS_ARRIVALS_MAX + 100)), (10, ADDRESS_ARRIVALS_MAX + 100));
        crowd.forget_arrivals(Duration::from_millis(250));
        assert_eq!(arrive(1, ADDRESS_ARRIVALS_MAX), ADDRESS_ARRIVALS_PER_SECOND / 4);
        crowd.forget_arrivals(Duration::from_mins(1));
        assert!(crowd.arrived().is_empty(), "who came long ago is forgotten");
    }

    #[test]
    fn requests_over_http_2_are_counted_until_they_are_done() {
        let crowd = Arc::new(Crowd::new(16, Box::new(|address| address == at([192, 0, 2, 9]))));
        let places = Arc::new(Semaphore::new(16));
        let place =
            |address: [u8; 4]| Place::new(&crowd, at(address), Arc::clone(&places).try_acquire_owned().unwrap());
        let (one, other, mesh) = (place([192, 0, 2, 1]), place([192, 0, 2, 2]), place([192, 0, 2, 9]));
        let mut streams: Vec<_> = (0..ADDRESS_HTTP2_STREAMS_MAX).map(|_| one.begin_stream().unwrap()).collect();
        assert!(one.begin_stream().is_none());
        drop((streams.pop(), other.begin_stream().unwrap()));
        streams.push(one.begin_stream().unwrap());
        while let Some(stream) = mesh.begin_stream() {
            streams.push(stream);
        }
        assert_eq!(streams.len(), HTTP2_STREAMS_IN_ALL_MAX);
        assert!(other.begin_stream().is_none());
        drop(streams);
        assert_eq!(*crowd.streams.lock().unwrap(), (HashMap::new(), 0));
    }
}
