"""The rules: definitions, items, and whether a recorded move was possible. The semantics are in
docs/audit/semantics.md; the order of the checks is part of them."""
from copy import copy
from types import SimpleNamespace
from typing import NamedTuple

from .formats import (HEX, NOT_BLANK, ROLE, WRITTEN_TIME, Fault, canonical, depth, fits, is_number, is_time, later,
                      parse_time, sha256, strict_json)
from .schema import CannotCheck, Judge, follow_pointer

SPAN = "[+]?[0-9]{1,20}[smhd]"
NAME = "[a-z][a-z0-9_-]{0,63}"

def some(shape):
    """A list that is never written empty."""
    return lambda value: value != [] and fits([shape], value)

FLAGS = ("not_by_executor?", "comment_required?", "content_digest_required?", "inside_window?", "voids_votes?",
         "voids_window?", "takes_back_vote?")
RULE = {
    "action": NAME, "from": [NAME], "roles": [ROLE], "to?": NAME, "own?": "creator|voter|holder", "quorum?": int,
    "quorum_if?": {"pointer": str, "equals": object, "quorum": int}, "sets_window?": SPAN, "takes_lease?": SPAN,
    "renews_lease?": SPAN, "attempts?": int, "replaces?": some(NAME), "when?": {"input": NAME, "equals": str},
    "inputs?": some("result|artifacts|progress"), "description?": "(?s).+", **dict.fromkeys(FLAGS, True)}
STATE = {"name": NAME, "kind": "open|effect|terminal", "editable?": True, "waits_for?": some(ROLE),
         "description?": "(?s).+"}
TIMER = ({"from": [NAME], "to": NAME, "after": SPAN}, {"from": [NAME], "to": NAME, "at": "window_end|lease_end"})
RULES = {
    "schema_version": int, "name": NAME, "version": int, "title": str, "description": str, "initial": NAME,
    "required_roles": [ROLE], "states": [STATE], "transitions": [RULE], "timers": [TIMER], "payload_schema": object,
    "one_open_per_creator?": True, "hold?": {"roles": [ROLE], "release_roles": [ROLE], "blocks": [NAME]}}

class Definition:
    """The rules of a workflow, read from the canonical JSON whose SHA-256 is its digest."""
    def __init__(self, data):
        rules = strict_json(data)
        if canonical(rules).encode() != data or not fits(RULES, rules):
            raise ValueError("it is not canonical, or has members or values that this verifier does not know")
        self.rules, self.digest, self.name = rules, "sha256:" + sha256(data).hex(), rules["name"]
        self.states = {state["name"]: state for state in rules["states"]}
        moves = rules["transitions"] + rules["timers"]
        named = {rules["initial"], *(move.get("to", rules["initial"]) for move in moves)}
        if not named.union(*(move["from"] for move in moves)) <= set(self.states):
            raise ValueError("it names a state that it does not declare")
        # Hold and release are possible in every state that is not terminal, need a comment, and move nothing.
        lasting = [name for name in self.states if not self.is_kind(name, "terminal")]
        hold, common = rules.get("hold"), {"from": lasting, "comment_required": True}
        self.hold_blocks = hold["blocks"] if hold else []
        self.transitions = rules["transitions"] + ([] if hold is None else [
            {"action": "hold", "roles": hold["roles"], "holds": True, **common},
            {"action": "release", "roles": hold["release_roles"], "holds": False, **common}])

    def is_kind(self, state, kind):
        return self.states[state]["kind"] == kind

    def is_editable(self, state):
        return "editable" in self.states[state]

# In place of a document that an entry names and the bundle does not have.
LEFT_OUT = object()

class Window(NamedTuple):
    """When an item may be executed. If the inputs that set it are missing: the widest bounds the rules allow."""
    start: int
    end: int
    is_left_out: bool = False

def new_item(definition, entry):
    """An item, as its creation leaves it. `participants` have the role of the first part they took, `learned` is what
    moves have shown of a missing payload, [(pointer, canonical value, whether it is there)], `lease` is (holder, end),
    `votes` are {actor: (action, content)}. Parts are replaced, never changed: moves begin with a shallow copy."""
    return SimpleNamespace(
        state=definition.rules["initial"], version=1, content=entry["content"], creator=entry["actor_id"],
        updated_at=entry.at, entered_at=entry.at, participants={entry["actor_id"]: entry["role"]}, payload=LEFT_OUT,
        learned=[], held=False, window=None, lease=None, votes={}, attempts=0, executors=set())

def payload_has(item, pointer, value):
    """Whether this value is there; None if that cannot be known."""
    if item.payload is not LEFT_OUT:
        return any(canonical(found) == canonical(value) for found in follow_pointer(item.payload, pointer))
    known = {text: is_there for place, text, is_there in item.learned if place == pointer}
    # Only one value can be there.
    return known.get(canonical(value), False if True in known.values() else None)

def refuse(condition, rule, what):
    if condition:
        raise Fault("legality", rule, what)

SHORT_TEXT = "(?s).{1,1000}"
ARTIFACT = {"name": SHORT_TEXT, "sha256": HEX, "bytes": lambda size: is_number(size, 53), "uri": SHORT_TEXT}
INPUTS = {"result": "(?s).{0,4000}", "progress": "(?s).{0,500}",
          "artifacts": lambda value: fits([ARTIFACT], value) and len(value) <= 100}

def is_input(rule, name, value):
    """Whether a rule takes this input with this value."""
    if name in rule.get("inputs", []):
        return fits(INPUTS[name], value)
    return name in ("not_before", "not_after") and "sets_window" in rule or name == rule.get("when", {}).get("input")

class Case:
    """One recorded move, and everything the rules look at. `unasked` collects what only missing documents could say."""
    def __init__(self, definition, item, entry, comment=None, inputs=None):
        self.definition, self.item, self.entry, self.comment, self.inputs = definition, item, entry, comment, inputs
        # Setting a clock back does not make time go back within an item.
        self.at = max(entry.at, item.updated_at)
        self.actor, self.role, self.unasked = entry.get("actor_id"), entry.get("role"), []

    def deadlines(self):
        """(when, where to, what ends) for each deadline of the state. Of two at one moment, the definition's first."""
        item, ends = self.item, {"window_end": self.item.window and self.item.window.end,
                                 "lease_end": self.item.lease and self.item.lease[1]}
        timers = [timer for timer in self.definition.rules["timers"] if item.state in timer["from"]]
        due = [(later(item.entered_at, timer["after"]) if "after" in timer else ends[timer["at"]], timer["to"],
                timer.get("at")) for timer in timers]
        return sorted((deadline for deadline in due if deadline[0] is not None), key=lambda deadline: deadline[0])

    def unknown_ends(self):
        """The deadlines that are the end of a window that is no longer known."""
        is_unknown = self.item.window is not None and self.item.window.is_left_out
        return [deadline for deadline in self.deadlines() if is_unknown and deadline[2] == "window_end"]

    def not_overdue(self):
        """A due timer wins over a person: nobody can act after a deadline by being faster than the server."""
        refuse(any(when <= self.at for when, _, _ in self.deadlines()), "state_conflict", "a deadline has passed")
        if self.unknown_ends() and self.item.window.start < self.at:
            self.unasked.append("deadline")

    def expire(self):
        """A timer moves the item. If the end of the window is unknown, any deadline that may have been first counts."""
        window, unknown = self.item.window, self.unknown_ends()
        known = [deadline for deadline in self.deadlines() if deadline not in unknown][:1]
        latest = min(self.at, window.end) if unknown else self.at
        possible = [to for when, to, _ in known if when <= latest]
        if unknown:
            self.unasked.append("deadline")
            if window.start < min([self.at, *(when for when, _, _ in known)]):
                possible.insert(0, unknown[0][1])
        refuse(not possible, "state_conflict", "no deadline has passed")
        after = self.moved_to(self.entry.get("to") if self.entry.get("to") in possible else possible[0])
        after.lease = after.lease if self.definition.is_kind(after.state, "effect") else None
        return after

    def act(self):
        """The checks of an action, in the order that is part of the contract."""
        rules = [rule for rule in self.definition.transitions if rule["action"] == self.entry.get("action")]
        refuse(not rules, "unknown_action", "this workflow has no such action")
        first, refusals = self.permitted_rule(rules), []
        # One rule, unless the inputs that choose between rules are missing: then any that allows the move is enough.
        for choice in self.choices(rules, first):
            self.unasked = ["comment"] if self.comment is LEFT_OUT else []
            try:
                if self.comment is not LEFT_OUT:
                    is_missing = "comment_required" in first and not fits(NOT_BLANK, self.comment)
                    is_long = len(self.comment or "") > 4_000
                    refuse(is_missing or is_long, "invalid_request", "the comment is missing or too long")
                rule, window = self.read_inputs(rules, choice)
                self.check_situation(rule)
                self.check_complete(rule)
                return self.taken(rule, window)
            except Fault as fault:
                refusals.append(fault)
        raise refusals[0]

    def permitted_rule(self, rules):
        """Role, separation of duties, ownership. The rule that applies here, or one that applies elsewhere."""
        here = [rule for rule in rules if self.item.state in rule["from"]]
        for_role = [rule for rule in here or rules if self.role in rule["roles"]]
        refuse(not for_role, "role_forbidden", f"{self.actor} acts as {self.role}")
        self.check_separate()
        rule, votes, lease = for_role[0], self.item.votes, self.item.lease
        is_executor = "not_by_executor" in rule and self.actor in self.item.executors
        refuse(is_executor, "separation_of_duties", f"{self.actor} executed this item")
        # If there is no owner yet, the state is the reason for a refusal.
        is_anothers = {"creator": self.item.creator != self.actor, "voter": votes and self.actor not in votes,
                       "holder": lease and lease[0] != self.actor}
        refuse(is_anothers.get(rule.get("own")), "not_owner", f"only the {rule.get('own')} may do this")
        return rule

    def check_separate(self):
        """An actor who acted on an item in one role never acts on it in another."""
        is_other = self.item.participants.get(self.actor, self.role) != self.role
        refuse(is_other, "separation_of_duties", f"{self.actor} took part in this item in another role")

    def beside(self, rules, rule):
        """This rule, and those of the same action that an input tells from it."""
        is_here, by_input = self.item.state in rule["from"], rule.get("when", {}).get("input")
        return [other for other in rules if set(other["from"]) & set(rule["from"])
                and (self.item.state in other["from"]) == is_here and other.get("when", {}).get("input") == by_input]

    def choices(self, rules, rule):
        """The rules that missing inputs may have chosen: those that lead to where the item went."""
        if self.inputs is not LEFT_OUT or "when" not in rule:
            return [rule]
        state, led_to = self.item.state, self.entry.get("to") or self.item.state
        return [other for other in self.beside(rules, rule) if other.get("to", state) == led_to] or [rule]

    def read_inputs(self, rules, rule):
        """The rule that the inputs choose, and the window they set."""
        if self.inputs is LEFT_OUT:
            self.unasked.append("inputs")
            limit = rule.get("sets_window")
            return rule, Window(self.at, later(self.at, limit), True) if limit else None
        inputs = {} if self.inputs is None else self.inputs
        refuse(not isinstance(inputs, dict), "invalid_request", "the inputs are not an object")
        if "when" in rule:
            value = inputs.get(rule["when"]["input"])
            rule = next((other for other in self.beside(rules, rule) if other["when"]["equals"] == value), None)
        is_taken = rule and all(is_input(rule, name, value) for name, value in inputs.items())
        refuse(not is_taken, "invalid_request", "the inputs choose no outcome, or one is unknown or malformed")
        if "sets_window" not in rule:
            return rule, None
        end = parse_time(inputs.get("not_after"))
        start = parse_time(inputs["not_before"]) if "not_before" in inputs else self.at
        is_fit = None not in (start, end) and self.at < end <= later(self.at, rule["sets_window"]) and start < end
        refuse(not is_fit, "invalid_request", "the window is missing, over, too long or empty")
        return rule, Window(start, end)

    def check_situation(self, rule):
        """Deadline, vote, state, attempts, hold and window: what prevents an action whatever the request says."""
        item, own, window = self.item, rule.get("own"), self.item.window
        self.not_overdue()
        # Each person counts once in a round, which lasts until its votes are voided or the item has moved on.
        is_in_round = "quorum" in rule and item.state in [*rule["from"], rule.get("to")]
        action, content = item.votes.get(self.actor, (None, None))
        is_standing = content == item.content and action not in rule.get("replaces", [])
        is_over = self.definition.is_kind(item.state, "terminal")
        refuse(is_in_round and is_standing and not is_over, "already_decided", f"{self.actor} has voted")
        refuse(item.state not in rule["from"], "state_conflict", f"it is not possible in {item.state}")
        has_no_owner = own == "voter" and not item.votes or own == "holder" and item.lease is None
        refuse(has_no_owner, "state_conflict", "there is no vote, or no lease")
        refuse(item.attempts >= rule.get("attempts", item.attempts + 1), "state_conflict", "all attempts were used")
        refuse(rule.get("holds") == item.held, "state_conflict", "the item is already held, or not held")
        refuse(item.held and rule["action"] in self.definition.hold_blocks, "item_held", "the item is held")
        if "inside_window" in rule:
            refuse(not window or not window.start <= self.at < window.end, "outside_window", "the window is not open")
            self.unasked += ["window"] if window.is_left_out else []

    def check_complete(self, rule):
        """Where content stops being editable it is frozen, and must be complete, unless the item ends."""
        to, definition = rule.get("to", self.item.state), self.definition
        freezes = definition.is_editable(self.item.state) and not definition.is_editable(to)
        if freezes and not definition.is_kind(to, "terminal"):
            self.judge_payload(self.item.payload, types_only=False, question="payload")

    def judge_payload(self, payload, types_only, question):
        """What is missing, or uses a pattern or format that this verifier does not know, is said, not guessed."""
        schema = self.definition.rules["payload_schema"]
        try:
            is_fit = payload is LEFT_OUT or Judge(schema, types_only).holds(schema, payload)
            refuse(not is_fit, "invalid_request", "the payload does not fit the definition")
        except CannotCheck:
            payload = LEFT_OUT
        self.unasked += [question] if payload is LEFT_OUT else []

    def moved_to(self, state):
        """The item in this state, one version later, with its actor among those who took part."""
        after = copy(self.item)
        after.version, after.updated_at = self.item.version + 1, self.at
        if after.state != state:
            after.state, after.entered_at = state, self.at
        if self.actor is not None:
            after.participants = {self.actor: self.role, **self.item.participants}
        return after

    def taken(self, rule, window):
        """What the item is after a rule that may be taken. A vote that does not reach the quorum changes only votes."""
        moves, learned = self.carries(rule) if "quorum" in rule else (True, [])
        after = self.moved_to(rule.get("to", self.item.state) if moves else self.item.state)
        after.learned = after.learned + learned
        self.unasked += ["quorum"] if learned else []
        if "quorum" in rule:
            after.votes = {**self.item.votes, self.actor: (rule["action"], self.item.content)}
        if moves:
            if "takes_back_vote" in rule:
                after.votes = {actor: vote for actor, vote in after.votes.items() if actor != self.actor}
            if "voids_votes" in rule and self.item.votes:
                after.votes = {}
            after.window = window or (None if "voids_window" in rule else after.window)
            is_effect = self.definition.is_kind(after.state, "effect")
            length = rule.get("takes_lease", rule.get("renews_lease"))
            after.lease = (self.actor, later(self.at, length)) if length else after.lease if is_effect else None
            after.attempts += "attempts" in rule
            # Only the actor who moves the item into an effect, not one who acts on it while it is there.
            if is_effect and after.state != self.item.state:
                after.executors = {*after.executors, self.actor}
        after.held = rule.get("holds", after.held)
        return after

    def carries(self, rule):
        """Whether this vote reaches the quorum. If that depends on a missing payload, what the item did next shows the
        answer, and from then on it counts as known."""
        item, raised, needed = self.item, rule.get("quorum_if"), rule["quorum"]
        vote = (rule["action"], item.content)
        have = 1 + sum(other == vote and actor != self.actor for actor, other in item.votes.items())
        is_raised = payload_has(item, raised["pointer"], raised["equals"]) if raised else False
        if is_raised is None and needed <= have < raised["quorum"]:
            moved = "to" in rule and self.entry.get("to") == rule["to"]
            return moved, [(raised["pointer"], canonical(raised["equals"]), not moved)]
        return have >= (max(needed, raised["quorum"]) if is_raised else needed), []

    def judge_content(self, document):
        """A title and an unfinished payload, by the rules of the first version that accepted them."""
        payload = LEFT_OUT if document is LEFT_OUT else document["payload"]
        if payload is not LEFT_OUT:
            is_fit = fits(NOT_BLANK, document["title"]) and len(document["title"]) <= 200 and isinstance(payload, dict)
            is_fit = is_fit and depth(payload) <= 32 and len(canonical(payload).encode()) <= 65_536
            refuse(not is_fit, "invalid_request", "title or payload do not fit")
        self.judge_payload(payload, types_only=True, question="content")
        return payload

    def edit(self, document):
        """By the creator, where the state allows it, and at the cost of every vote and of the window."""
        item = self.item
        refuse(self.role != "initiator", "role_forbidden", "only an initiator edits")
        self.check_separate()
        refuse(item.creator != self.actor, "not_owner", "only the creator edits")
        payload = self.judge_content(document)
        self.not_overdue()
        refuse(not self.definition.is_editable(item.state), "state_conflict", f"{item.state} cannot be edited")
        refuse(item.held and "edit" in self.definition.hold_blocks, "item_held", "the item is held")
        after = self.moved_to(item.state)
        after.payload, after.learned, after.content = payload, [], self.entry["content"]
        after.votes, after.window = {}, None
        return after

    def permit_until(self):
        """Until when a permit may be relied on: it is for the holder of the lease, while the effect is under way."""
        item, now, window = self.item, self.entry.at, self.item.window
        is_effect = self.definition.is_kind(item.state, "effect")
        refuse(not is_effect or item.lease is None, "state_conflict", "nothing is being executed")
        holder, until = item.lease
        refuse(holder != self.actor, "not_owner", "only the holder of the lease gets a permit")
        refuse(until <= now, "state_conflict", "the lease is lost")
        refuse(item.held, "item_held", "the item is held")
        leads_here = [rule for rule in self.definition.rules["transitions"] if rule.get("to") == item.state]
        if window is None or not any("inside_window" in rule for rule in leads_here):
            return until
        is_open = window.is_left_out or window.start <= now < window.end
        refuse(not is_open, "outside_window", "the window is not open")
        return min(until, window.end)

    def compare(self, after, **written):
        """Compares the entry with what the rules would have written. The item after it, and what could not be asked."""
        entry = self.entry
        expected = {"definition": self.definition.digest, "index": entry.index, "item": entry["item"], "v": 1,
                    "type": entry["type"], "version": after.version, "actor_id": self.actor, "role": self.role,
                    "at": entry["at"] if self.at == entry.at else "later", **written}
        expected = {name: value for name, value in expected.items() if value is not None}
        if expected == entry:
            return after, self.unasked
        if expected.get("to") != entry.get("to") and expected.get("to") == expected.get("from"):
            raise Fault("legality", "quorum", f"it leads to {entry.get('to')} before the quorum is reached")
        names = {"at": "time_order", "version": "version_gap", "content": "content_changed"}
        wrong = [name for name in [*names, *expected, *entry] if expected.get(name) != entry.get(name)][0]
        raise Fault("legality", names.get(wrong, "other_entry"), f"its {wrong} would be {expected.get(wrong)}")

DOCUMENTS = {"content": {"title": str, "payload": object}, "comment": {"comment": str}, "inputs": {"inputs": object}}
PERMIT = {"audience": str, "expires_at": is_time, "jti": str, "key_id": str, "*": object}

def read_document(documents, entry, kind):
    """A stored document, in the only form in which it may be stored; None if the entry names none."""
    digest = entry.get(kind)
    if digest not in documents:
        return None if digest is None else LEFT_OUT
    try:
        value = strict_json(documents[digest])
        is_whole = canonical(value).encode() == documents[digest]
    except ValueError:
        is_whole = False
    is_whole = is_whole and fits({"nonce": "[0-9a-f]{32}", **DOCUMENTS[kind]}, value)
    refuse(not is_whole, "document", f"the {kind} is not a document in the form in which it may be stored")
    return value if kind == "content" else value[kind]

def follow(definition, item, entry, documents):
    """The item after an entry about it, and what could not be asked. Raises a Fault if the rules would have written
    another entry; if a document is missing, if they would have for whatever it may have said."""
    def need(condition, what):
        refuse(not condition, "history", what)
    kind, actor, role, digest = entry["type"], entry.get("actor_id"), entry.get("role"), entry.get("content")
    steps = {"item.created": "content", "item.edited": "content", "item.comment": "comment", "item.transition": "type",
             "permit.issued": "details"}
    need(kind in steps and (kind == "item.created") == (item is None), f"{kind} is not possible here")
    need(entry.get(steps[kind]) is not None, f"it names no {steps[kind]}")
    if kind == "item.transition":
        need((actor is None) == (role is None), "an actor without a role, or a role without an actor")
        read = {name: read_document(documents, entry, name) for name in ("comment", "inputs") if actor is not None}
        case = Case(definition, item, entry, **read)
        after = case.act() if actor is not None else case.expire()
        # Nobody writes anything when a deadline passes.
        written = {name: entry.get(name) for name in (*read, "action")} if read else {"action": "timer"}
        return case.compare(after, content=after.content, to=after.state, **written, **{"from": item.state})
    if kind == "permit.issued":
        need(fits(PERMIT, entry["details"]), "it says nothing of its token")
    else:
        document = read_document(documents, entry, steps[kind])
    need(None not in (actor, role), "it does not name an actor and a role")
    if kind == "item.created":
        item = new_item(definition, entry)
        case = Case(definition, item, entry)
        refuse(role != "initiator", "role_forbidden", "only an initiator creates")
        item.payload = case.judge_content(document)
        return case.compare(item, action="create", content=digest, to=item.state)
    case = Case(definition, item, entry)
    if kind == "item.edited":
        after = case.edit(document)
        return case.compare(after, action="edit", content=digest, to=item.state, **{"from": item.state})
    # Comments and permits change neither the item nor its version, and their time is compared with no other.
    case.at = entry.at
    if kind == "item.comment":
        return case.compare(item, comment=entry["comment"])
    details = {name: entry["details"][name] for name in PERMIT if name != "*"}
    is_late = parse_time(details["expires_at"]) > case.permit_until()
    refuse(is_late, "permit", "its token expires later than anything it rests on")
    refuse(not fits(WRITTEN_TIME, details["expires_at"]), "other_entry", "its time is not as Pilot writes times")
    return case.compare(item, details=details)
