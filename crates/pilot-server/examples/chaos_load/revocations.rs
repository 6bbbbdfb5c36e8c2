//! Credentials that are revoked one after the other, and those who go on trying them at every node.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

use crate::clock::{millis, pause};
use crate::journal::{Journal, NODES};
use crate::wire::{Connection, Request};

#[derive(Clone)]
pub(crate) struct Guest {
    pub(crate) name: String,
    pub(crate) token: String,
}

struct Revoked {
    guest: Guest,
    /// When the revocation was answered.
    at: u64,
}

#[derive(Default)]
pub(crate) struct Revocations {
    revoked: Mutex<Vec<Revoked>>,
}

impl Revocations {
    pub(crate) fn count(&self) -> usize {
        self.revoked.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The newest one, or each in turn.
    fn pick(&self, turn: usize) -> Option<(Guest, u64)> {
        let revoked = self.revoked.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = if turn.is_multiple_of(2) { revoked.last() } else { revoked.get(turn / 2 % revoked.len().max(1)) };
        chosen.map(|revoked| (revoked.guest.clone(), revoked.at))
    }

    /// One credential for each request.
    pub(crate) fn revoke_all(
        &self,
        journal: &Journal,
        addresses: &[SocketAddr],
        token: &str,
        guests: Vec<Guest>,
        requests: &Receiver<()>,
    ) {
        let mut connections: Vec<_> = addresses.iter().map(|address| Connection::to(*address)).collect();
        let ids = ids(&mut connections, token);
        for (number, guest) in guests.into_iter().enumerate() {
            if requests.recv().is_err() {
                return;
            }
            let Some(id) = ids.get(&guest.name) else {
                journal.violate(format!("{} has no credential", guest.name));
                continue;
            };
            let session = Request::get("/v1/session", &guest.token);
            let admits = |connection: &mut Connection| connection.ask(&session).is_ok_and(|it| it.status == 200);
            let was_valid = connections.iter_mut().map(admits).filter(|admits| *admits).count();
            let path = format!("/v1/credentials/{id}/revocation");
            let request = Request::post(&path, token, format!("revoke-{number}"), "{}".to_owned());
            for attempt in number.. {
                let Some(connection) = connections.get_mut(attempt % NODES) else { return };
                match connection.ask(&request) {
                    Ok(answer) if answer.status == 201 => break,
                    Ok(answer) if answer.status != 503 => {
                        journal.violate(format!("a revocation was answered {} {}", answer.status, answer.text()));
                        return;
                    }
                    _ if journal.is_stopping() => return,
                    _ => pause(200),
                }
            }
            // Before anyone could try it, it has to be clear that it worked.
            if was_valid == 0 && !journal.is_stopping() {
                eprintln!("load: no node could be asked about {} before it was revoked", guest.name);
            }
            let revoked = Revoked { guest, at: millis() };
            self.revoked.lock().unwrap_or_else(PoisonError::into_inner).push(revoked);
        }
    }

    /// Tries revoked credentials at one node without end.
    pub(crate) fn probe(&self, journal: &Journal, address: SocketAddr, node: usize) {
        let mut connection = Connection::to(address);
        for turn in 0.. {
            if journal.is_stopping() {
                return;
            }
            pause(25);
            let Some((guest, at)) = self.pick(turn) else { continue };
            let sent = millis();
            let Ok(answer) = connection.ask(&Request::get("/v1/session", &guest.token)) else { continue };
            if (200..300).contains(&answer.status) {
                journal.violate(format!(
                    "node{} admitted {}, revoked {} ms before it was asked: {}",
                    node + 1,
                    guest.name,
                    sent - at,
                    answer.text()
                ));
            }
        }
    }
}

/// The ids of the credentials, by actor.
fn ids(connections: &mut [Connection], token: &str) -> HashMap<String, String> {
    let request = Request::get("/v1/credentials", token);
    for _ in 0..20 {
        for connection in connections.iter_mut() {
            let Ok(answer) = connection.ask(&request) else { continue };
            let listed: Option<Value> = serde_json::from_slice(&answer.body).ok();
            let listed = listed.as_ref().and_then(|listed| listed.get("credentials")).and_then(Value::as_array);
            let text = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
            let pair = |value: &Value| Some((text(value, "actor_id")?, text(value, "credential_id")?));
            if let Some(listed) = listed {
                return listed.iter().filter_map(pair).collect();
            }
        }
        pause(500);
    }
    HashMap::new()
}
