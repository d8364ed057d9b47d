"""Which leader epoch wrote from which offset on: the leader-epoch-checkpoint of one log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import Final

from storage.files.checkpoints import read_lines, write_lines
from storage.files.env import Files

UNDEFINED: Final = -1
FILE_NAME: Final = "leader-epoch-checkpoint"


class LeaderEpochs:
    """Epochs and the offsets at which they start, both rising."""

    __slots__ = ("dirty", "epochs", "latest", "start_offsets")

    def __init__(self) -> None:
        self.latest = UNDEFINED  # the largest epoch; -1 when there is none
        self.epochs: list[int] = []
        self.start_offsets: list[int] = []
        self.dirty = False

    def assign(self, epoch: int, start_offset: int) -> None:
        """An epoch begins; entries that it contradicts (same or later epoch or offset) go."""
        if epoch < 0 or (self.epochs and self.epochs[-1] == epoch and self.start_offsets[-1] <= start_offset):
            return
        while self.epochs and (self.epochs[-1] >= epoch or self.start_offsets[-1] >= start_offset):
            self.epochs.pop()
            self.start_offsets.pop()
        self.epochs.append(epoch)
        self.start_offsets.append(start_offset)
        self.latest = epoch
        self.dirty = True

    def cut_back(self, end_offset: int) -> None:
        """Forget epochs that start at or after the log's new end."""
        at = bisect_left(self.start_offsets, end_offset)
        if at < len(self.epochs):
            del self.epochs[at:], self.start_offsets[at:]
            self.latest = self.epochs[-1] if self.epochs else UNDEFINED
            self.dirty = True

    def cut_front(self, start_offset: int) -> None:
        """The log begins later now: its first epoch starts there."""
        at = bisect_right(self.start_offsets, start_offset) - 1
        if at >= 0 and (at > 0 or self.start_offsets[0] != start_offset):
            del self.epochs[:at], self.start_offsets[:at]
            self.start_offsets[0] = start_offset
            self.dirty = True

    def end_offset(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) as OffsetForLeaderEpoch answers; (-1, -1) when it cannot be known.

        requested            answer
        the latest           (requested, log end)
        later than all       (-1, -1)
        before the first     (requested, start of the first)
        otherwise            (largest epoch <= requested, start of the next)
        """
        if epoch == UNDEFINED or not self.epochs or epoch > self.epochs[-1]:
            return UNDEFINED, UNDEFINED
        if epoch == self.epochs[-1]:
            return epoch, log_end_offset
        after = bisect_right(self.epochs, epoch)
        return (self.epochs[after - 1] if after else epoch), self.start_offsets[after]

    def epoch_of(self, offset: int) -> int:
        """The epoch that wrote an offset; -1 when it is not known."""
        at = bisect_right(self.start_offsets, offset) - 1
        return self.epochs[at] if at >= 0 else UNDEFINED

    def save(self, files: Files, directory: str) -> None:
        """Write the checkpoint of a log's directory. Durable: no; recovery reads the epochs from the batches."""
        lines = [f"{epoch} {start}" for epoch, start in zip(self.epochs, self.start_offsets, strict=True)]
        # the epochs are in the batches too: recovery finds those that a crash loses here, so no sync
        write_lines(files, f"{directory}/{FILE_NAME}", lines, sync=False)
        self.dirty = False

    def load(self, files: Files, directory: str) -> None:
        """Add what the checkpoint of a log's directory holds."""
        for line in read_lines(files, f"{directory}/{FILE_NAME}"):
            epoch, _, start = line.partition(" ")
            if not epoch.isdigit() or not start.isdigit():
                break  # damaged: recovery finds the rest in the batches
            self.assign(int(epoch), int(start))
        self.dirty = False
