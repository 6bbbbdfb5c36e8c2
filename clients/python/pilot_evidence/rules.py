"""Whether a recorded move was possible, by docs/audit/semantics.md; the order of the checks is part of that."""
from collections import namedtuple
from copy import copy
from math import inf
from types import SimpleNamespace

from .formats import (HEX, NOT_BLANK, ROLE, WRITTEN_TIME, Fault, attempt, canonical, depth, fits, is_number, is_time,
                      later, need, parse_time, read_json, sha256)
from .schema import follow_pointer, judge

SPAN, NAME, TEXT = "[+]?[0-9]{1,20}[smhd]", "[a-z][a-z0-9_-]{0,63}", "(?s).+"
FLAGS = ("not_by_executor?", "comment_required?", "content_digest_required?", "inside_window?", "voids_votes?",
         "voids_window?", "takes_back_vote?")
INPUT, KIND = "result|artifacts|progress", "open|effect|terminal"
RULE = {
    "action": NAME, "from": [NAME], "roles": [ROLE], "to?": NAME, "own?": "creator|voter|holder", "quorum?": int,
    "quorum_if?": {"pointer": str, "equals": object, "quorum": int}, "sets_window?": SPAN, "takes_lease?": SPAN,
    "renews_lease?": SPAN, "attempts?": int, "replaces?": [NAME, NAME], "when?": {"input": NAME, "equals": str},
    "inputs?": [INPUT, INPUT], "description?": TEXT, **dict.fromkeys(FLAGS, True)}
STATE = {"name": NAME, "kind": KIND, "editable?": True, "waits_for?": [ROLE, ROLE], "description?": TEXT}
TIMER = ({"from": [NAME], "to": NAME, "after": SPAN}, {"from": [NAME], "to": NAME, "at": "window_end|lease_end"})
RULES = {
    "schema_version": int, "name": NAME, "version": int, "title": str, "description": str, "initial": NAME,
    "required_roles": [ROLE], "states": [STATE], "transitions": [RULE], "timers": [TIMER], "payload_schema": object,
    "one_open_per_creator?": True, "hold?": {"roles": [ROLE], "release_roles": [ROLE], "blocks": [NAME]}}

def read_definition(data):
    """The rules of a workflow, from the canonical JSON whose SHA-256 is its digest."""
    defaults = {"hold": {}, "one_open_per_creator": False}
    rules = SimpleNamespace(**defaults | read_json(data, RULES, is_canonical=True))
    states, moves = {state["name"]: state for state in rules.states}, rules.transitions + rules.timers
    named = {rules.initial, *(name for move in moves for name in [*move["from"], move.get("to", rules.initial)])}
    need(named <= set(states), "it names a state that it does not declare")
    rules.digest = "sha256:" + sha256(data).hex()
    rules.editable = {name for name, state in states.items() if "editable" in state}
    rules.effects = {name for name, state in states.items() if state["kind"] == "effect"}
    rules.lasting = {name for name, state in states.items() if state["kind"] != "terminal"}
    # Hold and release are possible in every state that is not terminal, need a comment, and move nothing.
    for action, roles in (("hold", "roles"), ("release", "release_roles")) if rules.hold else ():
        rules.transitions.append({"action": action, "from": [*rules.lasting], "roles": rules.hold[roles],
                                  "comment_required": True, "holds": action == "hold"})
    return rules

# In place of a document that an entry names and the bundle does not have.
LEFT_OUT = object()
# When an item may be executed. If the inputs that set it are missing: the widest bounds the rules allow.
Window = namedtuple("Window", "start end is_left_out")
NO_WINDOW = Window(inf, inf, False)
Lease = namedtuple("Lease", "holder end")
NO_LEASE = Lease(None, inf)

def new_item(definition, entry):
    """An item, as its creation leaves it. Its parts are replaced, never changed: moves begin with a shallow copy."""
    # learned: what votes have shown of a missing payload, [(pointer, canonical value, whether it is there)];
    # participants: with the role of the first part they took; operators: {(person, machine)} of machines among them;
    # votes: {actor: (action, content, person)}.
    return SimpleNamespace(
        state=definition.initial, version=1, content=entry["content"], creator=entry["actor_id"], updated_at=entry.at,
        entered_at=entry.at, participants={entry["actor_id"]: entry["role"]}, payload=LEFT_OUT, learned=[], held=False,
        operators=operators_of(entry),
        window=NO_WINDOW, lease=NO_LEASE, votes={}, attempts=0, executors=set())

def operators_of(entry):
    return {(entry["operated_by"], entry["actor_id"])} if "operated_by" in entry else set()

def refuse(rule, condition):
    if condition:
        raise Fault("legality", rule)

ARTIFACT = {"name": "(?s).{1,1000}", "sha256": HEX, "bytes": lambda size: is_number(size, 53), "uri": "(?s).{1,1000}"}
INPUTS = {"result": "(?s).{0,4000}", "progress": "(?s).{0,500}",
          "artifacts": lambda value: fits([ARTIFACT], value) and len(value) <= 100}
PERMIT = {"audience": str, "expires_at": is_time, "jti": str, "key_id": str}

class Move:
    """One entry about an item, and the rules for it. `unasked` collects what only missing documents could answer."""
    def __init__(self, definition, item, entry):
        self.definition, self.item, self.entry, self.learned, self.unasked = definition, item, entry, item.learned, []
        self.actor, self.role = entry.get("actor_id"), entry.get("role")
        # A machine and its operator are one person.
        self.person = entry.get("operated_by", self.actor)
        # Setting a clock back does not make time go back within an item.
        self.at = max(entry.at, item.updated_at)

    def create(self, content):
        refuse("role_forbidden", self.role != "initiator")
        self.item.payload = self.check_content(content)
        return self.item

    def edit(self, content):
        """By the creator, where the state allows it, and at the cost of every vote and of the window."""
        item, after = self.item, self.moved_to(self.item.state)
        refuse("role_forbidden", self.role != "initiator")
        self.check_separation()
        refuse("not_owner", item.creator != self.actor)
        after.payload, after.content, after.learned = self.check_content(content), self.entry["content"], []
        after.votes, after.window = {}, NO_WINDOW
        self.check_deadlines()
        refuse("state_conflict", item.state not in self.definition.editable)
        refuse("item_held", item.held and "edit" in self.definition.hold.get("blocks", []))
        return after

    def check_separation(self):
        """Nobody takes part in two roles, in person or through a machine."""
        for someone in (self.actor, self.person):
            machines = sorted(machine for person, machine in self.item.operators if person == someone)
            roles = [self.item.participants.get(one) for one in (someone, *machines[:1])]
            refuse("separation_of_duties", next(filter(None, roles), self.role) != self.role)

    def is_own(self, actor, vote):
        return actor == self.actor or vote[2] == self.person

    def check_content(self, content):
        """A title and an unfinished payload, by the rules of the first version that accepted them."""
        title, payload = ("-", LEFT_OUT) if content is LEFT_OUT else (content["title"], content["payload"])
        refuse("invalid_request", not fits(NOT_BLANK, title) or len(title) > 200)
        if payload is not LEFT_OUT:
            is_large = depth(payload) > 32 or len(canonical(payload).encode()) > 65_536
            refuse("invalid_request", is_large or not isinstance(payload, dict))
        self.judge(payload, True, "content")
        return payload

    def judge(self, payload, is_draft, question):
        """What is missing, or judged by something that is not known here, is said, not guessed."""
        is_fit = None if payload is LEFT_OUT else judge(self.definition.payload_schema, payload, is_draft)
        refuse("invalid_request", is_fit is False)
        self.unasked += [question] if is_fit is None else []

    def permit(self):
        """For the holder of the lease, while the effect is under way, and no longer than what it rests on."""
        item, now, window, expires_at = self.item, self.entry.at, self.item.window, self.entry["details"]["expires_at"]
        refuse("state_conflict", item.state not in self.definition.effects or item.lease == NO_LEASE)
        refuse("not_owner", item.lease.holder != self.actor)
        refuse("state_conflict", item.lease.end <= now)
        refuse("item_held", item.held)
        is_bound = any("inside_window" in rule for rule in self.definition.transitions if rule.get("to") == item.state)
        is_open = window.is_left_out or window == NO_WINDOW or window.start <= now < window.end
        refuse("outside_window", is_bound and not is_open)
        refuse("permit", parse_time(expires_at) > min(item.lease.end, window.end if is_bound else inf))
        refuse("other_entry", not fits(WRITTEN_TIME, expires_at))
        return item

    def deadlines(self):
        """(when, where to, whether it is the end of an unknown window), in order of time, then of the definition."""
        item, ends = self.item, {"window_end": self.item.window.end, "lease_end": self.item.lease.end}
        due = [(ends[timer["at"]] if "at" in timer else later(item.entered_at, timer["after"]), timer["to"],
                timer.get("at") == "window_end" and item.window.is_left_out)
               for timer in self.definition.timers if item.state in timer["from"]]
        return sorted(due, key=lambda deadline: deadline[0])

    def check_deadlines(self):
        """A due timer wins over a person: nobody can act after a deadline by being faster than the server."""
        refuse("state_conflict", any(when <= self.at for when, _, _ in self.deadlines()))
        if any(is_unknown for _, _, is_unknown in self.deadlines()) and self.item.window.start < self.at:
            self.unasked.append("deadline")

    def expire(self):
        """A timer moves the item. If the end of the window is unknown, any deadline that may have been first counts."""
        unknown = [deadline for deadline in self.deadlines() if deadline[2]][:1]
        known = [deadline for deadline in self.deadlines() if not deadline[2]][:1]
        latest = min([self.at, *(when for when, _, _ in unknown)])
        earliest = min([self.at, *(when for when, _, _ in known)])
        possible = [to for _, to, _ in unknown if self.item.window.start < earliest]
        possible += [to for when, to, _ in known if when <= latest]
        refuse("state_conflict", not possible)
        self.unasked += ["deadline"] if unknown else []
        after = self.moved_to(self.entry["to"] if self.entry.get("to") in possible else possible[0])
        after.lease = after.lease if after.state in self.definition.effects else NO_LEASE
        return after

    def act(self, comment, inputs):
        """The checks of an action, in the order that is part of the contract."""
        item, state, inputs, refusals = self.item, self.item.state, {} if inputs is None else inputs, []
        rules = [rule for rule in self.definition.transitions if rule["action"] == self.entry.get("action")]
        refuse("unknown_action", not rules)
        here = [rule for rule in rules if state in rule["from"]]
        for_role = [rule for rule in here or rules if self.role in rule["roles"]]
        refuse("role_forbidden", not for_role)
        first = for_role[0]
        self.check_separation()
        refuse("separation_of_duties", "not_by_executor" in first and {self.actor, self.person} & item.executors)
        # If there is no owner yet, the state is the reason for a refusal.
        holders = [item.lease.holder] if item.lease != NO_LEASE else []
        owners = {None: [], "creator": [item.creator], "voter": item.votes, "holder": holders}[first.get("own")]
        refuse("not_owner", owners and self.actor not in owners)
        if comment is not LEFT_OUT:
            is_missing = "comment_required" in first and not fits(NOT_BLANK, comment)
            refuse("invalid_request", is_missing or len(comment or "") > 4_000)
        refuse("invalid_request", inputs is not LEFT_OUT and not isinstance(inputs, dict))
        choices, to = [first], self.entry.get("to") or state
        if "when" in first:
            name, states = first["when"]["input"], set(first["from"])
            beside = [rule for rule in rules if rule.get("when", {}).get("input") == name and states & set(rule["from"])
                      and (state in rule["from"]) == (state in states)]
            # Inputs that are missing chose a rule that leads to where the item went. Any that allows it is enough.
            choices = [rule for rule in beside if rule.get("to", state) == to] or [first]
            if inputs is not LEFT_OUT:
                choices = [rule for rule in beside if rule["when"]["equals"] == inputs.get(name)][:1]
            refuse("invalid_request", not choices)
        for rule in choices:
            self.unasked = ["comment"] * (comment is LEFT_OUT) + ["inputs"] * (inputs is LEFT_OUT)
            try:
                window = self.read_window(rule, inputs)
                self.check_situation(rule)
                return self.taken(rule, window)
            except Fault as fault:
                refusals.append(fault)
        raise refusals[0]

    def read_window(self, rule, inputs):
        """The window that the inputs set, if any. The rule must take each of them, with its value."""
        latest = later(self.at, rule.get("sets_window", "0s"))
        if inputs is LEFT_OUT:
            return Window(self.at, latest, True) if "sets_window" in rule else None
        shape = {rule["when"]["input"] + "?": object} if "when" in rule else {}
        shape |= {"not_before?": object, "not_after?": object} if "sets_window" in rule else {}
        shape |= {name + "?": INPUTS[name] for name in rule.get("inputs", [])}
        refuse("invalid_request", not fits(shape, inputs))
        if "sets_window" not in rule:
            return None
        start = parse_time(inputs["not_before"]) if "not_before" in inputs else self.at
        end = parse_time(inputs.get("not_after"))
        refuse("invalid_request", None in (start, end) or not self.at < end <= latest or start >= end)
        return Window(start, end, False)

    def check_situation(self, rule):
        """What prevents an action whatever the request says: deadline, vote, state, attempts, hold, window, payload."""
        item, definition, window = self.item, self.definition, self.item.window
        own, to = rule.get("own"), rule.get("to")
        self.check_deadlines()
        # Each person counts once in a round, which lasts until its votes are voided or the item has moved on.
        is_in_round = "quorum" in rule and item.state in [*rule["from"], to] and item.state in definition.lasting
        mine = [vote for actor, vote in item.votes.items() if self.is_own(actor, vote) and vote[1] == item.content]
        is_standing = mine and mine[0][0] not in rule.get("replaces", [])
        refuse("already_decided", is_in_round and is_standing)
        refuse("state_conflict", item.state not in rule["from"])
        refuse("state_conflict", own == "voter" and not item.votes or own == "holder" and item.lease == NO_LEASE)
        refuse("state_conflict", item.attempts >= rule.get("attempts", inf))
        refuse("state_conflict", rule.get("holds") == item.held)
        refuse("item_held", item.held and rule["action"] in definition.hold["blocks"])
        if "inside_window" in rule:
            refuse("outside_window", not window.start <= self.at < window.end)
            self.unasked += ["window"] if window.is_left_out else []
        # Where content stops being editable it is frozen, and must be complete, unless the item ends.
        if item.state in definition.editable and (to or item.state) in definition.lasting - definition.editable:
            self.judge(item.payload, False, "payload")

    def moved_to(self, state):
        """The item in this state, one version later, with its actor among those who took part."""
        after = copy(self.item)
        after.version, after.updated_at, after.state = self.item.version + 1, self.at, state
        after.entered_at = self.item.entered_at if self.item.state == state else self.at
        after.participants = {**({self.actor: self.role} if self.actor else {}), **self.item.participants}
        after.operators = self.item.operators | operators_of(self.entry)
        return after

    def taken(self, rule, window):
        """What the item is after a rule that may be taken. A vote that does not reach the quorum changes only votes."""
        item, is_carried = self.item, "quorum" not in rule or self.is_carried(rule)
        after = self.moved_to(rule.get("to", item.state) if is_carried else item.state)
        after.learned = self.learned
        if "quorum" in rule:
            others = {actor: vote for actor, vote in item.votes.items() if not self.is_own(actor, vote)}
            after.votes = {**others, self.actor: (rule["action"], item.content, self.person)}
        if not is_carried:
            return after
        if "takes_back_vote" in rule:
            after.votes = {actor: vote for actor, vote in after.votes.items() if actor != self.actor}
        if "voids_votes" in rule and item.votes:
            after.votes = {}
        after.window = window or (NO_WINDOW if "voids_window" in rule else item.window)
        is_effect = after.state in self.definition.effects
        length = rule.get("takes_lease", rule.get("renews_lease"))
        after.lease = Lease(self.actor, later(self.at, length)) if length else item.lease if is_effect else NO_LEASE
        after.attempts += "attempts" in rule
        # Only the actor who moves the item into an effect, not one who acts on it while it is there.
        begins = is_effect and after.state != item.state
        after.executors = item.executors | ({self.actor, self.person} if begins else set())
        after.held = rule.get("holds", item.held)
        return after

    def is_carried(self, rule):
        """Whether this vote reaches the quorum. If a missing payload decides, the entry shows it, and that is kept."""
        item, needed, vote = self.item, rule["quorum"], (rule["action"], self.item.content)
        raised = rule.get("quorum_if", {"pointer": "", "equals": None, "quorum": needed})
        pointer, wanted = raised["pointer"], canonical(raised["equals"])
        have = 1 + sum(other[:2] == vote and not self.is_own(actor, other) for actor, other in item.votes.items())
        known = {value: is_there for place, value, is_there in item.learned if place == pointer}
        # Only one value can be there.
        is_raised = known.get(wanted, False if True in known.values() else None)
        if item.payload is not LEFT_OUT:
            is_raised = wanted in map(canonical, follow_pointer(item.payload, pointer))
        if is_raised is None and needed <= have < raised["quorum"]:
            is_raised = self.entry.get("to") != rule.get("to", LEFT_OUT)
            self.learned = [*item.learned, (pointer, wanted, is_raised)]
            self.unasked.append("quorum")
        return have >= (max(needed, raised["quorum"]) if is_raised else needed)

DOCUMENTS = {"content": {"title": str, "payload": object}, "comment": {"comment": str}, "inputs": {"inputs": object}}

def read_document(documents, entry, kind):
    """A stored document, in the only form in which it may be stored; None if the entry names none."""
    digest = entry.get(kind)
    if digest not in documents:
        return None if digest is None else LEFT_OUT
    shape = {"nonce": "[0-9a-f]{32}", **DOCUMENTS[kind]}
    value = attempt("legality", "document", kind, read_json, documents[digest], shape, True)
    return value if kind == "content" else value[kind]

# What entries about items name; actions may, the others must.
NAMES = {"item.created": ["content"], "item.edited": ["content"], "item.transition": ["comment", "inputs"],
         "item.comment": ["comment"], "permit.issued": ["details"]}

def follow(definition, item, entry, documents):
    """The item after an entry about it, and what could not be asked. A Fault if the rules would write another entry."""
    kind, person = entry["type"], (entry.get("actor_id"), entry.get("role"))
    is_new, is_action, is_timer = kind == "item.created", kind == "item.transition", person == (None, None)
    names = [] if is_action and is_timer else NAMES.get(kind)
    refuse("history", names is None or is_new != (item is None) or not is_action and names[0] not in entry)
    refuse("history", is_action and not is_timer and None in person or is_timer and "operated_by" in entry)
    details = entry["details"] if kind == "permit.issued" else None
    refuse("history", kind == "permit.issued" and not fits({**PERMIT, "*": object}, details))
    read = {name: read_document(documents, entry, name) for name in names if name != "details"}
    refuse("history", not is_action and None in person)
    move = Move(definition, new_item(definition, entry) if is_new else item, entry)
    steps = {"item.created": move.create, "item.edited": move.edit, "item.comment": lambda comment: item,
             "permit.issued": move.permit, "item.transition": move.expire if is_timer else move.act}
    after = steps[kind](**read)
    expected = {name: entry.get(name) for name in ("index", "item", "type", "at", "actor_id", "role", "operated_by", *read)}
    expected |= {"v": 1 + ("operated_by" in entry), "definition": definition.digest, "version": after.version,
                 "details": details and {name: details[name] for name in PERMIT}}
    # Comments and permits change neither the item nor its version, and their time is compared with no other.
    if after is not item:
        action = "timer" if is_timer else entry.get("action")
        action = {"item.created": "create", "item.edited": "edit"}.get(kind, action)
        expected |= {"action": action, "from": None if is_new else item.state, "to": after.state,
                     "content": after.content, "at": entry["at"] if move.at == entry.at else "later"}
    expected = {name: value for name, value in expected.items() if value is not None}
    refuse("quorum", entry.get("to") != expected.get("to") == expected.get("from"))
    for name, rule in (("at", "time_order"), ("version", "version_gap"), ("content", "content_changed")):
        refuse(rule, expected.get(name) != entry.get(name))
    refuse("other_entry", expected != entry)
    return after, move.unasked
