#!/usr/bin/env python3
"""Compares this verifier with the one in Pilot: reads bundles and verdicts from standard input, as the program
`forged-bundles` writes them, and reports every difference. `cargo xtask verifiers` runs both.

Exit status: 0 if there is no difference, 1 if there is one, 2 if nothing was compared.
"""

import collections
import json
import sys

from pilot_evidence.formats import parse_key
from pilot_verify import verify


def pieces(stream):
    """Each piece of the stream has its length in four bytes before it."""
    while head := stream.read(4):
        piece = stream.read(int.from_bytes(head, "big"))
        if len(piece) < int.from_bytes(head, "big"):
            sys.exit("the stream is cut off")
        yield piece


def differences(theirs, ours):
    """What the two verdicts differ in, in words."""
    found = [[fault["rule"], fault.get("entry")] for fault in ours["faults"]]
    unasked = [[question.get("entry"), question["question"]] for question in ours["unasked"]]
    if theirs["verdict"] != ours["verdict"]:
        yield f"verdict {theirs['verdict']} there, {ours['verdict']} here"
    if theirs["gaps"] != ours["gaps"]:
        yield f"gaps {theirs['gaps']} there, {ours['gaps']} here"
    if theirs["faults"][:1] != found[:1]:
        yield f"first fault {theirs['faults'][:1]} there, {found[:1]} here"
    elif sorted(map(str, theirs["faults"])) != sorted(map(str, found)):
        yield f"faults {theirs['faults']} there, {found} here"
    if sorted(map(str, theirs["unasked"])) != sorted(map(str, unasked)):
        yield f"not asked {theirs['unasked']} there, {unasked} here"


def is_open_here(theirs, ours):
    """Whether this verifier left a question about a payload open because it does not know a part of the schema."""
    extra = [one for one in ours["unasked"] if [one["entry"], one["question"]] not in theirs["unasked"]]
    return bool(extra) and all(one["question"] in ("payload", "content") for one in extra)


def compare(theirs, bundle):
    witnesses = [parse_key(line, 4) for line in theirs["witness_keys"]]
    ours = verify(bundle, parse_key(theirs["key"], 1), witnesses, theirs["witnesses"])
    # Then it claims less, and what follows from the payload is not comparable; `main` says how often that was.
    if is_open_here(theirs, ours):
        return None
    differs = list(differences(theirs, ours))
    for difference in differs:
        print(f"seed {theirs['seed']}, {theirs['name']}: {difference}")
    if differs:
        print(*("  there: " + what for what in theirs["what"]), sep="\n")
        print(*(f"  here: {fault}" for fault in ours["faults"]), sep="\n")
    return not differs


def main():
    count = same = open_here = 0
    rules = collections.Counter()
    stream = pieces(sys.stdin.buffer)
    for line in stream:
        theirs = json.loads(line)
        is_same = compare(theirs, next(stream))
        same += is_same is not False
        open_here += is_same is None
        count += 1
        rules[theirs["verdict"]] += 1
        rules.update({rule for rule, _ in theirs["faults"]})
    figures = ", ".join(f"{name} {number}" for name, number in rules.most_common())
    print(f"{count} bundles compared, {count - same} differ, {open_here} left open here; {figures}")
    sys.exit(2 if count == 0 else int(same < count))


if __name__ == "__main__":
    main()
