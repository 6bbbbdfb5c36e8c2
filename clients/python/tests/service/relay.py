"""Something between a client and the service that can cut every connection."""

import asyncio
import contextlib


class Relay:
    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.accepted = 0

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()
        self.cut()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def cut(self) -> None:
        """Ends all connections, in the middle of whatever they carry."""
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader, writer):
        self.accepted += 1
        there, onwards = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers |= {writer, onwards}
        for source, target in ((reader, onwards), (there, writer)):
            task = asyncio.create_task(self._copy(source, target))
            self._tasks.add(task)

    @staticmethod
    async def _copy(reader, writer):
        with contextlib.suppress(OSError):
            while piece := await reader.read(65_536):
                writer.write(piece)
                await writer.drain()
            writer.close()
