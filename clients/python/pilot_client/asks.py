"""A request, described but not yet sent, and what the generated operations need to describe it."""

import secrets
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any
from urllib.parse import quote, urlencode


@dataclass(frozen=True)
class Ask:
    """One request. Members of the query and the body that are None are left out."""

    operation: str
    method: str
    path: str
    _: KW_ONLY
    accept: str = "application/json"
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
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
        given = {name: value for name, value in self.query.items() if value is not None}
        return f"{self.path}?{urlencode(given)}" if given else self.path

    def json(self) -> dict[str, Any] | None:
        """The body to send."""
        if self.body is None:
            return None
        return {name: value for name, value in self.body.items() if value is not None}

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
        self.has_more = following is not None and following != self.cursor
        self.cursor = following


def new_key() -> str:
    """An idempotency key that nobody has used."""
    return secrets.token_hex(16)


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
