"""Post: the letters that are on their way to dead-letter queues, by share partition.

    1  ARCHIVING is appended to `__share_group_state`     SharePartitions, which then calls `send`
    2  it is durable                                      the letters are written to the queue (sending.py)
    3  they are durable, or given up                      SharePartitions appends ARCHIVED; tried again while it cannot

What is on its way is not in the log; a start finds ARCHIVING there, at the first use of the share partition, and
`resume` begins again at 2. So what was written by 2 before a crash is written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from broker.coordinator.share.dead_letters.letter import REJECTED, TOO_OFTEN, Letter
from broker.coordinator.share.dead_letters.sending import Office, Sending

if TYPE_CHECKING:
    from broker.coordinator.share.combine import StateBatch
    from broker.coordinator.share.state import Key
    from broker.turn.flush_state import FlushState


RETRY_MS: Final = 1000


class Post:
    """All of a broker's."""

    def __init__(
        self, office: Office, archive: Callable[[Key, Sequence[Letter], Callable[[bool], None]], None]
    ) -> None:
        self._office = office
        self._archive = archive  # calls its last argument with whether that is durable
        self.under_way: dict[Key, list[Letter]] = {}

    def send(self, key: Key, letters: Sequence[Letter], flush_state: FlushState) -> None:
        """Send letters when ARCHIVING of their records is durable in this log."""
        self.under_way.setdefault(key, []).extend(letters)

        def stored(durable: bool) -> None:
            if durable:
                Sending(self._office, key, letters, lambda: self._ended(key, letters)).go_on()
            else:
                self._forget(key, letters)  # the records are acquired again, or delivered again

        flush_state.then(stored)
        self._office.turn.touch(flush_state)

    def resume(self, key: Key, archiving: Iterable[StateBatch], most_deliveries: int, flush_state: FlushState) -> None:
        """Send what the log says is on its way, and is not."""
        known = self.under_way.get(key, ())
        letters = [
            Letter(low, high, count, TOO_OFTEN if count >= most_deliveries else REJECTED)
            for first, last, _, count in archiving
            for low, high in _without(first, last, known)
        ]
        if letters:
            self.send(key, letters, flush_state)

    def _ended(self, key: Key, letters: Sequence[Letter]) -> None:
        def archived(durable: bool) -> None:
            if durable:
                self._forget(key, letters)
            else:
                turn = self._office.turn
                turn.timers.at(turn.steady_ms + RETRY_MS, lambda due_ms, now_ms: self._ended(key, letters))

        self._archive(key, letters, archived)

    def _forget(self, key: Key, letters: Sequence[Letter]) -> None:
        left = self.under_way[key]
        for letter in letters:
            left.remove(letter)
        if not left:
            del self.under_way[key]


def _without(first: int, last: int, letters: Iterable[Letter]) -> list[tuple[int, int]]:
    """The parts of a range that no letter is about."""
    parts = [(first, last)]
    for letter in letters:
        parts = [
            (low, high)
            for a, b in parts
            for low, high in ((a, min(b, letter.first - 1)), (max(a, letter.last + 1), b))
            if low <= high
        ]
    return parts
