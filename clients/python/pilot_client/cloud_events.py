"""CloudEvents 1.0, as webhooks send them and as `events` gives them."""

from typing import Any, NotRequired, TypedDict

from pilot_client.models import Entry


class _Attributes(TypedDict):
    specversion: str
    id: str
    source: str
    type: str
    subject: NotRequired[str]
    time: NotRequired[str]
    datacontenttype: NotRequired[str]
    dataschema: NotRequired[str]


class CloudEvent(_Attributes):
    """What a webhook brought. Members that are not named here are kept."""

    data: NotRequired[Any]


class EntryEvent(_Attributes):
    """An event of the feed: `id` is the entry's index, `source` the log's name, `subject` the entry's item.

    `data` is the entry as it is in the log. Webhooks have the same members, and more in `data`.
    """

    data: Entry


def event_of(entry: Entry, source: str) -> EntryEvent:
    """An entry as an event."""
    event = EntryEvent(
        specversion="1.0",
        id=str(entry["index"]),
        source=source,
        type=entry["type"],
        time=entry["at"],
        datacontenttype="application/json",
        data=entry,
    )
    if "item" in entry:
        event["subject"] = entry["item"]
    return event
