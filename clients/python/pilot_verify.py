#!/usr/bin/env python3
"""Verifies evidence bundles of Pilot without Pilot: a second program, written from docs/audit. README.md says how it is
used, and what is not checked here. Times are whole microseconds since 1970, hashes are bytes."""
import argparse
import json
import sys
from contextlib import contextmanager
from math import inf
from pathlib import Path

from pilot_evidence.bundle import PIECES, Entry, changed_files, open_manifest, read_container, read_piece
from pilot_evidence.formats import (ACTOR, DIGEST, ROLE, SECOND, Fault, attempt, check_note, fits, is_consistent,
                                    is_included, is_number, is_time, leaf_hash, need, open_checkpoint, parse_hashes,
                                    parse_key, parse_time, push_leaf, root_of)
from pilot_evidence.rules import follow

CHECKS = "container manifest files checkpoint witnesses inclusion completeness times documents legality".split()
PROOF_HEAD = "c2sp.org/tlog-proof@v1\nindex {}\n"
# How far the log's clock and a witness's clock may be apart.
CLOCK_TOLERANCE = 600 * SECOND
# A request that was let in just before its credential ended may be recorded just after.
UNDER_WAY = 60 * SECOND

# What entries about the service say. Members that are not known here are left to others.
CREDENTIAL_ID = (None, "[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
CREDENTIAL = {"actor_id?": (None, ACTOR), "role?": (None, ROLE), "credential_id?": CREDENTIAL_ID,
              "fingerprint?": CREDENTIAL_ID, "expires_at?": (None, is_time), "*": object}
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
    return entry.get("details") if fits(DETAILS.get(entry["type"], ()), entry.get("details")) else None

class Verifier:
    """The checks of one bundle, which collect faults. `roots` are the log's that they have shown, by size."""
    def __init__(self, data, key, witnesses, needed):
        self.data, self.key, self.witnesses, self.needed = data, key, witnesses, needed
        self.faults, self.unasked, self.gaps, self.roots, self.times = [], [], [], {}, []
        self.entries, self.histories, self.pieces = [], {}, {kind: {} for kind in PIECES}

    def run(self):
        """Makes the checks in order. If one of the first four fails, nothing after it could be trusted."""
        for check in CHECKS:
            with self.checking(check, check, check):
                getattr(self, f"check_{check}")()
            if self.faults and check in CHECKS[:4]:
                return
        # A period that ends with the log is complete only if enough witnesses saw that end after the period was over.
        is_last, latest = self.newest.size <= self.end < inf, sorted(self.times, reverse=True)[:self.needed]
        if is_last and self.needed and len(latest) == self.needed and latest[-1] + SECOND <= self.until:
            self.gaps.append("end_of_period")
        if self.unasked and "left_out" not in self.gaps:
            self.gaps.append("not_known_here")

    def fault(self, check, rule, *places):
        """Records a fault at each of some entries, indexes of entries that are missing, or at what a text says."""
        for place in places:
            where = {"what": place} if isinstance(place, str) else {"entry": place}
            if isinstance(place, Entry):
                where = {"entry": place.index, **({"item": place["item"]} if "item" in place else {})}
            self.faults.append({"check": check, "rule": rule, **where})

    @contextmanager
    def checking(self, check, rule, place):
        """Whatever is wrong in here is this fault, unless it says of itself which one it is."""
        try:
            yield
        except Fault as fault:
            self.fault(*fault.args)
        except ValueError as error:
            self.fault(check, rule, f"{place}: {error}" if isinstance(place, str) else place)

    def is_inside(self, entry):
        """Whether an entry is one the bundle is about, not one that only shows where it begins."""
        return self.first <= entry.index < self.end

    def check_container(self):
        self.files = read_container(self.data)

    def check_manifest(self):
        self.item, period, self.listed = open_manifest(self.files, self.key)
        self.since, self.until, self.first, self.end = period or (-inf, inf, 0, inf)

    def check_files(self):
        self.fault("files", "files", *changed_files(self.files, self.listed))
        for path, (data, _) in self.files.items() if not self.faults else ():
            with self.checking("files", "format", path):
                kind, name, said = read_piece(path, data)
                self.pieces[kind][name] = said
                if kind == "entries":
                    self.read_entries(path, name, data)
        for entry in [entry for entry in self.entries if "item" in entry]:
            self.histories.setdefault(entry["item"], []).append(entry)
        # The bundle is about an item if one of its entries is inside.
        self.histories = {item: own for item, own in self.histories.items() if any(map(self.is_inside, own))}

    def read_entries(self, path, first, data):
        *lines, last = data.split(b"\n")
        need(not last and 0 < len(lines) <= 256, "it has no entries, or too many, or is cut off")
        for number, line in enumerate(lines):
            with self.checking("files", "format", path):
                entry = Entry(line)
                is_out_of_order = self.entries and self.entries[-1].index >= entry.index
                wrong = [not entry.is_canonical, number == 0 and entry.index != first, is_out_of_order]
                self.fault("files", "format", *[entry for is_wrong in wrong if is_wrong])
                self.entries.append(entry)

    def check_checkpoint(self):
        self.note = self.pieces["text"].get("checkpoint", "")
        self.newest = open_checkpoint(self.note, self.key)
        self.roots[self.newest.size] = self.newest.root

    def cosigned(self, note):
        """When each trusted witness cosigned, by its latest signature; only of those that did."""
        times = [check_note(note, witness)[1] for witness in self.witnesses]
        return [max(own) * SECOND for own in times if own]

    def check_witnesses(self):
        self.times = self.cosigned(self.note)
        need(len(self.times) >= self.needed, f"cosigned by {len(self.times)}, {self.needed} needed")

    def check_inclusion(self):
        """Every entry must be in the log's tree: by its own proof, or as a part of the period."""
        alone = {entry.index: entry for entry in self.entries if self.item or not self.is_inside(entry)}
        for index, entry in alone.items():
            with self.checking("inclusion", "proof", entry):
                proof, head, tail = self.pieces["proof"].get(index, ""), PROOF_HEAD.format(index), "\n" + self.note
                hashes = proof[len(head):-len(tail)]
                need(proof == head + hashes + tail and hashes.count("\n") <= 64, "it is missing or malformed")
                need(is_included(leaf_hash(entry.data), index, self.newest, parse_hashes(hashes)), "it is wrong")
        unneeded = [f"entry {index} needs no proof" for index in self.pieces["proof"] if index not in alone]
        self.fault("inclusion", "proof", *unneeded)
        if self.item is None:
            with self.checking("inclusion", "proof", "period"):
                self.check_period(self.pieces["text"], self.first, self.end)

    def check_period(self, texts, first, end):
        """The entries of a period, appended to the tree before it, give the tree after it, which the log continues."""
        before, after = (attempt("checkpoint", "checkpoint", path, open_checkpoint, texts.get(path, ""), self.key)
                         for path in ("checkpoints/from", "checkpoints/to"))
        need((before.size, after.size) == (first, end), "its checkpoints have other sizes")
        peaks, roots = parse_hashes(texts.get("proofs/from.edge", "missing")), {}
        need(len(peaks) == first.bit_count() and root_of(peaks) == before.root, "proofs/from.edge")
        inside = [entry for entry in self.entries if self.is_inside(entry)]
        asked = {*self.pieces["checkpoint"], *self.pieces["stamped"]}
        for index, entry in enumerate([*inside, None][:max(end - first, 0)], first):
            if entry is None or entry.index != index:
                raise Fault("completeness", "gap", index)
            push_leaf(peaks, index, leaf_hash(entry.data))
            if index + 1 in asked:
                roots[index + 1] = root_of(peaks)
        need(root_of(peaks) == after.root, "the entries do not lead to checkpoints/to")
        path = parse_hashes(texts.get("proofs/consistency", "missing"))
        need(is_consistent(after, self.newest, path), "the checkpoint does not continue checkpoints/to")
        self.roots |= {first: before.root, end: after.root, **roots}

    def check_completeness(self):
        """Whether the entries are those the manifest promises, and their times never go back."""
        size, first, end, found = self.newest.size, self.first, self.end, {entry.index for entry in self.entries}
        for entry in self.entries:
            index, details = entry.index, entry.get("details")
            is_erasing = entry["type"] == "documents.erased" and isinstance(details, dict)
            about = [None, entry.get("item"), details.get("item") if is_erasing else None]
            is_meant = self.item in about or entry["type"] == "service.started"
            is_in_time = not self.is_inside(entry) or self.since <= entry.at < self.until
            # The entries just before and just after a period must be outside it: the range is wide enough.
            is_cut_off = index == first - 1 and entry.at >= self.since or index == end < size and entry.at < self.until
            if not is_meant or not is_in_time or is_cut_off:
                self.fault("completeness", "scope", entry)
        beside = [first - 1] * (first > 0) + [end] * (end < size)
        missing = [index for index in beside if index not in found]
        self.fault("completeness", "scope", *missing, *{self.item} - {None, *self.histories})
        times = zip(self.entries, self.entries[1:])
        self.fault("completeness", "time_order", *[entry for earlier, entry in times if earlier.at > entry.at])

    def check_times(self):
        """A cosignature dates a tree: what is in it was there by then, and what is not in it came later."""
        dated = [(self.newest.size, self.times)]
        kept = [("checkpoints", *one) for one in self.pieces["checkpoint"].items()]
        for folder, size, note in kept + [("timestamps", *one) for one in self.pieces["stamped"].items()]:
            path, proof = f"{folder}/{size:012}", self.pieces["consistency"].get(size)
            with self.checking("times", "checkpoint", path):
                older = open_checkpoint(note, self.key)
                is_proved = older.root == self.roots.get(size)
                if size not in self.roots and proof is not None:
                    hashes = attempt("inclusion", "proof", path, parse_hashes, proof)
                    is_proved = is_consistent(older, self.newest, hashes)
                need(older.size == size and is_proved, "nothing proves that the log continues it")
                dated.append((size, attempt("times", "witnesses", path, self.cosigned, note)))
        dated = [(size, min(times) - CLOCK_TOLERANCE, max(times) + CLOCK_TOLERANCE) for size, times in dated if times]
        # Of several witnesses the one counts that says least, and of many wrong entries the first.
        early = [one for one in self.entries if any(one.index >= size and one.at < start for size, start, _ in dated)]
        late = [one for one in self.entries if any(one.index < size and one.at > end for size, _, end in dated)]
        self.fault("times", "clock", *late[:1], *early[:1])

    def check_documents(self):
        """Documents that are named but not there were erased, or left out. One that no entry names is a fault."""
        named = {entry.get(name) for entry in self.entries for name in ("content", "comment", "inputs")
                 if entry.get("item") in self.histories or "item" not in entry and self.is_inside(entry)} - {None}
        self.fault("documents", "document", *set(self.pieces["document"]) - named)
        self.gaps += [] if named <= set(self.pieces["document"]) else ["left_out"]

    def check_legality(self):
        self.read_starts()
        # Only a ledger from its first entry on shows who had a credential, and what was open.
        is_whole, open_until = self.item is None and self.first == 0, {}
        objections = find_objections([entry for entry in self.entries if is_whole and self.is_inside(entry)])
        for history in self.histories.values():
            definition = self.pieces["definition"].get(history[0].get("definition"))
            if definition is None:
                self.fault("completeness", "definition", history[0])
                continue
            self.check_people(history)
            self.check_rules(definition, history)
            self.fault("legality", "credential", *[entry for entry in history if entry.index in objections])
            if is_whole and definition.one_open_per_creator:
                self.check_one_at_a_time(definition, history, open_until)

    def read_starts(self):
        """What each start says. Role maps are there if, and only if, a start pins them."""
        role_maps, entries = self.pieces["role_map"], [one for one in self.entries if one["type"] == "service.started"]
        self.starts = [(entry, {"role_map": None, **(details_of(entry) or {})}) for entry in entries]
        self.fault("completeness", "start", *[entry for entry in entries if details_of(entry) is None])
        lacking = [entry for entry, start in self.starts if start["role_map"] not in (None, *role_maps)]
        unpinned = set(role_maps) - {start["role_map"] for _, start in self.starts}
        self.fault("completeness", "role_map", *lacking, *unpinned)

    def check_people(self, history):
        """Every actor against the role map in force, and the creation against the definitions in force."""
        withheld = []
        for entry in history:
            before = [(at.index, start) for at, start in self.starts if at.index < entry.index]
            after = [start for at, start in self.starts if at.index >= entry.index]
            # Every ledger begins with a start, and each names the one before it.
            previous = after[0].get("previous") or 0 if after else 0
            if not before or before[-1][0] < previous < entry.index:
                withheld.append(entry)
                continue
            start = before[-1][1]
            known = [None, *(workflow["digest"] for workflow in start.get("definitions", []))]
            if entry["type"] == "item.created" and entry.get("definition") not in known:
                self.fault("legality", "definition", entry)
            role_map = self.pieces["role_map"].get(start["role_map"])
            actor, role = entry.get("actor_id"), entry.get("role")
            if None not in (role_map, actor, role) and role_map.get(actor) != (role, entry.get("operated_by")):
                self.fault("legality", "role_map", entry)
        # Once per item: its other entries lack the same start.
        self.fault("completeness", "start", *withheld[:1])

    def check_rules(self, definition, history):
        """Asks the rules again for each entry, up to the first that is wrong. After a gap they can only refuse."""
        item, rule, gap = None, None, find_gap(history)
        try:
            for entry in history:
                item, questions = follow(definition, item, entry, self.pieces["document"])
                self.unasked += [{"item": entry["item"], "entry": entry.index, "question": one} for one in questions]
        except Fault as fault:
            rule = fault.args[1]
        if gap and (rule is None or gap.index <= entry.index):
            rule, entry = "version_gap", gap
        if rule:
            self.fault("completeness" if rule == "version_gap" else "legality", rule, entry)

    def check_one_at_a_time(self, definition, history, open_until):
        """If a workflow allows each person one open item, no two were open at the same time."""
        whose = history[0].get("actor_id"), definition.name
        if open_until.get(whose, -1) > history[0].index:
            self.fault("legality", "state_conflict", history[0])
        # Nothing goes on from a state that the definition does not have.
        ended = [entry.index for entry in history if entry.get("to") not in (None, *definition.lasting)]
        open_until[whose] = max([*ended, inf][0], open_until.get(whose, -1))

def find_gap(history):
    """The first entry of an item before which one is missing: the versions show it, whatever the rules say."""
    version = history[0].get("version", 0) - 1
    for entry in history:
        version += entry["type"] in ("item.created", "item.edited", "item.transition")
        if entry.get("version") != version or history[0]["type"] != "item.created":
            return entry
    return None

def find_objections(entries):
    """The entries about items whose actor had no credential, in a ledger from its first entry on."""
    credentials, owned, revoked, is_listed, found = {}, {}, set(), False, set()
    for entry in entries:
        kind, details, actor, role = entry["type"], details_of(entry), entry.get("actor_id"), entry.get("role")
        is_end = details is not None and kind in ("credential.revoked", "credential.expired")
        changes = {"removed": [details["credential"]]} if is_end else (details or {}).get("credentials", {})
        # If people sign in elsewhere, the ledger does not know who could.
        is_listed = bool(changes.get("count")) if kind == "service.started" and details is not None else is_listed
        for named in changes.get("removed", []):
            name = named.get("credential_id")
            same = [one for one in sorted(credentials) if name and credentials[one].get("credential_id") == name]
            fingerprint = named.get("fingerprint") or [*same, None][0]
            if fingerprint in credentials and fingerprint not in revoked:
                credentials[fingerprint]["ended_at"] = entry.at
                revoked |= {fingerprint} if kind == "credential.revoked" else set()
        for named in changes.get("added", []):
            fingerprint, expiry = named.get("fingerprint"), parse_time(named.get("expires_at"))
            # What was revoked stays revoked, whatever a file says.
            if fingerprint and fingerprint not in revoked:
                credentials[fingerprint] = {**named, "ended_at": inf, "expiry": inf if expiry is None else expiry}
                owned.setdefault(named.get("actor_id"), set()).add(fingerprint)
        own = [credentials[fingerprint] for fingerprint in owned.get(actor, ())]
        # A credential may have passed to someone else since.
        own = [one for one in own if (one.get("actor_id"), one.get("role")) == (actor, role)]
        ends = [min(one["ended_at"], one["expiry"]) for one in own]
        is_known = any(entry.at < end + UNDER_WAY for end in ends)
        if is_listed and "item" in entry and None not in (actor, role) and not is_known:
            found.add(entry.index)
    return found

def verify(data, key, witnesses, needed):
    """The verdict on a bundle: a pure function of its bytes and the trusted keys, which come from elsewhere."""
    verifier = Verifier(data, key, witnesses, needed)
    verifier.run()
    # By check, then by entry; those about no entry first.
    faults = sorted(verifier.faults, key=lambda fault: (CHECKS.index(fault["check"]), fault.get("entry", -1)))
    verdict = "does_not_hold" if faults else "holds_as_far_as_checked" if verifier.gaps else "holds"
    return {"verdict": verdict, "gaps": verifier.gaps, "faults": faults, "unasked": verifier.unasked}

def read_key(kind):
    """Reads a key as it was given, or from the file that was named."""
    def key(given):
        return parse_key(given if given.count("+") >= 2 else Path(given).read_text(errors="replace"), kind)
    return key

def main():
    parser = argparse.ArgumentParser(description="Verifies an evidence bundle of Pilot.")
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--key", type=read_key(1), required=True, help="the log's public key, or a file that has it")
    parser.add_argument("--witness-key", type=read_key(4), action="append", default=[], help="a witness's, likewise")
    parser.add_argument("--witnesses", type=int, help="how many of them must have cosigned; all, if not given")
    parser.add_argument("--allow-left-out", action="store_true", help="exit with 0 although content was left out")
    try:
        options = parser.parse_args()
        data = options.bundle.read_bytes()
    except OSError as error:
        print(f"pilot_verify: {error.filename}: {error.strerror}", file=sys.stderr)
        sys.exit(3)
    witnesses, count = options.witness_key, len(options.witness_key)
    needed = count if options.witnesses is None else options.witnesses
    if len({witness.public for witness in witnesses}) < count or not 0 <= needed <= count:
        parser.error("--witnesses: more are required than keys are given, or a key is given twice")
    found = verify(data, options.key, witnesses, needed)
    print(json.dumps(found, indent=2, ensure_ascii=False))
    is_allowed = options.allow_left_out and found["gaps"] == ["left_out"]
    sys.exit({"holds": 0, "does_not_hold": 1, "holds_as_far_as_checked": 0 if is_allowed else 4}[found["verdict"]])

if __name__ == "__main__":
    main()
