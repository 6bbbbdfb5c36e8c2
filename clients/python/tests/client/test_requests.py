"""Requests, their repetition, and what errors say."""

import io
import json
import re
import unittest
import unittest.mock
from datetime import datetime

import httpx
from scripted import URL, Pieces, both, ok, problem

from pilot_client import (
    Conflict,
    DigestRequired,
    Forbidden,
    Invalid,
    NotFound,
    Pilot,
    PilotError,
    RateLimited,
    Unauthorized,
    Unavailable,
)
from pilot_client.exchange import ANSWER_BYTES_MAX

SESSION = {"actor_id": "ana", "role": "initiator"}
ITEM = "01890a5d-ac96-774b-bcce-b302099a8057"
LOST = httpx.ConnectError("refused")


def create(pilot):
    return pilot.create_item(workflow="w", title="t")


class Repetition(unittest.TestCase):
    def check(self, script, call, tries, pauses):
        for run in both(lambda _: script, call):
            with self.subTest(run.who):
                self.assertEqual((len(run.requests), run.clock.pauses), (tries, pauses))
        return run

    def test_a_read_is_repeated_after_a_lost_connection_and_gateways_that_cannot(self):
        script = [LOST, httpx.Response(502), httpx.ReadTimeout("late"), httpx.Response(504), ok(SESSION)]
        run = self.check(script, lambda p: p.get_session(), 5, [0.5, 1, 2, 4])
        self.assertEqual(run.result, SESSION)

    def test_repetition_ends_after_five_tries(self):
        run = self.check([LOST] * 9, lambda p: p.get_session(), 5, [0.5, 1, 2, 4])
        self.assertIsInstance(run.error, Unavailable)

    def test_a_refusal_is_not_repeated(self):
        for status, code in [(403, "role_forbidden"), (409, "state_conflict"), (500, "internal")]:
            self.check([problem(status, code)], lambda p: p.get_session(), 1, [])

    def test_the_service_says_how_long_to_wait(self):
        script = [
            problem(429, "rate_limited", retry_after="7"),
            problem(503, "unavailable", retry_after="3"),
            ok(SESSION),
        ]
        self.check(script, lambda p: p.get_session(), 3, [7, 3])

    def test_a_rate_limit_without_a_time_and_one_with_a_long_time_are_left_to_the_caller(self):
        self.check([problem(429, "rate_limited")], lambda p: p.get_session(), 1, [])
        run = self.check([problem(429, "rate_limited", retry_after="3600")], lambda p: p.get_session(), 1, [])
        self.assertIsInstance(run.error, RateLimited)
        self.assertEqual(run.error.retry_after, 3600)
        self.assertIn("wait 3600 s", str(run.error))

    def test_a_write_is_repeated_with_the_key_it_had_and_the_next_one_has_another(self):
        keys = set()
        for run in both(lambda _: [LOST, httpx.Response(503), ok({"id": ITEM}, 201)], create):
            with self.subTest(run.who):
                self.assertEqual(len(set(run.keys())), 1)
                self.assertRegex(run.keys()[0], r"^[!-~]{1,255}$")
                self.assertEqual(len({request.content for request in run.requests}), 1)
                keys.update(run.keys())
        self.assertEqual(len(keys), 2)

    def test_a_write_whose_answer_is_lost_says_how_to_repeat_it(self):
        for run in both(lambda _: [LOST] * 5, lambda p: p.create_item(workflow="w", title="t", idempotency_key="mine")):
            self.assertIsInstance(run.error, Unavailable)
            self.assertEqual((run.error.idempotency_key, set(run.keys())), ("mine", {"mine"}))
            self.assertIn("not known whether this was recorded", str(run.error))
            self.assertIn("idempotency_key='mine'", str(run.error))

    def test_a_key_that_cannot_be_sent_is_refused_here(self):
        for wrong in ("", "a b", "x\r\ny: z", "x" * 256, "ä"):
            for run in both(
                lambda _: [], lambda p, wrong=wrong: p.create_item(workflow="w", title="t", idempotency_key=wrong)
            ):
                self.assertIsInstance(run.error, ValueError)
                self.assertEqual(run.requests, [])

    def test_an_edit_has_no_key_and_is_never_repeated(self):
        run = self.check([LOST], lambda p: p.edit_item(ITEM, title="t"), 1, [])
        self.assertIn("load the item again", str(run.error))


class Wire(unittest.TestCase):
    def sent(self, call, answer=None):
        runs = both(lambda _: [answer or ok({})], call)
        for run in runs:
            self.assertIsNone(run.error, run.error)
        return runs[0].requests[0]

    def test_a_version_goes_out_as_an_entity_tag(self):
        request = self.sent(lambda p: p.edit_item(ITEM, title="t", if_match=7))
        self.assertEqual(request.headers["if-match"], '"7"')
        self.assertEqual(json.loads(request.content), {"title": "t"})

    def test_what_was_not_given_is_not_sent(self):
        request = self.sent(lambda p: p.list_items(state="submitted", limit=3))
        self.assertEqual(request.url.raw_path, b"/v1/items?state=submitted&limit=3")
        request = self.sent(lambda p: p.take_action(ITEM, action="submit"))
        self.assertEqual(json.loads(request.content), {"action": "submit"})

    def test_a_member_that_the_api_does_not_have_cannot_be_sent(self):
        for run in both(lambda _: [], lambda p: p.take_action(ITEM, action="approve", actor_id="ana")):
            self.assertIsInstance(run.error, TypeError)
            self.assertEqual(run.requests, [])

    def test_a_part_of_a_path_cannot_lead_elsewhere(self):
        request = self.sent(lambda p: p.get_item("../actors?x=1"))
        self.assertEqual(request.url.raw_path, b"/v1/items/..%2Factors%3Fx%3D1")
        for wrong in ("", ".", "..", None):
            for run in both(lambda _: [], lambda p, wrong=wrong: p.get_item(wrong)):
                self.assertIsInstance(run.error, ValueError | TypeError)

    def test_what_json_has_no_form_for_is_refused_before_it_is_sent(self):
        for wrong in (float("nan"), datetime(2026, 1, 1), {1, 2}):
            for run in both(lambda _: [], lambda p, wrong=wrong: p.propose("w", "t", {"x": wrong})):
                self.assertIsInstance(run.error, ValueError)

    def test_an_answer_keeps_members_that_this_client_does_not_know(self):
        for run in both(lambda _: [ok({**SESSION, "kind": "human"})], lambda p: p.get_session()):
            self.assertEqual(run.result["kind"], "human")

    def test_a_redirection_is_not_followed(self):
        for run in both(lambda _: [httpx.Response(307, headers={"location": "https://evil.test/"})], create):
            self.assertEqual(len(run.requests), 1)
            self.assertIsInstance(run.error, PilotError)
            self.assertIn("redirections are not followed", str(run.error))

    def test_an_answer_that_is_too_large_is_not_read(self):
        mebibyte = b"x" * 1024 * 1024
        answer = lambda _: httpx.Response(200, stream=Pieces([mebibyte] * (ANSWER_BYTES_MAX // len(mebibyte) + 1)))  # noqa: E731
        for run in both(lambda _: answer, lambda p: p.get_evidence(item=ITEM)):
            self.assertIn("larger than", str(run.error))
            self.assertEqual(len(run.requests), 1)

    def test_a_bundle_of_any_size_goes_to_a_file_and_a_cut_one_is_an_error(self):
        mebibyte = b"x" * 1024 * 1024
        for pieces, length, kind in [
            ([mebibyte] * 70, 70 * len(mebibyte), type(None)),
            ([mebibyte, httpx.RemoteProtocolError("cut")], len(mebibyte), Unavailable),
        ]:
            files = []

            def save(pilot, files=files):
                files.append(io.BytesIO())
                return pilot.save_evidence(files[-1], item=ITEM)

            for run in both(lambda _, pieces=pieces: [httpx.Response(200, stream=Pieces(pieces))], save):
                self.assertIsInstance(run.error, kind)
                self.assertEqual(files[-1].tell(), length)

    def test_an_answer_that_is_not_json_is_an_error_of_ours(self):
        for run in both(lambda _: [httpx.Response(200, text="<html>")], lambda p: p.get_session()):
            self.assertIs(type(run.error), PilotError)
            self.assertIn("not JSON", str(run.error))

    def test_time_limits_are_set_on_every_request(self):
        request = self.sent(lambda p: p.get_session(), ok(SESSION))
        limits = request.extensions["timeout"]
        self.assertEqual(set(limits), {"connect", "read", "write", "pool"})
        self.assertTrue(all(0 < seconds <= 30 for seconds in limits.values()), limits)

    def test_other_kinds_of_answers_are_text_and_bytes(self):
        note = httpx.Response(200, text="log\n5\n")
        for run in both(lambda _: [note], lambda p: p.get_checkpoint()):
            self.assertEqual(run.result, "log\n5\n")
        for run in both(lambda _: [httpx.Response(200, content=b"\x00\xff")], lambda p: p.get_tile("0/000.p/5")):
            self.assertEqual((run.result, run.requests[0].url.path), (b"\x00\xff", "/v1/log/tile/0/000.p/5"))


class Errors(unittest.TestCase):
    def test_statuses_become_errors_by_their_meaning(self):
        for status, kind in {
            400: Invalid,
            401: Unauthorized,
            403: Forbidden,
            404: NotFound,
            409: Conflict,
            412: Conflict,
            413: Invalid,
            415: Invalid,
            422: Invalid,
            429: RateLimited,
            500: Unavailable,
            418: PilotError,
        }.items():
            for run in both(
                lambda _, status=status: [problem(status, "some_code")], lambda p: p.edit_item(ITEM, title="t")
            ):
                self.assertIs(type(run.error), kind, status)
                self.assertEqual((run.error.status, run.error.code, run.error.request_id), (status, "some_code", "r-1"))

    def test_the_text_says_what_where_and_how_to_mend(self):
        fault = {"pointer": "/payload/risk", "detail": "is required"}
        script = lambda _: [problem(422, "invalid_request", "See `errors`.", [fault])]  # noqa: E731
        for run in both(script, create):
            self.assertEqual(run.error.faults, [fault])
            self.assertEqual(run.error.detail, "See `errors`.")
            self.assertEqual(
                str(run.error),
                "create_item: POST /v1/items was answered with 422, invalid_request: See `errors`.\n"
                "  /payload/risk: is required\n  (request r-1)\n  correct the request",
            )

    def test_an_answer_of_something_else_in_between_is_not_taken_for_a_problem(self):
        for body in ("<html>busy</html>", '{"code":"x"}', "[]"):
            for run in both(lambda _, body=body: [httpx.Response(403, text=body)], lambda p: p.get_session()):
                self.assertIsInstance(run.error, Forbidden)
                self.assertIsNone(run.error.problem)
                self.assertNotIn("busy", str(run.error))


class Lists(unittest.TestCase):
    def test_pages_follow_one_another_until_there_are_no_more(self):
        script = [ok({"items": [{"id": "a"}, {"id": "b"}], "next": "c1"}), ok({"items": [], "next": "c2"})]
        script.append(ok({"items": [{"id": "c"}], "next": None}))
        for run in both(lambda _: script, lambda p: p.items(state="draft")):
            self.assertEqual([one["id"] for one in run.result], ["a", "b", "c"])
            cursors = [request.url.params.get("cursor") for request in run.requests]
            self.assertEqual(cursors, [None, "c1", "c2"])
            self.assertEqual({request.url.params["state"] for request in run.requests}, {"draft"})

    def test_a_cursor_that_leads_to_itself_is_an_error(self):
        for run in both(lambda _: lambda _: ok({"history": [{}], "next": "same"}), lambda p: p.iter_history(ITEM)):
            self.assertEqual(len(run.requests), 2)
            self.assertIn("leads to itself", str(run.error))


DEFINITION = {
    "initial": "draft",
    "states": [],
    "transitions": [
        {"action": "approve", "from": ["submitted"], "roles": ["approver"], "content_digest_required": True},
        {"action": "reject", "from": ["submitted"], "roles": ["approver"]},
    ],
}
SHOWN = {"id": ITEM, "state": "submitted", "workflow": {"name": "w", "digest": "sha256:d", "version": 1}}


class Facade(unittest.TestCase):
    def answer(self, request):
        path = request.url.path
        if request.method == "POST":
            return ok({"id": ITEM, "to": "there"}, 201)
        return ok(DEFINITION if path.startswith("/v1/workflows/") else SHOWN)

    def test_a_decision_without_a_digest_is_refused_here(self):
        for run in both(lambda _: self.answer, lambda p: p.act(ITEM, "approve")):
            self.assertIsInstance(run.error, DigestRequired)
            self.assertNotIn("POST", [request.method for request in run.requests])

    def test_a_decision_sends_the_digest_of_what_was_shown_and_no_other(self):
        for run in both(lambda _: self.answer, lambda p: p.act(SHOWN, "approve", digest="sha256:seen", comment="fine")):
            (request,) = run.requests
            expected = {"action": "approve", "content_digest": "sha256:seen", "comment": "fine"}
            self.assertEqual(json.loads(request.content), expected)

    def test_what_is_not_a_decision_needs_no_digest(self):
        for run in both(lambda _: self.answer, lambda p: p.act(SHOWN, "reject", comment="no")):
            self.assertIsNone(run.error)

    def test_a_proposal_is_created_and_submitted_under_one_key(self):
        for run in both(lambda _: self.answer, lambda p: p.propose("w", "t", {"a": 1}, key="change-17")):
            self.assertEqual(run.keys(), ["change-17", "change-17", None])
            paths = [request.url.path for request in run.requests]
            self.assertEqual(paths, ["/v1/items", f"/v1/items/{ITEM}/transitions", f"/v1/items/{ITEM}"])

    def test_a_proposal_that_cannot_be_submitted_says_which_draft_is_left(self):
        script = lambda _: [ok({"id": ITEM}, 201), problem(422, "invalid_request")]  # noqa: E731
        for run in both(script, lambda p: p.propose("w", "t", {})):
            self.assertIsInstance(run.error, Invalid)
            self.assertEqual(run.error.__notes__, [f"the item {ITEM} was created and is still a draft"])

    def test_a_draft_can_be_left_unsubmitted(self):
        for run in both(lambda _: self.answer, lambda p: p.propose("w", "t", {}, submit=False)):
            self.assertEqual(len(run.requests), 1)


class Environment(unittest.TestCase):
    def test_no_proxy_of_the_environment_gets_a_request(self):
        with (
            unittest.mock.patch.dict(
                "os.environ", {"HTTPS_PROXY": "http://proxy.test", "ALL_PROXY": "http://proxy.test"}
            ),
            Pilot(URL) as pilot,
        ):
            self.assertFalse(pilot._http.trust_env)
            self.assertEqual(re.findall("proxy", repr(pilot._http._mounts)), [])


if __name__ == "__main__":
    unittest.main()
