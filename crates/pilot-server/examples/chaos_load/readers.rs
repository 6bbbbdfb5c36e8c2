//! Readers of the live feed and of checkpoints.

use std::net::SocketAddr;
use std::sync::Arc;

use pilot_evidence::merkle::Hash;

use crate::clock::pause;
use crate::journal::{Journal, NODES};
use crate::wire::{Connection, Feed, Request};

/// Refusals in a row of a place in the ledger that was shown before.
const REFUSED_MAX: u32 = 5;

/// Reads the feed from the first entry on, at one node until the feed ends, and then at the next.
pub(crate) fn follow(journal: &Arc<Journal>, addresses: &[SocketAddr], token: &str, first: usize) {
    let (reader, mut last, mut refused) = (journal.reader(), None, 0);
    for node in (0..NODES).cycle().skip(first) {
        if journal.is_stopping() {
            return;
        }
        let Some(address) = addresses.get(node) else { return };
        match Feed::open(*address, token, last) {
            Ok(Ok(mut feed)) => {
                refused = 0;
                read(journal, &mut feed, (reader, node), &mut last);
            }
            // It does not know the entry that another node has shown.
            Ok(Err(422)) => {
                refused += 1;
                if refused == REFUSED_MAX {
                    let shown = last.unwrap_or_default();
                    journal.violate(format!("a reader was shown entry {shown}, which the nodes do not know"));
                }
            }
            Ok(Err(503)) | Err(_) => {}
            Ok(Err(status)) => journal.violate(format!("node{} refused a feed with {status}", node + 1)),
        }
        pause(200);
    }
}

fn read(journal: &Journal, feed: &mut Feed, (reader, node): (usize, usize), last: &mut Option<u64>) {
    while !journal.is_stopping() {
        let Ok(Some(event)) = feed.next() else { return };
        let expected = last.map_or(0, |last| last + 1);
        if event.id != expected {
            journal.violate(format!("node{} sent event {} where {expected} follows", node + 1, event.id));
            return;
        }
        *last = Some(event.id);
        journal.received(reader, Hash::of_leaf(&event.data));
    }
}

pub(crate) fn poll_checkpoints(journal: &Arc<Journal>, address: SocketAddr, token: &str, node: usize) {
    let mut connection = Connection::to(address);
    let request = Request::get("/v1/log/checkpoint", token);
    while !journal.is_stopping() {
        if let Ok(answer) = connection.ask(&request)
            && answer.status == 200
        {
            match read_checkpoint(&answer.text()) {
                Some((size, root)) => journal.served(size, root, node),
                None => journal.violate(format!("node{} served no checkpoint: {}", node + 1, answer.text())),
            }
        }
        pause(300);
    }
}

/// Size and root.
pub(crate) fn read_checkpoint(note: &str) -> Option<(u64, String)> {
    let mut lines = note.lines().skip(1);
    Some((lines.next()?.parse().ok()?, lines.next()?.to_owned()))
}
