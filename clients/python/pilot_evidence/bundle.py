"""Bundles: the container, the manifest, and every file read into what it says."""
import re
import struct
import zlib

from .formats import (ACTOR, DIGEST, HEX, NOT_BLANK, NUMBER, ROLE, UUID, WRITTEN_TIME, Fault, canonical, fits, is_time,
                      is_number, open_note, parse_note, parse_time, sha256, strict_json)
from .rules import Definition

SHORT, LONG = 2**16 - 1, 2**32 - 1
# No part of a path consists only of dots.
PATH = r"(?![^\n]{201})[.]*[a-z0-9_-][a-z0-9._-]*(?:/[.]*[a-z0-9_-][a-z0-9._-]*)*"

def read_container(data):
    """The files of a bundle: {path: (bytes, checksum is right)}, in order. A bundle is a zip in exactly one form: what
    its headers and the list at its end must be is built from the files and compared, so nothing hides between them."""
    files, directory, at = {}, b"", 0
    while data[at: at + 4] == b"PK\x03\x04":
        checksum, size, _, name_length = struct.unpack_from("<IIIH", data[at: at + 30].ljust(30), 14)
        start = at + 30 + name_length
        name, content = data[at + 30: start], data[start: start + size]
        common = struct.pack("<HHHHIIIHH", 0, 0, 0, 0x21, checksum, size, size, name_length, 0)
        path = name.decode("latin-1")
        if data[at: start] != b"PK\x03\x04\x14\x00" + common + name or not fits(PATH, path) or path in files:
            raise Fault("container", "container", f"byte {at}: this header is not one that a bundle may have here")
        files[path] = content, zlib.crc32(content) == checksum
        # The long form only for a file that begins beyond 4 GiB.
        version, extra = (45, struct.pack("<HHQ", 1, 8, at)) if at >= LONG else (20, b"")
        directory += b"PK\x01\x02" + struct.pack("<HH", version, version) + common[:-2]
        directory += struct.pack("<HHHHII", len(extra), 0, 0, 0, 0, min(at, LONG)) + name + extra
        at = start + size
    if not files or data[at:] != directory + directory_end(len(files), len(directory), at):
        raise Fault("container", "container", f"byte {at}: expected another file or the list of files")
    return files

def directory_end(count, size, start):
    """The end record, in the long form if, and only if, the short one is not enough."""
    end = struct.pack("<4sIHHIIH", b"PK\x05\x06", 0, min(count, SHORT), min(count, SHORT), min(size, LONG),
                      min(start, LONG), 0)
    if count < SHORT and size < LONG and start < LONG:
        return end
    long = struct.pack("<4sQHHQQQQQ", b"PK\x06\x06", 44, 45, 45, 0, count, count, size, start)
    return long + struct.pack("<4sIQI", b"PK\x06\x07", 0, start + size, 1) + end

# Why something is absent is said by the service, and believed by nobody.
MANIFEST = (rf"pilot evidence manifest v1\norigin (?P<origin>.*)\nscope (?:item (?P<item>{UUID})|period (?P<since>"
            rf"{WRITTEN_TIME}) (?P<until>{WRITTEN_TIME})\nrange (?P<first>{NUMBER}) (?P<end>{NUMBER}))\n"
            rf"made (?P<made>{WRITTEN_TIME})\n(?:cosigned {NUMBER} of {NUMBER}\n)?"
            r"(?P<absent>(?:absent [^ \n]* (?:erased|token|not_asked_for|too_long|failed)\n)*)"
            rf"(?P<files>(?:{HEX}  {PATH}\n)*)")

def open_manifest(files, key):
    """What the bundle is about, an item or a period, and [(sha256, path)] of its files, as the log signed it."""
    try:
        note, is_whole = files["manifest"][0].decode(), files["manifest"][1]
        found = re.fullmatch(MANIFEST, open_note(note, key))
        is_right = found and found["origin"] == key.name and len(parse_note(note)[1]) == 1
        if not is_right or list(files)[-1] != "manifest" or not is_whole:
            raise ValueError("it must be a manifest of this log, signed by nobody else, unchanged, and the last file")
        times = [parse_time(found[name]) for name in ("made", "since", "until") if found[name]]
        absent = re.findall("absent ([^ ]*) ", found["absent"])
        if None in times or absent != sorted(set(absent)):
            raise ValueError("a time does not exist, or what is absent is not sorted")
    except (KeyError, ValueError) as error:
        raise Fault("manifest", "manifest", f"manifest: {error}") from None
    period = None if found["item"] else (*times[1:], int(found["first"]), int(found["end"]))
    return found["item"], period, re.findall("(.*)  (.*)\n", found["files"])

def compare_with_manifest(files, listed_files, faults):
    """Every listed file must be there, in this order, and no other; only documents and the report may be missing."""
    def wrong(path, what):
        faults.append(Fault("files", "files", f"{path}: {what}"))
    listed = {path: digest for digest, path in listed_files}
    if len(listed) != len(listed_files):
        wrong("manifest", "it lists a file twice")
    for path in listed:
        if path not in files and not re.fullmatch(rf"report\.html|documents/{HEX}\.json", path):
            wrong(path, "the manifest lists it, but it is missing")
    expected = iter([path for path in listed if path in files])
    for path, (data, is_whole) in list(files.items())[:-1]:
        is_next = path in listed and next(expected, None) == path
        if path not in listed:
            wrong(path, "it is not listed in the manifest")
        elif sha256(data).hex() != listed[path] or not is_whole:
            wrong(path, "its bytes were changed: they do not match the hash in the manifest")
        elif not is_next:
            wrong(path, "it is not at the position the manifest gives")

ENTRY = {
    "action?": str, "actor_id?": ACTOR, "comment?": DIGEST, "content?": DIGEST, "definition?": str, "details?": object,
    "from?": str, "inputs?": DIGEST, "item?": UUID, "role?": ROLE, "to?": str, "version?": int, "at": is_time,
    "index": int, "v": lambda value: is_number(value, bits=1),
    "type": r"item\.(created|edited|transition|comment)|permit\.issued|access\.(refused|token_exposed)"
            r"|credential\.(first_used|refused|expired|revoked)|credentials\.(changed|trusted)|service\.started"
            r"|ledger\.restored|documents\.erased|clock\.accepted"}

class Entry(dict):
    """One line of the ledger."""
    def __init__(self, data):
        members = strict_json(data)
        is_table = isinstance(members, dict)
        if not is_table or not fits(ENTRY, {name: value for name, value in members.items() if value is not None}):
            raise ValueError("a member is missing, unknown or malformed, or its format is newer than this verifier")
        super().__init__(members)
        self.data, self.index, self.at = data, members["index"], parse_time(members["at"])

def read_entries(path, data, first, entries, faults):
    """The entries of one file, appended to those before them."""
    def wrong(what, index=None):
        faults.append(Fault("files", "format", f"{path}: {what}", index))
    *lines, last = data.split(b"\n")
    if last or not lines or len(lines) > 256:
        return wrong("it has more than 256 entries, or its last line has no line break")
    for number, line in enumerate(lines):
        try:
            entry = Entry(line)
        except ValueError as error:
            wrong(f"line {number + 1} is not an entry: {error}")
            continue
        is_plain = entry["v"] == 1 and fits(WRITTEN_TIME, entry["at"]) and None not in entry.values()
        if not is_plain or canonical(entry).encode() != line:
            wrong("it is not in canonical form", entry.index)
        if number == 0 and entry.index != first:
            wrong("its file is not named after it", entry.index)
        if entries and entries[-1].index >= entry.index:
            wrong("it is not in the order of the ledger", entry.index)
        entries.append(entry)

ROLE_MAP = {"schema_version": lambda value: canonical(value) == "1", "approved_by": [NOT_BLANK], "actors": [
    {"actor_id": ACTOR, "role": ROLE, "kind?": "human|machine", "subject?": str}]}

def parse_role_map(data):
    """Who was approved for which role. Strict, because it was approved by people who read it."""
    value = strict_json(data)
    if not fits(ROLE_MAP, value):
        raise ValueError("a member is missing, unknown or malformed")
    actors, names = value["actors"], [name.lower() for name in value["approved_by"]]
    subjects = {actor.get("subject", actor["actor_id"]) for actor in actors}
    folded = {actor["actor_id"].lower() for actor in actors}
    if not len(subjects) == len(folded) == len(actors) or len(set(names)) != len(names):
        raise ValueError("an actor, a subject or an approving person is listed twice")
    return {actor["actor_id"]: actor["role"] for actor in actors}

INDEX = "([0-9]{12}|[1-9][0-9]{12,19})"
# What each file is, by its path, and how it is read. None: not at all.
PIECES = {
    "entries": (rf"entries/{INDEX}\.jsonl", None),
    "proof": (rf"proofs/{INDEX}\.tlog-proof", bytes.decode),
    "checkpoint": (f"checkpoints/{INDEX}", bytes.decode),
    "consistency": (rf"proofs/{INDEX}\.consistency", bytes.decode),
    "document": (rf"documents/({HEX})\.json", bytes),
    "definition": (rf"definitions/({HEX})\.json", Definition),
    "role_map": (rf"role-maps/({HEX})\.json", parse_role_map),
    "text": (r"(checkpoint|checkpoints/from|checkpoints/to|proofs/from\.edge|proofs/consistency)", bytes.decode),
    "for_people": (rf"(manifest|report\.html|definitions/{HEX}\.toml)", bytes)}

class Bundle:
    """Everything in a bundle whose bytes are those the log signed. Adds to `faults` if there is anything else."""
    def __init__(self, data, key, faults):
        files = read_container(data)
        self.item, self.period, listed = open_manifest(files, key)  # period: times from and to, first entry, end
        self.entries, self.pieces = [], {kind: {} for kind in PIECES}  # kind: {index, digest or path: what it says}
        compare_with_manifest(files, listed, faults)
        for path, (content, _) in files.items() if not faults else ():
            try:
                self.take(path, content, faults)
            except ValueError as error:
                faults.append(Fault("files", "format", f"{path}: {error}"))

    def take(self, path, data, faults):
        found = {kind: match[1] for kind, (pattern, _) in PIECES.items() if (match := re.fullmatch(pattern, path))}
        if not found:
            raise ValueError("a bundle has no file with this name")
        [(kind, name)] = found.items()
        if kind == "entries":
            return read_entries(path, data, int(name), self.entries, faults)
        if fits(HEX, name) and sha256(data).hex() != name:
            raise ValueError("its bytes have another digest")
        name = "sha256:" + name if fits(HEX, name) else int(name) if name.isdigit() else name
        self.pieces[kind][name] = PIECES[kind][1](data)

    def is_inside(self, index):
        """Whether an entry is one the bundle is about, not one that only shows where it begins."""
        return self.item is not None or self.period[2] <= index < self.period[3]
