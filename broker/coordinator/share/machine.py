"""ShareStateMachine: the share partitions of one partition of `__share_group_state`.

    states     the state of each share partition
    updates    how many changes have been written since its last snapshot
    snapshots  where its last snapshot lies in the log

Callers ask for records (`initialized`, `written`, `deleted`) and have them appended; only replay changes the state.
Records before the oldest of the last snapshots are not needed any more: `prunable` says up to where. So that an idle
share partition does not keep them, its state is written anew now and then.

Source: Kafka's ShareCoordinatorShard, ShareCoordinatorOffsetsManager.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, ClassVar, Final, Protocol

from broker.base.context import Context
from broker.base.facts import facts
from broker.coordinator.share.combine import StateBatch, combine
from broker.coordinator.share.state import (
    NOT_COUNTED,
    NOT_STARTED,
    SNAPSHOT,
    UPDATE,
    Key,
    ShareState,
    decode_key,
    decode_snapshot,
    decode_update,
    snapshot_record,
    tombstone,
    update_key,
    update_value,
)
from broker.turn.decision import Decision, Record

PRUNE_TIMER: Final = ("prune",)
COLD_TIMER: Final = ("cold",)
COLD_A_SLICE: Final = 500  # share partitions written anew in one turn: about 5 ms
_SHORT: Final = Struct(">h")


class ShareConfig(Protocol):
    """The settings that the machine needs; BrokerConfig has them."""

    @property
    def share_coordinator_snapshot_update_records_per_snapshot(self) -> int: ...
    @property
    def share_coordinator_state_topic_prune_interval_ms(self) -> int: ...
    @property
    def share_coordinator_cold_partition_snapshot_interval_ms(self) -> int: ...


class ShareStateMachine:
    """The state machine of one shard."""

    __slots__ = ("_prune", "config", "index", "snapshots", "states", "updates")

    VOLATILE: ClassVar[Mapping[str, str]] = {"_prune": "given", "config": "given", "index": "given"}

    def __init__(self, index: int, config: ShareConfig, prune: Callable[[int, int], None]) -> None:
        self.index = index  # the partition of `__share_group_state`
        self.config = config
        self._prune = prune  # called with the index and the first offset that is still needed
        self.states: dict[Key, ShareState] = {}
        self.updates: dict[Key, int] = {}
        self.snapshots: dict[Key, int] = {}

    # -- decisions

    def initialized(self, key: Key, state_epoch: int, start_offset: int, now_ms: int) -> Record:
        """The record that makes a state, or begins it again at another start offset."""
        before = self.states.get(key)
        count = NOT_COUNTED if start_offset == NOT_STARTED else 0
        epoch = 0 if before is None else before.snapshot_epoch + 1
        return snapshot_record(key, ShareState(epoch, state_epoch, 0, start_offset, count, now_ms, now_ms))

    def may_initialize(self, key: Key, state_epoch: int) -> bool:
        """Whether a state is made or begins again; not if it was made in a later epoch of its group."""
        state = self.states.get(key)
        return state is None or state.state_epoch <= state_epoch

    def takes_update(self, key: Key) -> bool:
        """Whether the next change is written as an update."""
        return self.updates.get(key, 0) < self.config.share_coordinator_snapshot_update_records_per_snapshot

    def written(
        self, key: Key, leader_epoch: int, start_offset: int, count: int, batches: Sequence[StateBatch], now_ms: int
    ) -> Record:
        """The record of a change: an update, or a snapshot when there have been as many updates as the limit says."""
        state = self.states[key]
        if self.takes_update(key):
            combined = combine(batches, start_offset)
            return update_key(key), update_value(state.snapshot_epoch, leader_epoch, start_offset, count, combined)
        changed = state.changed(leader_epoch, start_offset, count, batches)
        return snapshot_record(
            key, changed._replace(snapshot_epoch=state.snapshot_epoch + 1, create_ms=now_ms, write_ms=now_ms)
        )

    def deleted(self, keys: Iterable[Key]) -> list[Record]:
        """The records that delete states; none for those that are not there."""
        return [tombstone(key) for key in keys if key in self.states]

    def prunable(self) -> int | None:
        """The first offset that is still needed; None: nothing may be dropped."""
        return min(self.snapshots.values(), default=None)

    # -- timers

    def after_batch(self) -> None:
        """Nothing is asserted here."""

    def on_load(self, ctx: Context) -> Decision:
        """Set the timers."""
        return Decision(timers=[self._timer(PRUNE_TIMER, ctx), self._timer(COLD_TIMER, ctx)])

    def on_timer(self, name: Hashable, ctx: Context) -> Decision:
        """It is time to prune, or to write idle states anew."""
        if name == PRUNE_TIMER:
            offset = self.prunable()
            if offset is not None:
                self._prune(self.index, offset)
            return Decision(timers=[self._timer(PRUNE_TIMER, ctx)])
        return self._write_cold(ctx)

    def _timer(self, name: Hashable, ctx: Context) -> tuple[Hashable, int]:
        config = self.config
        if name == PRUNE_TIMER:
            return name, ctx.now_ms + config.share_coordinator_state_topic_prune_interval_ms
        return name, ctx.now_ms + config.share_coordinator_cold_partition_snapshot_interval_ms

    def _write_cold(self, ctx: Context) -> Decision:
        """Snapshots of states that were last written long ago, unless all of them have been written anew already."""
        if all(state.create_ms != state.write_ms for state in self.states.values()):
            return Decision(timers=[self._timer(COLD_TIMER, ctx)])
        before_ms = ctx.now_ms - self.config.share_coordinator_cold_partition_snapshot_interval_ms
        cold = [key for key, state in self.states.items() if state.write_ms <= before_ms]
        records = [
            snapshot_record(
                key,
                state._replace(snapshot_epoch=state.snapshot_epoch + 1, write_ms=max(ctx.now_ms, state.write_ms + 1)),
            )
            for key in cold[:COLD_A_SLICE]
            for state in (self.states[key],)
        ]
        more = len(cold) > COLD_A_SLICE
        return Decision(records=records, timers=[(COLD_TIMER, ctx.now_ms) if more else self._timer(COLD_TIMER, ctx)])

    # -- replay

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        """Apply one record. Unknown types are skipped, as in Kafka."""
        if key is None:
            return
        kind = _SHORT.unpack_from(key)[0]
        if kind not in (SNAPSHOT, UPDATE):
            return
        name = decode_key(key)
        if kind == UPDATE:
            if value is not None:
                self.replay_update(name, *decode_update(value))
        elif value is None:
            self.states.pop(name, None)
            self.updates.pop(name, None)
            self.snapshots.pop(name, None)
        else:
            self.states[name] = decode_snapshot(value)
            self.updates.pop(name, None)
            self.snapshots[name] = offset

    def replay_update(
        self, name: Key, leader_epoch: int, start_offset: int, count: int, batches: Sequence[StateBatch]
    ) -> None:
        """Apply an update record: its fields."""
        state = self.states.get(name)
        if state is None:  # its snapshot has been pruned, or deleted: what is left says nothing
            return
        self.states[name] = state.changed(leader_epoch, start_offset, count, batches)
        self.updates[name] = self.updates.get(name, 0) + 1

    def replay_marker(self, producer_id: int, producer_epoch: int, *, commit: bool) -> None:
        """No transaction writes to this log."""

    # -- queries

    def fingerprint(self) -> dict[str, Any]:
        """The hard state, to compare a replayed shard with a live one."""
        return facts(self)
