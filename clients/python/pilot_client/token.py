"""The token: where it comes from, and that it is shown nowhere."""

import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeAlias

ENVIRONMENT = "PILOT_TOKEN"
_SHAPE = re.compile("[!-~]{32,256}")

TokenSource: TypeAlias = Callable[[], str]
AsyncTokenSource: TypeAlias = Callable[[], str | Awaitable[str]]


class TokenError(ValueError):
    """There is no token, or it cannot be one. The text never contains it."""


class Token:
    """A clear token. Whatever prints it, prints that it is hidden."""

    __slots__ = ("_clear",)

    def __init__(self, clear: object) -> None:
        # The HTTP library would quote a header that it cannot send, so it is checked before.
        if not isinstance(clear, str) or not _SHAPE.fullmatch(clear):
            raise TokenError("the token is not 32 to 256 printable ASCII characters without spaces; check its source")
        self._clear = clear

    def __repr__(self) -> str:
        return "Token(hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a token is not stored")

    def header(self) -> str:
        """The value of `Authorization`."""
        return f"Bearer {self._clear}"

    def hidden_in(self, body: bytes) -> bytes:
        """An answer without the token, should something between us and the service repeat what it got."""
        return body.replace(self._clear.encode(), b"[token]")


def from_file(path: str | os.PathLike[str]) -> TokenSource:
    """Reads the file for every request, so that a rotated token is used at once."""

    def read() -> str:
        try:
            return Path(path).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not text"
            raise TokenError(f"the token file {os.fspath(path)} cannot be read: {why}") from None

    return read


def from_environment() -> str:
    """The variable's value at the time of the request."""
    found = os.environ.get(ENVIRONMENT)
    if found is None:
        raise TokenError(f"there is no token: set {ENVIRONMENT}, or give `token_file` or `token`")
    return found


def chosen(
    token: AsyncTokenSource | None, token_file: str | os.PathLike[str] | None, *, has_certificate: bool
) -> AsyncTokenSource | None:
    """The source to ask before each request. None if a certificate says who is calling."""
    if token is not None and token_file is not None:
        raise TokenError("give `token` or `token_file`, not both")
    if token_file is not None:
        return from_file(token_file)
    if token is None:
        return None if has_certificate and ENVIRONMENT not in os.environ else from_environment
    if not callable(token):
        raise TokenError("`token` is a function that returns the token, so that none is kept or printed by accident")
    return token
