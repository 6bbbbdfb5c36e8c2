//! An in-toto statement about an item's outcome, in a DSSE envelope: what pipelines can demand, and check with the tools
//! they have.

use data_encoding::{BASE64, HEXLOWER};
use pilot_core::actor::{Actor, ActorId};
use pilot_core::certain::Certain as _;
use pilot_core::document::ContentDigest;
use pilot_core::item::{ItemId, WorkflowRef};
use pilot_core::time::Time;
use pilot_core::workflow::Name;
use serde::{Deserialize, Serialize};

use crate::note::{NoteError, NoteKey, VerifierKey};

pub const STATEMENT: &str = "https://in-toto.io/Statement/v1";
pub const PREDICATE: &str = "urn:pilot:outcome:v1";
const PAYLOAD: &str = "application/vnd.in-toto+json";
/// The media type of an envelope.
pub const MEDIA_TYPE: &str = "application/vnd.dsse.envelope.v1+json";

/// What is signed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    #[serde(rename = "_type")]
    pub r#type: String,
    /// The item's content first, then the artifacts of its operation if that has begun.
    pub subject: Vec<Subject>,
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    pub predicate: Outcome,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    pub name: String,
    pub digest: Sha256Digest,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sha256Digest {
    /// 64 lowercase hexadecimal characters.
    pub sha256: String,
}

/// What the service knows about the item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub item: ItemId,
    pub workflow: WorkflowRef,
    pub state: Name,
    /// Nothing can follow.
    #[serde(rename = "final")]
    pub is_final: bool,
    pub held: bool,
    pub version: u64,
    pub content_digest: ContentDigest,
    /// When it came into this state.
    pub entered_at: Time,
    /// Everyone who acted on it, in the role they acted in.
    pub people: Vec<Actor>,
    /// Those on this content that stand.
    pub votes: Vec<Voted>,
    pub attested_at: Time,
    pub log: LogHead,
}

/// Who voted for what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Voted {
    pub actor_id: ActorId,
    pub action: Name,
}

/// The log that has the entries about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogHead {
    pub origin: String,
    pub size: u64,
    /// In base64.
    pub root: String,
}

impl Statement {
    /// `artifacts` have a name and a SHA-256 in hexadecimal.
    pub fn new(outcome: Outcome, artifacts: impl IntoIterator<Item = (String, String)>) -> Statement {
        let content = (format!("item/{}", outcome.item), bare(&outcome.content_digest).to_owned());
        let subject = |(name, sha256)| Subject { name, digest: Sha256Digest { sha256 } };
        Statement {
            r#type: STATEMENT.to_owned(),
            subject: std::iter::once(content).chain(artifacts).map(subject).collect(),
            predicate_type: PREDICATE.to_owned(),
            predicate: outcome,
        }
    }
}

fn bare(digest: &ContentDigest) -> &str {
    digest.as_str().trim_start_matches("sha256:")
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    /// In base64.
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: String,
    sig: String,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum AttestationError {
    #[error("this is not a DSSE envelope with an in-toto statement: {0}")]
    Format(String),
    #[error("it has no valid signature by {0}")]
    Unsigned(String),
    #[error("it is a statement of another kind: {0}")]
    Kind(String),
}

/// What is signed in place of the payload, so that it cannot be mistaken for anything else (DSSE's PAE). A note ends with
/// a line break, and this does not: the log's key signs both.
fn encoded(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn key_id(key: &VerifierKey) -> String {
    format!("{}+{}", key.name, HEXLOWER.encode(&key.id))
}

/// A statement as it will be sent, once it is signed.
pub struct Unsigned {
    payload: Vec<u8>,
}

impl Unsigned {
    pub fn new(statement: &Statement) -> serde_json::Result<Unsigned> {
        Ok(Unsigned { payload: serde_json::to_vec(statement)? })
    }

    /// What the log's key has to sign.
    pub fn message(&self) -> Vec<u8> {
        encoded(PAYLOAD, &self.payload)
    }

    /// The attestation, if this key's private half has signed [`Unsigned::message`].
    pub fn signed(self, key: &VerifierKey, signature: &[u8; 64]) -> Result<Envelope, NoteError> {
        key.check(&self.message(), signature)?;
        Ok(Envelope {
            payload_type: PAYLOAD.to_owned(),
            payload: BASE64.encode(&self.payload),
            signatures: vec![Signature { keyid: key_id(key), sig: BASE64.encode(signature) }],
        })
    }
}

impl Envelope {
    pub fn sign(statement: &Statement, key: &NoteKey) -> serde_json::Result<Envelope> {
        let unsigned = Unsigned::new(statement)?;
        let signature = key.sign_bytes(&unsigned.message());
        Ok(unsigned.signed(&key.verifier(), &signature).certain("a key can check its own signature"))
    }

    /// The statement, if this key has signed it.
    pub fn open(bytes: &[u8], key: &VerifierKey) -> Result<Statement, AttestationError> {
        let format = |what: String| AttestationError::Format(what);
        let envelope: Envelope = serde_json::from_slice(bytes).map_err(|error| format(error.to_string()))?;
        let payload = BASE64.decode(envelope.payload.as_bytes()).map_err(|error| format(error.to_string()))?;
        let message = encoded(&envelope.payload_type, &payload);
        // The id is a hint: the signature decides.
        let is_signed =
            |line: &Signature| BASE64.decode(line.sig.as_bytes()).is_ok_and(|sig| key.check(&message, &sig).is_ok());
        if !envelope.signatures.iter().any(is_signed) {
            return Err(AttestationError::Unsigned(key_id(key)));
        }
        if envelope.payload_type != PAYLOAD {
            return Err(AttestationError::Kind(envelope.payload_type));
        }
        let statement: Statement = serde_json::from_slice(&payload).map_err(|error| format(error.to_string()))?;
        if statement.r#type != STATEMENT || statement.predicate_type != PREDICATE {
            return Err(AttestationError::Kind(format!("{} {}", statement.r#type, statement.predicate_type)));
        }
        Ok(statement)
    }
}

#[cfg(test)]
mod tests {
    use pilot_core::role::Role;

    use super::*;

    fn key(seed: u8) -> NoteKey {
        NoteKey::generate("log.example.org", &[seed; 32]).unwrap()
    }

    fn statement() -> Statement {
        let digest = ContentDigest::of_bytes(b"content");
        let actor = |id: &str, role| Actor::new(id.parse().unwrap(), role);
        let outcome = Outcome {
            item: "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap(),
            workflow: WorkflowRef { name: "controlled-operation".into(), version: 2, digest: "sha256:0".into() },
            state: "closed".into(),
            is_final: true,
            held: false,
            version: 9,
            content_digest: digest,
            entered_at: Time::EPOCH,
            people: vec![actor("ana", Role::Initiator), actor("ben", Role::Approver)],
            votes: vec![Voted { actor_id: "ben".parse().unwrap(), action: "approve".into() }],
            attested_at: Time::EPOCH,
            log: LogHead { origin: "log.example.org".into(), size: 10, root: "AA==".into() },
        };
        Statement::new(outcome, [("app.tar".to_owned(), "0".repeat(64))])
    }

    #[test]
    fn the_message_that_is_signed_is_that_of_the_specification() {
        assert_eq!(
            encoded("http://example.com/HelloWorld", b"hello world"),
            b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
        );
    }

    #[test]
    fn an_envelope_opens_with_the_key_that_signed_it_and_with_no_changed_byte() {
        let bytes = serde_json::to_vec(&Envelope::sign(&statement(), &key(1)).unwrap()).unwrap();
        assert_eq!(Envelope::open(&bytes, &key(1).verifier()), Ok(statement()));
        assert_eq!(
            Envelope::open(&bytes, &key(2).verifier()).unwrap_err().to_string(),
            format!("it has no valid signature by {}", key_id(&key(2).verifier()))
        );
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let opened = Envelope::open(&changed, &key(1).verifier());
            // Only the hint at the key is not signed.
            assert!(opened.is_err() || opened == Ok(statement()), "byte {at}");
        }
    }

    #[test]
    fn a_note_of_the_log_is_no_attestation_and_another_payload_is_no_statement() {
        let text = "log.example.org\n1\nAA==\n";
        let other = |payload_type: &str, payload: &[u8]| {
            let sig = BASE64.encode(&key(1).sign_bytes(&encoded(payload_type, payload)));
            let signatures = vec![Signature { keyid: String::new(), sig }];
            let envelope =
                Envelope { payload_type: payload_type.to_owned(), payload: BASE64.encode(payload), signatures };
            Envelope::open(&serde_json::to_vec(&envelope).unwrap(), &key(1).verifier()).unwrap_err().to_string()
        };
        assert!(other("text/plain", text.as_bytes()).contains("another kind: text/plain"));
        assert!(other(PAYLOAD, b"{}").contains("not a DSSE envelope with an in-toto statement"));
    }
}
