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


def check_witnesses(note, trust, faults):
    """The times of the trusted witnesses' cosignatures of the newest checkpoint; too few are a fault."""
    times = []
    for witness in trust.witnesses:
        try:
            times.append(cosigned_at(note, witness))
        except ValueError as error:
            faults.append(Fault("witnesses", "witnesses", f"checkpoint: {witness.name}: {error}"))
    times = [time for time in times if time is not None]
    if len(times) < trust.needed:
        faults.append(Fault("witnesses", "witnesses", f"checkpoint: cosigned by {len(times)}, {trust.needed} needed"))
    return times


def check_inclusion(contents, newest, trust, faults):
    """Every entry must be in the log's tree: by its own proof, or as a part of the period."""
    period = contents.manifest.period
    alone = [entry for entry in contents.entries if not (period and period[2] <= entry.index < period[3])]
    for entry in alone:
        if what := proof_fault(contents, newest, entry):
            faults.append(Fault("inclusion", "proof", what, entry.index))
    for index in sorted(set(contents.proofs) - {entry.index for entry in alone}):
        faults.append(Fault("inclusion", "proof", f"no entry {index} of this bundle needs its proof"))
    if period:
        try:
            check_period(contents, newest, trust)
        except Fault as fault:
            faults.append(fault)


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
    """The entries of a period, appended to the tree before it, must give the tree after it, which the log continues."""
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
    inside = [entry for entry in contents.entries if first <= entry.index < end]
    for index, entry in enumerate(inside, first):
        if entry.index != index:
            raise Fault("completeness", "gap", f"entry {index} is missing", index)
        peaks.push(leaf_hash(entry.data))
    if len(inside) != max(end - first, 0):
        raise Fault("completeness", "gap", "the last entries of the period are missing", first + len(inside))
    if peaks.root() != after.root:
        raise Fault("inclusion", "proof", "the entries of the period do not lead to the root of checkpoints/to")
    path = hash_lines(contents.texts.get("proofs/consistency"), "proofs/consistency")
    if not is_consistent(after.size, after.root, newest.size, newest.root, path):
        raise Fault("inclusion", "proof", "proofs/consistency: the checkpoint does not continue checkpoints/to")


def root_at(contents, size):
    """The root of the log's first entries, computed from those of the period; None if they do not reach there."""
    if not contents.manifest.period or not contents.manifest.period[2] <= size <= contents.manifest.period[3]:
        return None
    first = contents.manifest.period[2]
    peaks = Peaks(first, hash_lines(contents.texts.get("proofs/from.edge"), "proofs/from.edge"))
    for entry in contents.entries:
        if first <= entry.index < size:
            peaks.push(leaf_hash(entry.data))
    return peaks.root()


def check_kept(contents, newest, trust, faults):
    """Older cosigned checkpoints, as (size, note). Each must be of this log, and the newest must continue it."""
    kept = [(newest.size, contents.texts["checkpoint"])]
    for size, (note, proof) in sorted(contents.kept.items()):
        path = f"checkpoints/{size:012}"
        try:
            checkpoint = Checkpoint.open(note or "", trust.key)
            root = root_at(contents, size) if proof is None else None
        except (ValueError, Fault) as error:
            faults.append(Fault("inclusion", "proof", f"{path}: {error}"))
            continue
        if proof is None:
            is_proved = checkpoint.root == (newest.root if size == newest.size else root)
        else:
            hashes = [parse_hash(line) for line in proof.split("\n")[:-1]]
            is_proved = None not in hashes and is_consistent(size, checkpoint.root, newest.size, newest.root, hashes)
        if checkpoint.size != size or not is_proved:
            faults.append(Fault("inclusion", "proof", f"{path}: the newest checkpoint does not continue it"))
            continue
        kept.append((size, note))
    return kept


def check_clock(contents, kept, trust, faults):
    """The log dates its entries itself; what witnesses have signed shows when they were there, or not there yet."""
    wrong = {}
    for size, note in kept:
        try:
            times = [cosigned_at(note, witness) for witness in trust.witnesses]
        except ValueError:
            times = []
        times = [time * SECOND for time in times if time is not None]
        for entry in contents.entries if times else ():
            if entry.index < size and entry.at > max(times) + CLOCK_TOLERANCE:
                wrong[entry.index] = f"its time is after that of its cosignature with {size} entries"
            if entry.index >= size and entry.at < min(times) - CLOCK_TOLERANCE:
                wrong[entry.index] = f"its time is before a cosignature of {size} entries, which does not cover it"
    for index, what in sorted(wrong.items()):
        faults.append(Fault("completeness", "clock", what, index))


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


def is_recent(contents, newest, times, trust):
    """A period that ends with the log is complete only if enough witnesses saw that end after the period was over."""
    if not contents.manifest.period or contents.manifest.period[3] != newest.size or not trust.witnesses:
        return True
    late = [time for time in times if (time + 1) * SECOND > contents.manifest.period[1]]
    return len(late) >= max(trust.needed, 1)


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


def is_workflow(value):
    return (isinstance(value, dict) and is_text(value.get("name")) and is_number(value.get("version"), 32)
            and is_text(value.get("digest")))


def parse_start(entry):
    """What a start says; None if that cannot be read. Members that are not known here are left to others."""
    details = entry.get("details")
    if not isinstance(details, dict) or not isinstance(details.get("credentials", {}), dict):
        return None
    credentials = details.get("credentials", {})
    fits = (is_list(is_credential)(credentials.get("added", [])) and is_list(is_credential)(credentials.get("removed", []))
            and optional(is_number)(credentials.get("count")) and is_list(is_workflow)(details.get("definitions", []))
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
                faults.append(Fault("completeness", "start", "the start that was in force is missing", entry.index, item))
            is_withheld = True
            continue
        if entry.get("type") == "item.created" and entry.get("definition") not in (None, *start.definitions):
            faults.append(Fault("legality", "definition", "its definition was not in force", entry.index, item))
        role_map, actor, role = contents.role_maps.get(start.role_map), entry.get("actor_id"), entry.get("role")
        if None not in (role_map, actor, role) and role_map.get(actor) != role:
            what = f"{actor} acts as {role}, but the role map in force says {role_map.get(actor)}"
            faults.append(Fault("legality", "role_map", what, entry.index, item))


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


def judge_item(contents, starts, item, history, faults):
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
    return [{"item": item, "entry": entry, "question": question} for entry, question in unasked]


def check_one_at_a_time(contents, histories, faults):
    """If a workflow allows each person one open item, no two were open at the same time."""
    ends = {}
    for item, history in histories.items():
        first = history[0]
        definition = contents.definitions.get(first.get("definition"))
        if definition is None or "one_open_per_creator" not in definition.rules:
            continue
        terminal = {name for name, state in definition.states.items() if state["kind"] == "terminal"}
        # A state that the definition does not have is no state to go on from.
        ended = [entry.index for entry in history
                 if entry.get("to") is not None and (entry.get("to") in terminal or entry.get("to") not in definition.states)]
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
        return verdict_of(broken.faults, [], False)
    except Fault as fault:
        return verdict_of([fault], [], False)
    faults, unasked = [], []
    times = check_witnesses(contents.texts["checkpoint"], trust, faults)
    check_inclusion(contents, newest, trust, faults)
    check_clock(contents, check_kept(contents, newest, trust, faults), trust, faults)
    check_completeness(contents, newest, faults)
    histories = find_histories(contents)
    is_missing = missing_documents(contents, histories, faults) > 0
    starts = find_starts(contents, faults)
    for item, history in histories.items():
        unasked += judge_item(contents, starts, item, history, faults)
    if contents.manifest.period and contents.manifest.period[2] == 0:
        check_one_at_a_time(contents, histories, faults)
    if not is_recent(contents, newest, times, trust):
        unasked.append({"question": "completeness", "what": "too few cosignatures are from after the period"})
    return verdict_of(sorted(faults, key=Fault.place), unasked, is_missing or bool(unasked))


def verdict_of(faults, unasked, is_open):
    def shown(fault):
        members = {"rule": fault.rule, "entry": fault.entry, "item": fault.item, "what": fault.what}
        return {name: value for name, value in members.items() if value is not None}

    verdict = "does_not_hold" if faults else "holds_as_far_as_checked" if is_open else "holds"
    return {"verdict": verdict, "faults": [shown(fault) for fault in faults], "unasked": unasked}


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
           "holds_as_far_as_checked": "The evidence holds AS FAR AS IT COULD BE CHECKED."}[found["verdict"]])


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
    open_status = 0 if options.allow_left_out else 4
    sys.exit({"holds": 0, "does_not_hold": 1, "holds_as_far_as_checked": open_status}[found["verdict"]])


if __name__ == "__main__":
    main()
