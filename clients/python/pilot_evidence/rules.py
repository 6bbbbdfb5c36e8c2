"""The rules: definitions, items, and whether a recorded move was possible. The semantics are in
docs/audit/semantics.md; the order of the checks is part of them."""

import re
from copy import copy
from dataclasses import dataclass, field

from .formats import (ROLES, WHITE_SPACE, canonical, depth, is_list, is_number, is_table, is_text, later,
                      matches, parse_time, strict_json, written_time)
from .payload_schema import CannotCheck, PayloadSchema


class Stray(Exception):
    """An entry that the rules would not have written, with the rule that says so."""

    def __init__(self, rule, what):
        super().__init__(what)
        self.rule = rule


# ---- definitions

SPAN = matches("[+]?[0-9]{1,20}[smhd]")
NAME = matches("[a-z][a-z0-9_-]{0,63}")


def is_true(value):
    return value is True


NAMES, ROLE_LIST = is_list(NAME), is_list(ROLES.__contains__)
STATE = is_table({"name": NAME, "kind": ("open", "effect", "terminal").__contains__},
                 {"editable": is_true, "waits_for": ROLE_LIST, "description": is_text})
RULE = is_table({"action": NAME, "from": NAMES, "roles": ROLE_LIST}, {
    "to": NAME, "own": ("creator", "voter", "holder").__contains__, "not_by_executor": is_true, "quorum": is_number,
    "quorum_if": is_table({"pointer": is_text, "equals": lambda value: True, "quorum": is_number}, {}),
    "comment_required": is_true, "content_digest_required": is_true, "sets_window": SPAN, "inside_window": is_true,
    "takes_lease": SPAN, "renews_lease": SPAN, "attempts": is_number, "voids_votes": is_true, "voids_window": is_true,
    "takes_back_vote": is_true, "replaces": NAMES, "when": is_table({"input": NAME, "equals": is_text}, {}),
    "inputs": is_list(("result", "artifacts", "progress").__contains__), "description": is_text})
TIMER = is_table({"from": NAMES, "to": NAME}, {"after": SPAN, "at": ("window_end", "lease_end").__contains__})
RULES = is_table({
    "schema_version": is_number, "name": NAME, "version": is_number, "title": is_text, "description": is_text,
    "initial": NAME, "required_roles": ROLE_LIST, "states": is_list(STATE), "transitions": is_list(RULE),
    "timers": is_list(TIMER), "payload_schema": lambda value: True,
}, {"one_open_per_creator": is_true,
    "hold": is_table({"roles": ROLE_LIST, "release_roles": ROLE_LIST, "blocks": NAMES}, {})})


class Definition:
    """The rules of a workflow, read from the canonical JSON whose SHA-256 is its digest."""

    def __init__(self, data, digest):
        rules = strict_json(data)
        if canonical(rules).encode() != data:
            raise ValueError("a definition is not in canonical form")
        if not RULES(rules) or any(("after" in timer) == ("at" in timer) for timer in rules["timers"]):
            raise ValueError("a definition has members or values that this verifier does not know")
        self.rules, self.digest, self.name = rules, digest, rules["name"]
        self.states = {state["name"]: state for state in rules["states"]}
        self.transitions = rules["transitions"] + self.hold_rules()
        named = [rules["initial"]] + [name for rule in rules["transitions"] + rules["timers"] for name in rule["from"]]
        named += [rule["to"] for rule in rules["transitions"] + rules["timers"] if "to" in rule]
        if not set(named) <= set(self.states):
            raise ValueError("a definition names a state that it does not declare")
        self.schema = PayloadSchema(rules["payload_schema"])

    def hold_rules(self):
        """Hold and release are possible in every state that is not terminal, need a comment, and move nothing."""
        hold = self.rules.get("hold")
        lasting = [state["name"] for state in self.rules["states"] if state["kind"] != "terminal"]
        words = (("hold", "roles"), ("release", "release_roles")) if hold else ()
        common = {"from": lasting, "comment_required": True}
        return [{"action": action, "roles": hold[roles], "holds": action == "hold", **common}
                for action, roles in words]

    def of_action(self, action):
        return [rule for rule in self.transitions if rule["action"] == action]

    def is_kind(self, state, kind):
        return self.states[state]["kind"] == kind

    def is_editable(self, state):
        return "editable" in self.states[state]

    def hold_blocks(self, action):
        return action in self.rules.get("hold", {"blocks": []})["blocks"]


# ---- items


@dataclass
class Window:
    """When an item may be executed: from the first time on, and before the second. If the inputs that set it are
    missing, these are the widest bounds the rules allow."""

    not_before: int
    not_after: int
    is_left_out: bool = False


@dataclass
class Payload:
    """What is decided on. If its document is missing, only what the item's moves have shown about it is known."""

    value: object = None
    is_left_out: bool = False
    learned: tuple = ()  # (pointer, value in canonical form, whether it is there)

    def has(self, pointer, value):
        """Whether this value is there; None if that cannot be known."""
        wanted = canonical(value)
        if not self.is_left_out:
            return any(canonical(found) == wanted for found in follow_pointer(self.value, pointer))
        here = [(known, holds) for place, known, holds in self.learned if place == pointer]
        for known, holds in here:
            if known == wanted:
                return holds
        # Only one value can be there.
        return False if any(holds for _, holds in here) else None


def follow_pointer(value, pointer):
    """What a JSON pointer leads to, as a list of one; empty if that is nothing."""
    for name in pointer.split("/")[1:]:
        name = name.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return []
    return [value]


@dataclass
class Item:
    """An item as its history has left it."""

    state: str
    version: int
    content: str  # the digest
    payload: Payload
    creator: str
    updated_at: int
    entered_at: int
    participants: dict  # actor: the role of the first part taken
    held: bool = False
    window: Window | None = None
    lease: tuple | None = None  # (holder, until when)
    votes: list = field(default_factory=list)  # (actor, action, content)
    attempts: int = 0
    executors: set = field(default_factory=set)

    def copy(self):
        other = copy(self)
        for name in ("participants", "votes", "executors"):
            setattr(other, name, copy(getattr(self, name)))
        return other


def refuse(condition, rule, what):
    if condition:
        raise Stray(rule, f"the rules refuse it: {what}")


@dataclass
class Case:
    """One recorded move, and everything the rules look at. `unasked` collects what only missing documents could say."""

    definition: Definition
    item: Item
    entry: object  # an Entry of bundle.py
    comment: str | None  # None if there was none, or if it is missing
    inputs: object
    lacks_comment: bool
    lacks_inputs: bool

    def __post_init__(self):
        # Setting a clock back does not make time go back within an item.
        self.at = max(self.entry.at, self.item.updated_at)
        self.actor, self.role = self.entry.get("actor_id"), self.entry.get("role")
        self.unasked = []

    # ---- deadlines

    def timers(self):
        return [timer for timer in self.definition.rules["timers"] if self.item.state in timer["from"]]

    def earliest(self, timers):
        """(when, where to) of the first deadline. Of two at one moment, the first in the definition counts."""
        due = []
        for timer in timers:
            if "after" in timer:
                due.append((later(self.item.entered_at, timer["after"]), timer["to"]))
            elif timer["at"] == "window_end" and self.item.window:
                due.append((self.item.window.not_after, timer["to"]))
            elif timer["at"] == "lease_end" and self.item.lease:
                due.append((self.item.lease[1], timer["to"]))
        return min(due, key=lambda deadline: deadline[0], default=None)

    def unknown_end(self):
        """The timer of a window that is no longer known, if its end is a deadline of the item's state."""
        is_unknown = self.item.window is not None and self.item.window.is_left_out
        return next((timer for timer in self.timers() if is_unknown and timer.get("at") == "window_end"), None)

    def not_overdue(self):
        """A due timer wins over a person: nobody can act after a deadline by being faster than the server."""
        deadline = self.earliest(self.timers())
        refuse(deadline and deadline[0] <= self.at, "state_conflict", "a deadline has passed")
        if self.unknown_end() and self.item.window.not_before < self.at:
            self.unasked.append("deadline")

    def expire(self):
        """A timer moves the item. If the end of the window is unknown, any deadline that may have been first counts."""
        timer, led_to = self.unknown_end(), self.entry.get("to")
        if timer is None:
            deadline = self.earliest(self.timers())
            possible = [deadline[1]] if deadline and deadline[0] <= self.at else []
        else:
            self.unasked.append("deadline")
            window = self.item.window
            other = self.earliest([timer for timer in self.timers() if timer.get("at") != "window_end"])
            ended = window.not_before < self.at and (other is None or window.not_before < other[0])
            possible = [timer["to"]] if ended else []
            possible += [other[1]] if other and other[0] <= min(self.at, window.not_after) else []
        refuse(not possible, "state_conflict", "no deadline has passed")
        to = led_to if led_to in possible else possible[0]
        after = self.moved_to(to)
        if not self.definition.is_kind(to, "effect"):
            after.lease = None
        return after

    # ---- actions

    def act(self):
        """The checks of an action, in the order that is part of the contract."""
        action = self.entry.get("action") or ""
        rules = self.definition.of_action(action)
        refuse(not rules, "unknown_action", "this workflow has no such action")
        rule = self.permitted_rule(rules)
        first = None
        # One rule, unless the inputs that choose between rules are missing: then any that allows the move is enough.
        for choice in self.choices(rules, rule):
            self.unasked = []
            try:
                return self.act_by(rules, rule, choice)
            except Stray as stray:
                first = first or stray
        raise first

    def act_by(self, rules, rule, choice):
        rule, window = self.needs(rules, rule, choice)
        self.check_situation(rule)
        self.check_complete(rule)
        return self.taken(rule, window)

    def permitted_rule(self, rules):
        """Role, separation of duties, ownership. The rule that applies here, or one that applies elsewhere."""
        here = [rule for rule in rules if self.item.state in rule["from"]]
        for_role = [rule for rule in here or rules if self.role in rule["roles"]]
        refuse(not for_role, "role_forbidden", f"{self.actor} acts as {self.role}")
        self.check_separate()
        rule = for_role[0]
        refuse("not_by_executor" in rule and self.actor in self.item.executors, "separation_of_duties",
               f"{self.actor} executed this item")
        # If there is no owner yet, the state is the reason for a refusal.
        voters = [actor for actor, _, _ in self.item.votes]
        is_anothers = {
            None: False,
            "creator": self.item.creator != self.actor,
            "voter": bool(voters) and self.actor not in voters,
            "holder": self.item.lease is not None and self.item.lease[0] != self.actor,
        }[rule.get("own")]
        refuse(is_anothers, "not_owner", f"only the {rule.get('own')} may do this, not {self.actor}")
        return rule

    def check_separate(self):
        """An actor who acted on an item in one role never acts on it in another."""
        refuse(self.item.participants.get(self.actor, self.role) != self.role, "separation_of_duties",
               f"{self.actor} took part in this item in another role")

    def beside(self, rules, rule):
        """This rule, and those of the same action that an input tells from it."""

        def is_here(other):
            return self.item.state in other["from"]

        return [other for other in rules if set(other["from"]) & set(rule["from"]) and is_here(other) == is_here(rule)
                and other.get("when", {}).get("input") == rule.get("when", {}).get("input")]

    def choices(self, rules, rule):
        """The rules that missing inputs may have chosen: those that lead to where the item went."""
        if not self.lacks_inputs or "when" not in rule:
            return [rule]
        led_to = self.entry.get("to") or self.item.state
        possible = [other for other in self.beside(rules, rule) if other.get("to", self.item.state) == led_to]
        return possible or [rule]

    def needs(self, rules, rule, choice):
        """Comment and inputs. Returns the rule that the inputs choose, and the window they set."""
        text = self.comment or ""
        if self.lacks_comment:
            self.unasked.append("comment")
        else:
            is_empty = "comment_required" in rule and not text.strip(WHITE_SPACE)
            refuse(is_empty or len(text) > 4_000, "invalid_request", "the comment is missing or too long")
        if self.lacks_inputs:
            self.unasked.append("inputs")
            limit = choice.get("sets_window")
            return choice, Window(self.at, later(self.at, limit), True) if limit else None
        inputs = {} if self.inputs is None else self.inputs
        refuse(not isinstance(inputs, dict), "invalid_request", "the inputs are not an object")
        if "when" in rule:
            wanted = inputs.get(rule["when"]["input"])
            chosen = [other for other in self.beside(rules, rule) if other["when"]["equals"] == wanted]
            refuse(not chosen, "invalid_request", "the inputs choose no outcome")
            rule = chosen[0]
        refuse(not all(is_input(rule, name, value) for name, value in inputs.items()), "invalid_request",
               "an input is unknown or malformed")
        return rule, self.window_from(inputs, rule["sets_window"]) if "sets_window" in rule else None

    def window_from(self, inputs, limit):
        end = parse_time(inputs.get("not_after"))
        start = parse_time(inputs["not_before"]) if "not_before" in inputs else self.at
        fits = None not in (start, end) and self.at < end <= later(self.at, limit) and start < end
        refuse(not fits, "invalid_request", "the window is missing, over, too long or empty")
        return Window(start, end)

    def check_situation(self, rule):
        """Deadline, vote, state, attempts, hold and window: what prevents an action whatever the request says."""
        item, own = self.item, rule.get("own")
        self.not_overdue()
        self.check_undecided(rule)
        refuse(item.state not in rule["from"], "state_conflict", f"it is not possible in {item.state}")
        has_no_owner = own == "voter" and not item.votes or own == "holder" and item.lease is None
        refuse(has_no_owner, "state_conflict", "there is no vote, or no lease")
        refuse(item.attempts >= rule.get("attempts", item.attempts + 1), "state_conflict", "all attempts were used")
        refuse(rule.get("holds") == item.held, "state_conflict", "the item is already held, or not held")
        refuse(item.held and self.definition.hold_blocks(rule["action"]), "item_held", "the item is held")
        if "inside_window" in rule:
            window = item.window
            is_inside = window is not None and window.not_before <= self.at < window.not_after
            refuse(not is_inside, "outside_window", "it is possible only inside the window")
            if window.is_left_out:
                self.unasked.append("window")

    def check_undecided(self, rule):
        """Each person counts once in a round, which lasts until its votes are voided or the item has moved on."""
        item = self.item
        is_in_round = item.state in rule["from"] or rule.get("to") == item.state
        if "quorum" not in rule or not is_in_round or self.definition.is_kind(item.state, "terminal"):
            return
        standing = [action for actor, action, content in item.votes if (actor, content) == (self.actor, item.content)]
        refuse(standing and standing[0] not in rule.get("replaces", []), "already_decided", f"{self.actor} has voted")

    def check_complete(self, rule):
        """Where content stops being editable it is frozen, and must be complete, unless the item ends."""
        to, editable = rule.get("to"), self.definition.is_editable
        freezes = to is not None and editable(self.item.state) and not editable(to)
        if not freezes or self.definition.is_kind(to, "terminal"):
            return
        if self.item.payload.is_left_out:
            self.unasked.append("payload")
        else:
            self.judge_payload(self.item.payload.value, types_only=False, question="payload")

    def judge_payload(self, value, types_only, question):
        try:
            fits = self.definition.schema.holds(value, types_only)
        except CannotCheck:
            # A pattern or format that this verifier does not know: said, not guessed.
            self.unasked.append(question)
            fits = True
        refuse(not fits, "invalid_request", "the payload does not fit the definition")

    def moved_to(self, state):
        """The item in this state, one version later, with its actor among those who took part."""
        after = self.item.copy()
        after.version += 1
        after.updated_at = self.at
        if after.state != state:
            after.state, after.entered_at = state, self.at
        if self.actor is not None:
            after.participants.setdefault(self.actor, self.role)
        return after

    def taken(self, rule, window):
        """What the item is after a rule that may be taken."""
        moves, learned = self.carries(rule) if "quorum" in rule else (True, None)
        to = rule.get("to", self.item.state) if moves else self.item.state
        after = self.moved_to(to)
        if "quorum" in rule:
            after.votes = [vote for vote in after.votes if vote[0] != self.actor]
            after.votes.append((self.actor, rule["action"], self.item.content))
        if learned:
            self.unasked.append("quorum")
            after.payload = Payload(None, True, (*self.item.payload.learned, learned))
        # A vote that does not reach the quorum changes nothing else.
        if moves:
            self.take_votes_and_window(rule, window, after)
            self.take_lease_and_attempts(rule, to, after)
        after.held = rule.get("holds", after.held)
        return after

    def carries(self, rule):
        """Whether this vote reaches the quorum. If that depends on a missing payload, what the item did next shows the
        answer, and from then on it counts as known."""
        item, raised = self.item, rule.get("quorum_if")
        others = [actor for actor, action, content in item.votes
                  if (action, content) == (rule["action"], item.content) and actor != self.actor]
        have, needed, is_raised = len(others) + 1, rule["quorum"], False
        if raised:
            is_raised = item.payload.has(raised["pointer"], raised["equals"])
            needed = max(needed, raised["quorum"]) if is_raised else needed
        if is_raised is None and needed <= have < raised["quorum"]:
            moved = rule.get("to") is not None and self.entry.get("to") == rule["to"]
            return moved, (raised["pointer"], canonical(raised["equals"]), not moved)
        return have >= needed, None

    def take_votes_and_window(self, rule, window, after):
        if "takes_back_vote" in rule:
            after.votes = [vote for vote in after.votes if vote[0] != self.actor]
        if "voids_votes" in rule and self.item.votes:
            after.votes = []
        if "voids_window" in rule:
            after.window = None
        after.window = window or after.window

    def take_lease_and_attempts(self, rule, to, after):
        is_effect = self.definition.is_kind(to, "effect")
        if length := rule.get("takes_lease", rule.get("renews_lease")):
            after.lease = (self.actor, later(self.at, length))
        elif not is_effect:
            after.lease = None
        after.attempts += "attempts" in rule
        # Only the actor who moves the item into an effect, not one who acts on it while it is there.
        if is_effect and to != self.item.state:
            after.executors.add(self.actor)

    # ---- content, comments and permits

    def judge_content(self, document):
        """A title and an unfinished payload, by the rules of the first version that accepted them."""
        if document is None:
            self.unasked.append("content")
            return Payload(is_left_out=True)
        title, payload = document["title"], document["payload"]
        fits = title.strip(WHITE_SPACE) and len(title) <= 200 and isinstance(payload, dict) and depth(payload) <= 32
        refuse(not fits or len(canonical(payload).encode()) > 65_536, "invalid_request", "title or payload do not fit")
        self.judge_payload(payload, types_only=True, question="content")
        return Payload(payload)

    def edit(self, document):
        """By the creator, where the state allows it, and at the cost of every vote and of the window."""
        item = self.item
        refuse(self.role != "initiator", "role_forbidden", "only an initiator edits")
        self.check_separate()
        refuse(item.creator != self.actor, "not_owner", "only the creator edits")
        payload = self.judge_content(document)
        self.not_overdue()
        refuse(not self.definition.is_editable(item.state), "state_conflict", f"{item.state} cannot be edited")
        refuse(item.held and self.definition.hold_blocks("edit"), "item_held", "the item is held")
        after = self.moved_to(item.state)
        after.payload, after.content, after.votes, after.window = payload, self.entry.get("content"), [], None
        return after

    def permit_until(self):
        """Until when a permit may be relied on: it is for the holder of the lease, while the effect is under way."""
        item, now = self.item, self.entry.at
        is_effect = self.definition.is_kind(item.state, "effect")
        refuse(not is_effect or item.lease is None, "state_conflict", "nothing is being executed")
        holder, until = item.lease
        refuse(holder != self.actor, "not_owner", "only the holder of the lease gets a permit")
        refuse(until <= now, "state_conflict", "the lease is lost")
        refuse(item.held, "item_held", "the item is held")
        leads_here = [rule for rule in self.definition.rules["transitions"] if rule.get("to") == item.state]
        if item.window is None or not any("inside_window" in rule for rule in leads_here):
            return until
        is_inside = item.window.not_before <= now < item.window.not_after
        refuse(not item.window.is_left_out and not is_inside, "outside_window", "the window is not open")
        return min(until, item.window.not_after)


def is_input(rule, name, value):
    """Whether a rule takes this input with this value."""
    if name in rule.get("inputs", []):
        limits = {"result": 4_000, "progress": 500}
        return is_artifacts(value) if name == "artifacts" else is_text(value) and len(value) <= limits[name]
    return name in ("not_before", "not_after") and "sets_window" in rule or name == rule.get("when", {}).get("input")


def is_artifacts(value):
    def is_short(text):
        return is_text(text) and 1 <= len(text) <= 1_000

    members = {"name": is_short, "sha256": matches("[0-9a-f]{64}"), "bytes": lambda size: is_number(size, 53),
               "uri": is_short}
    return isinstance(value, list) and len(value) <= 100 and all(is_table(members, {})(one) for one in value)


# ---- replay of a history


def read_document(data, kind, members):
    """A stored document, in the only form in which it may be stored."""
    if data is None:
        return None
    try:
        value = strict_json(data)
        is_whole = isinstance(value, dict) and set(value) == {"nonce", *members}
        if not is_whole or not matches("[0-9a-f]{32}")(value["nonce"]) or canonical(value).encode() != data:
            raise ValueError("its members, its nonce or its form")
        if not all(is_text(value[name]) for name in ("title", "comment") if name in value):
            raise ValueError("a title or a comment is not text")
        return value
    except ValueError as error:
        raise Stray("document", f"the {kind} cannot be read: {error}") from None


def follow(definition, item, entry, documents):
    """The item after an entry about it, and what could not be asked. Raises Stray if the rules would have written
    another entry; if a document is missing, if they would have for whatever it may have said."""
    kind = entry.get("type")
    steps = {"item.created": created, "item.edited": edited, "item.transition": moved, "item.comment": commented,
             "permit.issued": permitted}
    if kind not in steps or (kind == "item.created") != (item is None):
        raise Stray("history", f"{kind} is not possible here")
    has_actor = entry.get("actor_id") is not None
    if kind == "item.created" and None in (entry.get("item"), entry.get("content")):
        raise Stray("history", "it names no item or no content")
    return steps[kind](definition, item, entry, documents, has_actor)


def need_actor(entry):
    if entry.get("actor_id") is None or entry.get("role") is None:
        raise Stray("history", "it does not name an actor and a role")


def compared(entry, after, case, **written):
    """Compares an entry with what the rules would have written, and returns what is known after it."""
    expected = {"definition": case.definition.digest, "index": entry.index, "item": entry.get("item"), "v": 1,
                "type": entry.get("type"), "version": after.version, "actor_id": case.actor, "role": case.role,
                "at": entry.get("at") if case.at == entry.at else "later", **written}
    expected = {name: value for name, value in expected.items() if value is not None}
    if expected == entry.members:
        return after, case.unasked
    if expected.get("to") != entry.get("to") and expected.get("to") == expected.get("from"):
        raise Stray("quorum", f"it leads to {entry.get('to')} before the quorum is reached")
    for rule, name in (("time_order", "at"), ("version_gap", "version"), ("content_changed", "content"),
                       ("other_entry", "from"), ("other_entry", "to"), ("other_entry", "definition")):
        if expected.get(name) != entry.get(name):
            raise Stray(rule, f"its {name} is {entry.get(name)}; by the rules it would be {expected.get(name)}")
    raise Stray("other_entry", "the rules produce a different entry here")


def created(definition, _, entry, documents, has_actor):
    content = read_document(documents.get(entry.get("content")), "content", ("title", "payload"))
    need_actor(entry)
    actor, role = entry.get("actor_id"), entry.get("role")
    initial, content_digest = definition.rules["initial"], entry.get("content")
    item = Item(initial, 1, content_digest, Payload(), actor, entry.at, entry.at, {actor: role})
    case = Case(definition, item, entry, None, None, False, False)
    refuse(role != "initiator", "role_forbidden", "only an initiator creates")
    item.payload = case.judge_content(content)
    return compared(entry, item, case, action="create", content=item.content, to=item.state)


def edited(definition, item, entry, documents, has_actor):
    if entry.get("content") is None:
        raise Stray("history", "it names no content")
    content = read_document(documents.get(entry.get("content")), "content", ("title", "payload"))
    need_actor(entry)
    case = Case(definition, item, entry, None, None, False, False)
    after = case.edit(content)
    return compared(entry, after, case, action="edit", content=after.content, to=item.state, **{"from": item.state})


def moved(definition, item, entry, documents, has_actor):
    if has_actor != (entry.get("role") is not None):
        raise Stray("history", "an actor without a role, or a role without an actor")
    kinds, found = ("comment", "inputs"), [None, None]
    named = [entry.get(kind) for kind in kinds]
    if has_actor:
        found = [read_document(documents.get(digest), kind, (kind,)) for digest, kind in zip(named, kinds)]
    lacks = [digest is not None and document is None for digest, document in zip(named, found)]
    comment, inputs = found[0] and found[0]["comment"], found[1] and found[1]["inputs"]
    case = Case(definition, item, entry, comment, inputs, *lacks)
    after = case.act() if has_actor else case.expire()
    # Nobody writes anything when a deadline passes.
    said = {"comment": named[0], "inputs": named[1], "action": entry.get("action")}
    written = said if has_actor else {"action": "timer"}
    return compared(entry, after, case, content=after.content, to=after.state, **written, **{"from": item.state})


def commented(definition, item, entry, documents, has_actor):
    if entry.get("comment") is None:
        raise Stray("history", "it names no comment")
    read_document(documents.get(entry.get("comment")), "comment", ("comment",))
    need_actor(entry)
    return compared(entry, item, unchanged(definition, item, entry), comment=entry.get("comment"))


def permitted(definition, item, entry, documents, has_actor):
    details = entry.get("details")
    names = ("audience", "expires_at", "jti", "key_id")
    is_known = isinstance(details, dict) and all(is_text(details.get(name)) for name in names)
    if not is_known or parse_time(details["expires_at"]) is None:
        raise Stray("history", "it says nothing of its token")
    need_actor(entry)
    case = unchanged(definition, item, entry)
    if parse_time(details["expires_at"]) > case.permit_until():
        raise Stray("permit", "its token expires later than anything it rests on")
    if written_time(details["expires_at"]) is None:
        raise Stray("other_entry", "its time is not written as Pilot writes times")
    return compared(entry, item, case, details={name: details[name] for name in names})


def unchanged(definition, item, entry):
    """For entries that change neither the item nor its version: their time is compared with no other."""
    case = Case(definition, item, entry, None, None, False, False)
    case.at = entry.at
    return case
