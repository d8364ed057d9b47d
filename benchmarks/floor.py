"""A uvloop server that sends back what it is sent: what the event loop and the machine allow, without a broker.

python -m benchmarks.floor PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import uvloop

BACKLOG = 128  # as the broker's


class Echo(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: Any) -> None:
        """Keep it to write to."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self.transport.write(data)


async def serve(port: int) -> None:
    """Serve until the process is ended."""
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", port, backlog=BACKLOG)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
