#!/usr/bin/env python3
"""Verifies evidence bundles of Pilot without Pilot: a second program, written from the documents.

Exit status: 0 the evidence holds, 1 it does not, 4 it holds as far as it could be checked, 2 wrong usage, 3 a file
cannot be read. It needs Python 3.11 and the package `cryptography`, and only reads files.

The formats are in docs/audit/log-format.md and evidence-format.md, the rules in docs/audit/semantics.md. README.md
in this directory says what is not checked here. Times are whole microseconds since 1970, hashes are bytes.
"""
import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

from pilot_evidence.bundle import Bundle
from pilot_evidence.formats import (ACTOR, DIGEST, ROLE, SECOND, Checkpoint, Fault, Key, cosigned_at, fits, is_included,
                                    is_consistent, is_number, is_time, leaf_hash, parse_hashes, parse_time, push_leaf,
                                    root_of)
from pilot_evidence.rules import follow

# In the order in which they are made: if one of the first four fails, nothing after it could be trusted.
CHECKS = "container manifest files checkpoint witnesses inclusion completeness times documents legality".split()

# How far the log's clock and a witness's clock may be apart.
CLOCK_TOLERANCE = 600 * SECOND
# A request that was let in just before its credential ended may be recorded just after.
UNDER_WAY = 60 * SECOND

# What entries about the service say. Members that are not known here are left to others.
CREDENTIAL_ID = "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"
CREDENTIAL = {"actor_id?": (None, ACTOR), "role?": (None, ROLE), "credential_id?": (None, CREDENTIAL_ID),
              "fingerprint?": (None, CREDENTIAL_ID), "expires_at?": (None, is_time), "*": object}
CHANGES = {"added?": [CREDENTIAL], "removed?": [CREDENTIAL], "count?": (None, int), "*": object}
WORKFLOW = {"name": str, "version": lambda value: is_number(value, 32), "digest": str, "*": object}
DETAILS = {
    "service.started": {"credentials?": CHANGES, "definitions?": [WORKFLOW], "permit_keys?": [str],
                        "previous?": (None, int), "role_map?": (None, DIGEST), "version?": str, "*": object},
    "credentials.changed": {"credentials": CHANGES, "*": object},
    "credential.revoked": {"credential": CREDENTIAL, "cause": str, "*": object},
    "credential.expired": {"credential": CREDENTIAL, "*": object}}

def details_of(entry):
    """What an entry about the service says; None if that cannot be read, or it is about something else."""
    details = entry.get("details")
    return details if entry["type"] in DETAILS and fits(DETAILS[entry["type"]], details) else None

@dataclass
class Trust:
    """Whose signatures count. Keys come from somewhere other than the bundle."""
    key: Key
    witnesses: list
    needed: int

    def cosignatures(self, note):
        """When each trusted witness cosigned; only of those that did. ValueError if one is wrong."""
        times = [cosigned_at(note, witness) for witness in self.witnesses]
        return [time * SECOND for time in times if time is not None]

class Verifier:
    """The checks of one bundle, which collect faults. `roots` are the log's that they have shown, by size."""
    def __init__(self, trust):
        self.trust, self.faults, self.unasked, self.gaps, self.roots = trust, [], [], [], {}

    def fault(self, *members):
        self.faults.append(Fault(*members))

    def run(self, data):
        self.bundle = Bundle(data, self.trust.key, self.faults)
        self.pieces, self.period, self.entries = self.bundle.pieces, self.bundle.period, self.bundle.entries
        if self.faults:
            return
        self.newest = self.open_checkpoint("checkpoint")
        self.roots[self.newest.size] = self.newest.root
        vouched_at, histories = self.check_witnesses(), self.find_histories()
        self.check_inclusion()
        self.check_completeness()
        self.check_times()
        self.check_documents(histories)
        starts, objections = self.find_starts(), self.find_objections()
        for item, history in histories.items():
            self.judge_item(starts, objections, item, history)
        if self.period and self.period[2] == 0:
            self.check_one_at_a_time(histories)
        # A period that ends with the log is complete only if enough witnesses saw that end after the period was over.
        is_last = self.period is not None and self.period[3] >= self.newest.size
        if is_last and vouched_at is not None and vouched_at + SECOND <= self.period[1]:
            self.gaps.append("end_of_period")
        if self.unasked and "left_out" not in self.gaps:
            self.gaps.append("not_known_here")

    def open_checkpoint(self, path):
        try:
            return Checkpoint.open(self.pieces["text"][path], self.trust.key)
        except (KeyError, ValueError) as error:
            raise Fault("checkpoint", "checkpoint", f"{path}: {error}") from None

    def check_witnesses(self):
        """Enough trusted witnesses must have cosigned the newest checkpoint. Returns the latest moment that so many
        vouch for; None if none are required, or too few have cosigned."""
        needed = self.trust.needed
        try:
            times = self.trust.cosignatures(self.pieces["text"]["checkpoint"])
            if len(times) < needed:
                raise ValueError(f"cosigned by {len(times)}, {needed} needed")
        except ValueError as error:
            return self.fault("witnesses", "witnesses", f"checkpoint: {error}")
        return sorted(times, reverse=True)[needed - 1] if needed else None

    def check_inclusion(self):
        """Every entry must be in the log's tree: by its own proof, or as a part of the period."""
        is_item = self.bundle.item is not None
        alone = {entry.index: entry for entry in self.entries if is_item or not self.bundle.is_inside(entry.index)}
        for index, entry in alone.items():
            if not self.is_proved(entry):
                self.fault("inclusion", "proof", "nothing proves that it is in the log", index)
        for index in sorted(set(self.pieces["proof"]) - set(alone)):
            self.fault("inclusion", "proof", f"no entry {index} of this bundle needs its proof")
        try:
            if self.period:
                self.check_period(*self.period[2:])
        except Fault as fault:
            self.faults.append(fault)

    def is_proved(self, entry):
        """Whether the C2SP tlog-proof of an entry is there, and right."""
        head, _, note = self.pieces["proof"].get(entry.index, "").partition("\n\n")
        lines = head.split("\n")
        try:
            path = parse_hashes(lines[2:])
        except ValueError:
            return False
        return (lines[:2] == ["c2sp.org/tlog-proof@v1", f"index {entry.index}"] and len(path) <= 64
                and note == self.pieces["text"]["checkpoint"]
                and is_included(leaf_hash(entry.data), entry.index, self.newest, path))

    def read_hashes(self, path, text):
        try:
            if text is None or text[-1:] not in ("", "\n"):
                raise ValueError("it is missing or cut off")
            return parse_hashes(text.split("\n")[:-1])
        except ValueError as error:
            raise Fault("inclusion", "proof", f"{path}: {error}") from None

    def check_period(self, first, end):
        """The entries of a period, appended to the tree before it, give the tree after it, which the log continues."""
        def need(condition, what):
            if not condition:
                raise Fault("inclusion", "proof", what)
        edge, path = (self.pieces["text"].get(name) for name in ("proofs/from.edge", "proofs/consistency"))
        before, after = self.open_checkpoint("checkpoints/from"), self.open_checkpoint("checkpoints/to")
        need((before.size, after.size) == (first, end), "the checkpoints of the period have other sizes than it")
        heights = [height for height in range(63, -1, -1) if first >> height & 1]
        peaks = list(zip(heights, self.read_hashes("proofs/from.edge", edge)))
        is_whole = len(peaks) == len(heights) == edge.count("\n")
        need(is_whole and root_of(peaks) == before.root, "proofs/from.edge: it does not lead to checkpoints/from")
        inside, roots = [entry for entry in self.entries if first <= entry.index < end], {}
        for index, entry in enumerate(inside, first):
            if entry.index != index:
                raise Fault("completeness", "gap", f"entry {index} is missing", index)
            push_leaf(peaks, leaf_hash(entry.data))
            if index + 1 in self.pieces["checkpoint"]:
                roots[index + 1] = root_of(peaks)
        if len(inside) != max(end - first, 0):
            raise Fault("completeness", "gap", "the last entries of the period are missing", first + len(inside))
        need(root_of(peaks) == after.root, "the entries of the period do not lead to the root of checkpoints/to")
        path = self.read_hashes("proofs/consistency", path)
        need(is_consistent(after, self.newest, path), "proofs/consistency: the checkpoint does not continue the period")
        self.roots |= {first: before.root, end: after.root, **roots}

    def check_times(self):
        """A cosignature dates a tree: what is in it was there by then, and what is not in it came later. Of several
        witnesses the one counts that says least, and of many wrong entries the first."""
        dated = []
        for size, note in sorted(self.pieces["checkpoint"].items()):
            try:
                self.check_older(size, note)
                dated.append((size, self.trust.cosignatures(note)))
            except Fault as fault:
                self.faults.append(fault)
            except ValueError as error:
                self.fault("times", "witnesses", f"checkpoints/{size:012}: {error}")
        try:
            dated.append((self.newest.size, self.trust.cosignatures(self.pieces["text"]["checkpoint"])))
        except ValueError:
            pass  # Already among the faults of the witnesses.
        dated = [(size, min(times), max(times)) for size, times in dated if times]
        late, early = [], []
        for entry in self.entries:
            seen = [latest for size, _, latest in dated if entry.index < size]
            unseen = [earliest for size, earliest, _ in dated if entry.index >= size]
            late += [entry.index] if seen and entry.at > min(seen) + CLOCK_TOLERANCE else []
            early += [entry.index] if unseen and entry.at + CLOCK_TOLERANCE < max(unseen) else []
        for index in late[:1]:
            self.fault("times", "clock", f"witnesses had seen it before; so too for {len(late) - 1} others", index)
        for index in early[:1]:
            self.fault("times", "clock", f"witnesses had not seen it then; so too for {len(early) - 1} others", index)

    def check_older(self, size, note):
        """An older checkpoint must be one of this log, and the newest must continue it."""
        path, proof = f"checkpoints/{size:012}", self.pieces["consistency"].get(size)
        try:
            older = Checkpoint.open(note, self.trust.key)
        except ValueError as error:
            raise Fault("times", "checkpoint", f"{path}: {error}") from None
        is_proved = older.root == self.roots.get(size)
        if size not in self.roots and proof is not None:
            is_proved = is_consistent(older, self.newest, self.read_hashes(f"proofs/{size:012}.consistency", proof))
        if older.size != size or not is_proved:
            raise Fault("times", "checkpoint", f"{path}: nothing proves that the log continues it")

    def check_completeness(self):
        """Whether the entries are those the manifest promises, and their times never go back."""
        item = self.bundle.item
        for entry in self.entries if item else ():
            details = entry.get("details")
            erases = entry["type"] == "documents.erased" and isinstance(details, dict) and details.get("item") == item
            if entry.get("item") != item and entry["type"] != "service.started" and not erases:
                self.fault("completeness", "scope", f"it is not about item {item}", entry.index)
        if item and not any(entry.get("item") == item for entry in self.entries):
            self.fault("completeness", "scope", "no entry is about the item", None, item)
        if self.period:
            self.check_edges(*self.period)
        for earlier, entry in zip(self.entries, self.entries[1:]):
            if earlier.at > entry.at:
                self.fault("completeness", "time_order", "its time is before that of an earlier entry", entry.index)

    def check_edges(self, since, until, first, end):
        """The entries just before and just after a period must be there, and outside it: the range is wide enough."""
        is_last, found = end >= self.newest.size, {entry.index for entry in self.entries}
        for entry in self.entries:
            if first <= entry.index < end and not since <= entry.at < until:
                self.fault("completeness", "scope", "its time is not in the period", entry.index)
            is_in_time = entry.index == first - 1 and entry.at >= since or entry.index == end and entry.at < until
            if is_in_time and not (entry.index == end and is_last):
                self.fault("completeness", "scope", "it is in the period, but the range leaves it out", entry.index)
        for index, is_needed in ((first - 1, first > 0), (end, not is_last)):
            if is_needed and index not in found:
                self.fault("completeness", "scope", "the entry just before or after the period is missing", index)

    def find_starts(self):
        """(index, what it says) of each start. Role maps are there if, and only if, a start pins them."""
        starts, role_maps = [], self.pieces["role_map"]
        for entry in self.entries:
            if entry["type"] == "service.started":
                starts.append((entry.index, details_of(entry) or {}))
                if details_of(entry) is None:
                    self.fault("completeness", "start", "what this start says cannot be read", entry.index)
                if starts[-1][1].get("role_map") not in (None, *role_maps):
                    self.fault("completeness", "role_map", "the role map it pins is not in the bundle", entry.index)
        for digest in sorted(set(role_maps) - {start.get("role_map") for _, start in starts}):
            self.fault("completeness", "role_map", f"no start in this bundle pins the role map {digest}")
        return starts

    def check_people(self, starts, item, history):
        """Every actor against the role map in force, and the creation against the definitions in force."""
        withheld = []
        for entry in history:
            start = start_in_force(starts, entry.index)
            if start is None:
                withheld.append(entry.index)
                continue
            known = [workflow["digest"] for workflow in start.get("definitions", [])]
            if entry["type"] == "item.created" and entry.get("definition") not in (None, *known):
                self.fault("legality", "definition", "its definition was not in force", entry.index, item)
            role_map = self.pieces["role_map"].get(start.get("role_map"))
            actor, role = entry.get("actor_id"), entry.get("role")
            if None not in (role_map, actor, role) and role_map.get(actor) != role:
                what = f"{actor} acts as {role}, but the role map in force says {role_map.get(actor)}"
                self.fault("legality", "role_map", what, entry.index, item)
        # Once per item: its other entries lack the same start.
        for index in withheld[:1]:
            self.fault("completeness", "start", "the start that was in force is missing", index, item)

    def find_objections(self):
        """The entries about items whose actor had no credential. Only a ledger from its first entry on shows that."""
        register, found = Register(), set()
        for entry in self.entries if self.period and self.period[2] == 0 else ():
            if self.bundle.is_inside(entry.index):
                register.follow(entry)
                if None not in map(entry.get, ("item", "actor_id", "role")) and register.objects(entry):
                    found.add(entry.index)
        return found

    def find_histories(self):
        """The entries of each item the bundle is about, by their first entry."""
        histories = {}
        for entry in self.entries:
            if entry.get("item") is not None:
                histories.setdefault(entry["item"], []).append(entry)
        return {item: history for item, history in histories.items()
                if any(self.bundle.is_inside(entry.index) for entry in history)}

    def check_documents(self, histories):
        """Documents that are named but not there were erased, or left out. One that no entry names is a fault."""
        entries = [entry for entry in self.entries if entry.get("item") in histories or entry.get("item") is None
                   and self.bundle.is_inside(entry.index)]
        named = {entry.get(name) for entry in entries for name in ("content", "comment", "inputs")} - {None}
        for digest in sorted(set(self.pieces["document"]) - named):
            self.fault("documents", "document", f"no entry of this bundle names the document {digest}")
        self.gaps += [] if named <= set(self.pieces["document"]) else ["left_out"]

    def judge_item(self, starts, objections, item, history):
        """Asks the rules again for each entry, up to the first that is wrong. After a gap they can only refuse."""
        definition = self.pieces["definition"].get(history[0].get("definition"))
        if definition is None:
            return self.fault("completeness", "definition", "its definition is missing", history[0].index, item)
        state, gap = None, find_gap(history)
        try:
            for entry in history:
                state, questions = follow(definition, state, entry, self.pieces["document"])
                self.unasked += [{"item": item, "entry": entry.index, "question": question} for question in questions]
            wrong = gap
        except Fault as fault:
            fault.entry = entry.index
            wrong = gap if gap and gap.entry <= fault.entry else fault
        self.check_people(starts, item, history)
        if wrong:
            check = "completeness" if wrong.rule == "version_gap" else "legality"
            self.fault(check, wrong.rule, wrong.what, wrong.entry, item)
        for entry in history:
            if entry.index in objections:
                what = f"{entry['actor_id']} had no credential as {entry['role']}"
                self.fault("legality", "credential", what, entry.index, item)

    def check_one_at_a_time(self, histories):
        """If a workflow allows each person one open item, no two were open at the same time."""
        ends = {}
        for item, history in histories.items():
            definition = self.pieces["definition"].get(history[0].get("definition"))
            if definition is None or "one_open_per_creator" not in definition.rules:
                continue
            # Nothing goes on from a state that the definition does not have.
            lasting = {None, *(name for name in definition.states if not definition.is_kind(name, "terminal"))}
            ended = [entry.index for entry in history if entry.get("to") not in lasting]
            whose = history[0].get("actor_id"), definition.name
            if ends.get(whose, -1) > history[0].index:
                what = f"{whose[0]} has another {whose[1]} that is still open"
                self.fault("legality", "state_conflict", what, history[0].index, item)
            ends[whose] = max(ended[0] if ended else float("inf"), ends.get(whose, -1))

def start_in_force(starts, index):
    """What the latest start before an entry says; None if the bundle withholds it. Every ledger begins with a start,
    and each start names the one before it."""
    before = [start for start in starts if start[0] < index]
    after = [start for start in starts if start[0] >= index]
    previous = after[0][1].get("previous") if after else None
    is_withheld = not before or previous is not None and before[-1][0] < previous < index
    return None if is_withheld else before[-1][1]

def find_gap(history):
    """Where an entry of an item is missing: the versions show it, whatever the rules say."""
    version = history[0].get("version")
    if history[0]["type"] != "item.created" or version is None:
        return Fault("completeness", "version_gap", "the history does not begin with the creation", history[0].index)
    for entry in history[1:]:
        version += entry["type"] in ("item.created", "item.edited", "item.transition")
        if entry.get("version") != version:
            return Fault("completeness", "version_gap", f"its version should be {version}", entry.index)
    return None

class Register:
    """Every credential the ledger has told of so far, followed from its first entry on."""
    def __init__(self):
        # By fingerprint: what is known of it, and when it ended; by actor: fingerprints.
        self.known, self.ended_at, self.revoked, self.of_actor, self.is_listed = {}, {}, set(), {}, False

    def follow(self, entry):
        """Takes in what one entry tells. A credential that was both removed and added was changed."""
        kind, details = entry["type"], details_of(entry)
        if details is None:
            return
        is_end = kind in ("credential.revoked", "credential.expired")
        changes = {"removed": [details["credential"]]} if is_end else details.get("credentials", {})
        if kind == "service.started":
            # If people sign in elsewhere, the ledger does not know who could.
            self.is_listed = bool(changes.get("count"))
        for named in changes.get("removed", []):
            self.end(named, entry.at, kind == "credential.revoked")
        for named in changes.get("added", []):
            fingerprint = named.get("fingerprint")
            # What was revoked stays revoked, whatever a file says.
            if fingerprint and fingerprint not in self.revoked:
                self.known[fingerprint] = named
                self.ended_at.pop(fingerprint, None)
                self.of_actor.setdefault(named.get("actor_id"), set()).add(fingerprint)

    def end(self, named, at, is_revoked):
        fingerprint, own_name = named.get("fingerprint"), named.get("credential_id")
        if fingerprint is None and own_name is not None:
            same = [one for one, known in sorted(self.known.items()) if known.get("credential_id") == own_name]
            fingerprint = same[0] if same else None
        if fingerprint in self.known and fingerprint not in self.revoked:
            self.ended_at[fingerprint] = at
            self.revoked |= {fingerprint} if is_revoked else set()

    def objects(self, entry):
        """Whether nobody knows of a credential with which this actor could have acted in this role at this time."""
        for fingerprint in self.of_actor.get(entry["actor_id"], ()):
            known = self.known[fingerprint]
            ends = self.ended_at.get(fingerprint), parse_time(known.get("expires_at"))
            end = min((end for end in ends if end is not None), default=entry.at)
            if known.get("role") == entry["role"] and entry.at < end + UNDER_WAY:
                return False
        return self.is_listed

def verify(data, trust):
    """The verdict on a bundle: a pure function of its bytes and the trusted keys. `gaps` say why it holds only as far
    as it could be checked: documents are missing, nothing shows that the period is complete at its end, or the schema
    uses what this verifier does not know."""
    verifier = Verifier(trust)
    try:
        verifier.run(data)
    except Fault as fault:
        verifier.faults.append(fault)
    # By check, then by entry; those about no entry first.
    faults = sorted(verifier.faults, key=lambda one: (CHECKS.index(one.check), -1 if one.entry is None else one.entry))
    verdict = "does_not_hold" if faults else "holds_as_far_as_checked" if verifier.gaps else "holds"
    shown = [{name: getattr(fault, name) for name in ("rule", "entry", "item", "what")
              if getattr(fault, name) is not None} for fault in faults]
    return {"verdict": verdict, "gaps": verifier.gaps, "faults": shown, "unasked": verifier.unasked}

def read_key(kind):
    """Reads a key as it was given, or from the file that was named."""
    def read(given):
        try:
            return Key.parse(given if given.count("+") >= 2 else Path(given).read_text(errors="replace"), kind)
        except (FileNotFoundError, ValueError) as error:
            raise argparse.ArgumentTypeError(f"{given}: {error}") from None
    return read

def read_arguments():
    parser = argparse.ArgumentParser(description="Verifies an evidence bundle of Pilot.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--key", type=read_key(1), required=True, help="the log's public key, or a file that has it")
    parser.add_argument("--witness-key", type=read_key(4), action="append", default=[], help="a witness's, likewise")
    parser.add_argument("--witnesses", type=int, help="how many of them must have cosigned; all, if not given")
    parser.add_argument("--allow-left-out", action="store_true", help="exit with 0 although content was left out")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    given = len(options.witness_key)
    needed = given if options.witnesses is None else options.witnesses
    if len({witness.public for witness in options.witness_key}) < given or not 0 <= needed <= given:
        parser.error("--witnesses: more are required than keys are given, or a key is given twice")
    return options, Trust(options.key, options.witness_key, needed)

def main():
    try:
        options, trust = read_arguments()
        found = verify(options.bundle.read_bytes(), trust)
    except OSError as error:
        print(f"pilot_verify: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(3)
    if options.output == "json":
        print(json.dumps(found, indent=2, ensure_ascii=False))
    else:
        for kind in ("faults", "unasked"):
            for one in found[kind]:
                print(f"{kind}:", ", ".join(f"{name} {value}" for name, value in one.items()))
        print(f"The evidence {found['verdict'].replace('_', ' ')}.", *found["gaps"])
    is_allowed = options.allow_left_out and found["gaps"] == ["left_out"]
    sys.exit({"holds": 0, "does_not_hold": 1, "holds_as_far_as_checked": 0 if is_allowed else 4}[found["verdict"]])

if __name__ == "__main__":
    main()
