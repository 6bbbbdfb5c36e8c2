//! An entry in exactly the form in which it is written, read without copying its texts.
//!
//! Reading it this way shows that it is in canonical form, so nobody has to write it again to see that. What is not, or
//! has an escape in a text, or details, is left to [`Entry::parse`].

use std::sync::Arc;

use data_encoding::HEXLOWER;

use super::{Entry, EntryType, WITH_OPERATOR};
use crate::actor::{self, ActorId};
use crate::document::ContentDigest;
use crate::item;
use crate::role::Role;
use crate::time::Time;

/// The members of [`Entry`], in their order, except for details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'b> {
    pub action: Option<&'b str>,
    pub actor_id: Option<&'b str>,
    pub at: Time,
    pub comment: Option<[u8; 32]>,
    pub content: Option<[u8; 32]>,
    pub definition: Option<&'b str>,
    pub from: Option<&'b str>,
    pub index: u64,
    pub inputs: Option<[u8; 32]>,
    pub item: Option<&'b str>,
    pub operated_by: Option<&'b str>,
    pub role: Option<Role>,
    pub to: Option<&'b str>,
    pub r#type: EntryType,
    pub v: u32,
    pub version: Option<u64>,
}

impl<'b> Written<'b> {
    /// `None` if this is not an entry, or not one that can be read this way.
    pub fn read(line: &'b [u8]) -> Option<Written<'b>> {
        let mut scan = Scan { rest: line.strip_prefix(b"{")?, is_at_end: false };
        let entry = scan.entry().ok()?;
        scan.is_at_end.then_some(entry)
    }

    /// The same as [`Entry::format`].
    pub const fn format(&self) -> u32 {
        if self.operated_by.is_some() { WITH_OPERATOR } else { 1 }
    }

    /// With texts of its own.
    pub fn to_entry(&self) -> Option<Entry> {
        let digest = |hash: Option<[u8; 32]>| hash.map(ContentDigest::of_hash);
        let id = |text: Option<&str>| text.map(str::parse::<ActorId>).transpose().ok();
        Some(Entry {
            action: self.action.map(Arc::from),
            actor_id: id(self.actor_id)?,
            at: self.at,
            comment: digest(self.comment),
            content: digest(self.content),
            definition: self.definition.map(Arc::from),
            details: None,
            from: self.from.map(Arc::from),
            index: self.index,
            inputs: digest(self.inputs),
            item: self.item.map(str::parse).transpose().ok()?,
            operated_by: id(self.operated_by)?,
            role: self.role,
            to: self.to.map(Arc::from),
            r#type: self.r#type,
            v: self.v,
            version: self.version,
        })
    }
}

/// The line cannot be read this way.
struct Otherwise;

type Read<T> = Result<T, Otherwise>;

/// Reads one member after another; `None` is one that the line does not have.
struct Scan<'b> {
    rest: &'b [u8],
    is_at_end: bool,
}

impl<'b> Scan<'b> {
    fn entry(&mut self) -> Read<Written<'b>> {
        Ok(Written {
            action: self.text(b"\"action\":\"")?,
            actor_id: self.checked(b"\"actor_id\":\"", |id| actor::check(id).is_ok())?,
            at: self.fixed(b"\"at\":\"")?.and_then(Time::of_written).ok_or(Otherwise)?,
            comment: self.digest(b"\"comment\":\"sha256:")?,
            content: self.digest(b"\"content\":\"sha256:")?,
            definition: self.text(b"\"definition\":\"")?,
            from: self.text(b"\"from\":\"")?,
            index: self.number(b"\"index\":")?.ok_or(Otherwise)?,
            inputs: self.digest(b"\"inputs\":\"sha256:")?,
            item: self.checked(b"\"item\":\"", item::is_id)?,
            operated_by: self.checked(b"\"operated_by\":\"", |id| actor::check(id).is_ok())?,
            role: self.text(b"\"role\":\"")?.map(str::parse).transpose().map_err(|_| Otherwise)?,
            to: self.text(b"\"to\":\"")?,
            r#type: self.text(b"\"type\":\"")?.and_then(EntryType::named).ok_or(Otherwise)?,
            v: self.number(b"\"v\":")?.and_then(|v| u32::try_from(v).ok()).ok_or(Otherwise)?,
            version: self.number(b"\"version\":")?,
        })
    }

    /// What follows the beginning of a member, if that is the next one.
    fn after<const N: usize>(&self, beginning: &[u8; N]) -> Option<&'b [u8]> {
        let (first, after) = self.rest.split_first_chunk::<N>()?;
        (first == beginning).then_some(after)
    }

    /// Goes on behind the comma or brace after a value.
    fn end_of_value(&mut self, rest: &'b [u8]) -> Read<()> {
        let (next, rest) = rest.split_first().ok_or(Otherwise)?;
        self.is_at_end = *next == b'}' && rest.is_empty();
        self.rest = rest;
        // A comma announces another member.
        if self.is_at_end || (*next == b',' && rest.first() == Some(&b'"')) { Ok(()) } else { Err(Otherwise) }
    }

    fn end_of_text(&mut self, rest: &'b [u8]) -> Read<()> {
        self.end_of_value(rest.strip_prefix(b"\"").ok_or(Otherwise)?)
    }

    fn text<const N: usize>(&mut self, beginning: &[u8; N]) -> Read<Option<&'b str>> {
        let Some(after) = self.after(beginning) else { return Ok(None) };
        let length = after.iter().position(|byte| !is_plain(*byte)).ok_or(Otherwise)?;
        let (text, rest) = after.split_at_checked(length).ok_or(Otherwise)?;
        self.end_of_text(rest)?;
        std::str::from_utf8(text).map(Some).map_err(|_| Otherwise)
    }

    fn checked<const N: usize>(&mut self, beginning: &[u8; N], fits: fn(&str) -> bool) -> Read<Option<&'b str>> {
        let text = self.text(beginning)?;
        if text.is_none_or(fits) { Ok(text) } else { Err(Otherwise) }
    }

    /// A text of a fixed length.
    fn fixed<const N: usize, const L: usize>(&mut self, beginning: &[u8; N]) -> Read<Option<&'b [u8; L]>> {
        let Some(after) = self.after(beginning) else { return Ok(None) };
        let (text, rest) = after.split_first_chunk::<L>().ok_or(Otherwise)?;
        self.end_of_text(rest)?;
        Ok(Some(text))
    }

    fn digest<const N: usize>(&mut self, beginning: &[u8; N]) -> Read<Option<[u8; 32]>> {
        let Some(hex) = self.fixed::<N, 64>(beginning)? else { return Ok(None) };
        let mut hash = [0; 32];
        HEXLOWER.decode_mut(hex, &mut hash).map_err(|_| Otherwise)?;
        Ok(Some(hash))
    }

    /// In digits, without a leading zero.
    fn number<const N: usize>(&mut self, beginning: &[u8; N]) -> Read<Option<u64>> {
        let Some(after) = self.after(beginning) else { return Ok(None) };
        let length = after.iter().position(|byte| !byte.is_ascii_digit()).ok_or(Otherwise)?;
        let (digits, rest) = after.split_at_checked(length).ok_or(Otherwise)?;
        if digits.is_empty() || (digits.first() == Some(&b'0') && digits.len() > 1) {
            return Err(Otherwise);
        }
        let add = |number: u64, digit: &u8| number.checked_mul(10)?.checked_add(u64::from(digit - b'0'));
        let number = digits.iter().try_fold(0_u64, add).ok_or(Otherwise)?;
        self.end_of_value(rest)?;
        Ok(Some(number))
    }
}

/// In a text, such a character can be written in no other way.
const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::actor::Actor;

    fn sample() -> Vec<Entry> {
        let actor: Actor = Actor::new("ana.lopez@example.org".parse().unwrap(), Role::SecurityAdmin);
        let machine = Actor { operated_by: Some("ben".parse().unwrap()), ..actor.clone() };
        let digest = |text: &str| Some(ContentDigest::of_bytes(text.as_bytes()));
        let mut full = Entry::bare(EntryType::ItemTransition, 1_234_567_890, Time::from_unix_micros(1), Some(&machine));
        full.action = Some("approve it, ~ all of it".into());
        full.comment = digest("comment");
        full.content = digest("content");
        full.definition = Some("sha256:x".into());
        full.from = Some("".into());
        full.inputs = digest("inputs");
        full.item = Some("01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap());
        full.to = Some("b".into());
        full.version = Some(u64::MAX);
        let few = Entry { inputs: None, operated_by: None, version: None, v: 1, ..full.clone() };
        let bare = Entry::bare(EntryType::LedgerRestored, 0, Time::EPOCH, None);
        let by_actor = Entry::bare(EntryType::AccessRefused, 10, Time::from_unix_micros(i64::MAX), Some(&actor));
        vec![full, few, bare, by_actor]
    }

    #[test]
    fn what_is_read_this_way_is_the_entry_and_in_canonical_form_whichever_byte_is_changed() {
        for entry in sample() {
            let bytes = entry.to_bytes().unwrap();
            assert_eq!(Written::read(&bytes).unwrap().to_entry().unwrap(), entry);
            let mut variants = vec![];
            for at in 0..bytes.len() {
                let (before, after) = bytes.split_at(at);
                variants.push([before, &after[1..]].concat());
                variants.push(before.to_vec());
                for other in *b"\"\\ 0127,:{}ntz\0\n\x7f" {
                    variants.push([before, &[other], &after[1..]].concat());
                    variants.push([before, &[other], after].concat());
                }
                variants.push([before, "é".as_bytes(), after].concat());
            }
            for bytes in variants {
                check(&bytes);
            }
        }
    }

    /// Whatever is accepted is what the general reader reads, and what is written for it.
    fn check(bytes: &[u8]) {
        let Some(read) = Written::read(bytes).filter(|read| read.v <= super::super::ENTRY_VERSION) else { return };
        let text = String::from_utf8_lossy(bytes);
        let entry = Entry::parse(bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
        assert_eq!(read.to_entry(), Some(entry.clone()), "{text}");
        assert_eq!(entry.to_bytes().unwrap(), bytes, "{text}");
    }

    #[test]
    fn members_that_are_given_twice_or_elsewhere_or_are_null_are_left_to_the_general_reader() {
        let bytes = sample().remove(0).to_bytes().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        for (part, instead) in [
            ("\"from\":\"\"", "\"from\":null"),
            ("\"from\":\"\"", "\"from\":\"\",\"from\":\"\""),
            ("\"from\":\"\",", "\"details\":{},\"from\":\"\","),
            ("\"role\":\"security_admin\",\"to\":\"b\"", "\"to\":\"b\",\"role\":\"security_admin\""),
            ("\"v\":2", "\"v\":02"),
            ("\"v\":2", "\"v\":2.0"),
            ("\"v\":2", "\"v\":4294967296"),
            ("18446744073709551615", "18446744073709551616"),
            ("item.transition", "item.moved"),
            ("approve it, ~", "approve\\u0020it, ~"),
        ] {
            let changed = text.replace(part, instead);
            assert_ne!(changed, text);
            assert_eq!(Written::read(changed.as_bytes()), None, "{changed}");
        }
    }
}
