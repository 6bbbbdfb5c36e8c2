"""What `Pilot` and `AsyncPilot` have in common: their settings, and how requests and failures look on the wire."""

import json
import os
import ssl
from dataclasses import dataclass

import httpx

from pilot_client import address
from pilot_client.asks import Ask
from pilot_client.errors import PilotError
from pilot_client.exchange import ANSWER_BYTES_MAX, Lost, Reply
from pilot_client.token import AsyncTokenSource, Token
from pilot_client.token import chosen as chosen_token

USER_AGENT = "pilot-client-python"
CONNECT_SECONDS = 10.0
DEFAULT_SECONDS = 30.0


def too_large(response: httpx.Response) -> PilotError:
    """An answer beyond what this client keeps in memory."""
    route = f"{response.request.method} {response.request.url.path}"
    return PilotError(f"{route}: the answer is larger than {ANSWER_BYTES_MAX} bytes; `save_evidence` has no such limit")


@dataclass(frozen=True)
class Settings:
    """Where, as whom and how patiently."""

    base: httpx.URL
    source: AsyncTokenSource | None
    seconds: float

    @staticmethod
    def made(
        url: str | None,
        *,
        token: AsyncTokenSource | None,
        token_file: str | os.PathLike[str] | None,
        client_cert: tuple[str, str] | None,
        insecure_http: bool,
        timeout: float,
    ) -> "Settings":
        if not 0 < timeout <= 3600:
            raise ValueError("timeout is a number of seconds above 0 and up to 3600")
        base = address.chosen(url, insecure_http=insecure_http)
        return Settings(base, chosen_token(token, token_file, has_certificate=client_cert is not None), timeout)

    @property
    def origin(self) -> str:
        return str(self.base).rstrip("/")

    def request(self, ask: Ask, token: Token | None, seconds: float | None) -> httpx.Request:
        """The request on the wire. Built here, and not by httpx's client, so that nothing is added to it."""
        fields = {"User-Agent": USER_AGENT, "Accept-Encoding": "gzip", **ask.header_fields()}
        body = ask.json()
        content = None if body is None else _encoded(body)
        if content is not None:
            fields["Content-Type"] = "application/json"
        if token is not None:
            fields["Authorization"] = token.header()
        read = self.seconds if seconds is None else seconds
        limits = httpx.Timeout(read, connect=min(CONNECT_SECONDS, read), pool=min(CONNECT_SECONDS, read))
        url = self.base.join(ask.target)
        return httpx.Request(ask.method, url, headers=fields, content=content, extensions={"timeout": limits.as_dict()})


def _encoded(body: object) -> bytes:
    """JSON as the service reads it. What has no form there is refused here."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError) as error:
        raise ValueError(f"the request cannot be written as JSON: {error}") from None


def head_of(response: httpx.Response) -> Reply:
    return Reply(response.status_code, {name.lower(): value for name, value in response.headers.items()})


def reply_of(response: httpx.Response, body: bytes, token: Token | None) -> Reply:
    head = head_of(response)
    if token is not None and not head.is_success:
        body = token.hidden_in(body)
    return Reply(head.status, head.headers, body)


def lost(error: Exception) -> Lost:
    """Why there was no answer, in a few words."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return Lost(f"the service's certificate is not trusted: {cause.verify_message}", is_final=True)
        cause = cause.__cause__ or cause.__context__
    known: dict[type[Exception], str] = {
        httpx.ConnectTimeout: "no connection in time",
        httpx.ReadTimeout: "no answer in time",
        httpx.WriteTimeout: "the request could not be sent in time",
        httpx.PoolTimeout: "no free connection in time",
        httpx.RemoteProtocolError: "the connection ended before the answer was complete",
    }
    return Lost(known.get(type(error)) or str(error) or type(error).__name__)
