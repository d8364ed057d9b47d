"""What a client does with transactions, the death of its broker in the middle of it, and what has to hold then."""

from __future__ import annotations

from collections import Counter

from core_broker import Client, SimulatedCrash, World, make_topic
from txn_kit import ABORT, COMMIT, Producer, committed, fetched, markers_of, states_in_log, transaction_values, visible

from broker.coordinator.transactions.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EMPTY,
    LAST_EPOCH,
    PREPARE_ABORT,
    PREPARE_COMMIT,
)
from protocol.errors import ErrorCode
from protocol.messages.coordinator_records import TransactionLogValue
from protocol.record_batch import iter_batches, iter_records
from storage.files.sim_env import MemoryFiles

OFFSETS = "__consumer_offsets"
PARTITIONS = 2
TIMEOUT_MS = 60_000


class Script:
    """What a client does, and what it was told before the broker died: the flows are methods."""

    def __init__(self, world: World, *, v2: bool) -> None:
        self.world = world
        self.client = Client(world)
        self.producer = Producer(self.client, v2=v2)
        self.wanted: list[bool] = []  # for each transaction that was begun: whether it may be committed
        self.told: list[bool] = []  # for each whose end was answered: whether it was committed

    def commits(self) -> None:
        self.init()
        for _ in range(2):
            self.transact(commit=True)

    def aborts(self) -> None:
        self.init()
        for _ in range(2):
            self.transact(commit=False)

    def is_replaced(self) -> None:
        """The second transaction is open when a successor comes."""
        self.init()
        self.transact(commit=True)
        self.begin(commit=False)
        successor = Producer(self.client, v2=self.producer.v2)
        while (code := successor.init(timeout_ms=TIMEOUT_MS)) == ErrorCode.CONCURRENT_TRANSACTIONS:
            continue
        assert code == 0
        self.told.append(False)
        self.producer = successor
        self.transact(commit=True)

    def times_out(self) -> None:
        """The second transaction takes too long; its producer comes back."""
        self.init()
        self.transact(commit=True)
        self.begin(commit=False)
        self.world.advance(TIMEOUT_MS + 1)
        self.init()
        self.told.append(False)
        self.transact(commit=True)

    def runs_out_of_epochs(self) -> None:
        """The first transaction has the last epoch that there is, those behind it have another producer id."""
        self.init()
        shard = self.world.broker.transactions.shard(self.producer.name)
        shard.machine.transactions[self.producer.name].producer_epoch = LAST_EPOCH - 1
        self.init()
        assert self.producer.epoch == LAST_EPOCH
        self.transact(commit=True)
        if not self.producer.v2:
            self.init()
        assert self.producer.epoch == 0
        self.transact(commit=True)

    def init(self) -> None:
        assert self.producer.init(timeout_ms=TIMEOUT_MS) == 0

    def transact(self, *, commit: bool) -> None:
        self.begin(commit=commit)
        assert self.producer.end(commit=commit) == 0
        self.told.append(commit)

    def begin(self, *, commit: bool) -> None:
        """Records to each partition, and offsets: those of the nth transaction bear its number."""
        self.wanted.append(commit)
        producer, number = self.producer, len(self.wanted)
        if not producer.v2:
            for index in range(PARTITIONS):
                assert producer.add({"t": [index]}) == {("t", index): 0}
            assert producer.add_offsets() == 0
        for index in range(PARTITIONS):
            assert producer.produce(f"{number}-{index}".encode(), index=index) == 0
        assert producer.send_offsets({0: number * 10, 1: number * 10 + 1}) == {0: 0, 1: 0}


FLOWS = (Script.commits, Script.aborts, Script.is_replaced, Script.times_out, Script.runs_out_of_epochs)


def start(flush: str) -> World:
    world = World(flush, offsets_topic_num_partitions="1", transaction_state_log_num_partitions="1")
    make_topic(Client(world), "t", PARTITIONS)
    return world


def logs_of(files: MemoryFiles) -> list[str]:
    """The directories with something in them that a power cut could take."""
    return sorted(
        {
            path.rpartition("/")[0]
            for path, inode in inodes(files)
            if inode.synced_bytes < len(inode.data) and path.endswith(".log")
        }
    )


def inodes(files: MemoryFiles):
    return [
        (f"{directory}/{name}", inode)
        for directory, names in files._names.items()
        for name, inode in names.items()
        if inode is not None
    ]


def power_cut(files: MemoryFiles, losing: tuple[str, ...]) -> MemoryFiles:
    """The disk after a power cut that took what was not synced in some directories, and nothing elsewhere."""
    after = files.crash()
    before = dict(inodes(files))
    for path, inode in inodes(after):
        if path.rpartition("/")[0] in losing:
            kept = before[path].synced_bytes
            del inode.data[kept:]
            inode.synced_bytes = kept
    return after


def died_at(flush: str, nth: int, flow, *, v2: bool, short_bytes: int = 0):
    """The world after the script was killed in its nth change of the disk; None: it came through."""
    world = start(flush)
    script = Script(world, v2=v2)
    world.files.kill_at(nth, short_bytes=short_bytes)
    try:
        flow(script)
    except SimulatedCrash:
        return world, script
    return None


def is_deciding(files: MemoryFiles) -> bool:
    """Whether a start on this disk sends markers, which may be there already."""
    return last_state(files) in (PREPARE_COMMIT, PREPARE_ABORT)


def check(died: World, files: MemoryFiles, script: Script, *, sent_before: int = 0) -> None:
    """A new broker starts on what was left: it is as transactions promise, now and when all has timed out."""
    sent_again = sent_before + is_deciding(files)
    world = died.again(files)
    client = Client(world)
    order_is_kept(world)
    # what was decided is over by now; what was open is over when its time is
    world.advance(TIMEOUT_MS + 1)
    states = states_in_log(world) if world.broker.transactions.shards else []
    assert not states or states[-1] in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT), states
    fates = [state == COMPLETE_COMMIT for state in states if state in (COMPLETE_COMMIT, COMPLETE_ABORT)]
    nothing_hangs(client)
    fates_are_right(client, fates, script)
    markers_are_right(world, sent_again)
    it_goes_on(client, script)


def nothing_hangs(client: Client) -> None:
    """The last stable offset is the end, and no offset is unstable."""
    for index in range(PARTITIONS):
        answer = fetched(client, "t", index)
        assert answer.error_code == 0
        assert answer.last_stable_offset == answer.high_watermark
    assert all(code == 0 for _, code in committed(client, partitions=(0, 1), stable=True).values())


def fates_are_right(client: Client, fates: list[bool], script: Script) -> None:
    """All of a transaction is there or nothing, everywhere alike; what was told is so."""
    assert fates[: len(script.told)] == script.told
    assert len(script.told) <= len(fates) <= len(script.wanted)
    assert not any(fate and not wanted for fate, wanted in zip(fates, script.wanted, strict=False))
    kept = [number for number, fate in enumerate(fates, 1) if fate]
    offsets = committed(client, partitions=(0, 1), stable=True)
    for index in range(PARTITIONS):
        assert visible(client, "t", index) == [f"{number}-{index}".encode() for number in kept]
        assert offsets[index][0] == (kept[-1] * 10 + index if kept else -1)


def markers_are_right(world: World, sent_again: int) -> None:
    """One for each partition of what was decided, and another one as often as that was to be sent again."""
    expected: Counter[tuple[str, int, int]] = Counter()
    for value in values_in_log(world):
        if value.transaction_status in (PREPARE_COMMIT, PREPARE_ABORT):
            kind = COMMIT if value.transaction_status == PREPARE_COMMIT else ABORT
            for topic in value.transaction_partitions:
                expected.update((topic.topic, index, kind) for index in topic.partition_ids)
    for topic, index in (("t", 0), ("t", 1), (OFFSETS, 0)):
        found = Counter(kind for _, _, kind in markers_of(world, topic, index))
        for kind in (COMMIT, ABORT):
            assert expected[topic, index, kind] <= found[kind] <= expected[topic, index, kind] + sent_again
        assert found.total() <= sum(expected[topic, index, kind] for kind in (COMMIT, ABORT)) + sent_again


def it_goes_on(client: Client, script: Script) -> None:
    """Another producer of this transactional id has the better epoch, and all works."""
    successor = Producer(client, script.producer.name, v2=script.producer.v2)
    assert successor.init() == 0
    assert successor.epoch > script.producer.epoch or successor.id != script.producer.id
    if not successor.v2:
        assert successor.add({"t": [0]}) == {("t", 0): 0}
        assert successor.add_offsets() == 0
    assert successor.produce(b"after") == 0
    assert successor.send_offsets({0: 99}) == {0: 0}
    assert successor.end() == 0
    assert visible(client)[-1:] == [b"after"]
    assert committed(client, stable=True) == {0: (99, 0)}


def last_state(files: MemoryFiles) -> int | None:
    """The state in the last record that is whole on this disk."""
    state = None
    for path, inode in inodes(files):
        if path.startswith("/data/__transaction_state-0/") and path.endswith(".log"):
            data = bytes(inode.data)
            for position, header in iter_batches(data):
                for _, value in transaction_values(iter_records(data[position : position + header.size])):
                    state = value.transaction_status
    return state


def values_in_log(world: World) -> list[TransactionLogValue]:
    """Every record of every transactional id, in order."""
    found = []
    for shard in world.broker.transactions.shards:
        shard.require()
        for _, batch in shard.log.batches(0):
            found += [value for _, value in transaction_values(iter_records(batch))]
    return found


def order_is_kept(world: World) -> None:
    """Data lies only where the coordinator's log names the partition: Ongoing was durable before it."""
    broker = world.broker
    broker.transactions.open()
    named = {
        (value.producer_id, topic.topic, index)
        for value in values_in_log(world)
        for topic in value.transaction_partitions or ()
        for index in topic.partition_ids
    }
    topic = broker.metadata.topics["t"]
    logs = [("t", index, broker.partitions.get(topic, index).log) for index in range(PARTITIONS)]
    logs += [(OFFSETS, shard.machine.index, shard.log) for shard in broker.groups.shards if shard.log is not None]
    for name, index, log in logs:
        for header, _ in log.batches(0):
            if header.producer_id >= 0:
                assert (header.producer_id, name, index) in named, (name, index)
