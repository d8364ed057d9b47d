"""The one place that carries out a Decision, and the one function through which records get into a log."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.turn.decision import LATER, NO_REPLY, Decision
from protocol.errors import ErrorCode, KafkaError
from storage.files.errors import StorageError

if TYPE_CHECKING:
    from broker.turn.decision import Token
    from broker.turn.durability import Durability
    from broker.turn.flush_state import FlushState, Held, Owner
    from broker.turn.turn import Turn
    from broker.turn.write import Write

WAITS: Final = Decision(LATER)  # for a sync, after which the rest of a decision is carried out

logger: Final = logging.getLogger("momus.executor")


class Answers(Protocol):
    """What answers parked requests."""

    def answer(self, token: Any, response: Any, *seen: FlushState) -> None:
        """Answer one with a response, once the logs that it was made from are durable."""

    def refuse(self, token: Any, code: ErrorCode | None) -> None:
        """Answer one with an error. None: the one for what was lost with a failed write."""


def append(target: Owner, write: Write, now_ms: int, durability: Durability | None) -> None:
    """Append records to a log and replay them.

    target      the owner of the log. Its `not_written` is called when the append fails.
    durability  has the log flushed at the end of the turn; None: the caller has it written.
    Shape:      one record batch, or several that are valid only together (FORMAT.md).
    Errors:     StorageError: nothing was appended.
    """
    log = target.log
    base_offset = log.end_offset
    batch = write.build(log, base_offset, now_ms)
    try:
        if isinstance(batch, list):
            log.append_together(batch, max_timestamp_ms=now_ms)
        else:
            buffers, last_offset, max_timestamp_ms, size = batch
            log.append(
                buffers, base_offset=base_offset, last_offset=last_offset, max_timestamp_ms=max_timestamp_ms, size=size
            )
    except StorageError as error:  # the log is out of use, after a failure of the cleaner for example
        target.not_written(write, error)
        raise
    if durability is not None:
        flush_state = target.flush_state
        if not flush_state.queued:  # as `touch`, without the call
            flush_state.queued = True
            durability.dirty.append(flush_state)
    write.replay(target, base_offset, now_ms)


class Executor:
    """Carries out decisions."""

    def __init__(self, turn: Turn, answers: Answers) -> None:
        self._turn = turn
        self._durability = turn.durability
        self._answers = answers
        self.metadata: Owner | None = None  # the shard of the cluster's metadata, on which every reply depends

    def carry_out(
        self,
        decision: Decision,
        now_ms: int,
        held: Held | None = None,
        *,
        is_clients: bool = True,
        token: Token = None,
    ) -> Any:
        """Append, replay, set timers, answer parked requests, and hold the reply. Returns the reply, or LATER.

        held        the request, whose reply is held until the logs that it depends on are durable.
        is_clients  whether a client's request asks for it. What the broker itself has decided, at a timeout say, is
                    written however many replicas are in sync.
        token       the request, where it is parked already.
        Errors:     that of `before_write`: too few replicas of a log are in sync; nothing of `writes` was written.
                    StorageError: a log cannot be written; its owner was reloaded.
        """
        durability, writes = self._durability, decision.writes
        if decision.is_rare:
            decision = self._carry_out_rare(decision, now_ms, held, is_clients, token)
        elif writes:
            if decision.apart or len(writes) > 1:
                self._write(decision, now_ms, is_clients)
            else:
                target, write = writes[0]
                if is_clients:
                    target.before_write()
                append(target, write, now_ms, durability)
        if decision.timers:
            deadlines = decision.shard.deadlines
            for name, deadline_ms in decision.timers:
                deadlines.set(name, deadline_ms)
        reply = decision.reply
        if decision.then is not None:
            replaced = decision.then()
            reply = reply if replaced is None else replaced
        if held is None or (reply is not None and (reply is LATER or reply is NO_REPLY)):
            return reply
        if durability.fsync:
            self.hold(decision, held)
        elif durability.dirty:  # else all that it may depend on is durable
            shard: Owner | None = decision.shard
            metadata = self.metadata
            if shard is None or metadata is None or metadata.flush_state.queued:
                self.hold(decision, held)
            else:  # as `hold`, for most requests
                for flush_state in decision.reads:
                    if not flush_state.queued:
                        durability.touch(flush_state)
                    flush_state.held.append(held)
                flush_state = shard.flush_state
                if flush_state.queued:
                    flush_state.held.append(held)
        return reply

    def _carry_out_rare(
        self, decision: Decision, now_ms: int, held: Held | None, is_clients: bool, token: Token
    ) -> Decision:
        """Take the steps of a decision; append, and answer parked requests, as the last one says. Returns that one."""
        while decision.follow is not None:
            decision = self._take_step(decision, held, now_ms, is_clients, token)
        if decision.records:
            self._append_records(decision, now_ms, is_clients)
        if decision.writes:
            self._write(decision, now_ms, is_clients)
        if decision.wake:
            self._wake(decision)
        return decision

    def _write(self, decision: Decision, now_ms: int, is_clients: bool) -> None:
        """Several writes, or writes apart."""
        durability = self._durability
        if is_clients and not decision.apart:
            for target, _ in decision.writes:
                target.before_write()
        for target, write in decision.writes:
            try:
                append(target, write, now_ms, durability)
            except StorageError:
                if decision.then is None or not decision.apart:
                    raise  # else the others are made all the same

    def _wake(self, decision: Decision) -> None:
        shard = decision.shard
        for token, response in decision.wake:
            shard.parked.discard(token)
            self._answers.answer(token, response, shard.flush_state)

    def _append_records(self, decision: Decision, now_ms: int, is_clients: bool) -> None:
        if is_clients and decision.shard.is_short():
            self._carry_out_short(decision, now_ms)
        decision.shard.append(decision.records, now_ms)

    def _take_step(
        self, decision: Decision, held: Held | None, now_ms: int, is_clients: bool, token: Token
    ) -> Decision:
        """Write. Returns what follows; WAITS: it follows after a sync."""
        durability, until, follow, writes = self._durability, decision.until, decision.follow, decision.writes
        assert until is not None
        assert follow is not None
        if is_clients:
            for target, _ in writes:
                target.before_write()
        flushes = durability if durability.fsync else None
        for target, write in writes:
            append(target, write, now_ms, flushes)
        if not writes and until.durable_offset >= until.log.end_offset:
            following = follow(True)
        elif not durability.fsync:
            following = follow(durability.write_now(until))
        else:
            token = held[:2] if held is not None else token
            if decision.shard is not None and token is not None:
                decision.shard.parked.add(token)
            until.then(partial(self._later, decision, token, is_clients))
            return WAITS
        decision.repeats = following.repeats
        return following

    def _later(self, decision: Decision, token: Token, is_clients: bool, durable: bool) -> None:
        """What was to be durable is, or was thrown away: carry out what follows, and answer the request."""
        shard, follow = decision.shard, decision.follow
        if shard is not None and token is not None:
            if token not in shard.parked:
                return  # the shard was reloaded meanwhile, and the client got an error
            shard.parked.discard(token)
        assert follow is not None
        assert decision.until is not None
        self._turn.begin()
        try:
            following = follow(durable)
            reply = self.carry_out(following, self._turn.now_ms, is_clients=is_clients, token=token)
        except KafkaError as error:
            self._answers.refuse(token, error.code)
        except (OSError, StorageError) as error:
            logger.error("a step that waited for %s failed: %s", decision.until.log.directory, error)
            self._answers.refuse(token, None)
        else:
            if reply is not LATER:
                seen = following.shard
                states = self._durability.unsettled_shards() if seen is None else (seen.flush_state,)
                self._answers.answer(token, reply, *states)

    def _carry_out_short(self, decision: Decision, now_ms: int) -> None:
        """Records of a group for which too few replicas are in sync.

        Errors:  COORDINATOR_NOT_AVAILABLE, always. They are written and take effect all the same, as in Kafka: the
                 handler has changed what no record holds. The parked requests that would be answered get the error too.
        """
        shard = decision.shard
        woken: list[tuple[Token, Any]] = list(decision.wake)
        decision.wake = ()
        self.carry_out(decision, now_ms, is_clients=False)
        for token, _ in woken:
            shard.parked.discard(token)
            self._answers.refuse(token, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        raise shard.short_of_replicas()

    def hold(self, decision: Decision, held: Held) -> None:
        """Hold the reply until the logs that it depends on are durable."""
        durability, shard = self._durability, decision.shard
        metadata = self.metadata
        if shard is None or metadata is None:
            states = durability.unsettled_shards()
        else:
            states = [shard.flush_state, metadata.flush_state]
        for flush_state in states:
            durability.hold(flush_state, held)
        for flush_state in decision.reads:
            durability.hold_write(flush_state, held)
