"""A real service for the tests: `pilot demo`, which has somebody in each role and leaves nothing behind."""

import os
import selectors
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PACKAGE))

START_SECONDS = 120.0


class Demo:
    """The running service: its address, and the token of each actor."""

    def __init__(self) -> None:
        self.directory = tempfile.TemporaryDirectory(prefix="pilot-client-")
        self.url = ""
        self.tokens: dict[str, str] = {}
        program = Path(os.environ.get("PILOT_PROGRAM", PACKAGE.parents[1] / "target/debug/pilot"))
        if not program.exists():
            raise AssertionError(f"{program} does not exist; run `cargo build`, or set PILOT_PROGRAM to the program")
        self.process = subprocess.Popen(
            [program, "demo", "--listen", "127.0.0.1:0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=self.directory.name,
            env={**os.environ, "TMPDIR": self.directory.name},
        )
        try:
            self._read_start()
        except BaseException:
            self.stop()
            raise

    def _read_start(self) -> None:
        deadline, text = time.monotonic() + START_SECONDS, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while b"listening on http" not in text or not text.endswith(b"\n"):
                if not selector.select(deadline - time.monotonic()):
                    raise AssertionError(f"the demo did not start within {START_SECONDS:g} s")
                piece = os.read(self.process.stdout.fileno(), 65_536)
                if not piece:
                    raise AssertionError("the demo ended before it listened")
                text += piece
        for words in map(str.split, text.decode().splitlines()):
            if len(words) == 3 and words[2].startswith("pilot_"):
                self.tokens[words[0]] = words[2]
            if words[:2] == ["listening", "on"]:
                self.url = words[2]

    def source(self, actor: str):
        """What gives an actor's token."""
        return lambda: self.tokens[actor]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.directory.cleanup()
