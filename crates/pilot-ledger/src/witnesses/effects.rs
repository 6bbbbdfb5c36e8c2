//! No effect begins based on entries that only this service has seen.

use pilot_core::decide::Transition;
use pilot_core::item::Item;
use pilot_core::refusal::Refusal;
use pilot_core::workflow::{Definition, Kind};
use tokio::sync::watch;

/// Checked on the writing thread, where the item cannot change before the effect is recorded. An earlier check would be
/// worthless: entries that the effect depends on may be committed in between, or together with it.
#[derive(Clone)]
pub struct EffectGate(Option<Required>);

#[derive(Clone)]
struct Required {
    /// How many entries are under a checkpoint with enough cosignatures. It only grows.
    cosigned: watch::Receiver<u64>,
    /// The version of the item whose moves are known to be cosigned. Comments do not change the version, and an effect
    /// does not depend on them, so nobody can delay an effect by commenting again and again.
    version: Option<u64>,
}

impl EffectGate {
    /// For a log that requires no witness.
    pub const fn open() -> EffectGate {
        EffectGate(None)
    }

    pub(super) const fn requiring(cosigned: watch::Receiver<u64>) -> EffectGate {
        EffectGate(Some(Required { cosigned, version: None }))
    }

    /// Everything up to this version of the item has been cosigned.
    #[must_use]
    pub fn knowing(self, version: u64) -> EffectGate {
        EffectGate(self.0.map(|required| Required { version: Some(version), ..required }))
    }

    /// Whether the transition may be recorded. Only the beginning of an effect needs witnesses.
    pub fn check(
        &self,
        definition: &Definition,
        transition: &Transition,
        item: &Item,
        last_entry: Option<u64>,
    ) -> Result<(), Refusal> {
        let Some(required) = &self.0 else { return Ok(()) };
        let is_effect = definition.rules().state(transition.to()).is_some_and(|state| state.kind == Kind::Effect);
        if !is_effect || transition.from() == Some(transition.to()) || required.version == Some(item.version) {
            return Ok(());
        }
        // An effect cannot depend on an item without entries: require more than there can be.
        let entries = last_entry.map_or(u64::MAX, |index| index.saturating_add(1));
        if *required.cosigned.borrow() >= entries {
            return Ok(());
        }
        Err(Refusal::NotCosigned { entries, version: item.version })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use pilot_core::actor::Actor;
    use pilot_core::decide::{ActionRequest, Content, NewItem};
    use pilot_core::document::{ContentDigest, Document};
    use pilot_core::item::ItemId;
    use pilot_core::role::Role;
    use pilot_core::time::Time;
    use pilot_store::sqlite::Sqlite;
    use pilot_store::{Key, Outcome, Pending, Remembered, Store, Subject, Write};
    use pilot_testing::Scratch;
    use serde_json::{Value, json};

    use super::*;
    use crate::moves;
    use crate::workflows::Workflows;

    const NOW: Time = Time::from_unix_micros(1_800_000_000_000_000);

    struct Stage {
        _scratch: Scratch,
        store: Sqlite,
        workflows: Arc<Workflows>,
        cosigned: watch::Sender<u64>,
    }

    impl Stage {
        async fn set() -> Stage {
            let scratch = Scratch::new();
            let store = Sqlite::open(&scratch.file("pilot.db"), Arc::new(|| NOW)).unwrap();
            let workflows = Arc::new(Workflows::load(None, &store).await.unwrap());
            Stage { _scratch: scratch, store, workflows, cosigned: watch::Sender::new(0) }
        }

        /// An item that is waiting to be cleared.
        async fn approved(&self, number: u64) -> (ItemId, ContentDigest) {
            let payload = json!({"purpose": "p", "operation": "o", "risk": "low", "rollback_plan": "r"});
            let content = Document::content("title", &payload, "nonce");
            let id: ItemId = format!("01a1de8a-ca3b-7000-8000-{number:012x}").parse().unwrap();
            let definition = Arc::clone(self.workflows.named("controlled-operation").unwrap());
            let digest = content.digest.clone();
            let judged = Content::judge(&definition, "title", &payload, digest.clone());
            let new = NewItem { id: id.clone(), content: judged };
            let create = moves::create(definition, actor("ana", Role::Initiator), new, content);
            self.store.settle(Write::new(Subject::NewItem { count_open: None }, None, create)).await.unwrap();
            for (name, role, action) in [("ana", Role::Initiator, "submit"), ("ben", Role::Approver, "approve")] {
                let settled = self.act(&id, actor(name, role), request(action, &digest, None), None).await.unwrap();
                assert!(matches!(settled, Outcome::Recorded { .. }), "{settled:?}");
            }
            (id, digest)
        }

        fn act(&self, id: &ItemId, actor: Actor, request: ActionRequest, key: Option<Key>) -> Pending<'_, Outcome> {
            self.act_through(EffectGate::requiring(self.cosigned.subscribe()), id, actor, request, key)
        }

        fn act_through(
            &self,
            gate: EffectGate,
            id: &ItemId,
            actor: Actor,
            request: ActionRequest,
            key: Option<Key>,
        ) -> Pending<'_, Outcome> {
            let inputs = request.inputs.as_ref().map(|inputs| Document::inputs(inputs, "nonce"));
            let act = moves::act(Arc::clone(&self.workflows), actor, request, None, inputs, gate);
            self.store.settle(Write::new(Subject::Item(id.clone()), key, act))
        }

        fn clear(&self, id: &ItemId, digest: &ContentDigest) -> Pending<'_, Outcome> {
            let inputs = json!({"not_after": NOW.plus(Duration::from_hours(1))});
            self.act(id, actor("sol", Role::SecurityAdmin), request("clear", digest, Some(inputs)), None)
        }

        fn start(&self, id: &ItemId, digest: &ContentDigest, key: Option<Key>) -> Pending<'_, Outcome> {
            self.act(id, actor("eli", Role::Executor), request("start", digest, None), key)
        }

        fn size(&self) -> u64 {
            self.store.head().borrow().size()
        }

        /// A write that blocks until told to end: everything queued meanwhile is committed together.
        fn slow_write(&self) -> (mpsc::Sender<()>, Pending<'_, Outcome>) {
            let (end, ended) = mpsc::channel();
            let decide = move |_: &pilot_store::Situation<'_>| {
                let _ = ended.recv();
                Err(pilot_store::NoRecord::Nothing)
            };
            (end, self.store.settle(Write::new(Subject::Ledger, None, decide)))
        }
    }

    fn actor(name: &str, role: Role) -> Actor {
        Actor::new(name.parse().unwrap(), role)
    }

    fn request(action: &str, digest: &ContentDigest, inputs: Option<Value>) -> ActionRequest {
        let content_digest = Some(digest.to_string());
        ActionRequest { action: action.into(), content_digest, comment: None, inputs, if_match: None }
    }

    fn key(number: u8) -> Key {
        Key { scope: [number; 32], body: [number; 32] }
    }

    #[tokio::test]
    async fn an_effect_sent_while_its_clearance_is_being_committed_waits_for_witnesses() {
        let stage = Stage::set().await;
        for number in 0..20 {
            let (id, digest) = stage.approved(number).await;
            // Everything that could be seen before is cosigned.
            stage.cosigned.send_replace(stage.size());
            let (end, slow) = stage.slow_write();
            let cleared = stage.clear(&id, &digest);
            let started = stage.start(&id, &digest, (number % 2 == 0).then(|| key(u8::try_from(number).unwrap())));
            end.send(()).unwrap();
            slow.await.unwrap();
            assert!(matches!(cleared.await.unwrap(), Outcome::Recorded { .. }));
            let entries = stage.size();
            assert_eq!(started.await.unwrap(), Outcome::Refused(Refusal::NotCosigned { entries, version: 4 }));
            assert_eq!(stage.store.item(id).await.unwrap().unwrap().state, "cleared".into());
        }
    }

    #[tokio::test]
    async fn a_refused_effect_keeps_its_key_free_and_a_repeated_one_needs_no_witness() {
        let stage = Stage::set().await;
        let (id, digest) = stage.approved(1).await;
        assert!(matches!(stage.clear(&id, &digest).await.unwrap(), Outcome::Recorded { .. }));
        let refused = stage.start(&id, &digest, Some(key(1))).await.unwrap();
        assert!(matches!(refused, Outcome::Refused(Refusal::NotCosigned { .. })), "{refused:?}");
        stage.cosigned.send_replace(stage.size());
        let Outcome::Recorded { entry, .. } = stage.start(&id, &digest, Some(key(1))).await.unwrap() else {
            panic!("cosigned, and not recorded");
        };
        // Its own entry is not cosigned, and need not be: nothing begins a second time.
        let repeated = Outcome::Repeated(Remembered::Entry(entry.index));
        assert_eq!(stage.start(&id, &digest, Some(key(1))).await.unwrap(), repeated);
    }

    #[tokio::test]
    async fn comments_do_not_hold_up_an_effect_and_every_move_does() {
        let stage = Stage::set().await;
        let (id, digest) = stage.approved(1).await;
        stage.clear(&id, &digest).await.unwrap();
        let gate = EffectGate::requiring(stage.cosigned.subscribe()).knowing(4);
        let text = Document::comment("still there?", "nonce");
        let comment = moves::comment(Arc::clone(&stage.workflows), actor("amy", Role::Initiator), text, None);
        stage.store.settle(Write::new(Subject::Item(id.clone()), None, comment)).await.unwrap();
        let hold = ActionRequest { comment: Some("wait".into()), ..request("hold", &digest, None) };
        let release = ActionRequest { comment: Some("go".into()), ..request("release", &digest, None) };
        for asked in [hold, release] {
            let settled = stage.act(&id, actor("sol", Role::SecurityAdmin), asked, None).await.unwrap();
            assert!(matches!(settled, Outcome::Recorded { .. }), "{settled:?}");
        }
        let start = || request("start", &digest, None);
        let refused = stage.act_through(gate.clone(), &id, actor("eli", Role::Executor), start(), None).await.unwrap();
        let entries = stage.size();
        assert_eq!(refused, Outcome::Refused(Refusal::NotCosigned { entries, version: 6 }));
        let gate = gate.knowing(6);
        let started = stage.act_through(gate, &id, actor("eli", Role::Executor), start(), None).await.unwrap();
        assert!(matches!(started, Outcome::Recorded { .. }), "{started:?}");
        let beat = ActionRequest { content_digest: None, ..request("heartbeat", &digest, None) };
        let beaten = stage.act(&id, actor("eli", Role::Executor), beat, None).await.unwrap();
        assert!(matches!(beaten, Outcome::Recorded { .. }), "an effect under way waits for nobody: {beaten:?}");
    }
}
