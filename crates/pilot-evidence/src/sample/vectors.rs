//! Test vectors for those who write a verifier: bundles that hold and bundles that must not, each with the verdict on it.
//! They are files under docs/audit/vectors, and always the same.

use pilot_core::document::{ContentDigest, Document};
use pilot_core::entry::Entry;
use pilot_core::entry::details::{ChangedCredentials, Changes, Details, Named};
use pilot_core::role::Role;
use pilot_core::time::Time;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::forgeries::{Forgery, STARTED, approved_by_machine, forgeries, proposed_by_machine};
use super::{CAST, Ledger, actor, as_role, cosigned, head, key, payload, small_ledger};
use crate::bundle::redact::{Redaction, redact};
use crate::bundle::{Parts, assemble};
use crate::cosignature::CosignerKey;
use crate::timestamp::sample_reply;
use crate::verify::{Trust, verify};

pub struct Vector {
    pub name: String,
    /// What it shows, in a sentence.
    pub what: String,
    pub bundle: Vec<u8>,
    /// Whether its reader requires the witness's cosignature.
    is_witnessed: bool,
}

fn witness() -> CosignerKey {
    CosignerKey::generate("witness.example.org", &[9; 32]).unwrap()
}

fn vector(name: &str, what: &str, bundle: Vec<u8>) -> Vector {
    Vector { name: name.to_owned(), what: what.to_owned(), bundle, is_witnessed: false }
}

fn seconds(at: Time) -> u64 {
    u64::try_from(at.unix_micros() / 1_000_000).unwrap()
}

/// With the witness's cosignature, so many seconds after the ledger's last entry.
fn witnessed(name: &str, what: &str, ledger: &Ledger, parts: Parts, after: i64) -> Vector {
    let checkpoint = cosigned(&parts.checkpoint, &witness(), seconds(ledger.now).saturating_add_signed(after));
    let bundle = assemble(&Parts { checkpoint, ..parts }, &key()).unwrap();
    Vector { is_witnessed: true, ..vector(name, what, bundle) }
}

/// Everything, in the order of the index.
pub fn vectors() -> Vec<Vector> {
    let mut all = that_hold();
    all.extend(that_hold_in_part());
    for (name, rule, forgery) in forgeries() {
        let slug = format!("forged-{}", name.replace(' ', "-").replace('\'', ""));
        let what = format!("a move that the rules refuse, signed with the log's own key: {name} [{rule}]");
        all.push(vector(&slug, &what, forgery.ledger.period_bundle(0, forgery.ledger.size())));
    }
    all.extend(with_forged_documents());
    all.extend(with_forged_files());
    all.extend(with_forged_times());
    all
}

fn that_hold() -> Vec<Vector> {
    let ledger = small_ledger();
    let (size, first) = (ledger.size(), ledger.items.keys().next().unwrap());
    let begun = ledger.read(8).at;
    let dated = Parts { kept: vec![ledger.kept(9, &witness(), seconds(begun))], ..ledger.period_parts(0, size) };
    let bare = head(&ledger.leaves(), 9);
    let reply = sample_reply(bare.as_bytes(), begun);
    let stamped = Parts { timestamps: vec![(9, bare, reply)], ..ledger.period_parts(0, size) };
    let emergency = Forgery::emergency().ledger;
    let proposed = proposed_by_machine().all(&[("bea", "approve"), ("sam", "clear"), ("eve", "start")]).ledger;
    let approved = approved_by_machine().all(&[("bea", "approve"), ("sam", "clear")]).ledger;
    vec![
        vector("item", "everything about one item, each entry with its own proof", ledger.item_bundle(first)),
        vector("period", "a whole ledger", ledger.period_bundle(0, size)),
        vector(
            "period-in-the-middle",
            "some entries, and what proves their neighbours and starts",
            ledger.period_bundle(9, 15),
        ),
        vector(
            "emergency",
            "an operation without a quorum, not ratified yet",
            emergency.period_bundle(0, emergency.size()),
        ),
        vector(
            "machine-proposes",
            "proposed by a machine, and decided by people who do not operate it",
            proposed.period_bundle(0, proposed.size()),
        ),
        vector(
            "machine-approves",
            "two approvals, one of them by a machine, whose operator gave none",
            approved.period_bundle(0, approved.size()),
        ),
        vector(
            "timestamped",
            "with a timestamp, which no authority has signed that a reader could trust",
            assemble(&stamped, &key()).unwrap(),
        ),
        witnessed(
            "cosigned",
            "a whole ledger that a witness saw after its end",
            &ledger,
            ledger.period_parts(0, size),
            1,
        ),
        witnessed("dated", "with an older cosigned checkpoint, which bounds times on both sides", &ledger, dated, 1),
    ]
}

fn that_hold_in_part() -> Vec<Vector> {
    let ledger = small_ledger();
    let size = ledger.size();
    let whole = ledger.period_bundle(0, size);
    let (bare, _) = redact(&whole, &Redaction::All).unwrap();
    let one = ledger.documents.keys().next().cloned().unwrap();
    let (smaller, _) = redact(&whole, &Redaction::Documents([one].into())).unwrap();
    vec![
        vector("without-documents", "every document was left out afterwards", bare),
        vector("without-one-document", "one document was left out afterwards", smaller),
        witnessed(
            "end-not-seen",
            "the witness saw the log before the period was over",
            &ledger,
            ledger.period_parts(0, size),
            -60,
        ),
    ]
}

fn with_forged_documents() -> Vec<Vector> {
    let content = |name: &str, what: &str, write: fn(&str) -> String| {
        let mut ledger = Ledger::default();
        let id = ledger.create("controlled-operation", &actor("ana"), "Rotate", payload("high")).unwrap();
        let (digest, written) = ledger.documents.pop_first().unwrap();
        let bytes = write(std::str::from_utf8(&written).unwrap()).into_bytes();
        let forged = ContentDigest::of_bytes(&bytes);
        let entry = String::from_utf8(ledger.entries[1].clone()).unwrap();
        ledger.entries[1] = entry.replace(digest.as_str(), forged.as_str()).into_bytes();
        ledger.documents.insert(forged, bytes);
        vector(name, what, ledger.item_bundle(&id))
    };
    vec![
        content("document-member-twice", "a content with two values for one member", |text| {
            text.replace("\"risk\":\"high\"", "\"risk\":\"high\",\"risk\":\"low\"")
        }),
        content("document-with-spaces", "a content that is not canonical", |text| text.replace("\":", "\": ")),
        content("document-member-unknown", "a content with a member that no content has", |text| {
            text.replace("{\"nonce\"", "{\"also\":1,\"nonce\"")
        }),
        content("document-short-nonce", "a nonce that is too short", |text| {
            text.replace("00000000000000000000000000000001", "1")
        }),
        content("document-not-json", "a content that is not JSON", |_| "approved, of course".to_owned()),
        timer_that_speaks(),
    ]
}

fn timer_that_speaks() -> Vector {
    let mut ledger = small_ledger();
    let words = Document::comment("and everyone agreed", &"0".repeat(32));
    let entry = Entry { comment: Some(words.digest.clone()), ..ledger.read(ledger.size() - 1) };
    let id = entry.item.clone().unwrap();
    *ledger.entries.last_mut().unwrap() = entry.to_bytes().unwrap();
    ledger.documents.insert(words.digest, words.bytes);
    vector("timer-with-a-comment", "a timer that says something", ledger.item_bundle(&id))
}

fn with_forged_files() -> Vec<Vector> {
    let ledger = small_ledger();
    let (size, first) = (ledger.size(), ledger.items.keys().next().unwrap());
    let item = ledger.item_parts(first);
    let of = |parts: &Parts| assemble(parts, &key()).unwrap();
    let without_start = Parts {
        entries: item.entries.get(1..).unwrap().to_vec(),
        proofs: item.proofs.get(1..).unwrap().to_vec(),
        ..item.clone()
    };
    let mut shorter = item.clone();
    shorter.entries.remove(4);
    shorter.proofs.remove(4);
    let middle = ledger.period_parts(9, 15);
    let mut narrow = middle.clone();
    narrow.entries.pop();
    let mut other_proof = item.clone();
    other_proof.proofs[1].1[0].0[0] ^= 1;
    let mut flipped = of(&item);
    let at = flipped.len() / 2;
    flipped[at] ^= 1;
    let mut cut = of(&item);
    cut.truncate(at);
    let stranger = {
        let mut ledger = Forgery::new("low").ledger;
        let id = ledger.items.keys().next().cloned().unwrap();
        ledger.act(&id, &as_role("mal", Role::Approver), "approve", "", Value::Null).unwrap();
        ledger
    };
    let removed = {
        let mut ledger = Forgery::new("low").all(&STARTED).ledger;
        let id = ledger.items.keys().next().cloned().unwrap();
        let number = CAST.iter().position(|(name, _)| *name == "eve").unwrap() + 1;
        let eve = Named {
            actor_id: Some("eve".parse().unwrap()),
            role: Some(Role::Executor),
            credential_id: None,
            fingerprint: Some(format!("{number:016x}").parse().unwrap()),
            expires_at: None,
        };
        let credentials = Changes { removed: vec![eve], ..Changes::default() };
        let details = Details::CredentialsChanged(ChangedCredentials { credentials });
        ledger.append(&Entry::of_service(ledger.size(), ledger.now, None, &details));
        ledger.pass(120);
        ledger.act(&id, &actor("eve"), "succeed", "", Value::Null).unwrap();
        ledger
    };
    vec![
        vector("start-withheld", "without the start of the service that was in force", of(&without_start)),
        vector("version-withheld", "an entry in the middle of an item's history is missing", of(&shorter)),
        vector("neighbour-withheld", "the entry after the period is missing", of(&narrow)),
        vector("proof-of-another", "a proof with a changed hash", of(&other_proof)),
        vector("flipped-bit", "one bit in the middle is different", flipped),
        vector("cut-off", "the second half is missing", cut),
        vector("stranger", "someone acts whom the role map does not list", stranger.period_bundle(0, stranger.size())),
        vector(
            "credential-removed",
            "someone acts two minutes after their credential was removed",
            removed.period_bundle(0, removed.size()),
        ),
        vector("no-entries", "a period in which nothing happened", ledger.period_bundle(size, size)),
    ]
}

fn with_forged_times() -> Vec<Vector> {
    let ledger = small_ledger();
    let size = ledger.size();
    let far = Ledger::at("2099-01-01T00:00:00Z".parse().unwrap());
    let parts = Parts {
        checkpoint: cosigned(&far.period_parts(0, 1).checkpoint, &witness(), 1_794_733_200),
        ..far.period_parts(0, 1)
    };
    let dated_2099 = Vector {
        is_witnessed: true,
        ..vector("dated-2099", "an entry is dated long after the witness saw it", assemble(&parts, &key()).unwrap())
    };
    let later = seconds(ledger.read(8).at) + 7_200;
    let backdated = Parts { kept: vec![ledger.kept(9, &witness(), later)], ..ledger.period_parts(0, size) };
    let mut other = Ledger::default();
    other.whole_operation("Something else", "low");
    let fork = Parts { kept: vec![other.kept(5, &witness(), seconds(ledger.now))], ..ledger.period_parts(0, size) };
    vec![
        dated_2099,
        witnessed(
            "backdated",
            "entries are dated before the witness saw a log without them",
            &ledger,
            backdated,
            7_200,
        ),
        witnessed("fork", "an older checkpoint of another history", &ledger, fork, 1),
        vector("not-cosigned", "the witness that is required has not cosigned", ledger.period_bundle(0, size))
            .requiring(),
    ]
}

impl Vector {
    fn requiring(self) -> Vector {
        Vector { is_witnessed: true, ..self }
    }

    pub fn file(&self) -> String {
        format!("{}.zip", self.name)
    }

    /// What a verifier must find, as one member of the index.
    pub fn answer(&self) -> Value {
        let witnesses = if self.is_witnessed { vec![witness().verifier()] } else { Vec::new() };
        let keys: Vec<_> = witnesses.iter().map(ToString::to_string).collect();
        let needed = witnesses.len();
        let verdict = verify(&self.bundle, &Trust::witnessed(key().verifier(), witnesses, needed));
        let faults: Vec<_> =
            verdict.faults.iter().map(|fault| json!({"rule": fault.rule, "entry": fault.entry})).collect();
        json!({
            "file": self.file(),
            "sha256": data_encoding::HEXLOWER.encode(&Sha256::digest(&self.bundle)),
            "what": self.what,
            "witness_keys": keys,
            "witnesses": needed,
            "exit_code": verdict.exit_code(false),
            "verdict": verdict.verdict,
            "gaps": verdict.gaps,
            "faults": faults,
        })
    }
}

/// The index of all of them, as JSON.
pub fn index(vectors: &[Vector]) -> String {
    let answers: Vec<_> = vectors.iter().map(Vector::answer).collect();
    let index = json!({ "key": key().verifier().to_string(), "vectors": answers });
    serde_json::to_string_pretty(&index).unwrap() + "\n"
}
