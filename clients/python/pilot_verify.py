#!/usr/bin/env python3
"""Verifies evidence bundles of Pilot without Pilot: a second program, written from the documents.

    pilot_verify.py BUNDLE.zip --key LINE_OR_FILE [--witness-key LINE_OR_FILE]... [--witnesses N]
                    [--allow-left-out] [--output json]

Exit status: 0 the evidence holds, 1 it does not, 4 it holds as far as it could be checked, 2 wrong usage, 3 a file
cannot be read. It needs Python 3.11 and the package `cryptography`, and only reads files.

The formats are in docs/audit/log-format.md and evidence-format.md, the rules in docs/audit/semantics.md. README.md
in this directory says what is not checked here. Times are whole microseconds since 1970, hashes are bytes.
"""

import argparse
import json
import sys
from dataclasses import dataclass, field

from pilot_evidence.bundle import Broken, Fault, open_bundle
from pilot_evidence.formats import (ACTOR, DIGEST, ROLES, SECOND, WHITE_SPACE, is_list, is_number, is_text, matches,
                                    parse_hash, parse_time)
from pilot_evidence.log import (Checkpoint, Key, Peaks, cosigned_at, is_consistent, leaf_hash, root_from_path)
from pilot_evidence.rules import Stray, follow

# How far the log's clock and a witness's clock may be apart.
CLOCK_TOLERANCE = 600 * SECOND


# ---- in the log


@dataclass
class Trust:
    """Whose signatures count. Keys come from somewhere other than the bundle."""

    key: Key
    witnesses: list
    needed: int


def open_checkpoint(contents, trust, path):
    try:
        return Checkpoint.open(contents.texts[path], trust.key)
    except (KeyError, ValueError) as error:
        raise Fault("checkpoint", "checkpoint", f"{path}: {error}") from None


def cosignatures(note, trust):
    """When each trusted witness cosigned, in seconds since 1970; only of those that did. ValueError if one is wrong."""
    times = [cosigned_at(note, witness) for witness in trust.witnesses]
    return [time for time in times if time is not None]


def check_witnesses(note, trust, faults):
    """Enough trusted witnesses must have cosigned the newest checkpoint. Returns the latest moment that so many vouch
    for; None if none are required, or too few have cosigned."""
    try:
        times = cosignatures(note, trust)
        if len(times) < trust.needed:
            raise ValueError(f"cosigned by {len(times)}, {trust.needed} needed")
    except ValueError as error:
        faults.append(Fault("witnesses", "witnesses", f"checkpoint: {error}"))
        return None
    return sorted(times, reverse=True)[trust.needed - 1] * SECOND if trust.needed else None


def check_inclusion(contents, newest, trust, faults):
    """Every entry must be in the log's tree: by its own proof, or as a part of the period. Returns the roots of the log
    that this shows, by size."""
    period = contents.manifest.period
    alone = [entry for entry in contents.entries if not (period and period[2] <= entry.index < period[3])]
    for entry in alone:
        if what := proof_fault(contents, newest, entry):
            faults.append(Fault("inclusion", "proof", what, entry.index))
    for index in sorted(set(contents.proofs) - {entry.index for entry in alone}):
        faults.append(Fault("inclusion", "proof", f"no entry {index} of this bundle needs its proof"))
    roots = {newest.size: newest.root}
    if period:
        try:
            roots |= check_period(contents, newest, trust)
        except Fault as fault:
            faults.append(fault)
    return roots


def proof_fault(contents, newest, entry):
    """What is wrong with the C2SP tlog-proof of one entry."""
    head, _, note = contents.proofs.get(entry.index, "").partition("\n\n")
    lines = head.split("\n")
    if len(lines) < 2 or lines[:2] != ["c2sp.org/tlog-proof@v1", f"index {entry.index}"]:
        return "nothing proves that it is in the log"
    path = [parse_hash(line) for line in lines[2:]]
    if note != contents.texts["checkpoint"] or None in path or len(path) > 64:
        return "its proof does not belong to the bundle's checkpoint, or is malformed"
    if root_from_path(leaf_hash(entry.data), entry.index, newest.size, path) != newest.root:
        return "it is not this entry of the log"
    return None


def hash_lines(text, path):
    hashes = [parse_hash(line) for line in (text or "").split("\n")[:-1]]
    if text is None or text and not text.endswith("\n") or None in hashes:
        raise Fault("inclusion", "proof", f"{path}: it is not a list of base64 hashes, one per line")
    return hashes


def check_period(contents, newest, trust):
    """The entries of a period, appended to the tree before it, must give the tree after it, which the log continues.
    Returns the roots at which older checkpoints are to be compared."""
    _, _, first, end = contents.manifest.period
    before, after = (open_checkpoint(contents, trust, f"checkpoints/{side}") for side in ("from", "to"))
    if (before.size, after.size) != (first, end):
        raise Fault("inclusion", "proof", "the checkpoints of the period do not have the sizes the manifest says")
    try:
        peaks = Peaks(first, hash_lines(contents.texts.get("proofs/from.edge"), "proofs/from.edge"))
    except ValueError as error:
        raise Fault("inclusion", "proof", f"proofs/from.edge: {error}") from None
    if peaks.root() != before.root:
        raise Fault("inclusion", "proof", "proofs/from.edge: it does not lead to the root of checkpoints/from")
    roots = {first: before.root, end: after.root}
    inside = [entry for entry in contents.entries if first <= entry.index < end]
    for index, entry in enumerate(inside, first):
        if entry.index != index:
            raise Fault("completeness", "gap", f"entry {index} is missing", index)
        peaks.push(leaf_hash(entry.data))
        if index + 1 in contents.kept:
            roots[index + 1] = peaks.root()
    if len(inside) != max(end - first, 0):
        raise Fault("completeness", "gap", "the last entries of the period are missing", first + len(inside))
    if peaks.root() != after.root:
        raise Fault("inclusion", "proof", "the entries of the period do not lead to the root of checkpoints/to")
    path = hash_lines(contents.texts.get("proofs/consistency"), "proofs/consistency")
    if not is_consistent(after.size, after.root, newest.size, newest.root, path):
        raise Fault("inclusion", "proof", "proofs/consistency: the checkpoint does not continue checkpoints/to")
    return roots


def check_times(contents, newest, trust, roots, faults):
    """The log dates its entries itself. A cosignature dates a tree: what is in it was there by then, and what is not in
    it came later. Of several witnesses the one counts that says least, and of many wrong entries the first."""
    dated = []
    for size, (note, proof) in sorted(contents.kept.items()):
        try:
            if note is not None:
                check_kept(newest, trust, roots, size, note, proof)
                dated.append((size, cosignatures(note, trust)))
        except Fault as fault:
            faults.append(fault)
        except ValueError as error:
            faults.append(Fault("times", "witnesses", f"checkpoints/{size:012}: {error}"))
    try:
        dated.append((newest.size, cosignatures(contents.texts["checkpoint"], trust)))
    except ValueError:
        pass  # Already among the faults of the witnesses.
    dated = [(size, min(times) * SECOND, max(times) * SECOND) for size, times in dated if times]

    def is_late(entry):
        seen = [latest for size, _, latest in dated if entry.index < size]
        return seen and entry.at > min(seen) + CLOCK_TOLERANCE

    def is_early(entry):
        unseen = [earliest for size, earliest, _ in dated if entry.index >= size]
        return unseen and entry.at + CLOCK_TOLERANCE < max(unseen)

    for is_wrong, what in ((is_late, "witnesses had already seen it"), (is_early, "witnesses had not seen it then")):
        wrong = [entry.index for entry in contents.entries if is_wrong(entry)]
        if wrong:
            faults.append(Fault("times", "clock", f"its time is wrong: {what}; {len(wrong)} entries in all", wrong[0]))


def check_kept(newest, trust, roots, size, note, proof):
    """An older checkpoint must be one of this log, and the newest must continue it."""
    path = f"checkpoints/{size:012}"
    try:
        checkpoint = Checkpoint.open(note, trust.key)
    except ValueError as error:
        raise Fault("times", "checkpoint", f"{path}: {error}") from None
    is_proved = roots[size] == checkpoint.root if size in roots else proof is not None and is_consistent(
        size, checkpoint.root, newest.size, newest.root, hash_lines(proof, f"proofs/{size:012}.consistency"))
    if checkpoint.size != size or not is_proved:
        raise Fault("times", "checkpoint", f"{path}: nothing proves that the log continues it")


def check_completeness(contents, newest, faults):
    """Whether the entries are those the manifest promises, and their times never go back."""

    def wrong(rule, what, entry=None):
        faults.append(Fault("completeness", rule, what, entry))

    item = contents.manifest.item
    if item:
        for entry in contents.entries:
            erases = entry.get("type") == "documents.erased" and erased_item(entry) == item
            if entry.get("item") != item and entry.get("type") != "service.started" and not erases:
                wrong("scope", f"it is not about item {item}", entry.index)
        if not any(entry.get("item") == item for entry in contents.entries):
            faults.append(Fault("completeness", "scope", "no entry is about the item", None, item))
    else:
        check_edges(contents, newest, wrong)
    for earlier, entry in zip(contents.entries, contents.entries[1:]):
        if earlier.at > entry.at:
            wrong("time_order", "its time is before that of an entry with a lower index", entry.index)


def erased_item(entry):
    details = entry.get("details")
    return details.get("item") if isinstance(details, dict) else None


def check_edges(contents, newest, wrong):
    """The entries just before and just after a period must be there, and outside it: the range is not too narrow."""
    start, end_time, first, end = contents.manifest.period
    found = {entry.index: entry for entry in contents.entries}
    for entry in contents.entries:
        is_in_time = start <= entry.at < end_time
        if first <= entry.index < end and not is_in_time:
            wrong("scope", "its time is not in the period", entry.index)
        if (entry.index == first - 1 and entry.at >= start) or (
                entry.index == end and end < newest.size and entry.at < end_time):
            wrong("scope", "its time is in the period, but the range leaves it out", entry.index)
    if first > 0 and first - 1 not in found:
        wrong("scope", "the entry just before the period is missing", first - 1)
    if end < newest.size and end not in found:
        wrong("scope", "the entry just after the period is missing", end)


def is_seen_to_end(contents, newest, vouched_at):
    """A period that ends with the log is complete only if enough witnesses saw that end after the period was over.
    Cosignatures are dated in whole seconds."""
    period = contents.manifest.period
    is_last = period is not None and period[3] >= newest.size
    return not is_last or vouched_at is None or vouched_at + SECOND > period[1]


# ---- starts of the service


@dataclass
class Start:
    """What was in force from a start of the service on."""

    index: int
    role_map: str | None = None
    definitions: list = field(default_factory=list)
    previous: int | None = None


def optional(fits):
    return lambda value: value is None or fits(value)


CREDENTIAL_ID = matches("[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
NAMED = {"actor_id": matches(ACTOR), "role": ROLES.__contains__, "credential_id": CREDENTIAL_ID,
         "fingerprint": CREDENTIAL_ID, "expires_at": lambda value: parse_time(value) is not None}


def is_credential(value):
    return isinstance(value, dict) and all(optional(fits)(value.get(name)) for name, fits in NAMED.items())


def are_changes(value):
    lists = is_list(is_credential)
    return (isinstance(value, dict) and lists(value.get("added", [])) and lists(value.get("removed", []))
            and optional(is_number)(value.get("count")))


def is_workflow(value):
    return (isinstance(value, dict) and is_text(value.get("name")) and is_number(value.get("version"), 32)
            and is_text(value.get("digest")))


def parse_start(entry):
    """What a start says; None if that cannot be read. Members that are not known here are left to others."""
    details = entry.get("details")
    if not isinstance(details, dict):
        return None
    fits = (are_changes(details.get("credentials", {})) and is_list(is_workflow)(details.get("definitions", []))
            and is_list(is_text)(details.get("permit_keys", [])) and optional(is_number)(details.get("previous"))
            and optional(matches(DIGEST))(details.get("role_map")) and is_text(details.get("version", "")))
    if not fits:
        return None
    digests = [workflow["digest"] for workflow in details.get("definitions", [])]
    return Start(entry.index, details.get("role_map"), digests, details.get("previous"))


def find_starts(contents, faults):
    starts = []
    for entry in contents.entries:
        if entry.get("type") == "service.started":
            start = parse_start(entry)
            if start is None:
                faults.append(Fault("completeness", "start", "what this start says cannot be read", entry.index))
            starts.append(start or Start(entry.index))
    for start in starts:
        if start.role_map and start.role_map not in contents.role_maps:
            faults.append(Fault("completeness", "role_map", "the role map it pins is not in the bundle", start.index))
    for digest in sorted(set(contents.role_maps) - {start.role_map for start in starts}):
        faults.append(Fault("completeness", "role_map", f"no start in this bundle pins the role map {digest}"))
    return starts


def start_in_force(starts, index):
    """The latest start before an entry; None if the bundle withholds it. Every ledger begins with a start, and each
    start names the one before it."""
    before = [start for start in starts if start.index < index]
    after = [start for start in starts if start.index >= index]
    if not before or after and after[0].previous is not None and before[-1].index < after[0].previous < index:
        return None
    return before[-1]


def check_people(contents, starts, item, history, faults):
    """Every actor against the role map in force, and the creation against the definitions in force."""
    is_withheld = False
    for entry in history:
        start = start_in_force(starts, entry.index)
        if start is None:
            # Once per item: its other entries lack the same start.
            if not is_withheld:
                what = "the start that was in force is missing"
                faults.append(Fault("completeness", "start", what, entry.index, item))
            is_withheld = True
            continue
        if entry.get("type") == "item.created" and entry.get("definition") not in (None, *start.definitions):
            faults.append(Fault("legality", "definition", "its definition was not in force", entry.index, item))
        role_map, actor, role = contents.role_maps.get(start.role_map), entry.get("actor_id"), entry.get("role")
        if None not in (role_map, actor, role) and role_map.get(actor) != role:
            what = f"{actor} acts as {role}, but the role map in force says {role_map.get(actor)}"
            faults.append(Fault("legality", "role_map", what, entry.index, item))


# ---- credentials

# A request that was let in just before its credential ended may be recorded just after.
UNDER_WAY = 60 * SECOND


class Register:
    """Every credential the ledger has told of so far, followed from its first entry on."""

    def __init__(self):
        self.lives, self.of_actor = {}, {}  # fingerprint: [what is known of it, (end, is revoked) or None]
        self.is_listed = False

    def follow(self, entry):
        """Takes in what one entry tells."""
        kind, details = entry.get("type"), entry.get("details")
        credentials = details.get("credentials", {}) if isinstance(details, dict) else {}
        if kind == "service.started" and parse_start(entry):
            # If people sign in elsewhere, the ledger does not know who could.
            self.is_listed = bool(credentials.get("count"))
            self.change(credentials, entry.at)
        elif kind == "credentials.changed" and "credentials" in (details or {}) and are_changes(credentials):
            self.change(credentials, entry.at)
        elif kind in ("credential.revoked", "credential.expired") and is_ending(kind, details):
            self.end(details["credential"], entry.at, kind == "credential.revoked")

    def change(self, credentials, at):
        """A credential that is in both lists was changed. What was revoked stays revoked, whatever a file says."""
        for named in credentials.get("removed", []):
            self.end(named, at, False)
        for named in credentials.get("added", []):
            fingerprint = named.get("fingerprint")
            is_revoked = (self.lives.get(fingerprint) or [None, None])[1] or (0, False)
            if fingerprint is None or is_revoked[1]:
                continue
            self.of_actor.setdefault(named.get("actor_id"), set()).add(fingerprint)
            self.lives[fingerprint] = [named, None]

    def end(self, named, at, is_revoked):
        fingerprint, own_name = named.get("fingerprint"), named.get("credential_id")
        if fingerprint is None and own_name is not None:
            known = [one for one, life in sorted(self.lives.items()) if life[0].get("credential_id") == own_name]
            fingerprint = known[0] if known else None
        life = self.lives.get(fingerprint)
        if life and not (life[1] and life[1][1]):
            life[1] = (at, is_revoked)

    def objects(self, actor, role, at):
        """Whether nobody knows of a credential with which this actor could have acted in this role at this time."""
        for fingerprint in self.of_actor.get(actor, ()):
            named, ended = self.lives[fingerprint]
            ends = [ended[0]] if ended else []
            ends += [parse_time(named["expires_at"])] if named.get("expires_at") else []
            if named.get("role") == role and (not ends or at < min(ends) + UNDER_WAY):
                return False
        return self.is_listed


def is_ending(kind, details):
    is_said = kind == "credential.expired" or isinstance(details, dict) and is_text(details.get("cause"))
    return isinstance(details, dict) and is_credential(details.get("credential")) and is_said


def find_objections(contents):
    """The entries about items whose actor had no credential. Only a ledger from its first entry on shows that."""
    if not contents.manifest.period or contents.manifest.period[2] != 0:
        return set()
    register, found = Register(), set()
    for entry in contents.entries:
        if contents.is_inside(entry.index):
            register.follow(entry)
            actor, role = entry.get("actor_id"), entry.get("role")
            if None not in (entry.get("item"), actor, role) and register.objects(actor, role, entry.at):
                found.add(entry.index)
    return found


# ---- the verdict


def find_histories(contents):
    """The entries of each item the bundle is about, by their first entry."""
    histories = {}
    for entry in contents.entries:
        if entry.get("item") is not None:
            histories.setdefault(entry.get("item"), []).append(entry)
    return {item: history for item, history in histories.items()
            if any(contents.is_inside(entry.index) for entry in history)}


def missing_documents(contents, histories, faults):
    """How many documents are named but not there: erased, or left out. One that no entry names is a fault."""
    entries = [entry for history in histories.values() for entry in history]
    entries += [entry for entry in contents.entries if entry.get("item") is None and contents.is_inside(entry.index)]
    named = {entry.get(name) for entry in entries for name in ("content", "comment", "inputs")} - {None}
    for digest in sorted(set(contents.documents) - named):
        faults.append(Fault("documents", "document", f"no entry of this bundle names the document {digest}"))
    return len(named - set(contents.documents))


def find_gap(history):
    """Where an entry of an item is missing: the versions show it, whatever the rules say."""
    first, *rest = history
    version = first.get("version")
    if first.get("type") != "item.created" or version is None:
        return first.index, Stray("version_gap", "the history does not begin with the creation")
    for entry in rest:
        version += entry.get("type") in ("item.created", "item.edited", "item.transition")
        if entry.get("version") != version:
            return entry.index, Stray("version_gap", f"its version is {entry.get('version')}; {version} was expected")
    return None


def replay(contents, definition, history):
    """Asks the rules again for each entry. What is wrong first, as (entry, Stray), and what could not be asked."""
    item, unasked = None, []
    for entry in history:
        try:
            item, questions = follow(definition, item, entry, contents.documents)
        except Stray as stray:
            return (entry.index, stray), unasked
        unasked += [(entry.index, question) for question in questions]
    return None, unasked


def judge_item(contents, starts, objections, item, history, faults):
    """Judges one item. Returns the questions that only missing content could answer."""
    definition = contents.definitions.get(history[0].get("definition"))
    if definition is None:
        what = "its definition is not in the bundle as canonical JSON"
        faults.append(Fault("completeness", "definition", what, history[0].index, item))
        return []
    broken, unasked = replay(contents, definition, history)
    gap = find_gap(history)
    check_people(contents, starts, item, history, faults)
    # After a gap, the rules can only refuse.
    first = broken if gap is None or broken is not None and broken[0] < gap[0] else gap
    if first is not None:
        index, stray = first
        check = "completeness" if stray.rule == "version_gap" else "legality"
        faults.append(Fault(check, stray.rule, str(stray), index, item))
    for entry in history:
        if entry.index in objections:
            what = f"{entry.get('actor_id')} had no credential as {entry.get('role')}"
            faults.append(Fault("legality", "credential", what, entry.index, item))
    return [{"item": item, "entry": entry, "question": question} for entry, question in unasked]


def check_one_at_a_time(contents, histories, faults):
    """If a workflow allows each person one open item, no two were open at the same time."""
    ends = {}
    for item, history in histories.items():
        first = history[0]
        definition = contents.definitions.get(first.get("definition"))
        if definition is None or "one_open_per_creator" not in definition.rules:
            continue
        # Nothing goes on from a state that the definition does not have.
        lasting = {None} | {name for name, state in definition.states.items() if state["kind"] != "terminal"}
        ended = [entry.index for entry in history if entry.get("to") not in lasting]
        end, whose = ended[0] if ended else float("inf"), (first.get("actor_id"), definition.name)
        if ends.get(whose, -1) > first.index:
            what = f"{whose[0]} has another {whose[1]} that is still open"
            faults.append(Fault("legality", "state_conflict", what, first.index, item))
        ends[whose] = max(end, ends.get(whose, -1))


def verify(data, trust):
    """The verdict on a bundle: a pure function of its bytes and the trusted keys."""
    try:
        contents = open_bundle(data, trust.key)
        newest = open_checkpoint(contents, trust, "checkpoint")
    except Broken as broken:
        return verdict_of(broken.faults, [], [])
    except Fault as fault:
        return verdict_of([fault], [], [])
    faults, unasked, gaps = [], [], []
    vouched_at = check_witnesses(contents.texts["checkpoint"], trust, faults)
    roots = check_inclusion(contents, newest, trust, faults)
    check_completeness(contents, newest, faults)
    check_times(contents, newest, trust, roots, faults)
    histories = find_histories(contents)
    gaps += ["left_out"] if missing_documents(contents, histories, faults) else []
    starts, objections = find_starts(contents, faults), find_objections(contents)
    for item, history in histories.items():
        unasked += judge_item(contents, starts, objections, item, history, faults)
    if contents.manifest.period and contents.manifest.period[2] == 0:
        check_one_at_a_time(contents, histories, faults)
    gaps += [] if is_seen_to_end(contents, newest, vouched_at) else ["end_of_period"]
    gaps += ["not_known_here"] if unasked and "left_out" not in gaps else []
    return verdict_of(sorted(faults, key=Fault.place), unasked, gaps)


def verdict_of(faults, unasked, gaps):
    """The verdict in words. `gaps` says why it is only as far as it could be checked: documents are missing, nothing
    shows that the period is complete at its end, or the schema uses what this verifier does not know."""

    def shown(fault):
        members = {"rule": fault.rule, "entry": fault.entry, "item": fault.item, "what": fault.what}
        return {name: value for name, value in members.items() if value is not None}

    verdict = "does_not_hold" if faults else "holds_as_far_as_checked" if gaps else "holds"
    return {"verdict": verdict, "gaps": gaps, "faults": [shown(fault) for fault in faults], "unasked": unasked}


# ---- the command line


def read_key(given, kind):
    """A key as it was given, or from the file that was named. Exits with 2 or 3, as `pilot evidence verify` does."""
    try:
        if given.count("+") < 2:
            with open(given, "rb") as file:
                given = file.read().decode("utf-8", "replace").strip(WHITE_SPACE)
        return Key.parse(given, kind)
    except OSError as error:
        fail(2 if isinstance(error, FileNotFoundError) else 3, f"{given}: {error.strerror}")
    except ValueError as error:
        fail(2, str(error))


def fail(status, what):
    print(f"pilot_verify: {what}", file=sys.stderr)
    sys.exit(status)


def read_trust(options):
    witnesses = [read_key(given, 4) for given in options.witness_key]
    if len({witness.public for witness in witnesses}) < len(witnesses):
        fail(2, "--witness-key: the same key is given twice; a witness counts once")
    needed = len(witnesses) if options.witnesses is None else options.witnesses
    if not 0 <= needed <= len(witnesses):
        fail(2, f"--witnesses: {needed} are required, but {len(witnesses)} keys are given")
    return Trust(read_key(options.key, 1), witnesses, needed)


def print_verdict(found):
    for fault in found["faults"]:
        place = "".join(f"{name} {fault[name]}: " for name in ("entry", "item") if name in fault)
        print(f"fault: {place}{fault['what']} [{fault['rule']}]")
    for question in found["unasked"]:
        print("not checked:", ", ".join(f"{name} {value}" for name, value in question.items()))
    print({"holds": "The evidence holds.", "does_not_hold": "The evidence does NOT hold.",
           "holds_as_far_as_checked": "The evidence holds AS FAR AS IT COULD BE CHECKED: " + ", ".join(found["gaps"])}
          [found["verdict"]])


def main():
    parser = argparse.ArgumentParser(description="Verifies an evidence bundle of Pilot.")
    parser.add_argument("bundle")
    parser.add_argument("--key", required=True, help="the log's public key, or a file that has it")
    parser.add_argument("--witness-key", action="append", default=[], help="a witness's public key, or a file")
    parser.add_argument("--witnesses", type=int, help="how many of them must have cosigned; all, if not given")
    parser.add_argument("--allow-left-out", action="store_true", help="exit with 0 although content was left out")
    parser.add_argument("--output", choices=("text", "json"), default="text")
    options = parser.parse_args()
    trust = read_trust(options)
    try:
        with open(options.bundle, "rb") as file:
            data = file.read()
    except OSError as error:
        fail(3, f"{options.bundle}: {error.strerror}")
    found = verify(data, trust)
    print(json.dumps(found, indent=2, ensure_ascii=False)) if options.output == "json" else print_verdict(found)
    # Whoever knows that content was left out still wants to hear of everything else.
    open_status = 0 if options.allow_left_out and found["gaps"] == ["left_out"] else 4
    sys.exit({"holds": 0, "does_not_hold": 1, "holds_as_far_as_checked": open_status}[found["verdict"]])


if __name__ == "__main__":
    main()
