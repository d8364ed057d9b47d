"""Whether a connection has bytes that its client has sent and the broker has not read."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from broker.wire.connection import Connection

LOOK_AGAIN_S: Final = 0.001
MOST_LOOKS: Final = 500  # a client that never stops sending is not waited for


async def until_read(connections: Iterable[Connection]) -> None:
    """Wait until all that was sent on these connections has been read and taken up; for half a second at most."""
    left = list(connections)
    for _ in range(MOST_LOOKS):
        left = [
            each for each in left if not each.closed and (each.resuming or each.read_paused or _unread(each.transport))
        ]
        if not left:
            return
        await asyncio.sleep(LOOK_AGAIN_S)


def _unread(transport: Any) -> int:
    """How many bytes the system holds; 0 where it does not say."""
    try:
        from fcntl import ioctl  # not on every system
        from termios import FIONREAD  # not on every system
    except ImportError:
        return 0
    socket = transport.get_extra_info("socket")
    if socket is None or socket.fileno() < 0:
        return 0
    found: int = struct.unpack("i", ioctl(socket.fileno(), FIONREAD, b"\0" * 4))[0]
    return found
