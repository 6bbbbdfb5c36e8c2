"""Where the token comes from, where it may be sent, and that it is shown nowhere."""

import asyncio
import copy
import io
import logging
import os
import pickle
import tempfile
import traceback
import unittest
import unittest.mock
from pathlib import Path

import httpx
from scripted import URL, both, new_token, ok, problem

from pilot_client import AddressError, AsyncPilot, Pilot, PilotError, TokenError
from pilot_client.token import Token

SESSION = {"actor_id": "ana", "role": "initiator"}


def authorization(run):
    return [request.headers.get("authorization") for request in run.requests]


class Sources(unittest.TestCase):
    def test_a_function_is_asked_before_each_request(self):
        tokens = [new_token() for _ in range(4)]
        given = iter(tokens)
        script = lambda _: [httpx.Response(503), ok(SESSION)]  # noqa: E731
        runs = both(script, lambda p: p.get_session(), token=lambda: next(given))
        sent = [value for run in runs for value in authorization(run)]
        self.assertEqual(sent, [f"Bearer {token}" for token in tokens])

    def test_an_asynchronous_function_is_awaited(self):
        token = new_token()

        async def source():
            return token

        async def main():
            transport = httpx.MockTransport(lambda request: ok({"sent": request.headers["authorization"]}))
            async with AsyncPilot(URL, token=source, transport=transport) as pilot:
                return await pilot.get_session()

        self.assertEqual(asyncio.run(main()), {"sent": f"Bearer {token}"})

    def test_a_file_is_read_without_its_line_end_and_again_after_a_rotation(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "token")
            for token in (new_token(), new_token()):
                path.write_text(f"{token}\n")
                for run in both(lambda _: [ok(SESSION)], lambda p: p.get_session(), token=None, token_file=path):
                    self.assertEqual(authorization(run), [f"Bearer {token}"])
            path.unlink()
            for run in both(lambda _: [], lambda p: p.get_session(), token=None, token_file=path):
                self.assertIsInstance(run.error, TokenError)
                self.assertIn("No such file", str(run.error))

    def test_the_environment_is_the_default(self):
        token = new_token()
        with unittest.mock.patch.dict(os.environ, {"PILOT_TOKEN": token}):
            for run in both(lambda _: [ok(SESSION)], lambda p: p.get_session(), token=None):
                self.assertEqual(authorization(run), [f"Bearer {token}"])
        with unittest.mock.patch.dict(os.environ, clear=True):
            for run in both(lambda _: [], lambda p: p.get_session(), token=None):
                self.assertIn("set PILOT_TOKEN", str(run.error))

    def test_a_text_is_refused_and_so_are_two_sources(self):
        token = new_token()
        for wrong in ({"token": token}, {"token": new_token, "token_file": "x"}):
            for run in both(lambda _: [], lambda p: p.get_session(), **wrong):
                self.assertIsInstance(run.error, TokenError)
                self.assertNotIn(token, str(run.error))

    def test_a_token_that_cannot_be_one_is_refused_without_showing_it(self):
        for wrong in (
            new_token() + "\nX: y",
            "short",
            "ä" * 40,
            "x" * 257,
            new_token() + " ",
            None,
            b"x" * 40,
            "\ud800" * 40,
        ):
            for run in both(lambda _: [], lambda p: p.get_session(), token=lambda wrong=wrong: wrong):
                self.assertIsInstance(run.error, TokenError)
                self.assertTrue(wrong is None or str(wrong) not in "".join(traceback.format_exception(run.error)))
                self.assertEqual(run.requests, [])

    def test_with_a_certificate_there_may_be_no_token_but_a_wrong_one_is_still_refused(self):
        pair = {"client_cert": ("cert.pem", "key.pem")}
        with unittest.mock.patch.dict(os.environ, clear=True):
            for run in both(lambda _: [ok(SESSION)], lambda p: p.get_session(), token=None, **pair):
                self.assertEqual(authorization(run), [None])
        for run in both(lambda _: [], lambda p: p.get_session(), token=lambda: "short", **pair):
            self.assertIsInstance(run.error, TokenError)

    def test_no_token_is_sent_to_what_anyone_may_ask(self):
        for run in both(lambda _: [ok({"status": "ok"})], lambda p: p.get_health(), token=None):
            self.assertEqual(authorization(run), [None])


class Hidden(unittest.TestCase):
    def test_the_token_is_in_no_text_of_a_client_or_an_error_nor_in_the_variables_of_a_traceback(self):
        token = new_token()
        seen = io.StringIO()
        handler = logging.StreamHandler(seen)
        root = logging.getLogger()
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            for script in (
                lambda _: [problem(401, "credential_required")],
                # Something in between that repeats what it got.
                lambda _: (
                    lambda request: problem(403, "role_forbidden", f"you sent {request.headers['authorization']}")
                ),
                lambda _: lambda request: httpx.ConnectError("no", request=request),
                lambda _: lambda request: httpx.Response(200, text=str(request.headers["authorization"])),
            ):
                for run in both(script, lambda p: p.get_session(), token=lambda: token):
                    self.assertIsInstance(run.error, PilotError)
                    told = traceback.TracebackException.from_exception(run.error, capture_locals=True)
                    texts = [str(run.error), repr(run.error), repr(vars(run.error)), *told.format()]
                    self.assertNotIn(token, "\n".join(texts))
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
        self.assertIn("HTTP Request", seen.getvalue())
        self.assertNotIn(token, seen.getvalue())

    def test_a_client_shows_its_service_only(self):
        token = new_token()
        with Pilot(URL, token=lambda: token) as pilot:
            self.assertEqual(repr(pilot), f"Pilot('{URL}')")
            self.assertEqual(str(pilot), f"Pilot('{URL}')")

    def test_a_token_is_neither_printed_nor_stored(self):
        clear = new_token()
        token = Token(clear)
        self.assertEqual((repr(token), f"{token}"), ("Token(hidden)", "Token(hidden)"))
        for store in (pickle.dumps, copy.copy, copy.deepcopy):
            self.assertRaises(TypeError, store, token)


class Addresses(unittest.TestCase):
    def test_plain_http_is_for_this_machine_only(self):
        for fine in ("http://127.0.0.1:7450", "http://localhost", "http://[::1]:7450/", "https://pilot.example.org"):
            Pilot(fine, transport=httpx.MockTransport(lambda _: ok({}))).close()
        for kind in (Pilot, AsyncPilot):
            for far in (
                "http://pilot.example.org",
                "http://10.0.0.1:7450",
                "http://localhost.example.org",
                "http://0.0.0.0",
            ):
                with self.assertRaisesRegex(AddressError, "insecure_http=True"):
                    kind(far)
        Pilot("http://10.0.0.1", insecure_http=True).close()

    def test_an_address_has_no_password_and_no_path(self):
        for wrong in (
            "pilot.example.org",
            "ftp://x",
            "https://",
            "https://a:b@x",
            "https://x/v1",
            "https://x?q=1",
            "http://[",
            "https://x#f",
        ):
            with self.assertRaises(AddressError) as caught:
                Pilot(wrong)
            self.assertNotIn("a:b", str(caught.exception))

    def test_certificates_are_checked_and_so_are_names(self):
        with Pilot("https://pilot.example.org") as pilot:
            context = pilot._http._transport._pool._ssl_context
            self.assertTrue(context.check_hostname)
            self.assertEqual(context.verify_mode.name, "CERT_REQUIRED")


if __name__ == "__main__":
    unittest.main()
