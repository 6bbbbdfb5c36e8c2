"""Waiting: what counts as reached, and that the feed, or looking now and then, brings it."""

import unittest

import httpx
from scripted import both, entry, feed, ok, problem

from pilot_client import Forbidden, NoLongerPossible, NotYet, Unavailable
from pilot_client.waiting import judge

ITEM = "01890a5d-ac96-774b-bcce-b302099a8057"


def state(name, kind, editable=False):
    return {"name": name, "kind": kind, "editable": editable}


def rule(action, origin, to=None, decision=False):
    found = {"action": action, "from": origin.split(), "roles": [], "content_digest_required": decision}
    return {**found, "to": to} if to else found


DEFINITION = {
    "name": "w",
    "initial": "draft",
    "states": [
        state("draft", "open", editable=True),
        state("submitted", "open"),
        state("approved", "open"),
        state("cleared", "open"),
        state("executing", "effect"),
        state("succeeded", "open"),
        state("closed", "terminal"),
        state("rejected", "terminal"),
    ],
    "transitions": [
        rule("submit", "draft", "submitted"),
        rule("approve", "submitted", "approved", decision=True),
        rule("reject", "submitted", "rejected"),
        rule("clear", "approved", "cleared", decision=True),
        rule("start", "cleared", "executing", decision=True),
        rule("heartbeat", "executing"),
        rule("succeed", "executing", "succeeded"),
        rule("accept", "succeeded", "closed"),
    ],
}


class Judging(unittest.TestCase):
    def standings(self, target, has_started):
        found = {}
        for one in DEFINITION["states"]:
            verdict = judge(DEFINITION, target, one["name"], held=False, has_started=has_started)
            found.setdefault(verdict, []).append(one["name"])
        return {verdict: " ".join(names) for verdict, names in found.items()}

    def test_decided_and_cleared_follow_from_the_decisions_that_are_left(self):
        self.assertEqual(
            self.standings("decided", False),
            {
                "not_yet": "draft submitted",
                "reached": "approved cleared executing",
                "never": "succeeded closed rejected",
            },
        )
        self.assertEqual(
            self.standings("cleared", False),
            {
                "not_yet": "draft submitted approved",
                "reached": "cleared executing",
                "never": "succeeded closed rejected",
            },
        )

    def test_what_has_started_cannot_be_undone_and_closed_is_an_end_after_it(self):
        everything = " ".join(one["name"] for one in DEFINITION["states"])
        for target in ("decided", "cleared", "started"):
            self.assertEqual(self.standings(target, True), {"reached": everything})
        self.assertEqual(self.standings("closed", True)["reached"], "closed rejected")
        self.assertNotIn("reached", self.standings("started", False))

    def test_a_hold_puts_off_what_can_be_held_and_an_unknown_state_leads_nowhere(self):
        self.assertEqual(judge(DEFINITION, "cleared", "cleared", held=True, has_started=False), "not_yet")
        self.assertEqual(judge(DEFINITION, "started", "executing", held=True, has_started=True), "reached")
        self.assertEqual(judge(DEFINITION, "cleared", "limbo", held=False, has_started=False), "never")


class Service:
    """An item that has another state at each look, and feeds from a list."""

    def __init__(self, states, feeds, clock, look_seconds=0.0):
        self.states, self.feeds, self.clock, self.look_seconds = iter(states), iter(feeds), clock, look_seconds
        self.now = None

    def __call__(self, request):
        path = request.url.path
        if path == "/v1/log/checkpoint":
            return httpx.Response(200, text="log\n10\nroot\n")
        if path == "/v1/events":
            return next(self.feeds)
        if path.startswith("/v1/workflows/"):
            return ok(DEFINITION)
        if path.endswith("/transitions"):
            return ok({"transitions": [], "next": None})
        self.clock.now += self.look_seconds
        self.now = next(self.states, self.now)
        if not isinstance(self.now, str):
            return self.now
        workflow = {"name": "w", "version": 1, "digest": "sha256:d"}
        return ok({"id": ITEM, "state": self.now, "held": False, "workflow": workflow, "waits_for": ["approver"]})


def wait(states, feeds, for_="cleared", timeout=600.0, **options):
    script = lambda clock: Service(states, feeds, clock, **options)  # noqa: E731
    return both(script, lambda p: p.wait(ITEM, for_, timeout=timeout))


ABOUT = entry(11, item=ITEM)
OTHER = entry(10, item="another")


class Waiting(unittest.TestCase):
    def looks(self, run):
        return sum(request.url.path == f"/v1/items/{ITEM}" for request in run.requests)

    def test_what_is_reached_already_needs_no_feed(self):
        for run in wait(["cleared"], []):
            self.assertEqual(run.result["state"], "cleared")
            self.assertNotIn("/v1/events", [request.url.path for request in run.requests])

    def test_the_item_is_looked_at_when_the_feed_opens_and_when_it_is_mentioned_and_not_otherwise(self):
        sent = []
        pieces = [OTHER, entry(11, item="another"), entry(12), entry(13, item=ITEM)]
        pieces += [lambda: sent.append("before the second mention"), entry(14, item=ITEM)]
        for run in wait(["submitted", "submitted", "approved", "cleared"], [feed(*pieces)]):
            self.assertIsNone(run.error)
            self.assertEqual(self.looks(run), 4)
            (opened,) = [request for request in run.requests if request.url.path == "/v1/events"]
            self.assertEqual(opened.url.params["after"], "9")
        self.assertEqual(len(sent), 2)

    def test_the_time_for_a_read_shrinks_with_the_time_that_is_left(self):
        def script(clock):
            beats = [piece for _ in range(9) for piece in (b": still here\n\n", lambda: clock.sleep(15))]
            return Service(["submitted"], [feed(*beats), feed(*beats), feed(*beats), feed(*beats)], clock)

        for run in both(script, lambda p: p.wait(ITEM, "cleared", timeout=50)):
            self.assertIsInstance(run.error, NotYet)
            limits = [r.extensions["timeout"]["read"] for r in run.requests if r.url.path == "/v1/events"]
            self.assertEqual(limits[0], 45)
            self.assertTrue(len(limits) > 1 and limits[1] <= 35, limits)

    def test_a_cut_feed_is_opened_again_after_the_last_entry(self):
        feeds = [feed(OTHER, httpx.ReadError("cut")), httpx.ConnectError("gone"), feed(ABOUT)]
        for run in wait(["submitted"] * 4 + ["cleared"], feeds):
            self.assertIsNone(run.error, run.error)
            resumed = [r.headers.get("last-event-id") for r in run.requests if r.url.path == "/v1/events"]
            self.assertEqual(resumed, [None, "10", "10"])

    def test_where_there_is_no_feed_it_looks_now_and_then(self):
        for answer in (problem(429, "rate_limited", retry_after="15"), problem(503, "unavailable"), ok({"events": []})):
            for run in wait(["submitted"] * 6 + ["cleared"], [answer] * 20):
                self.assertEqual(run.result["state"], "cleared")
                self.assertEqual(self.looks(run), 7)
                self.assertTrue(all(pause <= 5 for pause in run.clock.pauses))

    def test_what_can_no_longer_be_reached_is_said_at_once(self):
        for run in wait(["submitted", "submitted", "rejected"], [feed(ABOUT)]):
            self.assertIsInstance(run.error, NoLongerPossible)
            self.assertEqual(run.error.item["state"], "rejected")
            self.assertIn("rejected, so cleared can no longer be reached", str(run.error))

    def test_after_its_time_it_says_not_yet_and_for_whom_the_item_waits(self):
        for run in wait(["submitted"], [httpx.ConnectError("gone")] * 99, timeout=20):
            self.assertIsInstance(run.error, NotYet)
            self.assertIsInstance(run.error, TimeoutError)
            self.assertIn("submitted and waits for approver", str(run.error))
            self.assertAlmostEqual(sum(run.clock.pauses), 20)

    def test_no_time_at_all_is_enough_for_a_look(self):
        for run in wait(["cleared"], [], timeout=0):
            self.assertIsNone(run.error)
        for run in wait(["submitted"], [], timeout=0):
            self.assertIsInstance(run.error, NotYet)

    def test_a_service_that_is_away_is_waited_for_and_one_that_never_answers_is_unavailable(self):
        gone = httpx.ConnectError("gone")
        for run in wait([gone, gone, "cleared"], [gone, feed(ABOUT)]):
            self.assertEqual(run.result["state"], "cleared")
        for run in wait([gone], [gone] * 99, timeout=30):
            self.assertIsInstance(run.error, Unavailable)

    def test_a_service_that_asks_for_patience_gets_it(self):
        busy = problem(429, "rate_limited", retry_after="7")
        for run in wait([busy, "cleared"], [feed(ABOUT)]):
            self.assertEqual((run.result["state"], run.clock.pauses), ("cleared", [7]))

    def test_a_refusal_is_not_waited_out(self):
        for run in wait([problem(403, "role_forbidden")], []):
            self.assertIsInstance(run.error, Forbidden)

    def test_a_place_that_the_ledger_no_longer_has_is_asked_for_again(self):
        for run in wait(["submitted", "cleared"], [problem(422, "invalid_request"), feed(ABOUT)]):
            self.assertIsNone(run.error)

    def test_only_the_four_targets_can_be_waited_for(self):
        for run in wait(["submitted"], [], for_="approved"):
            self.assertIsInstance(run.error, ValueError)
            self.assertIn("decided, cleared, started, closed", str(run.error))


if __name__ == "__main__":
    unittest.main()
