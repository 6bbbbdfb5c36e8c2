"""The live feed: read wherever it is cut, and opened again after the last entry that arrived."""

import asyncio
import itertools
import random
import unittest

import httpx
from scripted import URL, Pieces, both, entry, feed, new_token, problem

from pilot_client import AsyncPilot, Forbidden, Pilot, PilotError, Unavailable
from pilot_client.feed import Decoder

CHECKPOINT = httpx.Response(200, text="pilot.test/log\n5\nroot\n")


def decoded(*pieces, **options):
    decoder = Decoder(**options)
    return [(event.id, event.name, event.data) for piece in pieces for event in decoder.feed(piece)]


class Decoding(unittest.TestCase):
    def test_lines_end_with_lf_cr_or_both(self):
        for end in ("\n", "\r", "\r\n"):
            text = f"id: 7{end}event: a{end}data: x{end}data: y{end}{end}: beat{end}{end}data:z{end}{end}"
            self.assertEqual(decoded(text.encode()), [("7", "a", "x\ny"), ("7", "message", "z")], repr(end))

    def test_where_the_bytes_are_cut_does_not_matter(self):
        first = "\ufeff: connected\r\n\r\nid: 1\r\nevent: a\r\ndata: zoë\r\ndata: x\r\n\r\n"
        whole = f"{first}id: 2\ndata: b\n\ndata: unfinished".encode()
        expected = [("1", "a", "zoë\nx"), ("2", "message", "b")]
        self.assertEqual(decoded(*(whole[at : at + 1] for at in range(len(whole)))), expected)
        for at in range(len(whole)):
            self.assertEqual(decoded(whole[:at], whole[at:]), expected, at)
        dice = random.Random(1)
        for _ in range(200):
            cuts = sorted(dice.sample(range(len(whole)), 5))
            pieces = [whole[a:b] for a, b in itertools.pairwise([0, *cuts, len(whole)])]
            self.assertEqual(decoded(*pieces), expected, cuts)

    def test_an_event_is_bounded_in_one_line_and_in_many_and_heartbeats_do_not_add_up(self):
        for piece in (b"data: " + b"x" * 200, b"data: xxxx\n" * 30, b":" + b"x" * 200):
            with self.assertRaisesRegex(PilotError, "more than 100 bytes"):
                decoded(piece, event_bytes_max=100)
        self.assertEqual(decoded(b": still here\n\n" * 100, b": still here\n" * 100, event_bytes_max=100), [])


def first(count):
    """The first events, blocking or not."""

    def take(pilot):
        found = pilot.events(0)
        if isinstance(pilot, Pilot):
            return list(itertools.islice(found, count))

        async def some():
            taken = []
            async for event in found:
                taken.append(event)
                if len(taken) == count:
                    await found.aclose()
                    return taken
            return taken

        return some()

    return take


def ids(run):
    return [event["id"] for event in run.result]


class Following(unittest.TestCase):
    def test_after_a_cut_it_goes_on_after_the_last_entry_and_nothing_comes_twice(self):
        script = [
            CHECKPOINT,
            feed(b": connected\n\n", entry(0), entry(1)[:20], httpx.RemoteProtocolError("cut")),
            httpx.ConnectError("gone"),
            problem(503, "unavailable"),
            feed(entry(0), entry(1), b": still here\n\n", entry(2)),
            feed(entry(4)),
        ]
        for run in both(lambda _: script, first(4)):
            with self.subTest(run.who):
                self.assertEqual(ids(run), ["0", "1", "2", "4"])
                asked = [(r.url.params.get("after"), r.headers.get("last-event-id")) for r in run.requests[1:]]
                self.assertEqual(asked, [(None, None), (None, "0"), (None, "0"), (None, "0"), (None, "2")])
                self.assertTrue(all(pause <= 5 for pause in run.clock.pauses))

    def test_an_event_is_a_cloud_event_with_the_entry(self):
        for run in both(lambda _: [CHECKPOINT, feed(entry(3, item="i", to="closed"))], first(1)):
            (event,) = run.result
            self.assertEqual((event["specversion"], event["source"], event["subject"]), ("1.0", "pilot.test/log", "i"))
            self.assertEqual((event["type"], event["time"]), ("item.transition", "2026-11-18T00:00:00.000000Z"))
            self.assertEqual((event["data"]["index"], event["data"]["to"]), (3, "closed"))

    def test_it_begins_where_it_is_told_or_with_what_comes(self):
        def one(pilot, *start):
            found = pilot.events(*start)
            return next(found) if isinstance(pilot, Pilot) else anext(found)

        for run in both(lambda _: [CHECKPOINT, feed(entry(9))], lambda p: one(p, 9)):
            self.assertEqual(run.requests[1].url.params["after"], "8")
        for run in both(lambda _: [CHECKPOINT, feed(entry(5))], one):
            self.assertEqual(run.requests[1].url.params["after"], "4")

    def test_a_refusal_ends_it(self):
        for run in both(lambda _: [problem(403, "role_forbidden")], first(1)):
            self.assertIsInstance(run.error, Forbidden)

    def test_it_gives_up_when_its_patience_is_over(self):
        for run in both(lambda _: lambda _: httpx.ConnectError("gone"), first(1)):
            self.assertIsInstance(run.error, Unavailable)
            self.assertTrue(295 <= sum(run.clock.pauses) <= 310, sum(run.clock.pauses))

    def test_a_feed_of_something_else_is_an_error(self):
        for wrong in (b"data: {}\n\n", b"id: 1\ndata: [\n\n", b'id: 1\ndata: {"index":2}\n\n'):
            for run in both(lambda _, wrong=wrong: [CHECKPOINT, feed(wrong)], first(1)):
                self.assertIn("not an entry", str(run.error))

    def test_the_connection_is_closed_when_nobody_listens_any_more(self):
        opened = []

        def script(_):
            opened.append(Pieces([entry(0), entry(1)]))
            return [
                CHECKPOINT,
                httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=opened[-1]),
            ]

        for run in both(script, first(1)):
            self.assertIsNone(run.error)
        self.assertEqual([pieces.is_closed for pieces in opened], [True, True])

    def test_a_cancelled_task_closes_the_connection(self):
        opened = asyncio.Event()

        class Endless(httpx.AsyncByteStream):
            is_closed = False

            async def __aiter__(self):
                opened.set()
                await asyncio.Event().wait()
                yield b""

            async def aclose(self):
                self.is_closed = True

        stream = Endless()

        async def main():
            def answer(request):
                if request.headers["accept"] != "text/event-stream":
                    return httpx.Response(200, text="log\n5\n")
                return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=stream)

            async with AsyncPilot(URL, token=new_token, transport=httpx.MockTransport(answer)) as pilot:
                task = asyncio.create_task(anext(pilot.events()))
                await asyncio.wait_for(opened.wait(), 10)
                task.cancel()
                await asyncio.wait([task])

        asyncio.run(main())
        self.assertTrue(stream.is_closed)


if __name__ == "__main__":
    unittest.main()
