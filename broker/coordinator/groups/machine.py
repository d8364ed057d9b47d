"""GroupMachine: the groups and committed offsets of one partition of `__consumer_offsets`.

    groups    groups of every kind that have a record
    simple    groups without one: committed offsets without members
    offsets   committed offsets by group, topic and partition.
    pending   offsets of transactions that have not ended, by producer id.

Handlers read these; only the replay methods change them. What handlers may change in a classic group between two
records is in classic/group.py. Timers are handled by the timers module of the group's kind.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

from broker.base.context import Context
from broker.coordinator.groups.classic.commit_checks import NONE, check_offset_commit, check_txn_offset_commit
from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.groups.common import assignment_epoch_checks
from broker.coordinator.groups.common.group import THE_GROUP
from broker.coordinator.groups.common.outcome import Outcome
from broker.coordinator.groups.kinds import (
    CLASSIC,
    RECORD_TYPES,
    class_of,
    group_tombstones,
    logged_groups,
    timers_of,
)
from broker.coordinator.groups.offset_expiry import expiry_records
from broker.coordinator.groups.simple import SimpleGroups
from broker.coordinator.offsets.pending import PendingOffsets
from broker.coordinator.offsets.replay_run import offset_key
from broker.coordinator.offsets.table import OffsetTable
from broker.coordinator.records import (
    GROUP_METADATA,
    OFFSET_COMMIT,
    OFFSET_COMMIT_V0,
    committed_value,
    offset_tombstones,
)
from broker.turn.decision import Decision, Record
from protocol.codegen import codec
from protocol.errors import ErrorCode
from protocol.messages.coordinator_records import GroupMetadataKey, GroupMetadataValue, decode_record

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.config.settings import BrokerConfig
    from broker.coordinator.offsets.snapshots import PendingRecord, Sender

logger: Final = logging.getLogger("momus.groups")

EXPIRY_TIMER: Final = ("offsets",)
GROUPS_A_SLICE: Final = 1000  # checked for expired offsets in one turn of the event loop: about 2 ms

_SHORT: Final = Struct(">h")


class MetadataHolder(Protocol):
    """Whoever has the current metadata; loading it again replaces the object."""

    @property
    def metadata(self) -> ClusterMetadata:
        """The topics and settings of the cluster."""


class GroupMachine:
    """The state machine of one shard. The runtime calls it with records, requests and the time."""

    __slots__ = (
        "_broker",
        "_expiring",
        "_replay",
        "_unlogged",
        "askers",
        "config",
        "delay_timers",
        "groups",
        "index",
        "offsets",
        "pending",
        "simple",
        "touched",
    )

    VOLATILE: ClassVar[Mapping[str, str]] = {
        "_broker": "given",
        "_expiring": "the rest of a running check; it starts again after loading",
        "_replay": "the same for every machine",
        "_unlogged": "groups whose first record is about to be replayed",
        "askers": "who asked for what is done right after the request",
        "config": "given",
        "delay_timers": "first assignments that are delayed; not delayed again after loading",
        "index": "given",
        "simple": "groups without offsets: a cleaned log does not make them again, as in Kafka",
        "touched": "what the batch that is being replayed has changed",
    }

    def __init__(self, index: int, config: BrokerConfig, broker: MetadataHolder | None = None) -> None:
        self.index = index  # the partition of `__consumer_offsets`
        self.config = config
        self._broker = broker
        self.groups: dict[str, Any] = {}  # ClassicGroup, ConsumerGroup, StreamsGroup, ShareGroup
        self.delay_timers: set[tuple[Any, ...]] = set()  # running timers that delay the first assignment (streams)
        self.askers: dict[str, Any] = {}  # group -> what the client may do for whom its expressions are resolved next
        self.offsets = OffsetTable()
        self.pending = PendingOffsets(self.offsets)
        self.simple = SimpleGroups(self.offsets)
        self.touched: dict[str, set[str]] | None = None  # group -> members with new records; None while loading
        self._unlogged: dict[str, ClassicGroup] = {}  # made by a handler whose records are about to be replayed
        self._expiring: list[str] = []  # the rest of a running expiry check
        self._replay: dict[int, Callable[[bytes, bytes | None], None]] = {
            OFFSET_COMMIT_V0: self._replay_offset,
            OFFSET_COMMIT: self._replay_offset,
            GROUP_METADATA: self._replay_group,
        }
        for group_type, own_record, types in RECORD_TYPES:
            self._replay.update(dict.fromkeys(types, partial(self._replay_into, group_type, own_record)))

    # -- queries -------------------------------------------------------------------------------------------------

    def has_group(self, group_id: str) -> bool:
        """Whether the group exists, as a simple group at least."""
        return group_id in self.groups or group_id in self.simple

    def group_ids(self) -> list[str]:
        """All groups, simple ones included."""
        return [*self.groups, *(g for g in self.simple.ids() if g not in self.groups)]

    @property
    def metadata(self) -> ClusterMetadata:
        """The topics of the cluster."""
        assert self._broker is not None
        return self._broker.metadata

    def group_value(self, group_id: str, key: str) -> Any:
        """A setting of the group, or the broker's if the group has none of its own. `key`: without "group."."""
        own = self.metadata.group_configs.get(group_id)
        if own is None:
            return getattr(self.config, "group_" + key.replace(".", "_"))
        return self.metadata.group_value(group_id, key)

    def check_offset_commit(
        self,
        group_id: str,
        api_version: int,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
        partitions: assignment_epoch_checks.CommittedPartitions | None = None,
    ) -> ErrorCode:
        """Whether the group accepts an OffsetCommit; NONE if so.

        The rules are in classic/commit_checks.py and common/assignment_epoch_checks.py. Without `partitions` a commit
        is refused where the answer depends on them.
        """
        group = self.groups.get(group_id)
        if group is None and generation_id < 0:
            return NONE
        if group is not None and group.group_type != CLASSIC:
            if not group.has_offsets:
                return ErrorCode.GROUP_ID_NOT_FOUND
            committer, fencing = group.committer(member_id, partitions), self.config.group_commit_fencing
            return assignment_epoch_checks.check_commit(
                fencing, api_version, generation_id, committer, has_members=not group.is_empty
            )
        is_simple = group is None and group_id in self.simple
        return check_offset_commit(group, api_version, generation_id, member_id, group_instance_id, is_simple=is_simple)

    def check_txn_offset_commit(
        self,
        group_id: str,
        api_version: int,
        generation_id: int,
        member_id: str,
        group_instance_id: str | None,
        partitions: assignment_epoch_checks.CommittedPartitions | None = None,
    ) -> ErrorCode:
        """Whether the group accepts a TxnOffsetCommit; NONE if so. Rules and `partitions`: as check_offset_commit."""
        group = self.groups.get(group_id)
        if group is not None and group.group_type != CLASSIC:
            if not group.has_offsets:
                return ErrorCode.GROUP_ID_NOT_FOUND
            committer, fencing = group.committer(member_id, partitions), self.config.group_commit_fencing
            return assignment_epoch_checks.check_txn_commit(
                fencing, generation_id, member_id, group_instance_id, committer, has_members=not group.is_empty
            )
        is_simple = group is None and group_id in self.simple
        return check_txn_offset_commit(
            group, api_version, generation_id, member_id, group_instance_id, is_simple=is_simple
        )

    def check_offset_fetch(self, group_id: str, member_id: str | None, member_epoch: int) -> ErrorCode:
        """Whether the group answers an OffsetFetch; NONE if so. A classic group always does."""
        group = self.groups.get(group_id)
        if group is None or group.group_type == CLASSIC:
            return NONE
        if not group.has_offsets:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return assignment_epoch_checks.check_fetch(member_id, member_epoch, group.committer(member_id))

    # -- for handlers --------------------------------------------------------------------------------------------

    def new_group(self, group_id: str, now_ms: int) -> ClassicGroup:
        """A group for a handler whose Decision has its first record; replaying that adds it to `groups`."""
        group = self._unlogged[group_id] = ClassicGroup(group_id, now_ms)
        return group

    def simple_group_for(self, group_id: str, log_end: int) -> None:
        """Make a simple group if there is none of the name: all offsets of a commit were refused."""
        if group_id not in self.groups:
            self.simple.make(group_id, log_end)

    def delete_group_records(self, group_id: str) -> list[Record]:
        """The records that delete a group with all its offsets."""
        records = offset_tombstones(group_id, self.offsets.all_partitions(group_id))
        return records + group_tombstones(group_id, self.groups.get(group_id))

    # -- timers --------------------------------------------------------------------------------------------------

    def on_load(self, ctx: Context) -> Decision:
        """Start all timers in full after loading, and log where a group contradicts itself."""
        out = Outcome(ctx, self.config)
        out.set_timer(EXPIRY_TIMER, self.config.offsets_retention_check_interval_ms)
        self.touched = {}
        for group in self.groups.values():
            if group.group_type != CLASSIC:
                found = group.inconsistencies()
                group.was_inconsistent = bool(found)
                for wrong in found:
                    logger.error("group %s as it was loaded: %s", group.group_id, wrong)
            timers_of(group.group_type).on_load(self, group, out)
        return out.result()

    def on_timer(self, name: Hashable, ctx: Context) -> Decision:
        """Handle a timer that has run out; nothing if its group was deleted meanwhile."""
        assert isinstance(name, tuple)
        if name == EXPIRY_TIMER:
            return self.expire_offsets(ctx)
        out = Outcome(ctx, self.config)
        group_id = name[1]
        self.delay_timers.discard(name)
        group = self.groups.get(group_id)
        if group is not None:
            timers_of(group.group_type).on_timer(self, group, name, out)
        return out.result()

    def expire_offsets(self, ctx: Context) -> Decision:
        """Tombstones for expired offsets, and for groups without members that have no offset left.

        A large shard is checked in slices: the rest follows at once, the next check after the configured interval.
        """
        if not self._expiring:
            self._expiring = self.group_ids()
        retention_ms = self.config.offsets_retention_minutes * 60_000
        out = Outcome(ctx, self.config)
        # retention depends on the offsets of the archive's group: they never expire
        checked = [each for each in self._expiring[-GROUPS_A_SLICE:] if each != self.config.archive_retain_group]
        out.records += expiry_records(self.groups, self.offsets, checked, ctx.now_ms, retention_ms)
        del self._expiring[-GROUPS_A_SLICE:]
        more = bool(self._expiring)
        out.set_timer(EXPIRY_TIMER, 0 if more else self.config.offsets_retention_check_interval_ms)
        return out.result()

    # -- replay --------------------------------------------------------------------------------------------------

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int = -1) -> None:
        """Apply one record; types that this broker does not know are skipped.

        Offsets committed in a transaction count from its marker on; tombstones in a transaction count at once.
        Errors:  any exception of the decoder, for a record that cannot be read.
        """
        if key is None:
            return
        kind = _SHORT.unpack_from(key)[0]
        if producer_id >= 0 and value is not None:
            if kind in (OFFSET_COMMIT, OFFSET_COMMIT_V0):
                self.pending.replay(producer_id, *offset_key(key), committed_value(value), offset)
            return
        replay = self._replay.get(kind)
        if replay is not None:
            replay(key, value)

    def after_batch(self) -> None:
        """Assert the order of the epochs in the groups that a batch has changed; not in one loaded inconsistent."""
        if not self.touched:
            return
        touched, self.touched = self.touched, {}
        for group_id, member_ids in touched.items():
            group = self.groups.get(group_id)
            if group is not None and group.group_type != CLASSIC and not group.was_inconsistent:
                wrong = group.epoch_inconsistencies(member_ids)
                assert not wrong, f"group {group_id}: {wrong}"

    def replay_sender(self, producer_id: int, key: bytes, headers: Iterable[tuple[str, bytes | None]]) -> None:
        """Replay the headers of a transactional batch's first record: they name the client that sent the offsets."""
        self.pending.replay_sender(producer_id, offset_key(key)[0], headers)

    def replay_pending(self, rows: Iterable[PendingRecord], senders: Iterable[Sender]) -> None:
        """Replay the pending offsets of an image."""
        for producer_id, offset, key, value in rows:
            self.pending.replay(producer_id, *offset_key(key), committed_value(value) if value else None, offset)
        for producer_id, group_id, headers in senders:
            self.pending.replay_sender(producer_id, group_id, headers.items())

    def replay_marker(self, producer_id: int, producer_epoch: int, *, commit: bool) -> None:
        """Replay the end of a transaction: commit its offsets, or drop them."""
        self.pending.replay_marker(producer_id, commit=commit)

    def _replay_group(self, key: bytes, value: bytes | None) -> None:
        group_id = codec(GroupMetadataKey, 0).decode(key, 2)[0].group
        group = self.groups.get(group_id)
        if value is None:
            self.simple.replay_tombstone(group_id)
            if group is not None and group.group_type == CLASSIC:
                del self.groups[group_id]
                group.replay_tombstone()
            return
        record, _ = codec(GroupMetadataValue, _SHORT.unpack_from(value)[0]).decode(value, 2)
        if group is None or group.group_type != CLASSIC:
            group = self.groups[group_id] = self._unlogged.pop(group_id, None) or ClassicGroup(group_id)
        group.replay_record(record)

    def _replay_into(self, group_type: str, own_record: int, key: bytes, value: bytes | None) -> None:
        """Replay a record of a consumer, streams or share group; the tombstone of `own_record` deletes the group."""
        name, fact = decode_record(key, value)
        group_id = name.group_id  # type: ignore[attr-defined]  # every key of these types has one
        group = self.groups.get(group_id)
        if group is None or group.group_type != group_type:
            if fact is None:
                return
            group = self.groups[group_id] = class_of(group_type)(group_id)
            self.offsets.replay_kind()
        if fact is None and own_record == name.API_KEY:
            self.delay_timers.discard(("delay", group_id))
            self.simple.replay_tombstone(group_id)
            del self.groups[group_id]
        else:
            group.replay(name, fact)
            if self.touched is not None:
                self.touched.setdefault(group_id, set()).add(getattr(name, "member_id", THE_GROUP))

    def _replay_offset(self, key: bytes, value: bytes | None) -> None:
        group_id, topic, partition = offset_key(key)
        self.offsets.replay(group_id, topic, partition, None if value is None else committed_value(value))

    def fingerprint(self) -> dict[str, Any]:
        """All that replaying the log must reproduce: settled groups, offsets, pending offsets."""
        return {
            "groups": {g.group_id: g.facts() for g in logged_groups(self.groups.values())},
            "offsets": self.offsets.fingerprint(),
            "pending": self.pending.fingerprint(),
        }
