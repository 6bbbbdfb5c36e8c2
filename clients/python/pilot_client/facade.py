"""The flows behind the few calls that most programs need: propose, act, wait, events."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import IO, Any, TypedDict, cast

from pilot_client.asks import Ask, key_of, segment
from pilot_client.cloud_events import EntryEvent, event_of
from pilot_client.errors import DigestRequired, PilotError, Unavailable
from pilot_client.exchange import TRIES_MAX, Flow, Open, Pause, Read, Step, exchange, failure, json_of, settled
from pilot_client.feed import PAUSE_MAX, Arrived, Beat, NoFeed, Opened, follow
from pilot_client.models import Item, ItemSummary, Me, Sort, Transition, WholeItem, Workflow
from pilot_client.waiting import Deadline, definition_of, head

ITEMS = "/v1/items"
DOWNLOAD_SECONDS = 60.0
"""How long the next part of a bundle may take."""


class ItemFilters(TypedDict, total=False):
    """What `items` and `item_summaries` can be narrowed down by; `list_items` says what each means."""

    state: str | None
    workflow: str | None
    created_by: str | None
    waiting_for: Me | None
    risk: str | None
    q: str | None
    sort: Sort | None
    limit: int | None


def id_of(item: str | Item | ItemSummary | WholeItem) -> str:
    """An item's id, of the item itself or as it is."""
    if isinstance(item, str):
        return item
    found = item.get("id")
    if not isinstance(found, str):
        raise TypeError("an item is given by its id, or as the service answered it")
    return found


def propose(workflow: str, title: str, payload: Mapping[str, Any], key: str | None, submit: bool) -> Flow[WholeItem]:
    """Creates an item and submits it. With a key it can be repeated: an item that is already there is used again."""
    key = key_of(key)
    body = {"workflow": workflow, "title": title, "payload": payload}
    ask = Ask("create_item", "POST", ITEMS, body=body, key=key)
    item = cast("WholeItem", json_of(ask, (yield from exchange(ask))))
    if not submit:
        return item
    try:
        # The same key: keys belong to a path.
        yield from move(item["id"], {"action": "submit"}, key, None)
    except PilotError as error:
        error.add_note(f"the item {item['id']} was created and is still a draft")
        raise
    return (yield from load(item["id"]))


def load(item: str) -> Flow[WholeItem]:
    ask = Ask("get_item", "GET", f"{ITEMS}/{segment(item)}")
    return cast("WholeItem", json_of(ask, (yield from exchange(ask))))


def move(item: str, body: Mapping[str, Any], key: str, if_match: int | None) -> Flow[Transition]:
    path = f"{ITEMS}/{segment(item)}/transitions"
    ask = Ask("take_action", "POST", path, body=body, key=key, if_match=if_match)
    return cast("Transition", json_of(ask, (yield from exchange(ask))))


def act(
    item: str | Item | ItemSummary | WholeItem,
    body: Mapping[str, Any],
    key: str | None,
    if_match: int | None,
) -> Flow[Transition]:
    """Takes an action. A decision names the content it was made on, so that none is made on content nobody has seen."""
    if body["content_digest"] is None:
        found = yield from load(id_of(item))
        if _is_decision((yield from definition_of(found, tries=TRIES_MAX)), body["action"], found["state"]):
            raise DigestRequired(
                f"act: {body['action']} is a decision, so it needs `digest`: the content_digest of what was shown to "
                "the person who decides, and not one that was loaded afterwards",
                operation="act",
            )
    return (yield from move(id_of(item), body, key_of(key), if_match))


def _is_decision(definition: Workflow, action: str, state: str) -> bool:
    rules = [one for one in definition["transitions"] if one["action"] == action and state in one["from"]]
    return any(one.get("content_digest_required", False) for one in rules)


def download(ask: Ask, file: IO[bytes]) -> Flow[None]:
    """Writes an answer to a file, piece by piece. It is not repeated: part of it may be written already."""
    settled(ask, (yield Open(ask, DOWNLOAD_SECONDS)))
    while isinstance(piece := (yield Read()), bytes):
        if not piece:
            return
        file.write(piece)
    raise failure(ask, piece)


@dataclass(frozen=True)
class Told:
    """An event for the caller."""

    event: EntryEvent


def _head(deadline: Deadline) -> Flow[tuple[str, int | None]]:
    """The log's name and its newest entry, however long the service takes to be there."""
    while True:
        try:
            return (yield from head(tries=TRIES_MAX))
        except Unavailable:
            if deadline.is_over:
                raise
        yield Pause(PAUSE_MAX)


def events(from_: int | None, patience: float | None, now: Callable[[], float]) -> Generator[Step | Told, Any, None]:
    """Entries as events. Ends with an error when there was no feed for longer than `patience`."""
    # As webhooks say it: a log that was restored with a loss has a new name, and the same indices for other entries.
    source, after = yield from _head(Deadline(now, None if patience is None else now() + patience))
    if from_ is not None:
        after = from_ - 1 if from_ > 0 else None
    feed, gone, answer = follow(after), None, None
    while True:
        step = feed.send(answer)
        answer = None
        if isinstance(step, NoFeed):
            gone = gone or Deadline(now, None if patience is None else now() + patience)
            if gone.is_over:
                raise step.error
        elif isinstance(step, Arrived):
            yield Told(event_of(step.entry, source))
        elif isinstance(step, Opened):
            gone = None
        elif not isinstance(step, Beat):
            answer = yield step
