"""The shortcut of OffsetFetch: a reply is kept on the connection and repeated until an offset in it changes.

Where offsets of one group and topic move between requests, as those of a consumer that works do, they are packed anew
into the reply before.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from broker.shortcuts.head import BODY, REPLY_HEAD
from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.coordinator.offsets.columns import TopicOffsets
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection

OFFSET_FETCH: Final = int(ApiKey.OFFSET_FETCH)
ANSWERS_A_CONNECTION: Final = 16
ANSWER_BYTES: Final = 8192
MOST_SOURCES: Final = 64
SHAPES_KEPT: Final = 256

_FOUND: Final = 1 << 24  # behind offset and epoch: empty metadata, no error, no tags
_TAIL: Final = bytes(5)  # behind the partitions of the only topic: tags, the group's error and tags, tags


@lru_cache(maxsize=SHAPES_KEPT)
def _run(n: int) -> Struct:
    """So many partitions of a reply in versions 8 and 9: partition, offset, leader epoch, the rest."""
    return Struct(">" + "iqiI" * n)


class Form:
    """The reply to a request for partitions of one topic that all have a commit without metadata."""

    __slots__ = ("_cells", "_head", "_label", "_pack", "_partitions")

    def __init__(self, columns: TopicOffsets, partitions: Sequence[int], reply: bytes) -> None:
        n, start = len(partitions), partitions[0]
        run = _run(n)
        dense = range(start, start + n)
        self._partitions = dense if list(dense) == partitions else partitions
        self._label = columns.label
        self._head = reply[: max(0, len(reply) - run.size - len(_TAIL))]
        self._pack = run.pack
        self._cells = [cell for each in partitions for cell in (each, 0, 0, _FOUND)]

    def reply(self, columns: TopicOffsets) -> bytes | None:
        """The reply with the offsets of now. None: it has another form, for the columns hold something else."""
        if columns.rare is not None or columns.label is not self._label:
            return None
        partitions, offsets, epochs, _ = columns.columns()
        cells = self._cells
        if partitions == self._partitions:
            cells[1::4] = (offsets,) if isinstance(offsets, int) else offsets
            cells[2::4] = (epochs,) * len(partitions) if isinstance(epochs, int) else epochs
        else:
            found = columns.offsets_and_epochs(self._partitions)
            if None in found:
                return None
            cells[1::4], cells[2::4] = zip(*found, strict=True)
        return self._head + self._pack(*cells) + _TAIL


class Answer:
    """A reply and the columns that it was made from. It is valid until one of them changes, is added or removed.

    Errors are not kept. When the group becomes one of another kind, which may refuse the request, `shape` grows too.
    form  how to make it anew when offsets have moved; None: the general handler does.
    """

    __slots__ = ("api_version", "form", "reply", "reply_size", "shape", "shard", "sources")

    def __init__(
        self, api_version: int, shard: Shard, sources: list[tuple[Any, object]], reply: bytes, form: Form | None
    ) -> None:
        self.api_version = api_version
        self.form = form
        self.shard = shard
        self.shape = shard.machine.offsets.shape
        self.sources = sources  # columns, and their mark when the reply was made
        self.reply = reply
        self.reply_size = 4 + len(reply)

    def renew(self) -> bool:
        """Make the reply anew, as the columns have changed. False: it has another form now."""
        if self.form is None:
            return False
        columns = self.sources[0][0]
        reply = self.form.reply(columns)
        if reply is None:
            return False
        if reply == self.reply:  # the offsets have come to rest
            self.sources = [(columns, columns.mark())]
        self.reply = reply
        return True


class OffsetFetchShortcut:
    """Serves the requests whose replies are kept."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """The kept reply to the same request; see service.Shortcut."""
        answers = connection.learned.get(OFFSET_FETCH)
        if answers is None or stop - position > ANSWER_BYTES:
            return None
        answer: Answer | None = answers.get(data[position + BODY : stop])
        if answer is None or answer.api_version != data[position + 7] or data[position + 6]:
            return None
        shard = answer.shard
        if answer.shape != shard.machine.offsets.shape:
            return None
        for columns, mark in answer.sources:
            if columns.seen is not mark:
                if not answer.renew():
                    return None
                break
        durability = self._turn.durability
        if not durability.is_settled(shard.flush_state):
            slot = connection.base + len(connection.out)
            durability.hold(shard.flush_state, (connection, slot, data, position, stop))
        return REPLY_HEAD.pack(answer.reply_size, correlation_id) + answer.reply

    def keep(
        self,
        connection: Connection,
        request: bytes,
        api_version: int,
        made_from: tuple[Shard, list[Any], Sequence[int]],
        reply: bytes,
    ) -> None:
        """Keep a reply of the general handler.

        made_from: the shard, the columns, and the partitions of the first topic that was asked for, if one was.
        """
        shard, columns, partitions = made_from
        if len(request) > ANSWER_BYTES or len(reply) > 2 * ANSWER_BYTES or len(columns) > MOST_SOURCES:
            return
        generation = self._turn.learned.generation
        if connection.generation != generation:
            return  # the connection will drop what it has learnt
        answers = connection.learned.setdefault(OFFSET_FETCH, {})
        if len(answers) >= ANSWERS_A_CONNECTION:
            answers.clear()
        form = None
        if partitions and len(columns) == 1 and columns[0].rare is None:
            form = Form(columns[0], partitions, reply)
            if form.reply(columns[0]) != reply:  # more topics, an offset of an earlier topic of the name
                form = None
        answers[request] = Answer(api_version, shard, [(each, each.mark()) for each in columns], reply, form)
