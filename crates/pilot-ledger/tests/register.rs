//! The register of credentials over a real store: each event is in the ledger once, whatever became of earlier attempts.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use pilot_core::actor::Actor;
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ClockAccepted, Details};
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_ledger::clock::{Clock, ClockGuard, ClockKeeper, SinceBoot, Wall};
use pilot_ledger::register::{self, Automatic, Diary, KnownCredential, NamedCredential, Register, Wish};
use pilot_ledger::starts::{self, KnownCredentials, Starting};
use pilot_ledger::workflows::Workflows;
use pilot_store::sqlite::Sqlite;
use pilot_store::{Fact, Record, Situation, Store, Subject, Write};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;

const NOW: Time = Time::from_unix_micros(1_800_000_000_000_000);

fn named(actor: &str) -> NamedCredential {
    let id = format!("{actor}-1");
    let fingerprint = format!("{:0>16}", actor.bytes().map(|byte| format!("{byte:02x}")).collect::<String>());
    let named = json!({ "actor_id": actor, "credential_id": id, "fingerprint": fingerprint, "role": "auditor" });
    serde_json::from_value(named).unwrap()
}

fn known(named: &NamedCredential) -> KnownCredential {
    let actor = Some(Actor::new(named.actor_id.clone(), named.role));
    let fingerprint = Some(named.fingerprint.clone());
    KnownCredential { id: named.id().clone(), actor, fingerprint, forget_at: None }
}

fn open(directory: &TempDir) -> Arc<dyn Store> {
    Arc::new(Sqlite::open(&directory.path().join("pilot.db"), Arc::new(|| NOW)).unwrap())
}

/// A start with these credentials: its entry, and the register.
async fn start(store: &Arc<dyn Store>, directory: &Path, present: &[NamedCredential]) -> Arc<Register> {
    let present: BTreeSet<_> = present.iter().cloned().collect();
    let former = KnownCredentials::read(&**store).await.unwrap().former(&present);
    let outside = directory.join("revocations");
    let register = Register::open(&**store, &present, &former, true, (&outside, "log.example"), NOW).await.unwrap();
    let workflows = Workflows::load(None, &**store).await.unwrap();
    starts::write(
        &**store,
        &workflows,
        Starting { credentials: present, role_map: None, permit_keys: Vec::new(), adopt: false },
    )
    .await
    .unwrap();
    Arc::new(register)
}

/// Writes down what has happened.
async fn write_down(register: &Arc<Register>, store: &Arc<dyn Store>, directory: &Path) {
    let guard = Arc::new(ClockGuard::new(Wall::System, SinceBoot::System));
    let clock_keeper = Arc::new(ClockKeeper::new(guard, directory.join("clock.json")));
    let (register, store, clock) = (Arc::clone(register), Arc::clone(store), Clock::manual(NOW));
    let (done, is_done) = oneshot::channel();
    drop(done);
    register::run(Diary { register, store, clock, clock_keeper }, is_done).await;
}

async fn told(store: &dyn Store, kind: &str) -> Vec<String> {
    let entries = store.entries(0, 100).await.unwrap();
    let entries = entries.iter().map(|entry| serde_json::from_slice::<Value>(&entry.bytes).unwrap());
    let of_kind = entries.filter(|entry| entry["type"] == kind);
    of_kind.map(|entry| entry["details"]["credential"]["actor_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_revocation_whose_outcome_nobody_heard_of_is_found_in_the_ledger_and_blocks_nothing() {
    let directory = TempDir::new().unwrap();
    let (store, ana, ben) = (open(&directory), named("ana"), named("ben"));
    let register = start(&store, directory.path(), &[ana.clone(), ben.clone()]).await;
    // As a write leaves it that was committed after its caller was told that the disk is silent.
    let revocation = json!({ "credential_id": "ana-1", "actor_id": "ana", "role": "auditor",
        "revoked_at": NOW, "revoked_by": null, "entry": 7 });
    let end = json!({ "how": "revoked", "fingerprint": ana.fingerprint, "revocation": revocation });
    let value = [&[1], end.to_string().as_bytes()].concat();
    let facts = vec![Fact { name: "credential/ended/ana-1".into(), value: Some(value) }];
    let decide = move |situation: &Situation<'_>| {
        let details = Details::ClockAccepted(ClockAccepted { machine: NOW, operator: None });
        let entry = Entry::of_service(situation.index, situation.now, None, &details);
        Ok(Record { facts: facts.clone(), ..Record::of(entry) })
    };
    store.settle(Write::new(Subject::Ledger, None, decide)).await.unwrap();
    register::revoke_by_itself(&register, known(&ana), Automatic::TokenInUrl);
    register.note_use(&ben);
    write_down(&register, &store, directory.path()).await;
    assert_eq!(told(&*store, "credential.revoked").await, [""; 0], "it is in the ledger already");
    assert_eq!(told(&*store, "credential.first_used").await, ["ben"], "and what came after it is written");
    let wish = Wish { by: Actor::new("sol".parse().unwrap(), Role::SecurityAdmin), comment: None, key: None };
    let answer = register::revoke(&register, &store, &known(&ana), wish, NOW).await.unwrap();
    assert_eq!(answer.entry, 7, "who asks again learns what was done");
}

#[tokio::test]
async fn a_credential_that_came_back_and_went_again_is_refused_in_the_ledger_again() {
    let directory = TempDir::new().unwrap();
    let (store, ana, ben) = (open(&directory), named("ana"), named("ben"));
    for (present, refusals) in [
        (vec![ana.clone(), ben.clone()], 0),
        (vec![ben.clone()], 1),
        (vec![ana.clone(), ben.clone()], 1),
        (vec![ben], 2),
    ] {
        let register = start(&store, directory.path(), &present).await;
        if !present.contains(&ana) {
            register.note_refusal(&ana, "removed");
            register.note_refusal(&ana, "removed");
        }
        write_down(&register, &store, directory.path()).await;
        assert_eq!(told(&*store, "credential.refused").await.len(), refusals, "{present:?}");
    }
}
