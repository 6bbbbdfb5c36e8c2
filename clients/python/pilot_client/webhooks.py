"""Standard Webhooks: whether a delivery was signed by the service, recently, and with these very bytes."""

import base64
import binascii
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeAlias, cast

from pilot_client.cloud_events import CloudEvent

Reason: TypeAlias = Literal[
    "missing_header", "malformed_header", "too_old", "too_new", "no_matching_signature", "malformed_body"
]
SIGNATURES_BYTES_MAX = 4096
_SECRET, _PUBLIC = "whsec_", "whpk_"
_ED25519_BYTES = 32

# Whether a signature of one version is right for this content.
_Check: TypeAlias = Callable[[bytes, bytes], bool]


class WebhookVerificationError(Exception):
    """The delivery must not be believed. Answer it with 400, and do nothing else with it."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes | str,
    keys: str | Iterable[str],
    tolerance: float = 300,
    now: float | None = None,
) -> CloudEvent:
    """The event that a webhook brought, if one of the keys signed it within `tolerance` seconds of `now`.

    `body` is what arrived, byte for byte: not what a framework made of it. `keys` are `whsec_…` (shared secrets) or
    `whpk_…` (Ed25519 public keys), several while they are rotated. Raises `WebhookVerificationError` with a `reason`.
    A key that is not a key is a `ValueError`, whose text does not contain it.
    """
    checks = [_check_of(number, key) for number, key in enumerate([keys] if isinstance(keys, str) else keys, 1)]
    if not checks:
        raise ValueError("there is no key to verify with; give at least one")
    found = _fields(headers)
    _check_time(found["webhook-timestamp"], tolerance, time.time() if now is None else now)
    content = body.encode() if isinstance(body, str) else bytes(body)
    signed = f"{found['webhook-id']}.{found['webhook-timestamp']}.".encode() + content
    signatures = _signatures(found["webhook-signature"])
    # Every pair is tried: how long it takes does not tell which key or signature was close.
    matches = [
        check(signature, signed) for version, signature in signatures for wanted, check in checks if version == wanted
    ]
    if not any(matches):
        text = "no signature of the delivery is of these keys and this body; compare the endpoint's key with yours"
        raise WebhookVerificationError("no_matching_signature", text)
    return _event(content)


def _fields(headers: Mapping[str, str]) -> dict[str, str]:
    given = {str(name).lower(): value for name, value in headers.items()}
    found = {}
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature"):
        value = given.get(name)
        if not value:
            raise WebhookVerificationError("missing_header", f"the delivery has no {name}")
        if not (isinstance(value, str) and value.isascii() and value.isprintable()):
            raise WebhookVerificationError("malformed_header", f"{name} is not printable ASCII")
        if len(value) > SIGNATURES_BYTES_MAX:
            raise WebhookVerificationError("malformed_header", f"{name} is longer than {SIGNATURES_BYTES_MAX} bytes")
        found[name] = value
    return found


def _check_time(text: str, tolerance: float, now: float) -> None:
    if not text.isdigit() or len(text) > 12:
        raise WebhookVerificationError("malformed_header", "webhook-timestamp is not a number of seconds")
    age = now - int(text)
    if age > tolerance:
        said = f"the delivery was signed {age:.0f} s ago, and {tolerance:g} s are allowed; is it a replay?"
        raise WebhookVerificationError("too_old", said)
    if age < -tolerance:
        said = f"the delivery was signed {-age:.0f} s ahead of this machine's clock; compare the clocks"
        raise WebhookVerificationError("too_new", said)


def _signatures(text: str) -> list[tuple[str, bytes]]:
    """Version and signature; versions that are not known are for others."""
    found = []
    for part in text.split(" "):
        version, comma, encoded = part.partition(",")
        if not (version and comma):
            raise WebhookVerificationError("malformed_header", "webhook-signature is not VERSION,SIGNATURE …")
        if version in {"v1", "v1a"}:
            try:
                found.append((version, base64.b64decode(encoded, validate=True)))
            except binascii.Error:
                text = "webhook-signature has a signature that is not base64"
                raise WebhookVerificationError("malformed_header", text) from None
    return found


def _check_of(number: int, key: str) -> tuple[str, _Check]:
    for prefix in (_SECRET, _PUBLIC):
        if isinstance(key, str) and key.startswith(prefix):
            encoded = key.removeprefix(prefix)
            try:
                raw = base64.b64decode(encoded + "=" * (-len(encoded) % 4), validate=True)
            except (binascii.Error, ValueError):
                raise ValueError(f"key {number} is not base64 after {prefix}") from None
            return ("v1", _symmetric(number, raw)) if prefix == _SECRET else ("v1a", _asymmetric(number, raw))
    raise ValueError(f"key {number} begins with neither {_SECRET} nor {_PUBLIC}")


def _symmetric(number: int, secret: bytes) -> _Check:
    # The standard says 24 to 64 bytes; fewer could be guessed.
    if not 24 <= len(secret) <= 64:
        raise ValueError(f"key {number} is a secret of {len(secret)} bytes, and 24 to 64 are allowed")

    def check(signature: bytes, signed: bytes) -> bool:
        return hmac.compare_digest(hmac.new(secret, signed, hashlib.sha256).digest(), signature)

    return check


def _asymmetric(number: int, public: bytes) -> _Check:
    try:
        from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 (an optional dependency)
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415
    except ImportError:
        text = f"key {number} is an Ed25519 key, which needs `cryptography`: install the extra pilot-client[webhooks]"
        raise ImportError(text) from None
    if len(public) != _ED25519_BYTES:
        raise ValueError(f"key {number} is a public key of {len(public)} bytes, and Ed25519 has {_ED25519_BYTES}")
    verifier = Ed25519PublicKey.from_public_bytes(public)

    def check(signature: bytes, signed: bytes) -> bool:
        try:
            verifier.verify(signature, signed)
        except InvalidSignature:
            return False
        return True

    return check


def _event(content: bytes) -> CloudEvent:
    try:
        event = json.loads(content)
    except ValueError:
        event = None
    required = ("specversion", "id", "source", "type")
    if not isinstance(event, dict) or not all(isinstance(event.get(name), str) for name in required):
        text = "the delivery is signed, but its body is not a CloudEvent in JSON"
        raise WebhookVerificationError("malformed_body", text)
    return cast("CloudEvent", event)
