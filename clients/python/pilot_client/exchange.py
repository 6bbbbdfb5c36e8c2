"""Requests and their repetition, without I/O: a flow says what is to be done next, and is told what came of it.

`Pilot` and `AsyncPilot` both run these flows, so that what is repeated, and when one gives up, is decided in one place.
"""

import json
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

from pilot_client.asks import Ask
from pilot_client.errors import PilotError, Unavailable, error_of, unknown
from pilot_client.models import Problem

TRIES_MAX = 5
PAUSE = 0.5
"""Before the second try; each further pause is twice as long. In all 7.5 s, which is longer than a restart takes."""
RETRY_AFTER_MAX = 60.0
"""A service that asks for more patience than this is not asked again; the caller decides."""
ANSWER_BYTES_MAX = 64 * 1024 * 1024
REPEATED = frozenset({502, 503, 504})

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """Send this, and read the whole answer."""

    ask: Ask
    timeout: float | None = None


@dataclass(frozen=True)
class Open:
    """Send this, and read the answer piece by piece."""

    ask: Ask
    timeout: float


@dataclass(frozen=True)
class Read:
    """The next piece of what was opened."""


@dataclass(frozen=True)
class Close:
    """Nothing more of what was opened."""


@dataclass(frozen=True)
class Pause:
    """Some seconds."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """An answer. After `Open`, a success has no body yet."""

    status: int
    headers: dict[str, str]
    body: bytes = field(default=b"", repr=False)

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def retry_after(self) -> float | None:
        """Seconds; the service never sends a date."""
        text = self.headers.get("retry-after", "")
        return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def problem(self) -> Problem | None:
        """What the service says about an answer that is not a success."""
        if self.headers.get("content-type", "").split(";")[0].strip() != "application/problem+json":
            return None
        try:
            found = json.loads(self.body)
        except ValueError:
            return None
        return cast("Problem", found) if isinstance(found, dict) and isinstance(found.get("code"), str) else None


@dataclass(frozen=True)
class Lost:
    """No answer, and why."""

    why: str
    is_final: bool = False
    """Whether another try would end the same way."""


Step: TypeAlias = Send | Open | Read | Close | Pause
Outcome: TypeAlias = Reply | Lost
Flow: TypeAlias = Generator[Step, Any, T]


def exchange(ask: Ask, *, tries: int = TRIES_MAX, timeout: float | None = None) -> Flow[Reply]:
    """Sends the request, again while its answer is lost and that cannot do harm; raises what the service refuses."""
    for used in range(1, tries + 1):
        outcome: Outcome = yield Send(ask, timeout)
        pause = pause_after(outcome, used) if ask.can_be_repeated and used < tries else None
        if pause is None:
            return settled(ask, outcome)
        yield Pause(pause)
    raise AssertionError("the last try is always settled")


def pause_after(outcome: Outcome, used: int) -> float | None:
    """How long to wait before the next try; None if there is none."""
    backoff: float = PAUSE * 2.0 ** (used - 1)
    if isinstance(outcome, Lost):
        return None if outcome.is_final else backoff
    asked = outcome.retry_after()
    if asked is not None and asked > RETRY_AFTER_MAX:
        return None
    if outcome.status in REPEATED:
        return backoff if asked is None else asked
    return asked if outcome.status == 429 else None


def settled(ask: Ask, outcome: Outcome) -> Reply:
    """The answer, if it is a success."""
    if isinstance(outcome, Reply) and outcome.is_success:
        return outcome
    raise failure(ask, outcome)


def failure(ask: Ask, outcome: Outcome) -> PilotError:
    """The error that an outcome is."""
    route = f"{ask.method} {ask.path}"
    if isinstance(outcome, Reply):
        after = outcome.retry_after()
        problem = outcome.problem()
        return error_of(ask.operation, route, outcome.status, problem, retry_after=after, idempotency_key=ask.key)
    if outcome.is_final:
        remedy = "nothing was sent; check the address, and `ca_file` if the issuer is your own"
        return PilotError(f"{ask.operation}: {outcome.why}\n  {remedy}", operation=ask.operation)
    if ask.method in {"GET", "HEAD"}:
        remedy = "check the address and whether the service is running"
    elif ask.key is not None:
        remedy = unknown(ask.key)
    else:
        remedy = "it is not known whether this was recorded; load the item again and look"
    text = f"{ask.operation}: {route} was not answered: {outcome.why}\n  {remedy}"
    return Unavailable(text, operation=ask.operation, idempotency_key=ask.key)


def json_of(ask: Ask, reply: Reply) -> Any:
    """The body, if it is JSON."""
    try:
        return json.loads(reply.body)
    except ValueError:
        text = f"{ask.operation}: {ask.method} {ask.path} was answered with something that is not JSON"
        raise PilotError(text, operation=ask.operation, status=reply.status) from None
