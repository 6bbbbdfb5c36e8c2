"""Bundles: the container, the manifest, and how each file is read."""
import re
import struct
import zlib
from unicodedata import category

from .formats import (ACTOR, DIGEST, HEX, NOT_BLANK, NUMBER, ROLE, UUID, WRITTEN_TIME, canonical, check_note, fits,
                      is_number, is_time, need, parse_note, parse_time, read_json, sha256)
from .rules import read_definition

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
        path = name.decode("latin-1")
        common = struct.pack("<HHHHIIIHH", 0, 0, 0, 0x21, checksum, size, size, name_length, 0)
        is_right = data[at: start] == b"PK\x03\x04\x14\x00" + common + name and fits(PATH, path) and path not in files
        need(is_right, f"byte {at}: this header is not one that a bundle may have here")
        files[path] = content, zlib.crc32(content) == checksum
        # The long form only for a file that begins beyond 4 GiB.
        version, extra = (45, struct.pack("<HHQ", 1, 8, at)) if at >= LONG else (20, b"")
        directory += b"PK\x01\x02" + struct.pack("<HH", version, version) + common[:-2]
        directory += struct.pack("<HHHHII", len(extra), 0, 0, 0, 0, min(at, LONG)) + name + extra
        at = start + size
    count, size = len(files), len(directory)
    shown = [min(count, SHORT), min(count, SHORT), min(size, LONG), min(at, LONG)]
    end = struct.pack("<4sIHHIIH", b"PK\x05\x06", 0, *shown, 0)
    # Likewise, the long form only if the short one is not enough.
    if count >= SHORT or size >= LONG or at >= LONG:
        long = struct.pack("<4sQHHQQQQQ", b"PK\x06\x06", 44, 45, 45, 0, count, count, size, at)
        end = long + struct.pack("<4sIQI", b"PK\x06\x07", 0, at + size, 1) + end
    need(files and data[at:] == directory + end, f"byte {at}: expected another file or the list of files")
    return files

# Why something is absent is said by the service, and believed by nobody.
MANIFEST = (rf"pilot evidence manifest v1\norigin (?P<origin>.*)\nscope (?:item (?P<item>{UUID})|period (?P<since>"
            rf"{WRITTEN_TIME}) (?P<until>{WRITTEN_TIME})\nrange (?P<first>{NUMBER}) (?P<end>{NUMBER}))\n"
            rf"made (?P<made>{WRITTEN_TIME})\n(?:cosigned {NUMBER} of {NUMBER}\n)?"
            r"(?P<absent>(?:absent [^ \n]* (?:erased|token|not_asked_for|too_long|failed)\n)*)"
            rf"(?P<files>(?:{HEX}  {PATH}\n)*)")

def open_manifest(files, key):
    """What the log signed: the item, or None and (times from and to, first entry, end); and [(sha256, path)]."""
    need(list(files)[-1] == "manifest" and files["manifest"][1], "it is not the last file, or was changed")
    note = files["manifest"][0].decode()
    (text, times), lines = check_note(note, key), parse_note(note)[1]
    found = re.fullmatch(MANIFEST, text)
    need(found and times and found["origin"] == key.name and len(lines) == 1, "this log alone has not signed it")
    times = [parse_time(found[name]) for name in ("made", "since", "until") if found[name]]
    absent = re.findall("absent ([^ ]*) ", found["absent"])
    need(None not in times and absent == sorted(set(absent)), "a time does not exist, or what is absent is not sorted")
    period = None if found["item"] else (*times[1:], int(found["first"]), int(found["end"]))
    return found["item"], period, re.findall("(.*)  (.*)\n", found["files"])

def changed_files(files, listed):
    """The paths of files that are not as they are listed, or where; only documents and the report may be missing."""
    digests = {path: digest for digest, path in listed}
    wrong = ["manifest"] if len(digests) < len(listed) else []
    wrong += [path for path in digests if path not in files and not fits(rf"report\.html|documents/{HEX}\.json", path)]
    expected = iter([path for path in digests if path in files])
    for path, (data, is_whole) in list(files.items())[:-1]:
        is_next = path in digests and next(expected, None) == path
        wrong += [] if is_next and is_whole and sha256(data).hex() == digests[path] else [path]
    return wrong

MAYBE = {"action": str, "actor_id": ACTOR, "comment": DIGEST, "content": DIGEST, "definition": str, "details": object,
         "from": str, "inputs": DIGEST, "item": UUID, "operated_by": ACTOR, "role": ROLE, "to": str, "version": int}
TYPE = (r"item\.(created|edited|transition|comment)|permit\.issued|access\.(refused|token_exposed)|service\.started"
        r"|credential\.(first_used|refused|expired|revoked)|credentials\.(changed|trusted)|ledger\.restored"
        r"|documents\.erased|clock\.accepted")
ENTRY = {"at": is_time, "index": int, "type": TYPE, "v": lambda value: is_number(value, bits=2) and value < 3,
         **{name + "?": (None, shape) for name, shape in MAYBE.items()}, "*": None}

class Entry(dict):
    """One line of the ledger."""
    def __init__(self, data):
        super().__init__(read_json(data, ENTRY, is_canonical=False))
        self.data, self.index, self.at = data, self["index"], parse_time(self["at"])
        # Each entry has the oldest format that can say what it says.
        is_plain = self["v"] == 1 + ("operated_by" in self) and fits(WRITTEN_TIME, self["at"]) and None not in self.values()
        self.is_canonical = is_plain and canonical(self).encode() == data

def is_name(value):
    """What an authority calls someone: no space at either end, no control character."""
    is_plain = isinstance(value, str) and 1 <= len(value) <= 512 and not any(category(one) == "Cc" for one in value)
    return is_plain and value.strip() == value

def is_issuer(value):
    return is_name(value) or isinstance(value, list) and 1 <= len(value) <= 4 and all(map(is_name, value))

def is_limit(value):
    """A whole number from 1 to 1,000, however it is written."""
    written = canonical(value)
    return written.isascii() and written.isdigit() and 1 <= int(written[:5]) <= 1_000

ROLE_MAP = {"schema_version": lambda value: canonical(value) == "1", "approved_by": [NOT_BLANK], "actors": [
    {"actor_id": ACTOR, "role": ROLE, "kind?": "human|machine", "operated_by?": ACTOR, "max_open_items?": is_limit,
     "subject?": is_name, "issuer?": is_issuer}]}

def read_role_map(data):
    """Who was approved for which role, and operated by whom. Strict, because people read and approved it."""
    value = read_json(data, ROLE_MAP, is_canonical=False)
    # Letter case is ignored for ASCII only.
    folded = [name.encode().lower() for name in value["approved_by"]]
    actors, approved_by = value["actors"], folded
    subjects = [actor.get("subject", actor["actor_id"]) for actor in actors]
    for names in (approved_by, subjects, [actor["actor_id"].lower() for actor in actors]):
        need(len(set(names)) == len(names), "an actor, a subject or an approving person is listed twice")
    machines = {actor["actor_id"]: actor.get("kind") == "machine" for actor in actors}
    for actor in actors:
        is_machine, operator = machines[actor["actor_id"]], actor.get("operated_by")
        need(is_machine or operator is None and "max_open_items" not in actor, "a person has what only machines have")
        need(operator is None or machines.get(operator) is False, "the operator of a machine is no person of the map")
    return {actor["actor_id"]: (actor["role"], actor.get("operated_by")) for actor in actors}

INDEX = "([0-9]{12}|[1-9][0-9]{12,19})"
# What each file is, by its path, and how it is read.
PIECES = {
    "entries": (rf"entries/{INDEX}\.jsonl", bytes),
    "proof": (rf"proofs/{INDEX}\.tlog-proof", bytes.decode),
    "checkpoint": (f"checkpoints/{INDEX}", bytes.decode),
    "consistency": (rf"proofs/{INDEX}\.consistency", bytes.decode),
    "stamped": (f"timestamps/{INDEX}", bytes.decode),
    "timestamp": (rf"timestamps/{INDEX}\.tsr", bytes),
    "document": (rf"documents/({HEX})\.json", bytes),
    "definition": (rf"definitions/({HEX})\.json", read_definition),
    "role_map": (rf"role-maps/({HEX})\.json", read_role_map),
    "text": (r"(checkpoint|checkpoints/from|checkpoints/to|proofs/from\.edge|proofs/consistency)", bytes.decode),
    "for_people": (rf"(manifest|report\.html|definitions/{HEX}\.toml)", bytes)}

def read_piece(path, data):
    """What a file is; its index, digest or path; what it says."""
    found = [(kind, match[1]) for kind, (pattern, _) in PIECES.items() if (match := re.fullmatch(pattern, path))]
    need(found, "a bundle has no file with this name")
    kind, name = found[0]
    need(not fits(HEX, name) or sha256(data).hex() == name, "its bytes have another digest")
    return kind, "sha256:" + name if fits(HEX, name) else int(name) if name.isdigit() else name, PIECES[kind][1](data)
