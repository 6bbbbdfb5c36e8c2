"""A request, described but not yet sent, and what the generated operations need to describe it."""

import enum
import re
import secrets
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from pilot_client.errors import PilotError

_KEY = re.compile("[!-~]{1,255}")


class Absent(enum.Enum):
    """Where null means something, this is what was not given."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True)
class Ask:
    """One request. Members of the query and the body that are None are left out, unless they may be null."""

    operation: str
    method: str
    path: str
    _: KW_ONLY
    accept: str = "application/json"
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    nullable: frozenset[str] = frozenset()
    if_match: int | None = None
    key: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False
    """Whether anyone may ask, so that no token is sent."""

    @property
    def can_be_repeated(self) -> bool:
        """Whether sending it twice is the same as sending it once."""
        return self.method in {"GET", "HEAD"} or self.key is not None

    @property
    def target(self) -> str:
        """Path and query."""
        given = {name: _queried(value) for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given, doseq=True)}" if given else self.path

    def json(self) -> dict[str, Any] | None:
        """The body to send."""
        if self.body is None:
            return None
        absent = {name: ABSENT if name in self.nullable else None for name in self.body}
        return {name: value for name, value in self.body.items() if value is not absent[name]}

    def header_fields(self) -> dict[str, str]:
        """Everything but the token."""
        fields = {"Accept": self.accept, **self.headers}
        if self.if_match is not None:
            fields["If-Match"] = f'"{self.if_match:d}"'
        if self.key is not None:
            fields["Idempotency-Key"] = self.key
        return fields


class Asks:
    """Sends what the operations describe."""

    def _json(self, ask: Ask) -> Any:
        raise NotImplementedError

    def _text(self, ask: Ask) -> str:
        raise NotImplementedError

    def _bytes(self, ask: Ask) -> bytes:
        raise NotImplementedError

    def _nothing(self, ask: Ask) -> None:
        raise NotImplementedError


class AsyncAsks:
    """Sends what the operations describe, without blocking."""

    async def _json(self, ask: Ask) -> Any:
        raise NotImplementedError

    async def _text(self, ask: Ask) -> str:
        raise NotImplementedError

    async def _bytes(self, ask: Ask) -> bytes:
        raise NotImplementedError

    async def _nothing(self, ask: Ask) -> None:
        raise NotImplementedError


class Pages:
    """Where we are in a list that comes in pages."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.has_more = True

    def turn(self, following: str | None) -> None:
        """Goes on to the page with this cursor. One that leads to itself would never end."""
        if following is not None and following == self.cursor:
            raise PilotError("the service answered a page that leads to itself; begin again with the first page")
        self.has_more, self.cursor = following is not None, following


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return secrets.token_hex(16)


def key_of(given: str | None) -> str:
    """The key of one call: it stays the same however often the call is sent."""
    if given is None:
        return new_key()
    if not _KEY.fullmatch(given):
        raise ValueError("an idempotency key is 1 to 255 visible ASCII characters")
    return given


def _queried(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def segment(value: str) -> str:
    """A part of a path, such that it cannot lead to another path."""
    if not isinstance(value, str):
        raise TypeError(f"a part of the path is a text, not {type(value).__name__}")
    if value in {"", ".", ".."}:
        raise ValueError(f"{value!r} cannot be part of a path; give an id or a name")
    return quote(value, safe="")


def segments(value: str) -> str:
    """The same for a value that contains slashes."""
    return "/".join(segment(part) for part in value.split("/"))
