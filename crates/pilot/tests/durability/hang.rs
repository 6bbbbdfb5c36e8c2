//! A disk that does not answer, and a clock that has no date.

use std::thread;
use std::time::Duration;

use crate::durability::client::{AUDITOR, Answered, Client, Work, installation};
use crate::durability::ledger::{Seen, is_whole};
use crate::durability::shim::{Fault, Kind, SYNC, Shim};
use crate::support::harness::{PATIENCE, Server, bearer, now};

fn is_answered(server: &Server) -> bool {
    let mut wire = server.wire();
    wire.request("GET /healthz HTTP/1.1", &[]);
    wire.response().is_some_and(|response| response.status == 200)
}

const SECONDS_A_YEAR: i64 = 31_556_952;

#[test]
fn a_disk_that_does_not_answer_is_told_to_everyone_and_writing_goes_on_when_it_does() {
    let installation = installation();
    let config = installation.read("pilot.toml") + "[ops]\nlisten = \"127.0.0.1:0\"\n";
    installation.write("pilot.toml", &config);
    let shim = Shim::new(&installation);
    let server = shim.serve(&installation);
    let (mut first, mut acknowledged) = (Work::new(0, "hang"), Vec::new());
    let mut client = Client::connect(server.address);
    let Answered::Done(done, body) = client.ask(&first.next) else { panic!("the disk is well") };
    first.advance(&done, &body);
    acknowledged.push(done);
    shim.arm(Fault { kind: Kind::Hangs, ops: SYNC, at: 1, is_lasting: true });
    // It waits for the disk, and is answered before the disk is.
    let waiting = &first;
    thread::scope(|scope| {
        let asked = scope.spawn(move || matches!(client.ask(&waiting.next), Answered::Unavailable));
        assert!(asked.join().unwrap(), "it was neither acknowledged nor left waiting");
    });
    assert!(shim.hanging() > 0, "the disk hangs still");
    server.wait_for_log("the disk is not responding");
    let mut others = Client::connect(server.address);
    let second = Work::new(1, "other");
    let begun = now();
    for _ in 0..20 {
        assert!(matches!(others.ask(&second.next), Answered::Unavailable), "it would only wait as well");
    }
    assert!(begun.elapsed() < PATIENCE / 2, "twenty writes that are refused at once took {:?}", begun.elapsed());
    let ready = server.get("/readyz", &[]);
    assert_eq!(ready.status, 503);
    assert!(ready.text().contains("The disk is not responding"), "{}", ready.text());
    assert_eq!(others.get("/v1/items", AUDITOR).unwrap().status, 200, "reading goes on");
    shim.release();
    server.wait_for_log("the disk responds again");
    shim.disarm();
    // The one whose outcome nobody knew has one, and with its key it is the same for ever.
    let mut client = Client::connect(server.address);
    for work in [&first, &second] {
        let Answered::Done(done, _) = client.ask(&work.next) else { panic!("writing goes on") };
        acknowledged.push(done);
    }
    assert_eq!(server.get("/readyz", &[]).status, 200);
    let mut seen = Seen::default();
    seen.read(&server);
    seen.holds(&acknowledged);
    assert_eq!(seen.creations(), 2);
    server.stop().expect(0);
    is_whole(&installation);
}

#[test]
fn a_clock_without_a_date_lets_nobody_in_and_nothing_falls_over() {
    let installation = installation();
    let shim = Shim::new(&installation);
    for shift in [-80 * SECONDS_A_YEAR, 9_000 * SECONDS_A_YEAR] {
        shim.shift_clock(shift);
        let refused =
            crate::support::harness::finish(shim.command(&installation, &["serve", "--config", "pilot.toml"]), None);
        refused.expect(3).says(&["clock"]);
        shim.shift_clock(0);
        let server = shim.serve(&installation);
        let mut first = server.wire();
        first.request("GET /healthz HTTP/1.1", &["Connection: close"]);
        assert_eq!(first.response().map(|answer| answer.status), Some(200));
        // The HTTP library reads the clock whenever it turns to a connection, so none may be ending while the clock jumps.
        assert!(first.response().is_none(), "the service has closed it");
        shim.shift_clock(shift);
        let mut wire = server.wire();
        wire.request("GET /v1/session HTTP/1.1", &[&bearer(AUDITOR)]);
        assert!(wire.response().is_none(), "nothing can be dated");
        server.wait_for_log("before 1970 or after 9999");
        shim.shift_clock(0);
        let begun = now();
        // Whoever keeps the time may take a moment to say so.
        while !is_answered(&server) {
            assert!(begun.elapsed() < Duration::from_secs(30), "it does not come back");
        }
        let ended = server.stop().expect(0);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        is_whole(&installation);
    }
}
