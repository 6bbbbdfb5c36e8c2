//! `kill -9`, again and again, while eight people write.

use std::collections::HashSet;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use pilot_testing::asked;

use crate::durability::client::{AUDITOR, Acknowledged, Answered, Client, WRITERS, Work, installation};
use crate::durability::ledger::{Seen, is_whole};
use crate::support::harness::now;

const ROUNDS: usize = 30;

/// How many times longer than usual; given from outside for long runs.
pub fn rounds(usual: usize) -> usize {
    asked("PILOT_LONG").map_or(usual, |rounds| usize::try_from(rounds).unwrap())
}

#[test]
fn nothing_acknowledged_is_lost_when_the_service_is_killed_again_and_again() {
    let installation = installation();
    let seed = u64::from(std::process::id());
    println!("seed {seed}");
    let mut work: Vec<_> = (0..WRITERS).map(|number| Work::new(number, &format!("w{number}"))).collect();
    let (mut audit, mut acknowledged, mut starts) = (Seen::default(), Vec::new(), Vec::new());
    let mut unknown = 0;
    for round in 0..rounds(ROUNDS) {
        let started = now();
        let server = installation.serve();
        starts.push(started.elapsed().as_millis());
        audit.read(&server);
        audit.holds(&acknowledged);
        // After so many answers the service is gone: each of the others is somewhere in the middle of a request.
        let enough = 40 + (seed.wrapping_mul(0x9e37_79b9).rotate_left(u32::try_from(round % 64).unwrap()) % 160);
        let (answers, answered) = channel();
        let address = server.address;
        let writers: Vec<_> = work
            .drain(..)
            .map(|work| {
                let answers = answers.clone();
                thread::spawn(move || write(work, Client::connect(address), &answers))
            })
            .collect();
        let watcher = thread::spawn(move || watch(Client::connect(address)));
        drop(answers);
        let mut heard: Vec<Acknowledged> = answered.iter().take(usize::try_from(enough).unwrap()).collect();
        // Its last act is SIGKILL.
        drop(server);
        heard.extend(answered.iter());
        acknowledged.extend(heard);
        work = writers.into_iter().map(|writer| writer.join().unwrap()).collect();
        unknown += work.len();
        watcher.join().unwrap().iter().for_each(|note| audit.remember(note));
    }
    let server = installation.serve();
    // Whatever was under way is asked for once more with its key: then each request has exactly one outcome.
    let mut client = Client::connect(server.address);
    for work in &work {
        let Answered::Done(done, _) = client.ask(&work.next) else { panic!("{:?}", work.next) };
        acknowledged.push(done);
    }
    audit.read(&server);
    audit.holds(&acknowledged);
    let distinct: HashSet<_> = acknowledged.iter().collect();
    assert_eq!(distinct.len(), acknowledged.len(), "an answer was given to two requests");
    let creations = acknowledged.iter().filter(|done| done.version == 1).count();
    assert_eq!(audit.creations(), creations, "an item was created twice, or by nobody");
    server.stop().expect(0);
    is_whole(&installation);
    starts.sort_unstable();
    let usual = starts[starts.len() / 2];
    println!(
        "{} rounds, {} entries, {} acknowledged, {unknown} cut off, a start usually took {usual} ms",
        rounds(ROUNDS),
        audit.size(),
        acknowledged.len()
    );
    // The machine may be busy with something else once or twice, but not every time.
    assert!(usual <= 2_000, "a start usually took {usual} ms");
}

fn write(mut work: Work, mut client: Client, answers: &Sender<Acknowledged>) -> Work {
    loop {
        match client.ask(&work.next) {
            Answered::Done(done, body) => {
                work.advance(&done, &body);
                let _ = answers.send(done);
            }
            // A disk of this machine that is slow to answer: asked again, with the same key.
            Answered::Unavailable => {}
            Answered::Unknown => return work,
        }
    }
}

/// Every checkpoint that was served, until the service is gone.
fn watch(mut client: Client) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    while let Some(response) = client.get("/v1/log/checkpoint", AUDITOR) {
        let note = String::from_utf8(response.body).unwrap();
        if notes.last() != Some(&note) {
            notes.push(note);
        }
    }
    notes
}
