//! What a service does besides moving items: credentials are used, refused and ended, checkpoints are signed and kept in
//! a second place, a witness compares them, and refused attempts are counted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use pilot_core::actor::Actor;
use pilot_core::credentials::CredentialId;
use pilot_core::entry::Entry;
use pilot_core::entry::details::Details;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_evidence::merkle::Hash;
use pilot_evidence::note::NoteKey;
use pilot_evidence::proof::check_consistency;
use pilot_ledger::clock::{Clock, ClockGuard, ClockKeeper, LedgerClock, SinceBoot, Wall};
use pilot_ledger::proofs;
use pilot_ledger::refusals::{self, Refusals};
use pilot_ledger::register::{self, Automatic, Diary, KnownCredential, NamedCredential, Register, Wish};
use pilot_ledger::second_place::SecondPlace;
use pilot_ledger::signer::Signer;
use pilot_ledger::starts::{self, KnownCredentials, LastStart, Starting};
use pilot_ledger::workflows::Workflows;
use pilot_setup::log_key::LogKey;
use pilot_store::Store;
use pilot_testing::{Dice, Scratch, scratch_in_memory};
use serde_json::json;
use tokio::sync::oneshot;

const DAY: i64 = 86_400 * 1_000_000;
const LOG: &str = "log.example";

/// What outlives every crash of the machine: files outside the database, and what people were told.
pub struct Outside {
    directory: Scratch,
    /// The guarded clock: somebody setting the machine's does not move it.
    clock: Arc<AtomicI64>,
    /// The newest checkpoint that the witness has seen.
    witnessed: (u64, Hash),
    /// Credentials whose end was acknowledged, or written down.
    ended: BTreeSet<CredentialId>,
    /// Refused attempts that the ledger counts.
    refused: u64,
}

impl Outside {
    pub fn new(start: Time) -> Outside {
        let clock = Arc::new(AtomicI64::new(start.unix_micros()));
        let witnessed = (0, Hash([0; 32]));
        Outside { directory: scratch_in_memory(), clock, witnessed, ended: BTreeSet::new(), refused: 0 }
    }

    pub fn pass(&self, seconds: u64) {
        self.clock.fetch_add(i64::try_from(seconds).unwrap() * 1_000_000, Ordering::SeqCst);
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.file(name)
    }

    fn clock(&self) -> Clock {
        Clock::Manual(Arc::clone(&self.clock))
    }

    fn keeper(&self) -> Arc<ClockKeeper> {
        let guard = Arc::new(ClockGuard::new(Wall::System, SinceBoot::System));
        Arc::new(ClockKeeper::new(guard, self.file("clock.json")))
    }
}

/// Everything that runs until the next crash.
pub struct House {
    register: Arc<Register>,
    signer: Arc<Signer>,
    refusals: Arc<Refusals>,
    present: BTreeSet<NamedCredential>,
    /// Refused attempts since they were last written down.
    gathered: u64,
}

/// Six credentials; every other one expires in the course of the week.
fn credentials(start: i64) -> Vec<NamedCredential> {
    let credential = |number: i64| {
        let expires_at = (number % 2 == 1).then(|| Time::from_unix_micros(start + number * DAY));
        let named = json!({
            "actor_id": format!("actor-{number}"), "credential_id": format!("credential-{number}"),
            "fingerprint": format!("{number:016x}"), "role": "auditor", "expires_at": expires_at,
        });
        serde_json::from_value(named).unwrap()
    };
    (0..6).map(credential).collect()
}

impl House {
    /// A start, with some of the credentials: others were added to the file or removed from it in the meantime.
    pub async fn open(store: &Arc<dyn Store>, workflows: &Workflows, outside: &Outside, dice: &mut Dice) -> House {
        let start: Time = super::START.parse().unwrap();
        let present: BTreeSet<_> = credentials(start.unix_micros()).into_iter().filter(|_| dice.chance(80)).collect();
        let place = SecondPlace::open(&outside.file("log.checkpoint"), false).unwrap();
        let was_kept = LastStart::read(&**store).await.unwrap().second_place;
        let key = LogKey::from(NoteKey::generate(LOG, &[7; 32]).unwrap());
        let signer = Signer::open(key, Arc::clone(store), place, was_kept).await;
        let signer = signer.unwrap_or_else(|refused| panic!("nothing was lost, and the signer says: {refused}"));
        let former = KnownCredentials::read(&**store).await.unwrap().former(&present);
        let (ended, now) = (outside.file("revocations"), outside.clock().now());
        let register = Register::open(&**store, &present, &former, true, (&ended, LOG), now).await.unwrap();
        for id in &outside.ended {
            assert!(register.end_of(id).is_some(), "{id} has ended, and a start has forgotten it");
        }
        let starting = Starting { credentials: present.clone(), role_map: None, permit_keys: Vec::new(), adopt: false };
        starts::write(&**store, workflows, starting).await.unwrap();
        House { register: Arc::new(register), signer, refusals: Arc::default(), present, gathered: 0 }
    }

    /// What is signed covers all that was acknowledged, and goes on from everything the witness has seen.
    pub async fn sign(&self, store: &Arc<dyn Store>, outside: &mut Outside) {
        let acknowledged = store.head().borrow().size();
        let signed = self.signer.checkpoint().await.unwrap();
        let (old, new) = (outside.witnessed, &signed.checkpoint);
        assert!(new.size >= acknowledged.max(old.0), "{} of {acknowledged} entries are signed", new.size);
        if new.size == old.0 {
            assert_eq!(new.root, old.1, "two roots of one size");
        } else if old.0 > 0 {
            let path = proofs::consistency(&**store, old.0, new.size).await.unwrap();
            check_consistency(old.0, old.1, new.size, new.root, &path).unwrap();
        }
        outside.witnessed = (new.size, new.root);
    }

    /// Somebody shows a credential, or ends one.
    pub async fn credential(&self, store: &Arc<dyn Store>, outside: &mut Outside, dice: &mut Dice) {
        let start: Time = super::START.parse().unwrap();
        let all = credentials(start.unix_micros());
        let named = dice.pick(&all);
        let known = KnownCredential {
            id: named.id().clone(),
            actor: Some(Actor::new(named.actor_id.clone(), named.role)),
            fingerprint: Some(named.fingerprint.clone()),
            forget_at: None,
        };
        match dice.below(10) {
            0 => {
                let by = Actor::new("sol".parse().unwrap(), Role::SecurityAdmin);
                let wish = Wish { by, comment: None, key: None };
                register::revoke(&self.register, store, &known, wish, outside.clock().now()).await.unwrap();
                outside.ended.insert(named.id().clone());
            }
            1 => register::revoke_by_itself(&self.register, known, Automatic::TokenInUrl),
            _ if self.register.end_of(named.id()).is_some() => self.register.note_refusal(named, "revoked"),
            // Nobody has looked at the time since.
            _ if named.expires_at.is_some_and(|expires_at| expires_at <= outside.clock().now()) => {
                self.register.expire(named);
                self.register.note_refusal(named, "expired");
            }
            _ if self.present.contains(named) => self.register.note_use(named),
            _ => self.register.note_refusal(named, "removed"),
        }
    }

    pub fn refuse(&mut self, actor: &Actor, code: &'static str, now: Time) {
        self.refusals.note(actor, None, "act", code, now);
        self.gathered += 1;
    }

    /// As at the end of a service: what has happened is written down.
    pub async fn write_down(&mut self, store: &Arc<dyn Store>, clock: &LedgerClock, outside: &mut Outside) {
        let ended = || {
            let (done, is_done) = oneshot::channel();
            drop(done);
            is_done
        };
        let (register, clock_keeper) = (Arc::clone(&self.register), outside.keeper());
        let diary = Diary { register, store: Arc::clone(store), clock: outside.clock(), clock_keeper };
        register::run(diary, ended()).await;
        for named in credentials(0) {
            outside.ended.extend(self.register.end_of(named.id()).map(|_| named.id().clone()));
        }
        let (refusals, store) = (Arc::clone(&self.refusals), Arc::clone(store));
        refusals::write_down(refusals, store, clock.clone(), outside.keeper(), ended()).await;
        outside.refused += std::mem::take(&mut self.gathered);
    }
}

/// Whatever happened, these things are true of the entries that are not about items.
pub fn invariants(entries: &[Entry], outside: &Outside) {
    let (mut used, mut expired, mut revoked) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut refused = 0;
    for entry in entries {
        match entry.details() {
            Some(Details::CredentialFirstUsed(one)) => {
                let fingerprint = one.credential.fingerprint;
                assert!(used.insert(fingerprint.clone()), "{fingerprint:?} was used for the first time twice");
            }
            Some(Details::CredentialExpired(one)) => {
                let id = one.credential.credential_id;
                assert!(!revoked.contains(&id) && expired.insert(id.clone()), "{id:?} has ended twice");
            }
            // Somebody may revoke one that has expired.
            Some(Details::CredentialRevoked(one)) => {
                let id = one.credential.credential_id;
                assert!(revoked.insert(id.clone()), "{id:?} was revoked twice");
            }
            Some(Details::AccessRefused(attempts)) => refused += attempts.count,
            _ => {}
        }
    }
    assert_eq!(refused, outside.refused, "refused attempts that were written down, and those that are counted");
    for id in &outside.ended {
        let id = Some(id.clone());
        assert!(expired.contains(&id) || revoked.contains(&id), "{id:?} has ended, and no entry says so");
    }
}
