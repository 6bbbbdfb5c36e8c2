//! Opens a bundle: checks the signature and hashes, and reads every file once. What is large stays where it is, and is
//! read again when it is needed.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, BufRead as _};
use std::sync::Arc;

use data_encoding::HEXLOWER;
use pilot_core::actor::{Actor, ActorId};
use pilot_core::certain::Certain as _;
use pilot_core::document::ContentDigest;
use pilot_core::entry::{Entry, EntryError, EntryType, Written};
use pilot_core::item::ItemId;
use pilot_core::role_map::RoleMap;
use pilot_core::sha256::sha256;
use pilot_core::time::Time;
use pilot_core::workflow::Definition;

use super::packed::{Numbers, Outline, Packed, Packing};
use super::progress::{Stage, Watch};
use super::verdict::{Check, Fault};
use crate::bundle::manifest::hash_of_hex;
use crate::bundle::source::{Ahead, Source, changed};
use crate::bundle::zip::{Listed, ZipError, list};
use crate::bundle::{
    ENTRIES_PER_FILE, ListedFile, MANIFEST, Manifest, ManifestError, Piece, REPORT, Scope, entries_path,
};
use crate::merkle::Hash;
use crate::note::{Note, NoteError, VerifierKey};
use crate::replay::Documents;

/// What is known of an entry without reading it again.
pub(crate) struct Mark {
    pub index: u64,
    pub at: Time,
    pub r#type: EntryType,
    pub leaf: Hash,
    /// In [`Contents::items`].
    pub item: Option<u32>,
    /// In [`Contents::actors`].
    pub actor: Option<u32>,
    /// Whether it names content, a comment or inputs.
    pub names_documents: bool,
    /// In [`Contents::files`].
    file: u32,
    place: Place,
    /// What else it says, unless that does not fit.
    packed: Option<Packed>,
}

/// Where bytes are in the container.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    size: u32,
}

/// An entry, and the file it is in.
pub(crate) struct Held<'c> {
    pub entry: Entry,
    pub file: &'c str,
}

/// The documents that an entry brings, as far as the bundle contains them. They are read for one entry at a time: many
/// entries may name the same large document.
pub(crate) struct Brought<'c> {
    content: Option<Cow<'c, [u8]>>,
    comment: Option<Cow<'c, [u8]>>,
    inputs: Option<Cow<'c, [u8]>>,
}

impl Brought<'_> {
    pub(crate) fn documents(&self) -> Documents<'_> {
        Documents { content: self.content.as_deref(), comment: self.comment.as_deref(), inputs: self.inputs.as_deref() }
    }
}

/// Everything in a bundle whose bytes are those the log signed.
pub(crate) struct Contents<'s> {
    source: &'s Source<'s>,
    /// Without its list of files, which has been compared.
    pub manifest: Manifest,
    /// Files that are listed, absent, and allowed to be.
    pub left_out: Vec<String>,
    texts: BTreeMap<Arc<str>, String>,
    /// Sorted by index.
    pub entries: Vec<Mark>,
    /// Files of entries.
    files: Vec<Arc<str>>,
    pub items: Vec<ItemId>,
    pub actors: Vec<Actor>,
    packing: Packing,
    /// Paths to the root, by index.
    proofs: BTreeMap<u64, (Arc<str>, Place)>,
    /// Cosigned checkpoints, and consistency proofs up to the newest one, as paths and texts, by size.
    pub kept: BTreeMap<u64, (Arc<str>, String)>,
    pub consistencies: BTreeMap<u64, (Arc<str>, String)>,
    /// Timestamped checkpoints as texts, and the replies of the authority, by size.
    pub stamped: BTreeMap<u64, String>,
    pub timestamps: BTreeMap<u64, Vec<u8>>,
    /// Sorted.
    documents: Vec<(DocumentKey, Place)>,
    /// For each beginning of a digest, how many documents are before it, and then how many there are: documents are
    /// looked up more often than anything else, and a search through all of them misses the processor's caches.
    beginnings: Vec<u32>,
    /// By their digest, `sha256:…`.
    pub definitions: BTreeMap<String, Arc<Definition>>,
    pub role_maps: BTreeMap<String, RoleMap>,
    pub file_count: usize,
}

/// A document's digest in 32 bytes: there may be very many.
pub(crate) type DocumentKey = [u8; 32];

pub(crate) fn document_key(digest: &ContentDigest) -> DocumentKey {
    let hex = digest.as_str().trim_start_matches("sha256:");
    hash_of_hex(hex).certain("a digest is 64 hexadecimal characters")
}

pub(crate) enum OpenError {
    Faults(Vec<Fault>),
    Unreadable(io::Error),
}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Unreadable(error)
    }
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> OpenError {
        OpenError::Faults(vec![fault])
    }
}

/// Opens a bundle, or says what is wrong with the container, the manifest or the files.
pub(crate) fn open<'s>(
    source: &'s Source<'s>,
    key: &VerifierKey,
    watch: &mut Watch<'_>,
) -> Result<Contents<'s>, OpenError> {
    let files = list(source).map_err(|error| match error {
        ZipError::Fault(fault) => Fault::new(Check::Container, "container", fault.to_string()).into(),
        ZipError::Unreadable(error) => OpenError::Unreadable(error),
    })?;
    let mut manifest = manifest(source, &files, key)?;
    let listed = std::mem::take(&mut manifest.files);
    let (mut comparison, left_out, mut faults) = Comparison::of(&files, &listed);
    let mut reader = Reader {
        faults: Vec::new(),
        numbers: Numbers::default(),
        contents: Contents {
            source,
            left_out,
            manifest,
            texts: BTreeMap::new(),
            entries: Vec::new(),
            files: Vec::new(),
            items: Vec::new(),
            actors: Vec::new(),
            packing: Packing::default(),
            proofs: BTreeMap::new(),
            kept: BTreeMap::new(),
            consistencies: BTreeMap::new(),
            stamped: BTreeMap::new(),
            timestamps: BTreeMap::new(),
            documents: Vec::new(),
            beginnings: Vec::new(),
            definitions: BTreeMap::new(),
            role_maps: BTreeMap::new(),
            // Without the report, so that a report generated again from its bundle is the same.
            file_count: files.iter().filter(|file| &*file.path != REPORT).count(),
        },
    };
    let mut ahead = Ahead::of(source);
    for file in files.iter().filter(|file| &*file.path != MANIFEST) {
        within_bounds(file)?;
        watch(Stage::Reading, file.start(), source.length());
        let bytes = file.read_ahead(&mut ahead)?;
        let hash = sha256([&bytes]);
        match comparison.fault(file, &bytes, &hash) {
            Some(fault) => faults.push(fault),
            // After a fault nothing is interpreted any more.
            None if faults.is_empty() => reader.take(file, &bytes, hash),
            None => {}
        }
    }
    reader.contents.documents.sort_unstable_by_key(|(key, _)| *key);
    reader.contents.beginnings = beginnings(&reader.contents.documents);
    match (faults.is_empty(), reader.faults.is_empty()) {
        (true, true) => Ok(reader.contents),
        (true, false) => Err(OpenError::Faults(reader.faults)),
        (false, _) => Err(OpenError::Faults(faults)),
    }
}

/// The first twelve bits as a number.
fn beginning(key: &DocumentKey) -> usize {
    let [high, low, ..] = *key;
    usize::from(high) << 4 | usize::from(low >> 4)
}

fn beginnings(documents: &[(DocumentKey, Place)]) -> Vec<u32> {
    let mut counts = vec![0_u32; (1 << 12) + 1];
    for (key, _) in documents {
        if let Some(count) = counts.get_mut(beginning(key) + 1) {
            *count += 1;
        }
    }
    let mut before = 0;
    for count in &mut counts {
        before += *count;
        *count = before;
    }
    counts
}

fn manifest(source: &Source<'_>, files: &[Listed], key: &VerifierKey) -> Result<Manifest, OpenError> {
    let wrong = |what: String| Fault::new(Check::Manifest, "manifest", what).in_file(MANIFEST);
    let last = files.last().filter(|file| &*file.path == MANIFEST);
    let last = last.ok_or_else(|| wrong("it is not the last file, where it belongs".into()))?;
    within_bounds(last)?;
    let bytes = last.read(source)?;
    if !last.is_whole(&bytes) {
        return Err(wrong("its bytes were changed: they do not match its checksum".into()).into());
    }
    let note = std::str::from_utf8(&bytes).map_err(|_| wrong("it is not text".into()))?;
    let opened = Manifest::open(note, key).map_err(|error| match error {
        ManifestError::Note(NoteError::Unsigned) => wrong(format!("it is signed by {}, not by {key}", signers(note))),
        error => wrong(error.to_string()),
    });
    Ok(opened?)
}

/// Nothing is read into memory that could not be what its name says.
fn within_bounds(file: &Listed) -> Result<(), Fault> {
    const MIB: u32 = 1024 * 1024;
    let most = match Piece::of(&file.path) {
        // A line for each file: a million of them have some 150 MB.
        Some(Piece::Manifest) => 1024 * MIB,
        Some(Piece::Report) => 256 * MIB,
        Some(Piece::Entries(_) | Piece::RoleMap(_)) => 32 * MIB,
        // One whose name is unknown is refused for that, once its hash was compared.
        Some(_) | None => 8 * MIB,
    };
    if file.size() <= most {
        return Ok(());
    }
    let what = format!("it has {} bytes, more than such a file can have", file.size());
    Err(Fault::new(Check::Files, "files", what).in_file(&*file.path))
}

fn signers(note: &str) -> String {
    let note = Note::parse(note);
    let lines = note.iter().flat_map(|note| &note.signatures);
    lines.map(|line| format!("{}+{}", line.name, HEXLOWER.encode(&line.id))).collect::<Vec<_>>().join(" and ")
}

/// Compares files with the list of the manifest.
struct Comparison<'l> {
    listed: &'l [ListedFile],
    /// The next one in the list that could be the next file.
    next: usize,
    /// Only if the files are not those of the list in its order, except for some that were left out.
    lookup: Option<Lookup<'l>>,
}

/// What is where, to name exactly what is wrong.
struct Lookup<'l> {
    hashes: HashMap<&'l str, &'l [u8; 32]>,
    there: HashSet<&'l str>,
}

impl<'l> Comparison<'l> {
    /// Also returns what is listed, absent, and allowed to be; other absences are faults.
    fn of(files: &'l [Listed], listed: &'l [ListedFile]) -> (Comparison<'l>, Vec<String>, Vec<Fault>) {
        let (mut rest, mut absent) = (files.iter().filter(|file| &*file.path != MANIFEST).peekable(), Vec::new());
        for one in listed {
            if rest.next_if(|file| file.path == one.path).is_none() {
                absent.push(&*one.path);
            }
        }
        let may_be_left_out = |path: &&str| Piece::of(path).is_some_and(|piece| piece.may_be_left_out());
        let once: HashSet<_> = absent.iter().copied().collect();
        let is_listed_twice =
            once.len() < absent.len() || (!once.is_empty() && files.iter().any(|file| once.contains(&*file.path)));
        if rest.next().is_none() && !is_listed_twice && absent.iter().all(may_be_left_out) {
            let left_out = absent.into_iter().map(str::to_owned).collect();
            return (Comparison { listed, next: 0, lookup: None }, left_out, Vec::new());
        }
        let lookup = Lookup {
            hashes: listed.iter().map(|file| (&*file.path, &file.sha256)).collect(),
            there: files.iter().map(|file| &*file.path).collect(),
        };
        let mut faults = Vec::new();
        if lookup.hashes.contains_key(MANIFEST) {
            faults.push(differs(MANIFEST, "it lists itself"));
        }
        if lookup.hashes.len() != listed.len() {
            faults.push(differs(MANIFEST, "it lists a file twice"));
        }
        let is_absent = |path: &&str| !lookup.there.contains(path);
        let missing = listed.iter().map(|file| &*file.path).filter(is_absent).filter(|path| !may_be_left_out(path));
        faults.extend(missing.map(|path| differs(path, "the manifest lists it, but it is missing")));
        (Comparison { listed, next: 0, lookup: Some(lookup) }, Vec::new(), faults)
    }

    /// What is wrong with the next file of the container.
    fn fault(&mut self, file: &Listed, bytes: &[u8], sha256: &[u8; 32]) -> Option<Fault> {
        let path = &*file.path;
        let is_there = |one: &ListedFile| match &self.lookup {
            Some(lookup) => lookup.there.contains(&*one.path),
            None => *one.path == *path,
        };
        let expected = match &self.lookup {
            Some(lookup) => lookup.hashes.get(path).copied(),
            None => None,
        };
        if self.lookup.is_some() && expected.is_none() {
            return Some(differs(path, "it is not listed in the manifest"));
        }
        let rest = self.listed.get(self.next..).unwrap_or_default();
        let place = rest.iter().position(is_there).and_then(|skipped| self.next.checked_add(skipped));
        let found = place.and_then(|place| self.listed.get(place));
        self.next = place.map_or(self.listed.len(), |place| place + 1);
        let is_in_order = found.is_some_and(|found| *found.path == *path);
        let is_same = expected.or(found.map(|found| &found.sha256)) == Some(sha256);
        if !is_same || !file.is_whole(bytes) {
            Some(differs(path, "its bytes were changed: they do not match the hash in the manifest"))
        } else if is_in_order {
            None
        } else {
            Some(differs(path, "it is not at the position the manifest gives"))
        }
    }
}

fn differs(path: &str, what: &str) -> Fault {
    Fault::new(Check::Files, "files", what).in_file(path)
}

/// Takes in one file after another.
struct Reader<'s> {
    contents: Contents<'s>,
    faults: Vec<Fault>,
    numbers: Numbers,
}

impl Reader<'_> {
    fn take(&mut self, file: &Listed, bytes: &[u8], sha256: [u8; 32]) {
        if let Err(fault) = self.piece(file, bytes, sha256) {
            self.faults.push(fault);
        }
    }

    fn piece(&mut self, file: &Listed, bytes: &[u8], sha256: [u8; 32]) -> Result<(), Fault> {
        let path = &file.path;
        let wrong = |what: String| Fault::new(Check::Files, "format", what).in_file(&**path);
        let text = || std::str::from_utf8(bytes).map_err(|_| wrong("it is not text".into()));
        let digest = || format!("sha256:{}", HEXLOWER.encode(&sha256));
        let is_named = |hex: &str| hash_of_hex(hex) == Some(sha256);
        let place = place(file.start(), bytes);
        let contents = &mut self.contents;
        match Piece::of(path).ok_or_else(|| wrong("a bundle has no file with this name".into()))? {
            Piece::Manifest | Piece::Report => {}
            Piece::Checkpoint | Piece::CheckpointFrom | Piece::CheckpointTo | Piece::EdgeFrom | Piece::Consistency => {
                contents.texts.insert(Arc::clone(path), text()?.to_owned());
            }
            Piece::Entries(first) => self.entries(file, bytes, first),
            Piece::Proof(index) => {
                text()?;
                contents.proofs.insert(index, (Arc::clone(path), place));
            }
            Piece::KeptCheckpoint(size) => {
                contents.kept.insert(size, (Arc::clone(path), text()?.to_owned()));
            }
            Piece::ConsistencyFrom(size) => {
                contents.consistencies.insert(size, (Arc::clone(path), text()?.to_owned()));
            }
            Piece::Stamped(size) => {
                contents.stamped.insert(size, text()?.to_owned());
            }
            Piece::Timestamp(size) => {
                contents.timestamps.insert(size, bytes.to_vec());
            }
            Piece::Document(hex) if is_named(hex) => {
                contents.documents.push((sha256, place));
            }
            Piece::Definition(hex) if is_named(hex) => {
                let definition = Definition::from_canonical(bytes).map_err(|error| wrong(error.to_string()))?;
                contents.definitions.insert(definition.digest().to_string(), Arc::new(definition));
            }
            // Older bundles have only the text. If the rules are there as JSON, the text must be of the same ones.
            Piece::DefinitionText(hex) => {
                let digest = Definition::digest_of(text()?).map_err(|flaws| wrong(flaws.to_string()))?;
                if digest.strip_prefix("sha256:") != Some(hex) {
                    return Err(wrong(format!("its rules have the digest {digest}")));
                }
                if !contents.definitions.contains_key(&*digest) {
                    let definition = Definition::parse(text()?).map_err(|flaws| wrong(flaws.to_string()))?;
                    contents.definitions.insert(digest.to_string(), Arc::new(definition));
                }
            }
            Piece::RoleMap(hex) if is_named(hex) => {
                let map = RoleMap::parse(bytes)
                    .map_err(|faults| wrong(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")))?;
                contents.role_maps.insert(digest(), map);
            }
            Piece::Document(_) | Piece::Definition(_) | Piece::RoleMap(_) => {
                return Err(wrong(format!("its bytes have the digest {}", digest())));
            }
        }
        Ok(())
    }

    fn entries(&mut self, file: &Listed, bytes: &[u8], first: u64) {
        let fault = |index: Option<u64>, what: String| {
            let fault = Fault::new(Check::Files, "format", what).in_file(&*file.path);
            Fault { entry: index, ..fault }
        };
        if !bytes.ends_with(b"\n") {
            self.faults.push(fault(None, "its last line has no line break".into()));
            return;
        }
        let number = u32::try_from(self.contents.files.len()).certain("a container has fewer files than that");
        self.contents.files.push(Arc::clone(&file.path));
        let mut at = file.start();
        for (line, bytes) in lines(bytes).enumerate() {
            let place = place(at, bytes);
            at += bytes.len() as u64 + 1;
            if line == ENTRIES_PER_FILE {
                self.faults.push(fault(None, format!("it has more than {ENTRIES_PER_FILE} entries")));
            }
            let read = match self.line(bytes) {
                Ok(read) => read,
                Err(what) => {
                    self.faults.push(fault(None, format!("line {}{what}", line + 1)));
                    continue;
                }
            };
            let index = read.index;
            self.faults.extend(read.wrong.map(|what| fault(Some(index), what)));
            if line == 0 && index != first {
                let what = format!("a file that begins with it must be named {}", entries_path(index));
                self.faults.push(fault(Some(index), what));
            }
            if self.contents.entries.last().is_some_and(|last| last.index >= index) {
                self.faults.push(fault(Some(index), "it is not in the order of the ledger".into()));
            }
            let mark = Mark {
                index,
                at: read.at,
                r#type: read.r#type,
                leaf: Hash::of_leaf(bytes),
                names_documents: read.names_documents,
                actor: read.actor,
                item: read.item,
                file: number,
                place,
                packed: read.packed,
            };
            self.contents.entries.push(mark);
        }
    }
}

/// What one line of a file says.
struct Line {
    index: u64,
    at: Time,
    r#type: EntryType,
    item: Option<u32>,
    actor: Option<u32>,
    names_documents: bool,
    packed: Option<Packed>,
    wrong: Option<String>,
}

impl Reader<'_> {
    /// Nearly every entry can be read without copying it, which shows at once that it is in canonical form.
    fn line(&mut self, bytes: &[u8]) -> Result<Line, String> {
        match Written::read(bytes).filter(|entry| entry.v == entry.format()) {
            Some(entry) => Ok(self.written(&entry)),
            None => self.parsed(bytes),
        }
    }

    fn written(&mut self, entry: &Written<'_>) -> Line {
        let contents = &mut self.contents;
        let item = entry.item.map(|id| self.numbers.item(id, &mut contents.items));
        let actor = self.numbers.actor(entry.actor_id, entry.role, entry.operated_by, &mut contents.actors);
        Line {
            index: entry.index,
            at: entry.at,
            r#type: entry.r#type,
            item,
            actor,
            names_documents: entry.content.is_some() || entry.comment.is_some() || entry.inputs.is_some(),
            packed: contents.packing.pack(entry, item, actor),
            wrong: None,
        }
    }

    /// The error continues a sentence about the line.
    fn parsed(&mut self, bytes: &[u8]) -> Result<Line, String> {
        let entry = Entry::parse(bytes).map_err(|error| match error {
            EntryError::Newer { v } => format!(": its format {v} is not known"),
            EntryError::Malformed(error) => format!(" is not an entry: {error}"),
        })?;
        let wrong = if entry.v != entry.format() {
            Some(format!("its format {} is not supported", entry.v))
        } else if entry.to_bytes().ok().as_deref() != Some(bytes) {
            Some("it is not in canonical form".into())
        } else {
            None
        };
        let (actor_id, operator) = (entry.actor_id.as_ref(), entry.operated_by.as_ref());
        let (actor_id, operator) = (actor_id.map(ActorId::as_str), operator.map(ActorId::as_str));
        let contents = &mut self.contents;
        Ok(Line {
            index: entry.index,
            at: entry.at,
            r#type: entry.r#type,
            item: entry.item.as_ref().map(|id| self.numbers.item(id.as_str(), &mut contents.items)),
            actor: self.numbers.actor(actor_id, entry.role, operator, &mut contents.actors),
            names_documents: entry.content.is_some() || entry.comment.is_some() || entry.inputs.is_some(),
            packed: None,
            wrong,
        })
    }
}

/// Lines without their breaks. A split by a closure would look at every byte on its own.
fn lines(mut rest: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let mut after = rest;
        let length = after.skip_until(b'\n').ok()?;
        let line = rest.get(..length)?.strip_suffix(b"\n")?;
        rest = after;
        Some(line)
    })
}

fn place(at: u64, bytes: &[u8]) -> Place {
    Place { at, size: u32::try_from(bytes.len()).certain("a file in a bundle is below 4 GiB") }
}

impl Contents<'_> {
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.texts.get(path).map(String::as_str)
    }

    /// The file that an entry is in.
    pub(crate) fn file(&self, mark: &Mark) -> &str {
        self.files.get(mark.file as usize).map_or("", |path| path)
    }

    pub(crate) fn item(&self, mark: &Mark) -> Option<&ItemId> {
        mark.item.and_then(|number| self.items.get(number as usize))
    }

    /// The entry with this index.
    pub(crate) fn find(&self, index: u64) -> Option<&Mark> {
        let place = self.entries.binary_search_by_key(&index, |mark| mark.index).ok()?;
        self.entries.get(place)
    }

    /// Whether the bundle is about this entry: in a period's bundle, others are there to prove something.
    pub(crate) fn is_inside(&self, index: u64) -> bool {
        match self.manifest.scope {
            Scope::Item(_) => true,
            Scope::Period { first, end, .. } => (first..end).contains(&index),
        }
    }

    /// An entry from what was kept of it, or read again.
    pub(crate) fn entry(&self, mark: &Mark) -> io::Result<Entry> {
        if let Some(packed) = &mark.packed {
            let actor = mark.actor.and_then(|number| self.actors.get(number as usize));
            let outline = Outline { index: mark.index, at: mark.at, r#type: mark.r#type, item: self.item(mark), actor };
            return Ok(self.packing.entry(packed, &outline));
        }
        let bytes = self.read(mark.place)?;
        if Hash::of_leaf(&bytes) != mark.leaf {
            return Err(changed());
        }
        Entry::parse(&bytes).map_err(|_| changed())
    }

    /// The same, for those who want to say where it is.
    pub(crate) fn held(&self, mark: &Mark) -> io::Result<Held<'_>> {
        Ok(Held { entry: self.entry(mark)?, file: self.file(mark) })
    }

    pub(crate) fn brought(&self, entry: &Entry) -> io::Result<Brought<'_>> {
        let brings = matches!(entry.r#type, EntryType::ItemCreated | EntryType::ItemEdited);
        let document = |digest: Option<&ContentDigest>| digest.map_or(Ok(None), |digest| self.document(digest));
        Ok(Brought {
            content: document(entry.content.as_ref().filter(|_| brings))?,
            comment: document(entry.comment.as_ref())?,
            inputs: document(entry.inputs.as_ref())?,
        })
    }

    /// The entries of some types, in order.
    pub(crate) fn of_types(&self, types: &[EntryType]) -> impl Iterator<Item = io::Result<(&Mark, Entry)>> {
        let wanted = self.entries.iter().filter(move |mark| types.contains(&mark.r#type));
        wanted.map(|mark| Ok((mark, self.entry(mark)?)))
    }

    pub(crate) fn document(&self, digest: &ContentDigest) -> io::Result<Option<Cow<'_, [u8]>>> {
        let key = document_key(digest);
        let Some(place) = self.place_of(&key) else { return Ok(None) };
        let bytes = self.read(place)?;
        if sha256([&bytes]) == key { Ok(Some(bytes)) } else { Err(changed()) }
    }

    fn place_of(&self, key: &DocumentKey) -> Option<Place> {
        self.documents.get(self.find_document(key)?).map(|(_, place)| *place)
    }

    /// Which one of the documents this is.
    pub(crate) fn find_document(&self, key: &DocumentKey) -> Option<usize> {
        let (from, until) = (self.beginnings.get(beginning(key))?, self.beginnings.get(beginning(key) + 1)?);
        let (from, until) = (*from as usize, *until as usize);
        let alike = self.documents.get(from..until)?;
        alike.binary_search_by_key(&key, |(key, _)| key).ok().map(|place| from + place)
    }

    /// The digests of all documents, in order.
    pub(crate) fn documents(&self) -> impl ExactSizeIterator<Item = &DocumentKey> {
        self.documents.iter().map(|(key, _)| key)
    }

    /// The path to the root of one entry, and the name of its file. It needs no second look at its hash: what it says is
    /// proved or not.
    pub(crate) fn proof(&self, index: u64) -> io::Result<Option<(&str, String)>> {
        let Some((path, place)) = self.proofs.get(&index) else { return Ok(None) };
        let text = String::from_utf8(self.read(*place)?.into_owned()).map_err(|_| changed())?;
        Ok(Some((path, text)))
    }

    pub(crate) fn proofs(&self) -> impl ExactSizeIterator<Item = (u64, &str)> {
        self.proofs.iter().map(|(index, (path, _))| (*index, &**path))
    }

    fn read(&self, place: Place) -> io::Result<Cow<'_, [u8]>> {
        self.source.read(place.at, u64::from(place.size))
    }
}
