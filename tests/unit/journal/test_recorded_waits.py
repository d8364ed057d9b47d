"""How far the waits of Fetches are beyond the clock, as a recording keeps it."""

from __future__ import annotations

from broker.journal.recording import CLOSED, EVENT, WAITED, Recording, RecordingRing


class File:
    def __init__(self) -> None:
        self.data = b""

    @property
    def size(self) -> int:
        return len(self.data)

    def append(self, parts: list[bytes]) -> None:
        self.data += b"".join(parts)

    def pread(self, size: int, at: int) -> bytes:
        return self.data[at : at + size]


class Clock:
    """One whose readers are interrupted for 5 ms after every fourth look. `waited_ms`: what wait_ms is ahead."""

    def __init__(self) -> None:
        self.waited_ms = 0
        self._at_ms = 1000
        self._looks = 0

    def steady_ms(self) -> int:
        self._looks += 1
        self._at_ms += 5 * (self._looks % 4 == 0)
        return self._at_ms

    def wait_ms(self) -> int:
        return self.steady_ms() + self.waited_ms

    def now_ms(self) -> int:
        return 1000


class Client:
    node_id = 1


def kept(data: bytes) -> list[tuple[int, int]]:
    """The kind of each event, with how long was waited."""
    found, position = [], 0
    while position < len(data):
        kind, _, _, _, size = EVENT.unpack_from(data, position)
        position += EVENT.size
        found.append((kind, int.from_bytes(data[position : position + size], "big")))
        position += size
    return found


def test_time_that_passes_between_two_clocks_is_no_wait():
    clock, recording = Clock(), Recording(File())  # type: ignore[arg-type]  # as much of a file as is used
    ring = RecordingRing(clock, 1 << 16, recording)  # type: ignore[arg-type]  # as much of a clock as is used
    client = Client()
    for waited_ms in [0] * 8 + [50] * 8 + [70] * 8:
        clock.waited_ms = waited_ms
        ring._keep(CLOSED, client, b"")  # type: ignore[arg-type]  # as much of a connection as is used
    assert [each for each in kept(recording.read()) if each[0] == WAITED] == [(WAITED, 50), (WAITED, 70)]
