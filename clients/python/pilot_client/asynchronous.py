"""`AsyncPilot`: the client for asyncio. The same as `Pilot`, with `await`."""

import asyncio
import inspect
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from types import TracebackType
from typing import IO, Any, Self, TypeVar, Unpack, cast

import httpx

from pilot_client import address, facade
from pilot_client.asks import Ask
from pilot_client.cloud_events import EntryEvent
from pilot_client.exchange import (
    ANSWER_BYTES_MAX,
    Close,
    Flow,
    Lost,
    Open,
    Outcome,
    Pause,
    Read,
    Send,
    Step,
    exchange,
    json_of,
)
from pilot_client.facade import ItemFilters
from pilot_client.models import Documents, Item, ItemSummary, Transition, WholeItem
from pilot_client.operations import AsyncOperations
from pilot_client.token import AsyncTokenSource, Token
from pilot_client.waiting import Deadline, Target, Wait
from pilot_client.wire import DEFAULT_SECONDS, Settings, head_of, lost, reply_of, too_large

T = TypeVar("T")


class AsyncPilot(AsyncOperations):
    """A client of one Pilot service, as one actor, for asyncio.

    `url` is by default `PILOT_URL`, else http://127.0.0.1:7450. The token comes from `token`, a function,
    asynchronous or not, that returns it,
    from `token_file`, or from `PILOT_TOKEN`, and is asked for at each request. `timeout` is how many seconds to wait
    for the next part of an answer. `ca_file` is the only issuer to trust, and `client_cert` your own certificate and
    key.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        token: AsyncTokenSource | None = None,
        token_file: str | os.PathLike[str] | None = None,
        timeout: float = DEFAULT_SECONDS,
        ca_file: str | os.PathLike[str] | None = None,
        client_cert: tuple[str, str] | None = None,
        insecure_http: bool = False,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._settings = Settings.made(
            url,
            token=token,
            token_file=token_file,
            client_cert=client_cert,
            insecure_http=insecure_http,
            timeout=timeout,
        )
        self._clock, self._sleep = clock, sleep
        # Nothing of the environment, such as a proxy, decides where the token is sent.
        self._http = httpx.AsyncClient(
            transport=transport,
            verify=address.tls(ca_file, client_cert) if transport is None else True,
            follow_redirects=False,
            trust_env=False,
        )

    def __repr__(self) -> str:
        return f"AsyncPilot({self._settings.origin!r})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def propose(
        self, workflow: str, title: str, payload: Mapping[str, Any], *, key: str | None = None, submit: bool = True
    ) -> WholeItem:
        """Creates an item and submits it, and answers how it stands then.

        With the same `key` and content this can be repeated within 24 hours: the same item is answered again. If only
        the submission is refused, the error has a note with the id of the draft.
        """
        return await self._run(facade.propose(workflow, title, payload, key, submit))

    async def act(
        self,
        item: str | Item | ItemSummary | WholeItem,
        action: str,
        *,
        digest: str | None = None,
        comment: str | None = None,
        inputs: Mapping[str, Any] | None = None,
        key: str | None = None,
        if_match: int | None = None,
    ) -> Transition:
        """Takes an action on an item.

        A decision (approve, clear, start, …) needs `digest`: the `content_digest` of what was shown to the person who
        decides. Without it, `DigestRequired` is raised and nothing is sent.
        """
        body = {"action": action, "content_digest": digest, "comment": comment, "inputs": inputs}
        return await self._run(facade.act(item, body, key, if_match))

    async def wait(
        self, item: str | Item | ItemSummary | WholeItem, for_: Target, *, timeout: float | None = None
    ) -> WholeItem:
        """The item, as soon as it has come so far: `decided`, `cleared`, `started` or `closed`.

        Only a state that lasts counts, judged by the item's own definition. Follows the feed, waits out interruptions
        and restarts, and looks now and then where there is no feed. Raises `NoLongerPossible` if it can no longer be
        reached, and `NotYet` after `timeout` seconds; without a timeout it waits as long as it takes.
        """
        deadline = Deadline(self._clock, None if timeout is None else self._clock() + timeout)
        return await self._run(Wait(facade.id_of(item), for_, deadline).flow())

    async def events(
        self, from_: int | None = None, *, patience: float | None = 300.0
    ) -> AsyncGenerator[EntryEvent, None]:
        """The ledger's entries as they are written, from index `from_` on, or only those to come.

        Interruptions are waited out: nothing is lost or repeated. Raises `Unavailable` when the service could not be
        reached for `patience` seconds; None waits as long as it takes. To continue later, begin with the index after
        the last one that was handled.
        """
        driver, flow, answer = _Driver(self), facade.events(from_, patience, self._clock), None
        try:
            while True:
                step = flow.send(answer)
                if isinstance(step, facade.Told):
                    answer = None
                    yield step.event
                else:
                    answer = await driver.perform(step)
        finally:
            await driver.close()

    async def save_evidence(
        self,
        file: IO[bytes],
        *,
        item: str | None = None,
        from_: str | None = None,
        to: str | None = None,
        documents: Documents | None = None,
    ) -> None:
        """Writes an evidence bundle of any size to a file, as it arrives. A bundle that was cut is an error."""
        query = {"item": item, "from": from_, "to": to, "documents": documents}
        await self._run(
            facade.download(Ask("get_evidence", "GET", "/v1/evidence", accept="application/zip", query=query), file)
        )

    def items(self, **filters: Unpack[ItemFilters]) -> AsyncIterator[Item]:
        """All items that `list_items` would list, with their payloads, page after page."""
        return cast("AsyncIterator[Item]", self.iter_items(**filters, view="full"))

    def item_summaries(self, **filters: Unpack[ItemFilters]) -> AsyncIterator[ItemSummary]:
        """The same without payloads."""
        return cast("AsyncIterator[ItemSummary]", self.iter_items(**filters, view="summary"))

    async def _json(self, ask: Ask) -> Any:
        return json_of(ask, await self._run(exchange(ask)))

    async def _text(self, ask: Ask) -> str:
        return (await self._bytes(ask)).decode("utf-8", "replace")

    async def _bytes(self, ask: Ask) -> bytes:
        return (await self._run(exchange(ask))).body

    async def _nothing(self, ask: Ask) -> None:
        await self._run(exchange(ask))

    async def _run(self, flow: Flow[T]) -> T:
        driver, answer = _Driver(self), None
        try:
            while True:
                answer = await driver.perform(flow.send(answer))
        except StopIteration as end:
            return cast("T", end.value)
        finally:
            await driver.close()


class _Driver:
    """Does what a flow asks for."""

    def __init__(self, pilot: AsyncPilot) -> None:
        self._pilot = pilot
        self._open: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes] | None = None

    async def perform(self, step: Step) -> Any:
        match step:
            case Send(ask, seconds):
                return await self._send(ask, seconds)
            case Open(ask, seconds):
                return await self._start(ask, seconds)
            case Read():
                return await self._read()
            case Close():
                return await self.close()
            case Pause(seconds):
                return await self._pilot._sleep(seconds)

    async def close(self) -> None:
        if self._open is not None:
            await self._open.aclose()
            self._open = None

    async def _token(self, ask: Ask) -> Token | None:
        source = self._pilot._settings.source
        if ask.is_open or source is None:
            return None
        found = source()
        return Token(await found if inspect.isawaitable(found) else found)

    async def _send(self, ask: Ask, seconds: float | None) -> Outcome:
        token = await self._token(ask)
        request = self._pilot._settings.request(ask, token, seconds)
        try:
            response = await self._pilot._http.send(request, stream=True)
            try:
                return reply_of(response, await self._whole(response), token)
            finally:
                await response.aclose()
        except (httpx.TransportError, httpx.DecodingError) as error:
            return lost(error)

    async def _start(self, ask: Ask, seconds: float) -> Outcome:
        await self.close()
        token = await self._token(ask)
        request = self._pilot._settings.request(ask, token, seconds)
        try:
            response = await self._pilot._http.send(request, stream=True)
            self._open = response
            if response.is_success:
                self._pieces = response.aiter_bytes()
                return head_of(response)
            return reply_of(response, await self._whole(response), token)
        except (httpx.TransportError, httpx.DecodingError) as error:
            await self.close()
            return lost(error)

    async def _read(self) -> bytes | Lost:
        try:
            return b"" if self._pieces is None else await anext(self._pieces, b"")
        except (httpx.TransportError, httpx.DecodingError) as error:
            await self.close()
            return lost(error)

    @staticmethod
    async def _whole(response: httpx.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > ANSWER_BYTES_MAX:
                raise too_large(response)
        return bytes(body)
