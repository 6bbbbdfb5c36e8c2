//! Entries between the check of their bytes and that of the rules: small numbers in place of texts.
//!
//! Reading an entry again from the bundle takes as long as checking it took: it has to be hashed and parsed once more.
//! What nearly every entry says fits into a few bytes, because few texts are different.

use std::collections::HashMap;
use std::num::NonZeroU32;

use pilot_core::actor::{Actor, ActorId};
use pilot_core::certain::Certain as _;
use pilot_core::document::ContentDigest;
use pilot_core::entry::{Entry, EntryType, Written};
use pilot_core::item::ItemId;
use pilot_core::role::Role;
use pilot_core::time::Time;
use pilot_core::workflow::Name;

/// Counted from 1, so that an optional number takes no more space.
type Number = NonZeroU32;

const NUMBERED: &str = "whatever has a number was kept with it";

/// What is kept of every entry, packed or not.
pub(super) struct Outline<'o> {
    pub index: u64,
    pub at: Time,
    pub r#type: EntryType,
    pub item: Option<&'o ItemId>,
    pub actor: Option<&'o Actor>,
}

/// What the outline of an entry does not say.
pub(super) struct Packed {
    action: Option<Number>,
    comment: Option<Number>,
    content: Option<Number>,
    definition: Option<Number>,
    from: Option<Number>,
    inputs: Option<Number>,
    to: Option<Number>,
    version: Option<u32>,
}

/// What the numbers of packed entries stand for.
#[derive(Default)]
pub(super) struct Packing {
    text_numbers: HashMap<Name, Number>,
    texts: Vec<Name>,
    digests: Vec<[u8; 32]>,
    /// Of each item: most entries about it name the same content as the one before.
    last_contents: Vec<Option<Number>>,
}

impl Packing {
    /// `None` if it does not fit. What it says about an item and an actor is in its outline.
    pub(super) fn pack(&mut self, entry: &Written<'_>, item: Option<u32>, actor: Option<u32>) -> Option<Packed> {
        let is_whole = entry.actor_id.is_some() == actor.is_some() && entry.role.is_some() == actor.is_some();
        if !is_whole || (actor.is_none() && entry.operated_by.is_some()) {
            return None;
        }
        Some(Packed {
            version: entry.version.map(u32::try_from).transpose().ok()?,
            action: entry.action.map(|text| self.text(text)),
            comment: entry.comment.map(|digest| self.digest(digest)),
            content: entry.content.map(|digest| self.content(digest, item)),
            definition: entry.definition.map(|text| self.text(text)),
            from: entry.from.map(|text| self.text(text)),
            inputs: entry.inputs.map(|digest| self.digest(digest)),
            to: entry.to.map(|text| self.text(text)),
        })
    }

    /// The entry as it was read.
    pub(super) fn entry(&self, packed: &Packed, outline: &Outline<'_>) -> Entry {
        let Outline { index, at, r#type, item, actor } = *outline;
        let text = |number: Option<Number>| number.map(|number| kept(&self.texts, number).clone());
        let digest = |number: Option<Number>| number.map(|number| ContentDigest::of_hash(*kept(&self.digests, number)));
        let entry = Entry {
            action: text(packed.action),
            actor_id: actor.map(|actor| actor.actor_id.clone()),
            at,
            comment: digest(packed.comment),
            content: digest(packed.content),
            definition: text(packed.definition),
            details: None,
            from: text(packed.from),
            index,
            inputs: digest(packed.inputs),
            item: item.cloned(),
            operated_by: actor.and_then(|actor| actor.operated_by.clone()),
            role: actor.map(|actor| actor.role),
            to: text(packed.to),
            r#type,
            v: 0,
            version: packed.version.map(u64::from),
        };
        // An entry that has another format than this is not accepted.
        Entry { v: entry.format(), ..entry }
    }

    fn text(&mut self, text: &str) -> Number {
        if let Some(number) = self.text_numbers.get(text) {
            return *number;
        }
        let name = Name::from(text);
        let number = keep(&mut self.texts, name.clone());
        self.text_numbers.insert(name, number);
        number
    }

    fn digest(&mut self, digest: [u8; 32]) -> Number {
        keep(&mut self.digests, digest)
    }

    fn content(&mut self, digest: [u8; 32], item: Option<u32>) -> Number {
        let Some(item) = item.map(|item| item as usize) else { return self.digest(digest) };
        let last = self.last_contents.get(item).copied().flatten();
        if let Some(last) = last.filter(|last| *kept(&self.digests, *last) == digest) {
            return last;
        }
        let number = self.digest(digest);
        if self.last_contents.len() <= item {
            self.last_contents.resize(item + 1, None);
        }
        if let Some(last) = self.last_contents.get_mut(item) {
            *last = Some(number);
        }
        number
    }
}

fn keep<T>(all: &mut Vec<T>, one: T) -> Number {
    all.push(one);
    let number = u32::try_from(all.len()).ok().and_then(Number::new);
    number.certain("a bundle has fewer texts than that")
}

fn kept<T>(all: &[T], number: Number) -> &T {
    all.get(number.get() as usize - 1).certain(NUMBERED)
}

/// Gives each item and each actor of a bundle a number, in the order in which they appear.
#[derive(Default)]
pub(super) struct Numbers {
    items: HashMap<ItemId, u32>,
    /// By id and operator, whose name is empty if there is none: what is left to compare is roles, which are few.
    actors: HashMap<ActorId, HashMap<String, Vec<u32>>>,
}

impl Numbers {
    pub(super) fn item(&mut self, id: &str, all: &mut Vec<ItemId>) -> u32 {
        if let Some(number) = self.items.get(id) {
            return *number;
        }
        let id: ItemId = id.parse().certain("an entry that was read names an item by its id");
        let number = next(all);
        all.push(id.clone());
        self.items.insert(id, number);
        number
    }

    /// `None` if it names no one, or no role.
    pub(super) fn actor(
        &mut self,
        actor_id: Option<&str>,
        role: Option<Role>,
        operated_by: Option<&str>,
        all: &mut Vec<Actor>,
    ) -> Option<u32> {
        let (actor_id, role) = (actor_id?, role?);
        let operator = operated_by.unwrap_or_default();
        let is_same = |actor: &Actor| actor.role == role;
        let known = self.actors.get(actor_id).and_then(|operators| operators.get(operator)).into_iter().flatten();
        if let Some(number) = known.copied().find(|number| all.get(*number as usize).is_some_and(is_same)) {
            return Some(number);
        }
        let id = |text: &str| text.parse::<ActorId>().certain("an entry that was read names an actor by its id");
        let actor = Actor { actor_id: id(actor_id), role, operated_by: operated_by.map(id) };
        let number = next(all);
        let operators = self.actors.entry(actor.actor_id.clone()).or_default();
        operators.entry(operator.to_owned()).or_default().push(number);
        all.push(actor);
        Some(number)
    }
}

fn next<T>(all: &[T]) -> u32 {
    u32::try_from(all.len()).certain("a bundle has fewer entries than that")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Members that an entry may have or not, each with its text.
    const MEMBERS: [&str; 8] = [
        r#""action":"approve","#,
        r#""comment":"sha256:1111111111111111111111111111111111111111111111111111111111111111","#,
        r#""content":"sha256:2222222222222222222222222222222222222222222222222222222222222222","#,
        r#""definition":"sha256:d","#,
        r#""from":"here","#,
        r#""inputs":"sha256:3333333333333333333333333333333333333333333333333333333333333333","#,
        r#""item":"01890a5d-ac96-774b-bcce-b302099a8057","#,
        r#""to":"there","#,
    ];
    const ACTORS: [(&str, &str, &str); 3] = [
        ("", "", ""),
        (r#""actor_id":"ana","#, "", r#""role":"approver","#),
        (r#""actor_id":"ana","#, r#""operated_by":"ben","#, r#""role":"approver","#),
    ];

    fn line(members: usize, (actor_id, operated_by, role): (&str, &str, &str)) -> String {
        let has = |number: usize| if members >> number & 1 == 1 { MEMBERS[number] } else { "" };
        let at = r#""at":"2026-11-15T09:30:00.000001Z","#;
        let (version, v) =
            (if members & 1 == 1 { r#","version":7"# } else { "" }, 1 + i32::from(!operated_by.is_empty()));
        let first = [has(0), actor_id, at, has(1), has(2), has(3), has(4)].concat();
        let rest = [has(5), has(6), operated_by, role, has(7)].concat();
        format!(r#"{{{first}"index":5,{rest}"type":"item.comment","v":{v}{version}}}"#)
    }

    #[test]
    fn whatever_an_entry_says_is_what_it_said_before_it_was_packed() {
        let (mut packing, mut numbers, mut items, mut actors) =
            (Packing::default(), Numbers::default(), Vec::new(), Vec::new());
        for members in 0..1 << MEMBERS.len() {
            for actor in ACTORS {
                let line = line(members, actor);
                let read = Written::read(line.as_bytes()).unwrap_or_else(|| panic!("{line}"));
                let item = read.item.map(|id| numbers.item(id, &mut items));
                let actor = numbers.actor(read.actor_id, read.role, read.operated_by, &mut actors);
                let packed = packing.pack(&read, item, actor).unwrap();
                let (item, actor) =
                    (item.map(|item| &items[item as usize]), actor.map(|actor| &actors[actor as usize]));
                let outline = Outline { index: read.index, at: read.at, r#type: read.r#type, item, actor };
                let entry = packing.entry(&packed, &outline);
                assert_eq!(entry, Entry::parse(line.as_bytes()).unwrap(), "{line}");
            }
        }
        assert_eq!((items.len(), actors.len(), packing.texts.len()), (1, 2, 4));
    }

    #[test]
    fn what_does_not_fit_is_not_packed() {
        let written =
            |line: &str| Packing::default().pack(&Written::read(line.as_bytes()).unwrap(), None, None).is_some();
        let whole = line(1, ACTORS[0]);
        assert!(written(&whole));
        assert!(!written(&whole.replace("\"version\":7", "\"version\":4294967296")));
        for actor in [(ACTORS[1].0, "", ""), ("", "", ACTORS[1].2), ("", ACTORS[2].1, "")] {
            assert!(!written(&line(1, actor)), "{actor:?}");
        }
    }

    #[test]
    fn what_is_kept_stays_small_because_a_bundle_may_have_a_million() {
        assert_eq!(size_of::<Option<Packed>>(), 36);
    }
}
