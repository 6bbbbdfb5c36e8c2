"""Bundles: the container, the manifest, and every file read into what it says."""

import re
import struct
import zlib
from dataclasses import dataclass, field

from .formats import (ACTOR, DIGEST, ROLES, UUID, WHITE_SPACE, canonical, is_number, is_text, matches, parse_number,
                      parse_time, same, sha256, strict_json, written_time)
from .log import open_note
from .rules import Definition

# In the order in which they are made: if one of the first four fails, nothing after it could be trusted.
CHECKS = ("container", "manifest", "files", "checkpoint", "witnesses", "inclusion", "completeness", "times",
          "documents", "legality")


@dataclass
class Fault(Exception):
    """Something that is wrong. `rule` is the name that `pilot evidence verify` gives it too."""

    check: str
    rule: str
    what: str
    entry: int | None = None
    item: str | None = None

    def place(self):
        """Faults are listed by check, then by entry; those about no entry first."""
        return CHECKS.index(self.check), -1 if self.entry is None else self.entry


# ---- the container


def is_plain_path(path):
    return bool(re.fullmatch(r"[a-z0-9._/-]{1,200}", path)) and all(part.strip(".") for part in path.split("/"))


def read_container(data):
    """The files of a bundle as (path, bytes, checksum is right), in order.

    A bundle is a zip in exactly one form. The list at its end is built again from the files and compared byte by byte,
    so nothing can hide between, behind or beside them.
    """
    files, seen, directory, at = [], set(), b"", 0

    def wrong(what):
        return Fault("container", "container", f"byte {at}: {what}")

    while data[at: at + 4] == b"PK\x03\x04":
        if len(data) < at + 30:
            raise wrong("the bundle is cut off in the middle of a file")
        checksum, size = struct.unpack_from("<II", data, at + 14)
        name_length, = struct.unpack_from("<H", data, at + 26)
        name, start = data[at + 30: at + 30 + name_length], at + 30 + name_length
        if len(name) < name_length or not is_plain_path(name.decode("latin-1")):
            raise wrong("a file is cut off, or has a name that a bundle may not contain")
        path, content = name.decode(), data[start: start + size]
        common = struct.pack("<HHHHIIIHH", 0, 0, 0, 0x21, checksum, size, size, name_length, 0)
        header = b"PK\x03\x04" + struct.pack("<H", 20) + common
        if data[at: at + 30] != header or len(content) < size:
            raise wrong(f"the header of {path} is not one that a bundle may have, or the file is cut off")
        if path in seen:
            raise wrong(f"{path} appears twice")
        seen.add(path)
        files.append((path, content, zlib.crc32(content) == checksum))
        directory += central_header(name, common, at)
        at = start + size
    if not files or data[at:] != directory + directory_end(len(files), len(directory), at):
        raise wrong("expected another file or the list of files")
    return files


def central_header(name, common, offset):
    """What the list at the end says about one file; the long form only for one that begins beyond 4 GiB."""
    is_far = offset >= 2**32 - 1
    version = struct.pack("<HH", *(2 * [45 if is_far else 20]))
    lengths = common[:-2] + struct.pack("<HHHHI", 12 if is_far else 0, 0, 0, 0, 0)
    extra = struct.pack("<HHQ", 1, 8, offset) if is_far else b""
    return b"PK\x01\x02" + version + lengths + struct.pack("<I", min(offset, 2**32 - 1)) + name + extra


def directory_end(count, size, start):
    """The end record, in the long form if, and only if, the short one is not enough."""
    end = b"PK\x05\x06" + struct.pack("<IHHIIH", 0, *(2 * [min(count, 2**16 - 1)]), min(size, 2**32 - 1),
                                      min(start, 2**32 - 1), 0)
    if count < 2**16 - 1 and size < 2**32 - 1 and start < 2**32 - 1:
        return end
    long = b"PK\x06\x06" + struct.pack("<QHHQQQQQ", 44, 45, 45, 0, count, count, size, start)
    return long + b"PK\x06\x07" + struct.pack("<IQI", 0, start + size, 1) + end


# ---- the manifest

PIECES = {
    "fixed": re.compile(r"manifest|checkpoint|checkpoints/from|checkpoints/to|proofs/from\.edge|proofs/consistency"
                        r"|report\.html"),
    "entries": re.compile(r"entries/([0-9]{12,})\.jsonl"),
    "proof": re.compile(r"proofs/([0-9]{12,})\.tlog-proof"),
    "kept_consistency": re.compile(r"proofs/([0-9]{12,})\.consistency"),
    "kept_checkpoint": re.compile(r"checkpoints/([0-9]{12,})"),
    "document": re.compile(r"documents/([0-9a-f]{64})\.json"),
    "definition": re.compile(r"definitions/([0-9a-f]{64})\.json"),
    "definition_text": re.compile(r"definitions/([0-9a-f]{64})\.toml"),
    "role_map": re.compile(r"role-maps/([0-9a-f]{64})\.json"),
}


def piece_of(path):
    """What a file is, by its path alone: (kind, index or digest). None if a bundle has no such file."""
    for kind, pattern in PIECES.items():
        if found := pattern.fullmatch(path):
            name = found[1] if pattern.groups else path
            if pattern.groups and not re.fullmatch("[0-9a-f]{64}", name):
                name = int(name) if f"{int(name):012}" == found[1] and int(name) < 2**64 else None
            return None if name is None else (kind, name)
    return None


# Why something is not in a bundle: said by the service, and believed by nobody.
ABSENCES = "(?:erased|token|not_asked_for|too_long|failed)"


@dataclass
class Manifest:
    """What the bundle is about, and every file with its hash, as the log signed it."""

    item: str | None = None
    period: tuple | None = None  # (from, to, first, end): times, and the range of entries
    files: list = field(default_factory=list)  # (sha256 in hexadecimal, path)

    @staticmethod
    def parse(text, origin):
        """Line by line, each in the only form it may have."""
        lines = text[:-1].split("\n")
        manifest = Manifest()
        if len(lines) < 4 or lines[:2] != ["pilot evidence manifest v1", "origin " + origin]:
            raise ValueError("this is not a bundle manifest of " + origin)
        rest = lines[3:]
        if found := re.fullmatch(f"scope item ({UUID})", lines[2]):
            manifest.item = found[1]
        elif (found := re.fullmatch("scope period (.*) (.*)", lines[2])) and (
                numbers := re.fullmatch("range (.*) (.*)", rest.pop(0))):
            manifest.period = (*map(written_time, found.groups()), *map(parse_number, numbers.groups()))
        if not (manifest.item or manifest.period and None not in manifest.period):
            raise ValueError("the manifest's scope is malformed")
        if not rest or not rest[0].startswith("made ") or written_time(rest.pop(0)[5:]) is None:
            raise ValueError("the manifest does not say when it was made")
        if rest and re.fullmatch("cosigned (0|[1-9][0-9]*) of (0|[1-9][0-9]*)", rest[0]):
            rest.pop(0)
        absent = []
        while rest and (found := re.fullmatch(f"absent ([^ ]*) {ABSENCES}", rest[0])):
            absent.append(found[1])
            rest.pop(0)
        if absent != sorted(set(absent)):
            raise ValueError("what is absent is not sorted")
        for line in rest:
            found = re.fullmatch("([0-9a-f]{64})  (.*)", line)
            if not found or not is_plain_path(found[2]):
                raise ValueError("the manifest has a line that does not list a file")
            manifest.files.append(found.groups())
        return manifest


def open_manifest(files, key):
    path, data, is_whole = files[-1]
    try:
        if path != "manifest" or not is_whole:
            raise ValueError("it is not the last file, or its bytes were changed")
        text, signatures = open_note(data.decode(), key)
        if signatures != 1:
            raise ValueError("it must carry the log's signature and no other")
        return Manifest.parse(text, key.name)
    except ValueError as error:
        raise Fault("manifest", "manifest", f"manifest: {error}") from None


def compare_with_manifest(files, manifest):
    """Every listed file must be there, in this order, and no other; only documents and the report may be missing."""
    faults, there = [], {path for path, _, _ in files}
    listed = {path: digest for digest, path in manifest.files}

    def wrong(path, what):
        faults.append(Fault("files", "files", f"{path}: {what}"))

    if len(listed) != len(manifest.files):
        wrong("manifest", "it lists a file twice")
    for _, path in manifest.files:
        piece = piece_of(path)
        if path not in there and not (piece and (piece[0] == "document" or path == "report.html")):
            wrong(path, "the manifest lists it, but it is missing")
    expected = iter([path for _, path in manifest.files if path in there])
    for path, data, is_whole in files[:-1]:
        if path not in listed:
            wrong(path, "it is not listed in the manifest")
            continue
        is_next = next(expected, None) == path
        if sha256(data).hex() != listed[path] or not is_whole:
            wrong(path, "its bytes were changed: they do not match the hash in the manifest")
        elif not is_next:
            wrong(path, "it is not at the position the manifest gives")
    return faults


# ---- entries

TYPES = ("item.created", "item.edited", "item.transition", "item.comment", "permit.issued", "access.refused",
         "access.token_exposed", "credential.first_used", "credential.refused", "credential.expired",
         "credential.revoked", "credentials.changed", "credentials.trusted", "service.started", "ledger.restored",
         "documents.erased", "clock.accepted")


# Each member of an entry, and what its value must be. All but the last four are optional.
MEMBERS = {
    "action": is_text, "actor_id": matches(ACTOR), "comment": matches(DIGEST), "content": matches(DIGEST),
    "definition": is_text, "details": lambda value: True, "from": is_text, "inputs": matches(DIGEST),
    "item": matches(UUID), "role": ROLES.__contains__, "to": is_text, "version": is_number,
    "at": lambda value: parse_time(value) is not None, "index": is_number, "type": TYPES.__contains__,
    "v": lambda value: is_number(value, 32),
}


@dataclass
class Entry:
    """One line of the ledger. `members` is what it says, `at` its time in microseconds."""

    members: dict
    data: bytes
    file: str
    at: int

    def get(self, name):
        return self.members.get(name)

    @property
    def index(self):
        return self.members["index"]


def parse_entry(data, file):
    """Reads an entry; ValueError if these bytes are not one."""
    members = strict_json(data)
    if not isinstance(members, dict):
        raise ValueError("it is not an object")
    if is_number(members.get("v")) and members["v"] > 1:
        raise ValueError("its format is newer than this verifier")
    for name in list(MEMBERS)[-4:]:
        if members.get(name) is None:
            raise ValueError(f"{name} is missing")
    for name, value in members.items():
        if name not in MEMBERS or value is not None and not MEMBERS[name](value):
            raise ValueError(f"{name} is not a member of an entry, or malformed")
    return Entry(members, data, file, parse_time(members["at"]))


def is_canonical_entry(entry):
    is_written = written_time(entry.get("at")) is not None and None not in entry.members.values()
    return is_written and canonical(entry.members).encode() == entry.data


def read_entries(path, data, first, earlier, faults):
    """The entries of one file, appended to `earlier`."""

    def wrong(what, index=None):
        faults.append(Fault("files", "format", f"{path}: {what}", index))

    if not data.endswith(b"\n"):
        return wrong("its last line has no line break")
    lines = data[:-1].split(b"\n")
    if len(lines) > 256:
        wrong("it has more than 256 entries")
    for number, line in enumerate(lines):
        try:
            entry = parse_entry(line, path)
        except ValueError as error:
            wrong(f"line {number + 1} is not an entry: {error}")
            continue
        if entry.get("v") != 1:
            wrong("its format is not supported", entry.index)
        elif not is_canonical_entry(entry):
            wrong("it is not in canonical form", entry.index)
        if number == 0 and entry.index != first:
            wrong("its file is not named after it", entry.index)
        if earlier and earlier[-1].index >= entry.index:
            wrong("it is not in the order of the ledger", entry.index)
        earlier.append(entry)
    return None


@dataclass
class Contents:
    """Everything in a bundle whose bytes are those the log signed."""

    manifest: Manifest
    entries: list = field(default_factory=list)
    texts: dict = field(default_factory=dict)
    proofs: dict = field(default_factory=dict)  # index: text
    kept: dict = field(default_factory=dict)  # size: [checkpoint, consistency proof or None]
    documents: dict = field(default_factory=dict)  # digest: bytes
    definitions: dict = field(default_factory=dict)  # digest: Definition
    role_maps: dict = field(default_factory=dict)  # digest: {actor: role}

    def is_inside(self, index):
        """Whether an entry is one the bundle is about, not one that only shows where it begins."""
        return self.manifest.item is not None or self.manifest.period[2] <= index < self.manifest.period[3]

    def take(self, path, data, faults):
        """Reads one file; ValueError says what is wrong with it."""
        piece = piece_of(path)
        if piece is None:
            raise ValueError("a bundle has no file with this name")
        kind, name = piece
        digest = "sha256:" + sha256(data).hex()
        if kind in ("document", "definition", "role_map") and digest != f"sha256:{name}":
            raise ValueError(f"its bytes have the digest {digest}")
        if kind == "entries":
            read_entries(path, data, name, self.entries, faults)
        elif kind == "document":
            self.documents[digest] = data
        elif kind == "definition":
            self.definitions[digest] = Definition(data, digest)
        elif kind == "role_map":
            self.role_maps[digest] = parse_role_map(data)
        elif kind == "proof":
            self.proofs[name] = data.decode()
        elif kind in ("kept_checkpoint", "kept_consistency"):
            self.kept.setdefault(name, [None, None])[kind == "kept_consistency"] = data.decode()
        elif kind == "fixed" and path not in ("manifest", "report.html"):
            self.texts[path] = data.decode()


def open_bundle(data, key):
    """Checks container, manifest and hashes, and reads every file. Raises a list of faults as Broken."""
    try:
        files = read_container(data)
        manifest = open_manifest(files, key)
    except Fault as fault:
        raise Broken([fault]) from None
    if faults := compare_with_manifest(files, manifest):
        raise Broken(faults)
    contents = Contents(manifest)
    for path, content, _ in files:
        try:
            contents.take(path, content, faults)
        except ValueError as error:
            faults.append(Fault("files", "format", f"{path}: {error}"))
    if faults:
        raise Broken(faults)
    return contents


class Broken(Exception):
    """A bundle that cannot be read any further: later checks would trust what nobody signed."""

    def __init__(self, faults):
        super().__init__()
        self.faults = faults


def parse_role_map(data):
    """Who was approved for which role. Strict, because it was approved by people who read it."""
    value = strict_json(data)
    is_shaped = isinstance(value, dict) and set(value) == {"schema_version", "approved_by", "actors"}
    if not is_shaped or not same(value["schema_version"], 1) or not isinstance(value["actors"], list):
        raise ValueError("a role map has schema_version 1, approved_by and actors")
    names = value["approved_by"]
    if not isinstance(names, list) or not all(is_text(name) and name.strip(WHITE_SPACE) for name in names):
        raise ValueError("approved_by lists the names of people")
    roles, subjects = {}, set()
    for actor in value["actors"]:
        known = {"actor_id", "role", "kind", "subject"}
        if not isinstance(actor, dict) or not {"actor_id", "role"} <= set(actor) <= known:
            raise ValueError("an actor has actor_id and role, and may have kind and subject")
        subject = actor.get("subject", actor["actor_id"])
        if not matches(ACTOR)(actor["actor_id"]) or actor["role"] not in ROLES or not is_text(subject):
            raise ValueError("an actor's actor_id, role or subject is malformed")
        if actor.get("kind", "human") not in ("human", "machine") or subject in subjects:
            raise ValueError("an actor's kind is unknown, or its subject is another's too")
        subjects.add(subject)
        roles[actor["actor_id"]] = actor["role"]
    folded = {name.lower() for name in roles}
    if len(folded) != len(value["actors"]) or len({name.lower() for name in names}) != len(names):
        raise ValueError("an actor or an approving person is listed twice")
    return roles
