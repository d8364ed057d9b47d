"""Begins, changes and ends the journal of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.journal.recording import Recording
    from broker.wire.clients import Clients
    from storage.files.env import Clock


def keep_journal(clients: Clients, clock: Clock, limit_bytes: int, recording: Recording | None) -> bool:
    """Keep the last requests and replies, up to so many bytes, 0: none; with a recording, in that as well.

    Returns whether a new journal was begun.
    """
    if clients.journal is not None and (
        clients.journal.recording is not recording or (limit_bytes == 0 and recording is None)
    ):
        clients.unwatch(clients.journal)
        clients.journal = None
    if clients.journal is not None:
        clients.journal.limit_bytes = limit_bytes
        return False
    if recording is not None:
        from broker.journal.recording import RecordingRing  # 4 ms: few brokers are recorded

        clients.journal = RecordingRing(clock, limit_bytes, recording)
    elif limit_bytes:
        from broker.journal.ring import Ring  # 3 ms: most brokers keep no journal

        clients.journal = Ring(clock, limit_bytes)
    else:
        return False
    clients.watch(clients.journal)
    return True
