//! C2SP tlog-policy: which logs are known, which witnesses, and how many of them must have cosigned a checkpoint.

use crate::cosignature::CosignerVerifier;
use crate::note::{KeyError, Note, NoteError, SIGNATURES_MAX, VerifierKey};

/// More than the specification asks an implementation to support, which is 32 of each. A checkpoint cannot have more
/// signatures anyway.
const LINES_OF_A_KIND_MAX: usize = SIGNATURES_MAX;
/// The longest policy file that is read.
pub const POLICY_BYTES_MAX: usize = 64 * 1024;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("line {line}: {what}")]
pub struct PolicyError {
    pub line: usize,
    pub what: PolicyFault,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PolicyFault {
    #[error("the file is longer than {POLICY_BYTES_MAX} bytes")]
    TooLong,
    #[error("it contains a control character; only tabs and line feeds are allowed (a file from Windows has others)")]
    Character,
    #[error("it begins with an unknown word; the words are log, witness, group and quorum")]
    Keyword,
    #[error("write it as: {0}")]
    Form(&'static str),
    #[error("{0}")]
    Key(#[from] KeyError),
    #[error("this public key is already in the policy; each counts once")]
    SameKey,
    #[error("this name is already in use, or is the reserved word none")]
    SameName,
    #[error("no witness or group above this line has the name {0}")]
    NoSuchName(String),
    #[error("{0} is already a member of a group; a name can be a member once")]
    SameMember(String),
    #[error("the threshold must be all, any, or a number from 1 to the number of members")]
    Threshold,
    #[error("there are more than {LINES_OF_A_KIND_MAX} lines of this kind")]
    TooMany,
    #[error("there is a second quorum line")]
    SecondQuorum,
    #[error("there is no quorum line; write `quorum NAME`, or `quorum none` if no witness is required")]
    NoQuorum,
    #[error("there is no log line; write `log KEY` with the line that `pilot log key` prints")]
    NoLog,
}

/// Something with a name that can be asked whether it has witnessed a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Member {
    /// The number of a witness.
    Witness(usize),
    /// How many of these members are needed. They come before it, so groups form no circle.
    Group { needed: usize, of: Vec<usize> },
}

/// Who must have witnessed a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quorum {
    Nobody,
    Member(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    logs: Vec<VerifierKey>,
    witnesses: Vec<CosignerVerifier>,
    /// Names are bytes: the specification gives them no encoding.
    members: Vec<(Vec<u8>, Member)>,
    quorum: Quorum,
}

impl Policy {
    /// A policy for verifying: it must know a log.
    pub fn parse(bytes: &[u8]) -> Result<Policy, PolicyError> {
        let lines = bytes.strip_suffix(b"\n").unwrap_or(bytes).split(|byte| *byte == b'\n').count();
        let whole = |what| PolicyError { line: lines, what };
        if bytes.len() > POLICY_BYTES_MAX {
            return Err(whole(PolicyFault::TooLong));
        }
        let mut reader = Reader::default();
        for (line, text) in (1..).zip(bytes.split(|byte| *byte == b'\n')) {
            reader.line(text).map_err(|what| PolicyError { line, what })?;
        }
        let Reader { logs, witnesses, members, quorum, .. } = reader;
        let quorum = quorum.ok_or_else(|| whole(PolicyFault::NoQuorum))?;
        if logs.is_empty() {
            return Err(whole(PolicyFault::NoLog));
        }
        Ok(Policy { logs, witnesses, members, quorum })
    }

    /// The policy that one log's checkpoints need this many of these witnesses, each of them counting once.
    pub fn of(log: VerifierKey, witnesses: Vec<CosignerVerifier>, needed: usize) -> Policy {
        let alone = |number: usize| (number.to_string().into_bytes(), Member::Witness(number));
        let mut members: Vec<_> = (0..witnesses.len()).map(alone).collect();
        let quorum = if needed == 0 { Quorum::Nobody } else { Quorum::Member(members.len()) };
        members.push((b"all".to_vec(), Member::Group { needed, of: (0..witnesses.len()).collect() }));
        Policy { logs: vec![log], witnesses, members, quorum }
    }

    /// The known log that signed a note, as far as its signature lines say; the signature is not checked here.
    pub fn log_of(&self, note: &Note<'_>) -> Option<&VerifierKey> {
        let signed = |log: &&VerifierKey| note.signatures.iter().any(|line| line.name == log.name && line.id == log.id);
        self.logs.iter().find(signed)
    }

    pub fn logs(&self) -> &[VerifierKey] {
        &self.logs
    }

    pub fn witnesses(&self) -> &[CosignerVerifier] {
        &self.witnesses
    }

    /// How many witnesses are needed at least.
    pub fn needed(&self) -> usize {
        match self.quorum {
            Quorum::Nobody => 0,
            Quorum::Member(member) => self.fewest(member),
        }
    }

    fn fewest(&self, member: usize) -> usize {
        match self.members.get(member) {
            Some((_, Member::Witness(_))) | None => 1,
            Some((_, Member::Group { needed, of })) => {
                let mut each: Vec<_> = of.iter().map(|member| self.fewest(*member)).collect();
                each.sort_unstable();
                each.into_iter().take(*needed).sum()
            }
        }
    }

    pub fn requires_witnesses(&self) -> bool {
        self.quorum != Quorum::Nobody
    }

    /// When each known witness cosigned, in seconds since 1970. A cosignature that does not verify spoils the note.
    pub fn cosigned(&self, note: &Note<'_>) -> Result<Vec<(&CosignerVerifier, Option<u64>)>, NoteError> {
        let time = |witness: &CosignerVerifier| match witness.verify(note) {
            Ok(time) => Ok(Some(time)),
            Err(NoteError::Unsigned) => Ok(None),
            Err(error) => Err(error),
        };
        self.witnesses.iter().map(|witness| Ok((witness, time(witness)?))).collect()
    }

    /// The latest moment for which a quorum vouches: enough witnesses cosigned at that time or later. `None` if the
    /// quorum is not reached. Postdating it takes as many dishonest witnesses as forging it.
    pub fn vouched_at(&self, times: &[Option<u64>]) -> Option<u64> {
        let mut candidates: Vec<u64> = times.iter().flatten().copied().collect();
        candidates.sort_unstable();
        candidates.into_iter().rev().find(|earliest| {
            let has = |witness: usize| times.get(witness).copied().flatten().is_some_and(|time| time >= *earliest);
            self.is_met(&has)
        })
    }

    /// Whether the witnesses that cosigned, by the time of each, reach the quorum.
    pub fn is_reached(&self, times: &[Option<u64>]) -> bool {
        self.is_met(&|witness: usize| times.get(witness).copied().flatten().is_some())
    }

    fn is_met(&self, has: &dyn Fn(usize) -> bool) -> bool {
        match self.quorum {
            Quorum::Nobody => true,
            Quorum::Member(member) => self.has_witnessed(member, has),
        }
    }

    fn has_witnessed(&self, member: usize, has: &dyn Fn(usize) -> bool) -> bool {
        match self.members.get(member) {
            Some((_, Member::Witness(number))) => has(*number),
            Some((_, Member::Group { needed, of })) => {
                of.iter().filter(|member| self.has_witnessed(**member, has)).count() >= *needed
            }
            None => false,
        }
    }
}

#[derive(Default)]
struct Reader {
    logs: Vec<VerifierKey>,
    witnesses: Vec<CosignerVerifier>,
    members: Vec<(Vec<u8>, Member)>,
    /// Which of the members are in a group.
    grouped: Vec<usize>,
    groups: usize,
    quorum: Option<Quorum>,
}

impl Reader {
    fn line(&mut self, text: &[u8]) -> Result<(), PolicyFault> {
        if text.iter().any(|byte| (*byte < b' ' && *byte != b'\t') || *byte == 0x7f) {
            return Err(PolicyFault::Character);
        }
        let words: Vec<&[u8]> =
            text.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty()).collect();
        match words.as_slice() {
            [] => Ok(()),
            [first, ..] if first.starts_with(b"#") => Ok(()),
            [b"log", key] | [b"log", key, _] => self.log(key),
            [b"log", ..] => Err(PolicyFault::Form("log KEY [URL]")),
            [b"witness", name, key] | [b"witness", name, key, _] => self.witness(name, key),
            [b"witness", ..] => Err(PolicyFault::Form("witness NAME KEY [URL]")),
            [b"group", name, threshold, members @ ..] if !members.is_empty() => self.group(name, threshold, members),
            [b"group", ..] => Err(PolicyFault::Form("group NAME all|any|NUMBER MEMBER…")),
            [b"quorum", name] => self.quorum(name),
            [b"quorum", ..] => Err(PolicyFault::Form("quorum NAME")),
            _ => Err(PolicyFault::Keyword),
        }
    }

    fn log(&mut self, key: &[u8]) -> Result<(), PolicyFault> {
        let key = VerifierKey::parse(key_text(key)?)?;
        if self.logs.iter().any(|known| known.public_key == key.public_key) {
            return Err(PolicyFault::SameKey);
        }
        room(self.logs.len())?;
        self.logs.push(key);
        Ok(())
    }

    fn witness(&mut self, name: &[u8], key: &[u8]) -> Result<(), PolicyFault> {
        let key = CosignerVerifier::parse(key_text(key)?)?;
        if self.witnesses.iter().any(|known| known.public_key == key.public_key) {
            return Err(PolicyFault::SameKey);
        }
        room(self.witnesses.len())?;
        self.define(name, Member::Witness(self.witnesses.len()))?;
        self.witnesses.push(key);
        Ok(())
    }

    fn group(&mut self, name: &[u8], threshold: &[u8], members: &[&[u8]]) -> Result<(), PolicyFault> {
        room(self.groups)?;
        let mut of = Vec::new();
        for member in members {
            let number = self.find(member)?;
            if self.grouped.contains(&number) {
                return Err(PolicyFault::SameMember(shown(member)));
            }
            self.grouped.push(number);
            of.push(number);
        }
        let needed = match threshold {
            b"all" => of.len(),
            b"any" => 1,
            digits => decimal(digits).filter(|k| (1..=of.len()).contains(k)).ok_or(PolicyFault::Threshold)?,
        };
        self.groups += 1;
        self.define(name, Member::Group { needed, of })
    }

    fn quorum(&mut self, name: &[u8]) -> Result<(), PolicyFault> {
        if self.quorum.is_some() {
            return Err(PolicyFault::SecondQuorum);
        }
        self.quorum = Some(if name == b"none" { Quorum::Nobody } else { Quorum::Member(self.find(name)?) });
        Ok(())
    }

    fn define(&mut self, name: &[u8], member: Member) -> Result<(), PolicyFault> {
        if name == b"none" || self.find(name).is_ok() {
            return Err(PolicyFault::SameName);
        }
        self.members.push((name.to_vec(), member));
        Ok(())
    }

    fn find(&self, name: &[u8]) -> Result<usize, PolicyFault> {
        let found = self.members.iter().position(|(known, _)| known == name);
        found.ok_or_else(|| PolicyFault::NoSuchName(shown(name)))
    }
}

fn room(count: usize) -> Result<(), PolicyFault> {
    if count < LINES_OF_A_KIND_MAX { Ok(()) } else { Err(PolicyFault::TooMany) }
}

fn key_text(key: &[u8]) -> Result<&str, PolicyFault> {
    std::str::from_utf8(key).map_err(|_| PolicyFault::Key(KeyError::VerifierFormat))
}

fn decimal(digits: &[u8]) -> Option<usize> {
    let is_plain = digits.iter().all(u8::is_ascii_digit) && digits.first() != Some(&b'0');
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

#[cfg(test)]
mod tests;
