"""The shortcut of OffsetFetch: a reply is kept on the connection and repeated until an offset in it changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from broker.shortcuts.head import BODY, REPLY_HEAD
from protocol.api import ApiKey

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn
    from broker.wire.connection import Connection

OFFSET_FETCH: Final = int(ApiKey.OFFSET_FETCH)
ANSWERS_A_CONNECTION: Final = 16
ANSWER_BYTES: Final = 8192
MOST_SOURCES: Final = 64


class Answer:
    """A reply and the columns that it was made from. It is valid until one of them changes, is added or removed."""

    __slots__ = ("api_version", "reply", "reply_size", "shape", "shard", "sources")

    def __init__(self, api_version: int, shard: Shard, sources: list[tuple[Any, object]], reply: bytes) -> None:
        self.api_version = api_version
        self.shard = shard
        self.shape = shard.machine.offsets.shape
        self.sources = sources  # columns, and their mark when the reply was made
        self.reply = reply
        self.reply_size = 4 + len(reply)


class OffsetFetchShortcut:
    """Serves the requests whose replies are kept."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def serve(self, connection: Connection, data: bytes, position: int, stop: int, correlation_id: int) -> bytes | None:
        """The kept reply to the same request; see connection.Shortcut."""
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
                return None
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
        made_from: tuple[Shard, list[Any]],
        reply: bytes,
    ) -> None:
        """Keep a reply of the general handler. `made_from`: the shard and the columns."""
        shard, columns = made_from
        if len(request) > ANSWER_BYTES or len(reply) > 2 * ANSWER_BYTES or len(columns) > MOST_SOURCES:
            return
        generation = self._turn.learned.generation
        if connection.generation != generation:
            return  # the connection will drop what it has learnt
        answers = connection.learned.setdefault(OFFSET_FETCH, {})
        if len(answers) >= ANSWERS_A_CONNECTION:
            answers.clear()
        answers[request] = Answer(api_version, shard, [(each, each.mark()) for each in columns], reply)
