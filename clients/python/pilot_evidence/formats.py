"""What everything else is made of: JSON, times and shapes of values; the keys, notes and the tree of the log. Whatever
cannot be read raises ValueError."""
import base64
import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from math import isfinite

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SECOND = 1_000_000
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
HEX = "[0-9a-f]{64}"
DIGEST = "sha256:" + HEX
NUMBER = "(?:0|[1-9][0-9]{0,19})"
ACTOR = "[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,127}"
ROLE = "initiator|approver|security_admin|executor|auditor"
# Python's \s is the Unicode property White_Space and four control characters.
NOT_BLANK = r"(?s).*[\S\x1c-\x1f].*"

@dataclass
class Fault(Exception):
    """Something that is wrong. `rule` is the name that `pilot evidence verify` gives it too."""
    check: str
    rule: str
    what: str
    entry: int | None = None
    item: str | None = None

def strict_json(data):
    """Reads JSON of which there is only one reading: no repeated members, no numbers that a double cannot hold."""
    def unrepeated(pairs):
        if len(dict(pairs)) != len(pairs):
            raise ValueError("a member is given more than once")
        return dict(pairs)
    try:
        value = json.loads(data.decode(), object_pairs_hook=unrepeated, parse_int=parse_number,
                           parse_float=parse_number, parse_constant=parse_number)
        if depth(value) <= 127:
            return value
    except RecursionError:
        pass
    raise ValueError("it is nested too deep")

def parse_number(text):
    if not isfinite(float(text)):
        raise ValueError("a number is out of range")
    return int(text) if re.fullmatch("-?[0-9]+", text) else float(text)

def depth(value):
    """How deep arrays and objects are nested."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)

def canonical(value):
    """The text of a value by RFC 8785. Two values are equal if their texts are."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{canonical(name)}:{canonical(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return canonical_number(float(value))
    return json.dumps(value, ensure_ascii=False)

def canonical_number(number):
    """As ECMAScript writes it: with an exponent only below 1e-6 and from 1e21 on, which has no leading zero."""
    if number == 0:
        return "0"
    if 1e-6 <= abs(number) < 1e21:
        return format(Decimal(repr(number)).normalize(), "f")
    return repr(number).replace("e-0", "e-")

def is_number(value, bits=64):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**bits

def fits(shape, value):
    """Whether a value has a shape: a pattern, or `str`, for text; `int` for a whole number of 64 bits; (shape, shape)
    for either; [shape] for a list; for an object a shape for each member, with `?` after the name if it may be absent,
    and "*" if there may be others; None and True for themselves; or a function that says so."""
    if shape is None or shape is True:
        return value is shape
    if isinstance(shape, str):
        return isinstance(value, str) and re.fullmatch(shape, value) is not None
    if isinstance(shape, tuple):
        return any(fits(option, value) for option in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(shape[0], one) for one in value)
    if isinstance(shape, dict):
        known = {name.removesuffix("?"): member for name, member in shape.items()}
        return (isinstance(value, dict) and all(name[-1] in "?*" or name in value for name in shape)
                and all(fits(known.get(name, known.get("*", ())), value[name]) for name in value))
    return is_number(value) if shape is int else isinstance(value, shape) if isinstance(shape, type) else shape(value)

# Times are whole microseconds since 1970. Pilot writes them in one form, and reads all of RFC 3339.
TIME = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([0-9]{2}):([0-9]{2}):([0-5][0-9]|60)(?:[.,]([0-9]{1,9}))?"
                  r"(?:[Zz]|([+-])([01][0-9]|2[0-5]):([0-5][0-9]))")
WRITTEN_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]\.[0-9]{6}Z"
TIME_LATEST = 253_402_207_200 * SECOND - 1

def parse_time(text):
    """RFC 3339; None if it is not that. Digits beyond the sixth decimal are cut off, and second 60 is 59."""
    found = TIME.fullmatch(text) if isinstance(text, str) else None
    if not found:
        return None
    year, month, day, hour, minute, second = map(int, found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    try:
        # Python has no year 0, and the calendar repeats every 400 years.
        moment = datetime(2000 + year % 400, month, day, hour, minute, min(second, 59))
    except ValueError:
        return None
    moment += timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (1 if sign == "-" else -1)
    since = moment - datetime(1970, 1, 1) + timedelta(days=146_097) * (year // 400 - 5)
    micros = (since.days * 86_400 + since.seconds) * SECOND + int((fraction or "").ljust(6, "0")[:6])
    return micros if micros <= TIME_LATEST else None

def is_time(value):
    return parse_time(value) is not None

def later(time, span):
    """A time plus a span such as 72h. Times end with the year 9999, and so do sums."""
    return min(time + int(span[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[span[-1]] * SECOND, TIME_LATEST)

# ---- keys and signed notes of C2SP, and the tree of RFC 6962
KEY_NAME = r"[^\s+\x00-\x1f\x7f-\x9f]+"

def sha256(data):
    return hashlib.sha256(data).digest()

def decode_base64(text):
    """Standard base64 in its only spelling: another spelling could carry bytes that nobody signed."""
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text:
        raise ValueError("base64 has one spelling, and this is another")
    return data

def parse_hashes(lines):
    hashes = [decode_base64(line) for line in lines]
    if any(len(data) != 32 for data in hashes):
        raise ValueError("a hash has 32 bytes")
    return hashes

@dataclass
class Key:
    """A public key as people hand it on: name+id+base64. `kind` is 1 for a log, 4 for a witness."""
    name: str
    id: bytes
    public: bytes

    @staticmethod
    def parse(line, kind):
        found = re.fullmatch(rf"({KEY_NAME})\+([0-9a-f]{{8}})\+(.*)", line.strip())
        data = decode_base64(found[3]) if found else b""
        if len(data) != 33 or data[0] != kind:
            raise ValueError("this is not a public key of the right kind: name+id+base64")
        key = Key(found[1], sha256(found[1].encode() + b"\n" + data)[:4], data[1:])
        if key.id.hex() != found[2]:
            raise ValueError("the key does not match its id; the line was changed or cut off")
        return key

    def check(self, message, signature):
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message.encode())
        except InvalidSignature:
            raise ValueError("the signature does not match the text") from None

    def signatures(self, signatures):
        return [signature for name, key_id, signature in signatures if (name, key_id) == (self.name, self.id)]

def parse_note(note):
    """A signed note: its text, and (name, key id, signature) for each of its signature lines."""
    text, gap, last = note.rpartition("\n\n")
    lines = last.split("\n")
    if not gap or lines.pop() != "" or len(lines) > 64 or re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", note):
        raise ValueError("this is not a signed note: expected a text, an empty line and at most 64 signature lines")
    signatures = []
    for line in lines:
        found = re.fullmatch(f"\u2014 ({KEY_NAME}) (.*)", line)
        data = decode_base64(found[2]) if found else b""
        if len(data) < 4:
            raise ValueError("this is not a signature line: " + line)
        signatures.append((found[1], data[:4], data[4:]))
    return text + "\n", signatures

def open_note(note, key):
    """The text of a note that this key has signed. A wrong signature in its name spoils the note."""
    text, signatures = parse_note(note)
    if not key.signatures(signatures):
        raise ValueError("the note has no signature by " + key.name)
    for signature in key.signatures(signatures):
        key.check(text, signature)
    return text

def cosigned_at(note, witness):
    """When a witness cosigned a checkpoint, in seconds since 1970, by its latest signature; None if it did not."""
    text, signatures = parse_note(note)
    times = []
    for signature in witness.signatures(signatures):
        times.append(int.from_bytes(signature[:8], "big"))
        witness.check(f"cosignature/v1\ntime {times[-1]}\n{text}", signature[8:])
        if times[-1] >= 2**63:
            raise ValueError("the time of a cosignature is out of range")
    return max(times, default=None)

@dataclass
class Checkpoint:
    """A signed statement of the log: so many entries, and this root."""
    size: int
    root: bytes

    @staticmethod
    def open(note, key):
        lines = open_note(note, key)[:-1].split("\n")
        if len(lines) < 3 or "" in lines or lines[0] != key.name or not fits(NUMBER, lines[1]):
            raise ValueError("the note is not a checkpoint of this log: it needs an origin, a size and a root")
        return Checkpoint(int(lines[1]), *parse_hashes(lines[2:3]))

def leaf_hash(data):
    return sha256(b"\x00" + data)

def node_hash(left, right):
    return sha256(b"\x01" + left + right)

def climb(node, last, start, path):
    """Follows a proof up to the root (RFC 9162, 2.1.3.2 and 2.1.4.2). Returns the roots of the tree up to this node and
    of the whole tree; None if the proof has the wrong length."""
    of_old = of_new = start
    for sibling in path:
        if last == 0:
            return None, None
        if node % 2 == 1 or node == last:
            of_old, of_new = node_hash(sibling, of_old), node_hash(sibling, of_new)
            while node % 2 == 0 and node != 0:
                node, last = node // 2, last // 2
        else:
            of_new = node_hash(of_new, sibling)
        node, last = node // 2, last // 2
    return (of_old, of_new) if last == 0 else (None, None)

def is_included(leaf, index, tree, path):
    return index < tree.size and climb(index, tree.size - 1, leaf, path)[1] == tree.root

def is_consistent(old, new, path):
    """Whether the tree of checkpoint `new` begins with that of checkpoint `old`."""
    if old.size == 0 or old.size >= new.size:
        return not path and (old.size == 0 or old == new)
    if old.size & (old.size - 1) == 0:
        path = [old.root, *path]
    node, last = old.size - 1, new.size - 1
    while node % 2 == 1:
        node, last = node // 2, last // 2
    return path != [] and climb(node, last, path[0], path[1:]) == (old.root, new.root)

def push_leaf(peaks, node):
    """Adds a leaf to the complete subtrees of a tree, [(height, hash)], largest first. Two subtrees of one height
    become one of the next, like carrying in addition."""
    height = 0
    while peaks and peaks[-1][0] == height:
        node, height = node_hash(peaks.pop()[1], node), height + 1
    peaks.append((height, node))

def root_of(peaks):
    root = peaks[-1][1] if peaks else sha256(b"")
    for _, peak in reversed(peaks[:-1]):
        root = node_hash(peak, root)
    return root
