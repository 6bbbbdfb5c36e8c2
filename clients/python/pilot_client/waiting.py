"""How far an item has come, by the rules of its own definition, and waiting until it has come as far as is needed.

Decides as `pilot item wait` does (docs/adr/0060-what-is-waited-for.md).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, cast

from pilot_client.asks import Ask, Pages, segment
from pilot_client.errors import NoLongerPossible, NotYet, PilotError, RateLimited, Unavailable
from pilot_client.exchange import RETRY_AFTER_MAX, Close, Flow, Pause, exchange, json_of
from pilot_client.feed import SILENCE_MAX, Arrived, Beat, NoFeed, Opened, PastTheEnd, follow
from pilot_client.models import Transitions, WholeItem, Workflow, WorkflowRule

Target: TypeAlias = Literal["decided", "cleared", "started", "closed"]
Standing: TypeAlias = Literal["reached", "not_yet", "never"]

TARGETS = ("decided", "cleared", "started", "closed")
PAUSE = 1.0
LOOK_SECONDS_MAX = 30.0
# How far past the end of its time a wait may go, because the time for a read cannot be changed while it is under way.
SLACK = 1.0


def judge(definition: Workflow, target: Target, state: str, *, held: bool, has_started: bool) -> Standing:
    """How an item stands with regard to a target."""
    kinds = {one["name"]: one["kind"] for one in definition["states"]}
    has_ended = kinds.get(state, "terminal") == "terminal"
    if has_started:
        return "reached" if target != "closed" or has_ended else "not_yet"
    left = _decisions_left(definition)
    if has_ended or state not in left:
        return "never"
    here, at_first = left[state], left.get(definition["initial"], 0)
    # Content that may still change has not been decided on.
    is_frozen = not any(one["name"] == state and one.get("editable", False) for one in definition["states"])
    is_reached = is_frozen and (
        (target == "decided" and (here < at_first or here == 0)) or (target == "cleared" and here == 0)
    )
    return "reached" if is_reached and not held else "not_yet"


def _decisions_left(definition: Workflow) -> dict[str, int]:
    """For each state from which an effect can be reached: how many decisions there are on the way, at the least."""
    left = {one["name"]: 0 for one in definition["states"] if one["kind"] == "effect"}
    # Each round goes one move further back; there are no more moves on a way than states.
    for _ in definition["states"]:
        for rule in definition["transitions"]:
            beyond = left.get(rule.get("to", ""))
            if beyond is None:
                continue
            ours = beyond + _is_decision(definition, rule)
            for origin in rule["from"]:
                left[origin] = min(left.get(origin, ours), ours)
    return left


def _is_decision(definition: Workflow, rule: WorkflowRule) -> bool:
    """Somebody says yes to this very content. To begin an effect is to carry a decision out."""
    begins = any(one["name"] == rule.get("to") and one["kind"] == "effect" for one in definition["states"])
    return rule.get("content_digest_required", False) and not begins


@dataclass
class Deadline:
    """The time that is left, by a clock that is not set."""

    now: Callable[[], float]
    end: float | None

    def left(self) -> float:
        return float("inf") if self.end is None else max(self.end - self.now(), 0.0)

    @property
    def is_over(self) -> bool:
        return self.left() <= 0.0

    def of(self, seconds: float) -> float:
        """So long, but not beyond the end. The HTTP library takes no zero."""
        return max(min(seconds, self.left()), 0.001)


@dataclass
class Wait:
    """What is waited for, and what was last seen of it."""

    id: str
    target: Target
    deadline: Deadline
    definition: Workflow | None = None
    last: WholeItem | None = None
    lost: PilotError | None = None
    silence: float = field(default=SILENCE_MAX)

    def flow(self) -> Flow[WholeItem]:
        """The item, as soon as it has come so far."""
        if self.target not in TARGETS:
            raise ValueError(f"for_ is one of {', '.join(TARGETS)}, not {self.target!r}")
        standing = yield from self._look_once()
        if standing == "not_yet" and not self.deadline.is_over:
            standing = yield from self._follow()
        if self.last is None:
            raise self.lost or Unavailable(f"wait: {self.id} was not seen in time")
        state = self.last["state"]
        if standing == "reached":
            return self.last
        if standing == "never":
            raise NoLongerPossible(f"wait: {self.id} is {state}, so {self.target} can no longer be reached", self.last)
        roles = " or ".join(self.last["waits_for"])
        held = ", held" if self.last["held"] else ""
        who = f" and waits for {roles}" if roles else ""
        raise NotYet(f"wait: {self.id} is not {self.target} yet: it is {state}{held}{who}", self.last)

    def _follow(self) -> Flow[Standing]:
        """Looks whenever the feed is opened, whenever it says something about the item, and whenever there is none."""
        # The place in the ledger first: what happens after it comes with the feed, and what happened before is seen.
        feed = follow((yield from self._newest()), self._silence)
        told: object = None
        while not self.deadline.is_over:
            try:
                step = feed.send(told)
            except PastTheEnd:
                feed, told = follow((yield from self._newest()), self._silence), None
                continue
            told = None
            if isinstance(step, Beat):
                # True opens the feed again, with less time to read.
                told = self.deadline.left() < self.silence - SLACK
                continue
            if isinstance(step, Pause):
                yield Pause(self.deadline.of(step.seconds))
                continue
            if isinstance(step, Arrived):
                if step.entry.get("item") != self.id:
                    continue
            elif not isinstance(step, Opened | NoFeed):
                told = yield step
                continue
            standing = yield from self._look_once()
            if standing != "not_yet":
                yield Close()
                return standing
        yield Close()
        return "not_yet"

    def _silence(self) -> float:
        self.silence = self.deadline.of(SILENCE_MAX)
        return self.silence

    def _look_once(self) -> Flow[Standing]:
        """Where the item stands; not yet if the service cannot be reached. What it refuses is raised."""
        try:
            return (yield from self._look())
        except (Unavailable, RateLimited) as error:
            self.lost = error
            yield Pause(self.deadline.of(_patience(error)))
            return "not_yet"

    def _look(self) -> Flow[Standing]:
        path = f"/v1/items/{segment(self.id)}"
        item = cast("WholeItem", (yield from self._get(Ask("get_item", "GET", path))))
        if self.definition is None:
            self.definition = yield from definition_of(item, tries=1, timeout=self.deadline.of(LOOK_SECONDS_MAX))
        effects = {one["name"] for one in self.definition["states"] if one["kind"] == "effect"}
        has_started = item["state"] in effects or item.get("attempts", 0) > 0 or (yield from self._was_in(effects))
        self.last = item
        return judge(self.definition, self.target, item["state"], held=item["held"], has_started=has_started)

    def _was_in(self, effects: set[str]) -> Flow[bool]:
        pages = Pages()
        while pages.has_more:
            path, query = f"/v1/items/{segment(self.id)}/transitions", {"cursor": pages.cursor, "limit": 200}
            page = cast("Transitions", (yield from self._get(Ask("list_transitions", "GET", path, query=query))))
            if any(one["to"] in effects for one in page["transitions"]):
                return True
            pages.turn(page["next"])
        return False

    def _newest(self) -> Flow[int | None]:
        """The index of the newest entry, asked for until it is known or the time is over."""
        while True:
            try:
                return (yield from newest(timeout=self.deadline.of(LOOK_SECONDS_MAX), tries=1))
            except (Unavailable, RateLimited) as error:
                self.lost = error
                if self.deadline.is_over:
                    return None
                yield Pause(self.deadline.of(_patience(error)))

    def _get(self, ask: Ask) -> Flow[object]:
        reply = yield from exchange(ask, tries=1, timeout=self.deadline.of(LOOK_SECONDS_MAX))
        return json_of(ask, reply)


def _patience(error: PilotError) -> float:
    """As long as the service asks for, within reason."""
    return min(max(PAUSE, error.retry_after or 0.0), RETRY_AFTER_MAX)


def definition_of(item: WholeItem, *, tries: int, timeout: float | None = None) -> Flow[Workflow]:
    """The definition that an item was created under, and keeps."""
    reference = item["workflow"]
    path, query = f"/v1/workflows/{segment(reference['name'])}", {"digest": reference["digest"]}
    ask = Ask("get_workflow", "GET", path, query=query)
    return cast("Workflow", json_of(ask, (yield from exchange(ask, tries=tries, timeout=timeout))))


def head(*, timeout: float | None = None, tries: int) -> Flow[tuple[str, int | None]]:
    """The log's name, and the index of its newest entry as of its newest checkpoint; None while it is empty."""
    ask = Ask("get_checkpoint", "GET", "/v1/log/checkpoint", accept="text/plain")
    reply = yield from exchange(ask, tries=tries, timeout=timeout)
    lines = reply.body.decode("utf-8", "replace").split("\n")
    if len(lines) < 2 or not (lines[1].isascii() and lines[1].isdigit()):
        raise PilotError("get_checkpoint: the answer is not a checkpoint", operation="get_checkpoint")
    return lines[0], int(lines[1]) - 1 if lines[1] != "0" else None


def newest(*, timeout: float | None = None, tries: int) -> Flow[int | None]:
    """The index of the ledger's newest entry."""
    _, index = yield from head(timeout=timeout, tries=tries)
    return index
