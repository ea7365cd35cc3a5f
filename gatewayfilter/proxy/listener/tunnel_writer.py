"""The stream writer of a tunnel whose CONNECT was answered before mitmproxy got the connection."""

import asyncio


class AnsweredWriter(asyncio.StreamWriter):
    """Holds mitmproxy's own answer to the CONNECT back; a refusal in its place ends the connection.

    Args:
        writer: the stream's own.
        protocol: the stream's.
        reader: the stream's.
        loop: the event loop.
    """

    def __init__(
        self,
        writer: asyncio.StreamWriter,
        protocol: asyncio.StreamReaderProtocol,
        reader: asyncio.StreamReader,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(writer.transport, protocol, reader, loop)
        self._answered = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Writes to the client; of the first write only what follows the head of the answer."""
        if self._answered:
            super().write(data)
            return
        self._answered = True
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.") or head[8:12] != b" 200":
            self.transport.abort()
        elif rest:
            super().write(rest)
