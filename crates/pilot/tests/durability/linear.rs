//! What several people see at once while the disk fails and the service dies, held against the one order there is.
//!
//! Every answer is noted with the moments it was asked for and heard. The ledger says in which order things happened:
//! nothing may be seen to have happened in another. What was heard before something else was asked for came earlier; and
//! whoever reads afterwards sees it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use pilot_testing::Dice;
use serde_json::{Value, json};

use crate::durability::client::{AUDITOR, Answered, Asked, Client, Work, installation, writer_token};
use crate::durability::kill::rounds;
use crate::durability::ledger::{Seen, is_whole};
use crate::durability::shim::{EVERYTHING, Fault, Kind, SYNC, Shim, WRITE};
use crate::support::harness::Server;

const PEOPLE: usize = 4;
const ROUNDS: usize = 8;

/// Moments, in the one order in which this process saw them.
#[derive(Default)]
struct Moments(AtomicU64);

impl Moments {
    fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }
}

#[derive(Debug, Clone)]
struct Heard {
    asked: u64,
    at: u64,
    what: What,
}

#[derive(Debug, Clone)]
enum What {
    /// Recorded at this place.
    Wrote(u64),
    /// The feed ended here.
    Read(Option<u64>),
}

/// Each comments on the same items as the others, with a key that settles what the disk left open.
struct Person {
    number: usize,
    count: u64,
    pending: Option<(u64, Asked)>,
}

impl Person {
    fn next(&mut self, items: &[String], moments: &Moments) -> (u64, Asked) {
        let (number, count) = (self.number, &mut self.count);
        self.pending.take().unwrap_or_else(|| {
            *count += 1;
            let item = &items[usize::try_from(*count).unwrap() % items.len()];
            let body = json!({"text": format!("{number} says {count}")}).to_string();
            let path = format!("/v1/items/{item}/comments");
            (moments.next(), Asked { path, token: writer_token(number), key: format!("p{number}-{count}"), body })
        })
    }

    /// Until the service is gone, or has stopped taking anything because of the fault. A disk of this machine that is slow
    /// to answer makes it refuse too, and says nothing.
    fn work(&mut self, server: &Address, shim: &Shim, items: &[String], moments: &Moments, heard: &Mutex<Vec<Heard>>) {
        let mut client = Client::connect(server.0);
        let mut refused = 0;
        while refused < 3 && !server.1.load(Ordering::SeqCst) {
            let (asked, request) = self.next(items, moments);
            match client.ask(&request) {
                Answered::Done(done, _) => {
                    let what = What::Wrote(done.index.unwrap());
                    heard.lock().unwrap().push(Heard { asked, at: moments.next(), what });
                }
                Answered::Unavailable => {
                    refused += u32::from(shim.fired() > 0);
                    self.pending = Some((asked, request));
                }
                Answered::Unknown => {
                    self.pending = Some((asked, request));
                    return;
                }
            }
        }
    }
}

/// Where the service is, and whether this round is over.
struct Address(std::net::SocketAddr, Arc<AtomicBool>);

/// Reads the feed to its end, again and again: without a gap, in order, and never less than before.
fn follow(address: &Address, moments: &Moments, heard: &Mutex<Vec<Heard>>) {
    let (mut client, mut last) = (Client::connect(address.0), None::<u64>);
    while !address.1.load(Ordering::SeqCst) {
        let asked = moments.next();
        let mut end = last;
        loop {
            let path = end.map_or("/v1/events?limit=200".to_owned(), |end| format!("/v1/events?limit=200&after={end}"));
            let Some(response) = client.get(&path, AUDITOR) else { return };
            if response.status != 200 {
                return;
            }
            let page: Value = response.json();
            let events = page["events"].as_array().unwrap();
            for event in events {
                let index = event["index"].as_u64().unwrap();
                assert_eq!(index, end.map_or(0, |end| end + 1), "the feed has a gap, or is out of order");
                end = Some(index);
            }
            if events.is_empty() {
                break;
            }
        }
        last = end;
        heard.lock().unwrap().push(Heard { asked, at: moments.next(), what: What::Read(last) });
    }
}

/// There is one order of everything in which each thing happens between the moment it was asked for and the moment it was
/// heard: that of the ledger.
fn is_linear(heard: &[Heard]) {
    let mut by_asked: Vec<_> = heard.iter().collect();
    by_asked.sort_by_key(|heard| heard.asked);
    let mut by_heard: Vec<_> = heard.iter().collect();
    by_heard.sort_by_key(|heard| heard.at);
    let (mut known, mut next) = (None::<u64>, by_heard.iter().peekable());
    for Heard { asked, what, .. } in by_asked {
        // Everything that had been heard by then.
        while let Some(earlier) = next.next_if(|earlier| earlier.at < *asked) {
            known = known.max(match earlier.what {
                What::Wrote(index) => Some(index),
                What::Read(index) => index,
            });
        }
        match what {
            What::Wrote(index) => assert!(known < Some(*index), "{index} was asked for after {known:?} was heard"),
            What::Read(index) => assert!(known <= *index, "{index:?} was read after {known:?} was heard"),
        }
    }
    let mut places = BTreeMap::new();
    for heard in heard {
        if let What::Wrote(index) = heard.what {
            assert!(places.insert(index, heard.clone()).is_none(), "two were told that they are {index}");
        }
    }
}

#[test]
fn what_people_see_at_once_is_one_order_whatever_fails_beneath() {
    let installation = installation();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let (mut dice, shim) = (Dice::new(seed), Shim::new(&installation));
    let server = shim.serve(&installation);
    let items = make_items(&server);
    server.stop().expect(0);
    let (moments, heard) = (Moments::default(), Mutex::new(Vec::new()));
    let mut people: Vec<_> = (0..PEOPLE).map(|number| Person { number, count: 0, pending: None }).collect();
    for round in 0..rounds(ROUNDS) {
        let server = shim.serve(&installation);
        let kind = [Kind::Fails, Kind::Kills, Kind::Full][dice.below(3)];
        let ops = [SYNC, WRITE, EVERYTHING][dice.below(3)];
        let at = 20 + dice.below(if ops == SYNC { 60 } else { 600 });
        println!("round {round}: {kind:?} at {at} of {ops}");
        shim.arm(Fault { kind, ops, at, is_lasting: kind == Kind::Full || dice.below(2) == 0 });
        let address = Address(server.address, Arc::default());
        thread::scope(|scope| {
            let (address, shim, items, moments, heard) = (&address, &shim, &items, &moments, &heard);
            let reader = scope.spawn(move || follow(address, moments, heard));
            let writers: Vec<_> = people
                .iter_mut()
                .map(|person| scope.spawn(move || person.work(address, shim, items, moments, heard)))
                .collect();
            for writer in writers {
                writer.join().unwrap();
            }
            address.1.store(true, Ordering::SeqCst);
            reader.join().unwrap();
        });
        assert!(shim.fired() > 0, "round {round}: nothing failed");
        shim.disarm();
        let is_killed = kind == Kind::Kills || dice.below(2) == 0;
        let ended = if is_killed { drop_and_say(server) } else { server.stop().code };
        assert!(matches!(ended, -1 | 0 | 3), "round {round}: {ended}");
        // Or the machine goes with it, and what was never synced.
        if dice.below(2) == 0 {
            shim.cut_power();
        }
    }
    let (server, mut audit) = (installation.serve(), Seen::default());
    audit.read(&server);
    let heard = heard.into_inner().unwrap();
    let written = heard.iter().filter(|heard| matches!(heard.what, What::Wrote(_))).count();
    for Heard { what, .. } in &heard {
        if let What::Wrote(index) | What::Read(Some(index)) = what {
            assert!(*index < audit.size(), "{index} was heard of, and is lost");
        }
    }
    is_linear(&heard);
    server.stop().expect(0);
    is_whole(&installation);
    println!("{written} writes and {} readings in one order of {} entries", heard.len() - written, audit.size());
}

fn drop_and_say(server: Server) -> i32 {
    drop(server);
    -1
}

fn make_items(server: &Server) -> Vec<String> {
    let (mut client, mut work) = (Client::connect(server.address), Work::new(0, "shared"));
    let mut items = Vec::new();
    while items.len() < 3 {
        let Answered::Done(done, body) = client.ask(&work.next) else { panic!("nothing fails yet") };
        if done.version == 1 {
            items.push(done.item.clone());
        }
        work.advance(&done, &body);
    }
    items
}

#[test]
fn an_order_that_cannot_have_been_is_found() {
    let heard = |asked, at, what| Heard { asked, at, what };
    is_linear(&[heard(0, 3, What::Wrote(1)), heard(1, 2, What::Wrote(0)), heard(4, 5, What::Read(Some(1)))]);
    let impossible: [&[Heard]; 4] = [
        &[heard(0, 1, What::Wrote(1)), heard(2, 3, What::Wrote(0))],
        &[heard(0, 1, What::Wrote(1)), heard(2, 3, What::Read(Some(0)))],
        &[heard(0, 1, What::Read(Some(1))), heard(2, 3, What::Read(None))],
        &[heard(0, 2, What::Wrote(1)), heard(1, 3, What::Wrote(1))],
    ];
    for heard in impossible {
        assert!(std::panic::catch_unwind(|| is_linear(heard)).is_err(), "{heard:?}");
    }
}
