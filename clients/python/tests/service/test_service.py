"""Items from draft to closed against a real service: each actor with an own token, blocking and asynchronous."""

import asyncio
import contextlib
import io
import logging
import re
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest import mock

from demo import PACKAGE, Demo
from relay import Relay

from pilot_client import (
    AsyncPilot,
    Conflict,
    DigestRequired,
    Forbidden,
    Invalid,
    NoLongerPossible,
    NotYet,
    Pilot,
    Unauthorized,
)
from pilot_client.asks import new_key
from pilot_client.waiting import judge

SECONDS = 60
WORKFLOW = "controlled-operation"
PAYLOAD = {
    "purpose": "Renew the certificate",
    "operation": {"argv": ["renew", "--all"]},
    "risk": "high",
    "rollback_plan": "Put the old one back",
}


def window():
    return {"not_after": (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")}


def setUpModule():
    Service.demo = Demo()
    unittest.addModuleCleanup(Service.demo.stop)


class Service(unittest.TestCase):
    demo: Demo

    def client(self, actor):
        pilot = Pilot(self.demo.url, token=self.demo.source(actor))
        self.addCleanup(pilot.close)
        return pilot

    def async_client(self, actor, url=None):
        return AsyncPilot(url or self.demo.url, token=self.demo.source(actor))


class Blocking(Service):
    def test_an_operation_goes_from_draft_to_closed_through_the_hands_of_five_people(self):
        ana, ben, bea, sol, eli = (self.client(name) for name in ("ana", "ben", "bea", "sol", "eli"))
        draft = ana.propose(WORKFLOW, "Renew", PAYLOAD, submit=False)
        self.assertEqual(draft["state"], "draft")
        ana.act(draft, "submit")
        with ThreadPoolExecutor() as threads:
            waits = {
                target: threads.submit(ana.wait, draft, target, timeout=SECONDS)
                for target in ("decided", "cleared", "started", "closed")
            }
            shown = ben.get_item(draft["id"])
            digest = shown["content_digest"]
            self.assertRaises(DigestRequired, ben.act, shown, "approve")
            self.assertEqual(ben.act(shown, "approve", digest=digest, comment="fine")["to"], "submitted")
            self.assertEqual(bea.act(shown, "approve", digest=digest)["to"], "approved")
            self.assertEqual(waits["decided"].result(SECONDS)["id"], draft["id"])
            self.assertEqual(sol.act(shown, "clear", digest=digest, inputs=window())["to"], "cleared")
            self.assertEqual(waits["cleared"].result(SECONDS)["id"], draft["id"])
            self.assertEqual(eli.act(shown, "start", digest=digest)["to"], "executing")
            self.assertEqual(waits["started"].result(SECONDS)["id"], draft["id"])
            eli.act(shown, "heartbeat", inputs={"progress": "half"})
            self.assertEqual(eli.act(shown, "succeed", inputs={"result": "done"})["to"], "succeeded")
            self.assertEqual(ben.act(shown, "accept")["to"], "closed")
            self.assertEqual(waits["closed"].result(SECONDS)["state"], "closed")
        actions = [one["action"] for one in ana.iter_transitions(draft["id"], limit=2)]
        self.assertEqual(actions, ["submit", "approve", "approve", "clear", "start", "heartbeat", "succeed", "accept"])

    def test_a_proposal_can_be_repeated_under_its_key(self):
        ana, key = self.client("ana"), new_key()
        first = ana.propose(WORKFLOW, "Once", PAYLOAD, key=key)
        self.assertEqual(ana.propose(WORKFLOW, "Once", PAYLOAD, key=key)["id"], first["id"])
        with self.assertRaises(Invalid) as caught:
            ana.propose(WORKFLOW, "Twice", PAYLOAD, key=key)
        self.assertEqual(caught.exception.code, "idempotency_key_reused")

    def test_refusals_say_what_and_who_can(self):
        ana, ben = self.client("ana"), self.client("ben")
        item = ana.propose(WORKFLOW, "Refused", PAYLOAD)
        with self.assertRaises(Forbidden) as caught:
            ana.act(item, "approve", digest=item["content_digest"])
        self.assertEqual(caught.exception.code, "role_forbidden")
        self.assertEqual(set(caught.exception.problem["who_can"]["actors"]), {"ben", "bea"})
        with self.assertRaises(Conflict) as caught:
            ben.act(item, "approve", digest="sha256:" + "0" * 64)
        self.assertEqual(caught.exception.code, "content_changed")
        with self.assertRaises(Conflict) as caught:
            ben.act(item, "reject", comment="no", if_match=item["version"] + 7)
        self.assertEqual(caught.exception.code, "version_mismatch")
        with self.assertRaises(Invalid) as caught:
            ana.propose(WORKFLOW, "Incomplete", {"risk": "low"})
        self.assertIn("/payload", {fault["pointer"][:8] for fault in caught.exception.faults})
        self.assertIn("still a draft", caught.exception.__notes__[0])
        with Pilot(self.demo.url, token=lambda: "x" * 40) as nobody, self.assertRaises(Unauthorized):
            nobody.get_session()

    def test_waiting_ends_when_it_is_over_or_can_no_longer_be(self):
        ana, ben = self.client("ana"), self.client("ben")
        item = ana.propose(WORKFLOW, "Rejected", PAYLOAD)
        with self.assertRaises(NotYet) as caught:
            ana.wait(item, "cleared", timeout=0.2)
        self.assertEqual(caught.exception.item["state"], "submitted")
        with ThreadPoolExecutor() as threads:
            waiting = threads.submit(ana.wait, item, "cleared", timeout=SECONDS)
            ben.act(item, "reject", comment="not today")
            self.assertIsInstance(waiting.exception(SECONDS), NoLongerPossible)

    def test_how_far_an_item_has_come_is_judged_as_the_terminal_does(self):
        source = (PACKAGE.parents[1] / "crates/pilot/src/cmd/item/target.rs").read_text()
        source = re.sub(r"^ +", "", source, flags=re.M)
        names = {"reached": "reached", "not_yet": "not yet", "never": "never"}
        for workflow, target in ((WORKFLOW, "decided"), (WORKFLOW, "cleared"), ("emergency-operation", "decided")):
            definition = self.client("ana").get_workflow(workflow)
            lines = []
            for one in definition["states"]:
                verdicts = [
                    judge(definition, target, one["name"], held=False, has_started=started) for started in (False, True)
                ]
                lines.append(f"{one['name']}: {names[verdicts[0]]} / {names[verdicts[1]]}")
            self.assertIn("\n".join(lines) + "\n", source, f"{workflow}, {target}")

    def test_every_kind_of_answer_is_read(self):
        ada = self.client("ada")
        (item, *_) = ada.item_summaries(limit=1)
        bundle = io.BytesIO()
        ada.save_evidence(bundle, item=item["id"])
        self.assertEqual(bundle.getvalue()[:2], b"PK")
        self.assertEqual(ada.get_evidence(item=item["id"])[:2], b"PK")
        self.assertIn("pilot.local/", ada.get_checkpoint())
        self.assertEqual(len(ada.get_tile("0/000.p/5")), 5 * 32)
        self.assertTrue(ada.get_entry_bundle("000.p/5"))
        self.assertIn("<svg", ada.get_workflow_diagram(WORKFLOW))
        self.assertIn("payload", ada.get_attestation(item["id"]))
        whole = ada.get_item(item["id"])
        self.assertEqual(ada.get_content(item["id"], whole["content_digest"])["title"], whole["title"])
        self.assertIsNone(ada.look_at_item(item["id"], content_digest=whole["content_digest"]))
        self.assertEqual(ada.get_health()["status"], "ok")
        for answer in (ada.list_actors(), ada.list_nodes(), ada.get_figures(days=2), ada.get_item_proof(item["id"])):
            self.assertTrue(answer)
        self.assertGreater(len(list(ada.items(limit=3))), 3)

    def test_the_token_is_not_logged_even_when_everything_is(self):
        seen, root = io.StringIO(), logging.getLogger()
        handler = logging.StreamHandler(seen)
        with mock.patch.object(root, "level", logging.DEBUG):
            root.addHandler(handler)
            self.addCleanup(root.removeHandler, handler)
            for logger in ("httpx", "httpcore"):
                logging.getLogger(logger).setLevel(logging.DEBUG)
            self.client("ana").get_session()
        self.assertIn("send_request_headers", seen.getvalue())
        self.assertNotIn(self.demo.tokens["ana"], seen.getvalue())

    def test_events_reach_a_listener_as_they_happen(self):
        ana, ada = self.client("ana"), self.client("ada")
        heard, listens, wanted = [], threading.Event(), set()

        def listen():
            events = ada.events(0)
            for event in events:
                heard.append(event)
                listens.set()
                if event["data"].get("action") == "withdraw" and event.get("subject") in wanted:
                    events.close()

        listener = threading.Thread(target=listen)
        listener.start()
        self.assertTrue(listens.wait(SECONDS))
        item = ana.propose(WORKFLOW, "Heard", PAYLOAD)
        wanted.add(item["id"])
        ana.act(item, "withdraw")
        listener.join(SECONDS)
        self.assertFalse(listener.is_alive())
        about = [event["data"].get("action", event["type"]) for event in heard if event.get("subject") == item["id"]]
        self.assertEqual(about[-2:], ["submit", "withdraw"])
        self.assertEqual([int(event["id"]) for event in heard], list(range(len(heard))))


class Asynchronous(Service):
    def test_an_operation_goes_from_draft_to_closed(self):
        async def main():
            async with contextlib.AsyncExitStack() as stack:
                names = ("ana", "ben", "bea", "sol", "eli")
                clients = [await stack.enter_async_context(self.async_client(name)) for name in names]
                ana, ben, bea, sol, eli = clients
                item = await ana.propose(WORKFLOW, "Renew", PAYLOAD)
                closed = asyncio.create_task(ana.wait(item, "closed", timeout=SECONDS))
                digest = item["content_digest"]
                await asyncio.gather(*(one.act(item, "approve", digest=digest) for one in (ben, bea)))
                self.assertEqual((await sol.wait(item, "decided", timeout=SECONDS))["state"], "approved")
                await sol.act(item, "clear", digest=digest, inputs=window())
                self.assertEqual((await eli.wait(item, "cleared", timeout=SECONDS))["state"], "cleared")
                await eli.act(item, "start", digest=digest)
                await eli.act(item, "succeed", inputs={"result": "done"})
                await ben.act(item, "accept")
                self.assertEqual((await closed)["state"], "closed")
                history = [one["action"] async for one in ana.iter_history(item["id"], limit=3)]
                self.assertEqual((history[0], history[-1]), ("create", "accept"))

        asyncio.run(asyncio.wait_for(main(), SECONDS))

    def test_after_cuts_the_feed_goes_on_where_it_was_and_a_wait_goes_on_too(self):
        async def main():
            port = int(self.demo.url.rsplit(":", 1)[1])
            async with (
                Relay(port) as relay,
                self.async_client("ana") as ana,
                self.async_client("ada", relay.url) as ada,
            ):
                item = await ana.propose(WORKFLOW, "Cut", PAYLOAD)
                waiting = asyncio.create_task(ada.wait(item, "cleared", timeout=SECONDS))
                heard = []
                async with contextlib.aclosing(ada.events(0)) as events:
                    async for event in events:
                        heard.append(int(event["id"]))
                        if event.get("subject") != item["id"]:
                            continue
                        relay.cut()
                        if event["data"].get("action") == "withdraw":
                            break
                        if event["data"].get("action") == "submit":
                            await ana.act(item, "withdraw")
                self.assertEqual(heard, list(range(len(heard))))
                self.assertIsInstance(
                    await asyncio.wait_for(asyncio.gather(waiting, return_exceptions=True), SECONDS), list
                )
                self.assertIsInstance(waiting.exception(), NoLongerPossible)
                self.assertGreater(relay.accepted, 2)

        asyncio.run(asyncio.wait_for(main(), SECONDS))


class Pages(Service):
    """The snippets in the documentation run as they are written there."""

    def run_snippets(self, page):
        text = (PACKAGE.parents[1] / page).read_text()
        snippets = re.findall(r"<!-- run -->\n+```python\n(.*?)```", text, re.S)
        self.assertTrue(snippets, page)
        for actor, token in self.demo.tokens.items():
            path = Path(self.demo.directory.name, f"{actor}.token")
            path.touch(0o600)
            path.write_text(token + "\n")
        names = {"__name__": "page"}
        self.addCleanup(lambda: [one.close() for one in names.values() if isinstance(one, Pilot)])
        with (
            contextlib.chdir(self.demo.directory.name),
            contextlib.redirect_stdout(io.StringIO()),
            mock.patch.dict("os.environ", {"PILOT_URL": self.demo.url}),
        ):
            for number, snippet in enumerate(snippets, 1):
                exec(compile(snippet, f"{page}, snippet {number}", "exec"), names)  # the point of the test
        return names

    def test_the_quick_start_ends_with_a_closed_item(self):
        names = self.run_snippets("clients/python/README.md")
        self.assertEqual(names["item"]["state"], "closed")

    def test_the_guide_runs(self):
        self.run_snippets("docs/guide/python.md")


if __name__ == "__main__":
    unittest.main()
