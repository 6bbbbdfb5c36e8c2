"""Webhooks: what is believed, and why the rest is not."""

import base64
import json
import secrets
import sys
import unittest
import unittest.mock
from datetime import UTC, datetime

import scripted  # noqa: F401 (puts the package on the path)
import standardwebhooks
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from pilot_client import WebhookVerificationError, verify_webhook

NOW = 1_790_000_000
EVENT = {"specversion": "1.0", "id": "7", "source": "/", "type": "item.transition", "data": {"index": 7}, "more": True}
BODY = json.dumps(EVENT).encode()


def new_secret(length=32):
    return "whsec_" + base64.b64encode(secrets.token_bytes(length)).decode()


def signed(secret, body=BODY, at=NOW, message="msg_1"):
    """By the reference implementation."""
    hook = standardwebhooks.Webhook(secret)
    return hook.sign(message, datetime.fromtimestamp(at, UTC), body.decode())


def headers(*signatures, at=NOW, message="msg_1"):
    return {"webhook-id": message, "webhook-timestamp": str(at), "webhook-signature": " ".join(signatures)}


def new_pair():
    private = Ed25519PrivateKey.generate()
    return private, "whpk_" + base64.b64encode(private.public_key().public_bytes_raw()).decode()


def signed_by(private, body=BODY, at=NOW, message="msg_1"):
    return "v1a," + base64.b64encode(private.sign(f"{message}.{at}.".encode() + body)).decode()


class Believed(unittest.TestCase):
    def test_what_the_reference_implementation_signed(self):
        secret = new_secret()
        for body in (BODY, BODY.decode()):
            event = verify_webhook(headers(signed(secret)), body, secret, now=NOW)
            self.assertEqual(event, EVENT)

    def test_a_secret_without_padding_and_headers_in_any_case(self):
        secret = new_secret(25)
        given = {name.title(): value for name, value in headers(signed(secret)).items()}
        self.assertEqual(verify_webhook(given, BODY, secret.rstrip("="), now=NOW)["id"], "7")

    def test_the_vector_of_the_standard(self):
        # From the standard's own text: its example of a secret, a message and their signature.
        secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        body = b'{"test": 2432232314}'
        given = headers(
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", at=1614265330, message="msg_p5jXN8AQM9LWM0D4loKWxJek"
        )
        with self.assertRaises(WebhookVerificationError) as caught:
            verify_webhook(given, body, secret, now=1614265330)
        # The signature holds; only the body is not a CloudEvent.
        self.assertEqual(caught.exception.reason, "malformed_body")

    def test_an_ed25519_signature(self):
        private, public = new_pair()
        self.assertEqual(verify_webhook(headers(signed_by(private)), BODY, public, now=NOW), EVENT)

    def test_while_keys_are_rotated_any_of_them_and_any_signature_will_do(self):
        old, new = new_secret(), new_secret()
        private, public = new_pair()
        for given in (
            headers(signed(old)),
            headers(signed(new)),
            headers("v2,x", signed_by(private), signed(new_secret())),
        ):
            self.assertEqual(verify_webhook(given, BODY, [old, public, new], now=NOW), EVENT)

    def test_a_clock_may_be_off_by_as_much_as_is_tolerated(self):
        secret = new_secret()
        for at in (NOW - 300, NOW + 300):
            verify_webhook(headers(signed(secret, at=at), at=at), BODY, secret, now=NOW)
        verify_webhook(headers(signed(secret, at=5), at=5), BODY, secret, tolerance=NOW, now=NOW)


class NotBelieved(unittest.TestCase):
    def refused(self, reason, given, body=BODY, keys=None):
        with self.assertRaises(WebhookVerificationError) as caught:
            verify_webhook(given, body, keys or self.secret, now=NOW)
        self.assertEqual(caught.exception.reason, reason, caught.exception)

    def setUp(self):
        self.secret = new_secret()
        self.good = headers(signed(self.secret))

    def test_another_key(self):
        self.refused("no_matching_signature", self.good, keys=new_secret())
        private, _ = new_pair()
        self.refused("no_matching_signature", headers(signed_by(private)), keys=new_pair()[1])

    def test_another_body_id_or_time(self):
        for changed in (BODY + b" ", BODY.replace(b"7", b"8", 1), b""):
            self.refused("no_matching_signature", self.good, changed)
        for name, value in (("webhook-id", "msg_2"), ("webhook-timestamp", str(NOW + 1))):
            self.refused("no_matching_signature", {**self.good, name: value})

    def test_every_changed_bit_of_a_signature(self):
        raw = base64.b64decode(self.good["webhook-signature"].removeprefix("v1,"))
        for bit in range(len(raw) * 8):
            changed = bytearray(raw)
            changed[bit // 8] ^= 1 << bit % 8
            self.refused("no_matching_signature", headers("v1," + base64.b64encode(changed).decode()))
        for length in (0, 16, 31, 33):
            self.refused(
                "no_matching_signature", headers("v1," + base64.b64encode(raw[:length].ljust(length)).decode())
            )

    def test_a_signature_of_the_other_kind(self):
        private, public = new_pair()
        swapped = signed_by(private).replace("v1a,", "v1,")
        self.refused("no_matching_signature", headers(swapped), keys=[public, self.secret])
        # A public key must never serve as a shared secret.
        as_secret = "whsec_" + public.removeprefix("whpk_")
        self.refused("no_matching_signature", headers(signed(as_secret)), keys=public)

    def test_what_is_too_old_or_too_new(self):
        for at, reason in ((NOW - 301, "too_old"), (NOW + 301, "too_new")):
            self.refused(reason, headers(signed(self.secret, at=at), at=at))

    def test_missing_and_malformed_headers(self):
        for name in self.good:
            self.refused("missing_header", {key: value for key, value in self.good.items() if key != name})
            self.refused("missing_header", {**self.good, name: ""})
        for wrong in ("-5", "1.5", "1e9", " 5", "٣", "9" * 13, "nan", "0x1"):
            self.refused("malformed_header", {**self.good, "webhook-timestamp": wrong})
        for wrong in ("v1", ",x", "v1,%%%", "v1,a", "v1,ä", "x" * 5000, "v1,AAAA\n"):
            self.refused("malformed_header", {**self.good, "webhook-signature": wrong})

    def test_a_signed_body_that_is_not_a_cloud_event(self):
        for body in (b"[]", b"{", b"{}", json.dumps({**EVENT, "id": 7}).encode()):
            self.refused("malformed_body", headers(signed(self.secret, body)), body)


class Keys(unittest.TestCase):
    def test_a_key_that_is_not_a_key_is_told_by_its_number_and_not_shown(self):
        fine = new_secret()
        for wrong in ("whsec_%%%", "secret", "whsec_AAAA", "whpk_" + "A" * 40, new_secret(65), "whsec_ä"):
            with self.assertRaisesRegex(ValueError, "key 2") as caught:
                verify_webhook(headers("v1,AAAA"), BODY, [fine, wrong], now=NOW)
            self.assertNotIn(wrong, str(caught.exception))

    def test_without_a_key_nothing_is_believed(self):
        with self.assertRaisesRegex(ValueError, "no key"):
            verify_webhook(headers("v1,AAAA"), BODY, [], now=NOW)

    def test_without_the_library_for_ed25519_the_error_says_what_to_install(self):
        missing = {name: None for name in sys.modules if name.split(".")[0] == "cryptography"}
        with (
            unittest.mock.patch.dict(sys.modules, missing),
            self.assertRaisesRegex(ImportError, r"pilot-client\[webhooks\]"),
        ):
            verify_webhook(headers("v1a,AAAA"), BODY, new_pair()[1], now=NOW)


if __name__ == "__main__":
    unittest.main()
