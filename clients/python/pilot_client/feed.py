"""The live feed of the ledger (server-sent events): how it is read, and opened again after an interruption."""

import json
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from pilot_client.asks import Ask
from pilot_client.errors import Invalid, PilotError
from pilot_client.exchange import Close, Lost, Open, Outcome, Pause, Read, Reply, Step, failure
from pilot_client.models import Entry

SILENCE_MAX = 45.0
"""The service sends a sign of life every 15 s."""
EVENT_BYTES_MAX = 1024 * 1024
"""No entry is nearly as long."""
PAUSE = 0.25
PAUSE_MAX = 5.0
_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True)
class ServerEvent:
    """One event, as it was sent."""

    id: str
    name: str
    data: str


class Decoder:
    """Bytes to events, wherever they are cut. Lines end with LF, CR or both."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._max = event_bytes_max
        self._line = bytearray()
        self._size = 0
        self._skips_lf = False
        self._is_first = True
        self._id, self._name = "", ""
        self._data: list[str] = []

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """The events that end in this piece."""
        if not piece:
            return
        # The second half of a line's end, whose first half ended the last piece.
        start = 1 if self._skips_lf and piece.startswith(b"\n") else 0
        self._skips_lf = piece.endswith(b"\r")
        for end in _LINE_END.finditer(piece, start):
            self._grow(piece[start : end.start()])
            start = end.end()
            event = self._end_line()
            if event is not None:
                yield event
        self._grow(piece[start:])

    def _grow(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max:
            raise PilotError(f"events: the feed sent an event of more than {self._max} bytes; is this a Pilot service?")
        self._line += part

    def _end_line(self) -> ServerEvent | None:
        line, length = self._line.decode("utf-8", "replace"), len(self._line)
        self._line.clear()
        if self._is_first:
            self._is_first, line = False, line.removeprefix("\ufeff")
        if not line:
            return self._end_event()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif not name:
            # A comment, which is a sign of life: it does not count towards an event.
            self._size -= length
        return None

    def _end_event(self) -> ServerEvent | None:
        event = ServerEvent(self._id, self._name or "message", "\n".join(self._data)) if self._data else None
        self._name, self._size = "", 0
        self._data.clear()
        return event


@dataclass(frozen=True)
class Opened:
    """The feed was opened, for the first time or again."""


@dataclass(frozen=True)
class Arrived:
    """An entry."""

    entry: Entry


@dataclass(frozen=True)
class Beat:
    """Everything that had arrived was read."""


@dataclass(frozen=True)
class NoFeed:
    """The feed could not be opened now; there was a pause."""

    error: PilotError


Following: TypeAlias = Generator[Step | Opened | Arrived | Beat | NoFeed, Any, None]


class PastTheEnd(Invalid):
    """The ledger does not have the entry after which the feed was to go on."""


def follow(after: int | None, silence: Callable[[], float] = lambda: SILENCE_MAX) -> Following:
    """Entries above `after`, or all of them. Opens the feed again and again; raises only what the service refuses.

    Apart from steps, it yields what was heard, and the listener decides when to stop. `silence` is how long to wait
    for a sign of life. A `Beat` that is answered with True opens the feed again.
    """
    pause, is_resumed = PAUSE, False
    while True:
        ask = _ask(after, is_resumed)
        opened: Outcome = yield Open(ask, silence())
        if not _is_feed(opened):
            error = _refusal(ask, opened)
            asked = opened.retry_after() if isinstance(opened, Reply) else None
            yield Pause(min(max(pause, asked or 0.0), PAUSE_MAX))
            yield NoFeed(error)
            pause = min(pause * 2, PAUSE_MAX)
            continue
        yield Opened()
        decoder, is_resumed = Decoder(), True
        while isinstance(piece := (yield Read()), bytes) and piece:
            for event in decoder.feed(piece):
                entry = _entry(event)
                # Nothing twice, whatever the other side does.
                if after is None or entry["index"] > after:
                    after, pause = entry["index"], PAUSE
                    yield Arrived(entry)
            if (yield Beat()):
                break
        yield Close()
        yield Pause(pause)
        pause = min(pause * 2, PAUSE_MAX)


def _ask(after: int | None, is_resumed: bool) -> Ask:
    query = {} if is_resumed else {"after": after}
    headers = {"Last-Event-ID": str(after)} if is_resumed and after is not None else {}
    return Ask("list_events", "GET", "/v1/events", accept="text/event-stream", query=query, headers=headers)


def _is_feed(outcome: Outcome) -> bool:
    if isinstance(outcome, Lost) or not outcome.is_success:
        return False
    return outcome.headers.get("content-type", "").split(";")[0].strip() == "text/event-stream"


def _refusal(ask: Ask, outcome: Outcome) -> PilotError:
    """What to remember of a feed that could not be opened, if that may be different in a moment; raised if not."""
    if isinstance(outcome, Reply) and outcome.is_success:
        # A proxy that does not let feeds through. Those who wait can still look now and then.
        return PilotError("list_events: GET /v1/events was answered, but not with a feed", operation="list_events")
    error = failure(ask, outcome)
    if isinstance(outcome, Lost):
        if outcome.is_final:
            raise error
        return error
    if outcome.status == 429 or outcome.status >= 500:
        return error
    if outcome.status == 422:
        raise PastTheEnd(str(error), operation="list_events", status=422, problem=error.problem)
    raise error


def _entry(event: ServerEvent) -> Entry:
    try:
        entry = json.loads(event.data)
        index = int(event.id)
    except ValueError:
        entry, index = None, -1
    if not isinstance(entry, dict) or entry.get("index") != index:
        raise PilotError("list_events: the feed sent something that is not an entry", operation="list_events")
    return cast("Entry", entry)
