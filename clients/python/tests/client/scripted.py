"""A service that answers from a script, and a clock that moves only when somebody sleeps."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parents[1]
sys.path.insert(0, str(PACKAGE))

from pilot_client import AsyncPilot, Pilot  # noqa: E402
from pilot_client.asks import new_key  # noqa: E402

URL = "https://pilot.test"


def new_token() -> str:
    """Made for one test; none is ever committed."""
    return f"pilot_{new_key()}{new_key()}"


@dataclass
class Clock:
    now: float = 1_000.0
    pauses: list[float] = field(default_factory=list)

    def read(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds

    async def asleep(self, seconds: float) -> None:
        self.sleep(seconds)


class Pieces(httpx.SyncByteStream, httpx.AsyncByteStream):
    """A body in pieces. An exception among them is raised in its place."""

    def __init__(self, pieces: list[bytes | Exception | Callable[[], None]]) -> None:
        self.pieces, self.is_closed = pieces, False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            if callable(piece):
                piece()
                continue
            yield piece

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self:
            yield piece

    def close(self) -> None:
        self.is_closed = True

    async def aclose(self) -> None:
        self.is_closed = True


def ok(body, status=200, **headers):
    return httpx.Response(status, json=body, headers=headers)


def problem(status, code, detail="because", errors=None, **headers):
    body = {
        "type": f"/docs#{code}",
        "title": code,
        "status": status,
        "detail": detail,
        "code": code,
        "request_id": "r-1",
    }
    if errors is not None:
        body["errors"] = errors
    fields = {
        "content-type": "application/problem+json",
        **{name.replace("_", "-"): text for name, text in headers.items()},
    }
    return httpx.Response(status, content=json.dumps(body).encode(), headers=fields)


def feed(*pieces):
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=Pieces(list(pieces)))


def entry(index, **members):
    body = {"index": index, "type": "item.transition", "at": "2026-11-18T00:00:00.000000Z", "v": 1, **members}
    return f"id: {index}\nevent: {body['type']}\ndata: {json.dumps(body)}\n\n".encode()


@dataclass
class Run:
    """What came of one call."""

    who: str
    result: object = None
    error: Exception | None = None
    requests: list[httpx.Request] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)

    def keys(self):
        return [request.headers.get("idempotency-key") for request in self.requests]


def both(script, call, **options):
    """Makes the call with the blocking and with the asynchronous client, each with the script from its beginning.

    `script` gives a list of answers, or a function of the request. An exception among them is raised.
    """
    runs = [Run("Pilot"), Run("AsyncPilot")]
    for run in runs:
        transport = httpx.MockTransport(_answering(script(run.clock), run))
        common = {"token": new_token, "transport": transport, "clock": run.clock.read, **options}
        try:
            if run.who == "Pilot":
                with Pilot(URL, sleep=run.clock.sleep, **common) as pilot:
                    run.result = call(pilot)
                    if isinstance(run.result, Iterator):
                        run.result = list(run.result)
            else:
                run.result = asyncio.run(_asynchronous(call, run.clock, common))
        except Exception as error:  # noqa: BLE001 (what it is, the test says)
            run.error = error
    return runs


async def _asynchronous(call, clock, common):
    async with AsyncPilot(URL, sleep=clock.asleep, **common) as pilot:
        result = call(pilot)
        return [one async for one in result] if hasattr(result, "__aiter__") else await result


def _answering(script, run):
    answers = iter(script) if isinstance(script, list) else None

    def answer(request):
        run.requests.append(request)
        found = next(answers, None) if answers is not None else script(request)
        if found is None:
            raise AssertionError(
                f"the script has no answer to request {len(run.requests)}: {request.method} {request.url}"
            )
        if isinstance(found, Exception):
            raise found
        # An answer is read once; the next client gets its own.
        body = {"stream": found.stream} if isinstance(found.stream, Pieces) else {"content": found.content}
        return httpx.Response(found.status_code, headers=found.headers, **body)

    return answer
