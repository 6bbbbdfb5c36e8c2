"""The log's own formats: keys, signed notes, checkpoints and cosignatures of C2SP, and the tree of RFC 6962."""

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .formats import WHITE_SPACE, decode_base64, parse_hash, parse_number, sha256


@dataclass
class Key:
    """A public key as people hand it on: name+id+base64. `kind` is 1 for a log, 4 for a witness."""

    name: str
    id: bytes
    public: bytes

    @staticmethod
    def parse(line, kind):
        parts = line.rstrip(WHITE_SPACE).split("+", 2)
        data = decode_base64(parts[2]) if len(parts) == 3 else None
        if not data or len(data) != 33 or data[0] != kind or not is_key_name(parts[0]):
            raise ValueError("this is not a public key of the right kind: name+id+base64")
        key = Key(parts[0], sha256(parts[0].encode() + b"\n" + data)[:4], data[1:])
        if key.id.hex() != parts[1]:
            raise ValueError("the key does not match its id; the line was changed or cut off")
        return key

    def check(self, message, signature):
        """Raises ValueError unless this key signed these bytes."""
        try:
            Ed25519PublicKey.from_public_bytes(self.public).verify(signature, message)
        except InvalidSignature:
            raise ValueError("the signature does not match the text") from None


def is_control(character):
    return ord(character) < 32 or 127 <= ord(character) < 160


def is_key_name(name):
    return name != "" and not any(sign in WHITE_SPACE + "+" or is_control(sign) for sign in name)


def parse_note(note):
    """A C2SP signed note: its text, and (name, key id, signature) for each of its signature lines."""
    at = note.rfind("\n\n")
    text, lines = note[: at + 1], note[at + 2:]
    if at < 0 or not lines.endswith("\n") or any(is_control(sign) and sign != "\n" for sign in note):
        raise ValueError("this is not a signed note: expected a text, an empty line and signature lines")
    lines = lines[:-1].split("\n")
    if len(lines) > 64:
        raise ValueError("the note has more than 64 signatures")
    signatures = []
    for line in lines:
        name, _, encoded = line.removeprefix("\u2014 ").partition(" ")
        data = decode_base64(encoded)
        if not line.startswith("\u2014 ") or not is_key_name(name) or data is None or len(data) < 4:
            raise ValueError("this is not a signature line: " + line)
        signatures.append((name, data[:4], data[4:]))
    return text, signatures


def open_note(note, key):
    """The text of a note that this key has signed. A wrong signature in its name spoils the note."""
    text, signatures = parse_note(note)
    ours = [signature for name, key_id, signature in signatures if (name, key_id) == (key.name, key.id)]
    for signature in ours:
        key.check(text.encode(), signature)
    if not ours:
        raise ValueError("the note has no signature by " + key.name)
    return text, len(signatures)


def cosigned_at(note, witness):
    """When a witness cosigned a checkpoint, in seconds since 1970, by its latest signature; None if it did not."""
    text, signatures = parse_note(note)
    times = []
    for name, key_id, signature in signatures:
        if (name, key_id) == (witness.name, witness.id):
            time = int.from_bytes(signature[:8], "big")
            if len(signature) < 8 or time >= 2**63:
                raise ValueError("a cosignature without a time")
            witness.check(f"cosignature/v1\ntime {time}\n{text}".encode(), signature[8:])
            times.append(time)
    return max(times, default=None)


@dataclass
class Checkpoint:
    size: int
    root: bytes

    @staticmethod
    def open(note, key):
        """A signed statement of the log: so many entries, and this root. Further lines are extensions."""
        text, _ = open_note(note, key)
        lines = text[:-1].split("\n")
        if len(lines) < 3 or "" in lines:
            raise ValueError("the note is not a checkpoint: it needs an origin, a size and a root")
        origin, size, root = lines[0], parse_number(lines[1]), parse_hash(lines[2])
        if size is None or root is None:
            raise ValueError("the note is not a checkpoint: its size or its root is malformed")
        if origin != key.name:
            raise ValueError("the checkpoint belongs to another log")
        return Checkpoint(size, root)


# ---- the tree of RFC 6962


def leaf_hash(data):
    return sha256(b"\x00" + data)


def node_hash(left, right):
    return sha256(b"\x01" + left + right)


def root_from_path(leaf, index, size, path):
    """Follows an inclusion proof from a leaf (RFC 9162, 2.1.3.2). None if the proof has the wrong length."""
    if index >= size:
        return None
    node, last, found = index, size - 1, leaf
    for sibling in path:
        if last == 0:
            return None
        if node % 2 == 1 or node == last:
            found = node_hash(sibling, found)
            while node % 2 == 0 and node != 0:
                node, last = node // 2, last // 2
        else:
            found = node_hash(found, sibling)
        node, last = node // 2, last // 2
    return found if last == 0 else None


def is_consistent(old, old_root, new, new_root, path):
    """Whether the tree of `new` leaves begins with that of `old` leaves (RFC 9162, 2.1.4.2)."""
    if old > new:
        return False
    if old == new or old == 0:
        return not path and (old == 0 or old_root == new_root)
    if old & (old - 1) == 0:
        path = [old_root, *path]
    if not path:
        return False
    node, last = old - 1, new - 1
    while node % 2 == 1:
        node, last = node // 2, last // 2
    of_old = of_new = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node % 2 == 1 or node == last:
            of_old, of_new = node_hash(sibling, of_old), node_hash(sibling, of_new)
            while node % 2 == 0 and node != 0:
                node, last = node // 2, last // 2
        else:
            of_new = node_hash(of_new, sibling)
        node, last = node // 2, last // 2
    return last == 0 and of_old == old_root and of_new == new_root


class Peaks:
    """The complete subtrees of a growing tree, largest first: all that is needed to add leaves and get the root."""

    def __init__(self, size, hashes):
        heights = [height for height in range(63, -1, -1) if size >> height & 1]
        if len(heights) != len(hashes):
            raise ValueError(f"a tree of {size} entries has a different number of peaks")
        self.peaks = list(zip(heights, hashes))

    def push(self, leaf):
        """Two subtrees of one height become one of the next, like carrying in addition."""
        height, node = 0, leaf
        while self.peaks and self.peaks[-1][0] == height:
            node, height = node_hash(self.peaks.pop()[1], node), height + 1
        self.peaks.append((height, node))

    def root(self):
        root = None
        for _, peak in reversed(self.peaks):
            root = peak if root is None else node_hash(peak, root)
        return sha256(b"") if root is None else root
