"""JSON, times and shapes of values; keys, notes and the tree of the log. Whatever cannot be read raises ValueError."""
import base64
import hashlib
import json
import re
from collections import namedtuple
from datetime import date
from decimal import Decimal
from functools import reduce
from math import isfinite

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

SECOND = 1_000_000
UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
HEX = "[0-9a-f]{64}"
DIGEST = "sha256:" + HEX
NUMBER = "(?:0|[1-9][0-9]{0,19})"
ACTOR = "[A-Za-z0-9][A-Za-z0-9._@:/+-]{0,127}"
ROLE = "initiator|approver|security_admin|executor|auditor"
# Python's \s is the Unicode property White_Space and four control characters.
NOT_BLANK = r"(?s).*[\S\x1c-\x1f].*"

class Fault(ValueError):
    """Something that is wrong: the check that found it, the rule, as `pilot evidence verify` names it, and where."""

def need(condition, what):
    if not condition:
        raise ValueError(what)

def attempt(check, rule, what, read, *arguments):
    """Reads something. If that is not possible, nothing that follows can be checked."""
    try:
        return read(*arguments)
    except ValueError as error:
        raise Fault(check, rule, f"{what}: {error}") from None

def read_json(data, shape, is_canonical):
    """Reads JSON of which there is only one reading: no repeated members, no numbers that a double cannot hold."""
    def members(pairs):
        need(len(dict(pairs)) == len(pairs), "a member is given more than once")
        return dict(pairs)
    def number(text):
        need(isfinite(float(text)), "a number is out of range")
        return int(text) if re.fullmatch("-?[0-9]+", text) else float(text)
    try:
        value = json.loads(data.decode(), object_pairs_hook=members, parse_int=number, parse_float=number,
                           parse_constant=number)
        need(depth(value) <= 127, "it is nested too deep")
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    need(not is_canonical or canonical(value).encode() == data, "it is not in canonical form")
    need(fits(shape, value), "a member is missing, unknown or malformed, or the format is newer than this verifier")
    return value

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
    if isinstance(value, bool) or not isinstance(value, int | float):
        return json.dumps(value, ensure_ascii=False)
    # As ECMAScript writes it: with an exponent only below 1e-6 and from 1e21 on, which has no leading zero.
    number = float(value) or 0.0
    is_plain = number == 0 or 1e-6 <= abs(number) < 1e21
    return format(Decimal(repr(number)).normalize(), "f") if is_plain else repr(number).replace("e-0", "e-")

def is_number(value, bits=64):
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**bits

def fits(shape, value):
    """Whether a value has a shape: a pattern, or `str`, for text; `int` for a whole number of 64 bits; (shape, shape)
    for either; [shape] for a list, [shape, shape] for one that is not empty; for an object a shape for each member,
    with `?` after the name if it may be absent, "*" if there may be others; True, None; or a function that says so."""
    if isinstance(shape, str):
        return isinstance(value, str) and re.fullmatch(shape, value) is not None
    if isinstance(shape, tuple):
        return any(fits(option, value) for option in shape)
    if isinstance(shape, list):
        return isinstance(value, list) and len(value) >= len(shape) - 1 and all(fits(shape[0], one) for one in value)
    if isinstance(shape, dict):
        known = {name.removesuffix("?"): member for name, member in shape.items()}
        return (isinstance(value, dict) and all(name[-1] in "?*" or name in value for name in shape)
                and all(fits(known.get(name, known.get("*", ())), value[name]) for name in value))
    if isinstance(shape, type):
        return is_number(value) if shape is int else isinstance(value, shape)
    return shape(value) if callable(shape) else value is shape

# Times are whole microseconds since 1970. Pilot writes them in one form, and reads all of RFC 3339.
TIME = (r"([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt ]([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9]|60)(?:[.,]([0-9]{1,9}))?"
        r"(?:[Zz]|([+-])([01][0-9]|2[0-5]):([0-5][0-9]))")
WRITTEN_TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9]\.[0-9]{6}Z"
TIME_LATEST = 253_402_207_200 * SECOND - 1

def parse_time(text):
    """RFC 3339; None if it is not that. Digits beyond the sixth decimal are cut off, and second 60 is 59."""
    found = re.fullmatch(TIME, text) if isinstance(text, str) else None
    try:
        year, month, day, hour, minute, second = map(int, found.groups()[:6] if found else ())
        # Python has no year 0, and the calendar repeats every 400 years, which have 146,097 days.
        days = (date(2000 + year % 400, month, day) - date(1970, 1, 1)).days + 146_097 * (year // 400 - 5)
    except ValueError:
        return None
    fraction, sign, *offset = found.groups("0")[6:]
    minutes = hour * 60 + minute + (1 if sign == "-" else -1) * (int(offset[0]) * 60 + int(offset[1]))
    time = (days * 86_400 + minutes * 60 + min(second, 59)) * SECOND + int(fraction.ljust(6, "0")[:6])
    return time if time <= TIME_LATEST else None

def is_time(value):
    return parse_time(value) is not None

def later(time, span):
    """A time plus a span such as 72h. Times end with the year 9999, and so do sums."""
    return min(time + int(span[:-1]) * {"s": 1, "m": 60, "h": 3_600, "d": 86_400}[span[-1]] * SECOND, TIME_LATEST)

def sha256(data):
    return hashlib.sha256(data).digest()

def decode_base64(text):
    """Standard base64 in its only spelling: another spelling could carry bytes that nobody signed."""
    data = base64.b64decode(text, validate=True)
    need(base64.b64encode(data).decode() == text, "base64 has one spelling, and this is another")
    return data

def parse_hashes(text):
    """One hash on each line."""
    hashes = [decode_base64(line) for line in text.split("\n")[:-1]]
    need(text[-1:] in ("", "\n") and all(len(data) == 32 for data in hashes), "a hash is cut off")
    return hashes

# Keys and signed notes are those of C2SP. `kind` is 1 for a log, 4 for a witness.
Key = namedtuple("Key", "name id kind public")
KEY_NAME = r"[^\s+\x00-\x1f\x7f-\x9f]+"

def parse_key(line, kind):
    """A public key as people hand it on: name+id+base64."""
    found = re.fullmatch(rf"({KEY_NAME})\+([0-9a-f]{{8}})\+(.*)", line.strip())
    data = decode_base64(found[3]) if found else b""
    need(len(data) == 33 and data[0] == kind, "this is not a public key of the right kind: name+id+base64")
    key_id = sha256(found[1].encode() + b"\n" + data)[:4]
    need(key_id.hex() == found[2], "the key does not match its id; the line was changed or cut off")
    return Key(found[1], key_id, kind, data[1:])

def parse_note(note):
    """A signed note: its text, and (name, key id and signature) for each of its signature lines."""
    found = re.fullmatch(rf"(?s)(.*\n)\n((?:\u2014 {KEY_NAME} [^\n]*\n){{0,64}})", note)
    need(found and not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", note), "this is not a signed note")
    lines = [(name, decode_base64(text)) for name, text in re.findall("\u2014 ([^ ]*) (.*)\n", found[2])]
    need(all(len(data) >= 4 for _, data in lines), "a signature is cut off")
    return found[1], lines

def check_note(note, key):
    """The text of a note, and when the key signed it, each time. A wrong signature in its name spoils the note."""
    text, lines = parse_note(note)
    times = []
    for data in [data[4:] for name, data in lines if (name, data[:4]) == (key.name, key.id)]:
        # A log does not say when it signs.
        time, signature = (0, data) if key.kind == 1 else (int.from_bytes(data[:8], "big"), data[8:])
        message = text if key.kind == 1 else f"cosignature/v1\ntime {time}\n{text}"
        try:
            Ed25519PublicKey.from_public_bytes(key.public).verify(signature, message.encode())
        except InvalidSignature:
            raise ValueError("a signature does not match the text") from None
        times.append(time)
    need(max(times, default=0) < 2**63, "the time of a cosignature is out of range")
    return text, times

# The tree of RFC 6962, as a checkpoint tells of it.
Tree = namedtuple("Tree", "size root")

def open_checkpoint(note, key):
    text, times = check_note(note, key)
    lines = text[:-1].split("\n")
    is_whole = len(lines) >= 3 and "" not in lines and lines[0] == key.name and fits(NUMBER, lines[1])
    need(times and is_whole, "it is not a checkpoint of this log, signed by it")
    return Tree(int(lines[1]), *parse_hashes(lines[2] + "\n"))

def leaf_hash(data):
    return sha256(b"\x00" + data)

def node_hash(left, right):
    return sha256(b"\x01" + left + right)

def climb(path, index, size, is_leaf):
    """The roots of the tree up to an entry and of the whole tree, from a proof that begins with the hash of the leaf,
    or of the largest subtree that ends with it. A tree splits at the largest power of two below its size."""
    is_start = size == 1 or not is_leaf and index == size - 1
    need(is_start and len(path) == 1 or not is_start and path, "a proof has the wrong length")
    if is_start:
        return path[0], path[0]
    split, last = 1 << (size - 1).bit_length() - 1, path[-1]
    if index < split:
        old, new = climb(path[:-1], index, split, is_leaf)
        return old, node_hash(new, last)
    return tuple(node_hash(last, node) for node in climb(path[:-1], index - split, size - split, is_leaf))

def is_included(leaf, index, tree, path):
    return index < tree.size and climb([leaf, *path], index, tree.size, is_leaf=True)[1] == tree.root

def is_consistent(old, new, path):
    """Whether the tree `new` begins with the tree `old`."""
    if old.size == 0 or old.size >= new.size:
        return not path and (old.size == 0 or old == new)
    is_subtree = old.size & (old.size - 1) == 0
    return climb([old.root] * is_subtree + path, old.size - 1, new.size, is_leaf=False) == (old.root, new.root)

def push_leaf(peaks, size, node):
    """Adds a leaf to the complete subtrees of a tree of this size, largest first. It is like carrying in addition."""
    while size % 2 == 1:
        node, size = node_hash(peaks.pop(), node), size // 2
    peaks.append(node)

def root_of(peaks):
    return reduce(lambda right, left: node_hash(left, right), reversed(peaks)) if peaks else sha256(b"")
