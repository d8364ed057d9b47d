"""Random histories of groups, which a broker and its twin go on with: the twin has started anew on the broker's disk.

Both are asked the same, and answer the same: epochs, assignments, refused commits. The twin has only what the log says,
so each answer that follows from something else is found, not only what can be asked at once after a start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from budget import short_and_slow
from core_broker import Client, World
from mixed_requests_kit import GROUPS, TOPICS, MixedHistory
from unit.coordinator.groups.streams.kit import as_dict, subtopology, tasks, topic_info, topology

from broker.coordinator.groups.consumer import target
from broker.coordinator.groups.machine import GroupMachine
from broker.coordinator.groups.streams import target as streams_target
from protocol.errors import ErrorCode as E
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest
from protocol.messages.group_admin import DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetFetchRequest, OffsetFetchRequestGroup
from protocol.messages.streams_group import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequestEndpoint,
)

ROUNDS = 4
NEVER_MS = 1_800_000
STREAMS = "k"
STATELESS = topology(subtopology("0", "a"))
STATEFUL = topology(
    subtopology("0", "a", "b", sinks=("k-r",)),
    subtopology("1", repartition=(topic_info("k-r"),), changelogs=(topic_info("k-log"),)),
)
SETTINGS = {
    "offsets_topic_num_partitions": "1",
    "transaction_state_log_num_partitions": "1",
    "group_consumer_session_timeout_ms": str(NEVER_MS),
    "group_consumer_max_session_timeout_ms": str(NEVER_MS),
    "group_streams_session_timeout_ms": str(NEVER_MS),
    "group_streams_max_session_timeout_ms": str(NEVER_MS),
}
# Kafka's streams groups do not log the epoch of the endpoints either
NOT_COMPARED = re.compile(r"endpoint_information_epoch=-?\d+|partitions_by_user_endpoint=(None|\[.*\])")


class Twins:
    """A broker, and sometimes its twin; both do all that one is told to do."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.twin: World | None = None

    @property
    def worlds(self) -> Iterable[World]:
        return (self.world,) if self.twin is None else (self.world, self.twin)

    def machines(self) -> list[GroupMachine]:
        found = []
        for world in self.worlds:
            (shard,) = world.broker.groups.shards
            shard.require()
            found.append(shard.machine)
        return found

    def part(self, seed: int) -> None:
        """The twin begins, with the same clock and the same random numbers to come."""
        twin = self.world.again(self.world.files.crash())
        self.world.advance(1000)  # as much as a start takes
        self.twin = twin
        assert self.twin.clock.now_ms() == self.world.clock.now_ms()
        for world in self.worlds:
            world.env.rng.seed(seed)
        live, started = self.machines()
        for group_id, group in live.groups.items():
            if group.group_type == "consumer":  # each start makes a group look at the topics again, as in Kafka
                twin = started.groups[group_id]
                twin.topics_made_seen = self.twin.broker.metadata.topics_made
                group.topics_made_seen = self.world.broker.metadata.topics_made
                for each, world in ((group, self.world), (twin, self.twin)):
                    each.metadata_seen = world.broker.metadata, world.broker.metadata.version

    def end(self, *, twin_stays: bool) -> None:
        """One of them goes."""
        if twin_stays and self.twin is not None:
            self.world = self.twin
        self.twin = None

    def run(self) -> None:
        for world in self.worlds:
            world.run()

    settle = run

    def advance(self, ms: int) -> None:
        for world in self.worlds:
            world.advance(ms)


class TwinClients:
    """A connection to each twin; what they answer is compared."""

    def __init__(self, twins: Twins) -> None:
        self.twins = twins
        self.world = twins.worlds[0]
        self.clients = [Client(world) for world in twins.worlds]

    @property
    def closed(self) -> bool:
        return any(client.closed for client in self.clients)

    def send(self, request: Any, version: int) -> None:
        for client in self.clients:
            client.send(request, version)

    def replies(self) -> list[Any]:
        answers = [client.replies() for client in self.clients]
        shown = [[NOT_COMPARED.sub("", str(in_order(answer))) for answer in each] for each in answers]
        assert all(each == shown[0] for each in shown), "\n".join(map(str, shown))
        return answers[0]

    def call(self, request: Any, version: int) -> Any:
        self.send(request, version)
        self.twins.run()
        answers = self.replies()
        assert answers, f"no reply to {type(request).__name__}"
        return answers[-1]

    def leave(self) -> None:
        for client in self.clients:
            client.leave()


def in_order(answer: Any) -> Any:
    """Streams groups tell the partitions of a topology from the first heartbeat after a start on."""
    for group in getattr(answer, "groups", ()):
        if hasattr(group, "topology"):
            group.topology = None
    return answer


class TwinHistory(MixedHistory):
    """One history: what happens to one broker, and from time to time to its twin as well."""

    WEIGHTS = (
        "consumer:16 expression:5 classic:4 streams:16 commit:14 send_offsets:8 end:5 advance:6 ask:4 "
        "delete_group:2 delete_offsets:2 remake_topic:2"
    )
    PASSES_MS = (10, 100, 1001, 3000)
    SESSION_MS, REBALANCE_MS = NEVER_MS, NEVER_MS

    def __init__(self, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(seed)
        choice = self.rng.choice
        if self.is_likely(0.3):  # every target is made between the turns
            monkeypatch.setattr(target, "WORK_AT_ONCE", 0)
            monkeypatch.setattr(target, "MIXED_WORK_AT_ONCE", 0)
            monkeypatch.setattr(streams_target, "WORK_AT_ONCE", 0)
        world = World(
            **SETTINGS,
            group_commit_fencing=choice(["assignment-epoch", "assignment-epoch-exact", "revocation-epoch", "strict"]),
            group_consumer_assignors=choice(["uniform,range", "range,uniform"]),
            group_consumer_assignment_interval_ms=choice(["0", "1000"]),
            group_streams_assignment_interval_ms=choice(["0", "1000"]),
            group_streams_initial_rebalance_delay_ms="0",
            group_streams_num_standby_replicas=choice(["0", "1"]),
        )
        self.world = self.twins = Twins(world)
        self.shape = choice([STATELESS, STATEFUL])
        self.tasks: dict[str, tuple[int, Any, Any]] = {}  # of a streams member: epoch, active and standby tasks
        self.begin()
        for producer in self.producers.values():  # once: what a start forgets of producers is not in question here
            producer.init()

    def connect(self) -> None:
        self.client = TwinClients(self.twins)
        self.sessions = {}
        for producer in self.producers.values():
            producer.client = self.client

    def member_of(self, group: str, probability: float) -> dict[str, Any]:
        """Also members that are late."""
        found = super().member_of(group, probability)
        if found and self.is_likely(0.5):
            found["epoch"] -= self.rng.randint(-1, 4)
        return found

    def do_expression(self) -> None:
        """A member that subscribes by a regular expression; it never says what it owns."""
        member = group, member_id = self.rng.choice(GROUPS), "r"
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=0)
        if member not in self.epochs:
            request.rebalance_timeout_ms, request.topic_partitions = NEVER_MS, []
        else:
            request.member_epoch = -1 if self.is_likely(0.15) else self.epochs[member]
        if member not in self.epochs or self.is_likely(0.3):
            request.subscribed_topic_regex = self.rng.choice(["a", "a|b", ".*", "c"])
        answer = self.client.call(request, 1)
        self.note(group, request.member_epoch, answer.error_code)
        if answer.error_code or request.member_epoch < 0:
            self.epochs.pop(member, None)
        else:
            self.epochs[member] = answer.member_epoch

    def do_streams(self) -> None:
        """A heartbeat of KIP-1071."""
        name = self.rng.choice(["t0", "t1", "t2"])
        request = StreamsGroupHeartbeatRequest(group_id=STREAMS, member_id=name, member_epoch=0)
        if name not in self.tasks or self.is_likely(0.05):
            request.topology, request.rebalance_timeout_ms, request.client_tags = self.shape, NEVER_MS, []
            request.active_tasks, request.standby_tasks, request.warmup_tasks = [], [], []
            request.process_id = self.rng.choice(["p0", "p1", "p2"])
            if self.is_likely(0.3):
                request.user_endpoint = StreamsGroupHeartbeatRequestEndpoint(host=name, port=1)
        elif self.is_likely(0.1):
            request.member_epoch = -1
        else:
            epoch, active, standby = self.tasks[name]
            request.member_epoch = max(1, epoch - self.rng.choice([0, 0, 0, 0, 1, -1]))
            if self.is_likely(0.7):
                request.active_tasks, request.standby_tasks, request.warmup_tasks = tasks(active), tasks(standby), []
        answer = self.client.call(request, 0)
        self.note(name, request.member_epoch, answer.error_code, answer.member_epoch)
        if answer.error_code or request.member_epoch < 0:
            self.tasks.pop(name, None)
            return
        _, active, standby = self.tasks.get(name, (0, {}, {}))
        if answer.active_tasks is not None:
            active, standby = as_dict(answer.active_tasks), as_dict(answer.standby_tasks)
        self.tasks[name] = answer.member_epoch, active, standby

    def do_ask(self) -> None:
        """All that can be asked."""
        for group in (*GROUPS, STREAMS):
            self.client.call(DescribeGroupsRequest(groups=[group]), 6)
            self.client.call(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
            self.client.call(StreamsGroupDescribeRequest(group_ids=[group]), 0)
            for stable in (False, True):
                asked = [OffsetFetchRequestGroup(group_id=group, topics=None)]
                self.client.call(OffsetFetchRequest(groups=asked, require_stable=stable), 9)
        self.client.call(ListGroupsRequest(), 5)

    def may_part(self) -> bool:
        """Whether nothing is under way that no log holds: rebalances, member ids that were given out, short timers."""
        (machine,) = self.twins.machines()
        timers = {name[0] for name in self.twins.world.broker.groups.shards[0].deadlines.by_name}
        return timers <= {"offsets", "session", "rebalance"} and not any(
            group.pending_joins or group.state.value in ("PreparingRebalance", "CompletingRebalance")
            for group in machine.groups.values()
        )

    def compare_fences(self) -> None:
        """Which commits and fetches of each member would be accepted, at any epoch."""
        live, started = (self.fences(machine) for machine in self.twins.machines())
        assert live == started

    def fences(self, machine: GroupMachine) -> dict[Any, tuple[E, E, E]]:
        found = {}
        for group_id, group in machine.groups.items():
            for member_id in group.members:
                for epoch in range(-2, max(getattr(group, "group_epoch", 0), 8) + 2):
                    fetch = machine.check_offset_fetch(group_id, member_id, epoch)
                    for topic, count in TOPICS.items():
                        for index in range(count):
                            places = [(topic, self.ids[topic], index)]
                            found[group_id, member_id, epoch, topic, index] = (
                                machine.check_offset_commit(group_id, 9, epoch, member_id, None, lambda p=places: p),
                                machine.check_txn_offset_commit(
                                    group_id, 6, epoch, member_id, None, lambda p=places: p
                                ),
                                fetch,
                            )
        return found

    def go_on_as_twins(self) -> None:
        self.client.leave()
        self.twins.run()
        if not self.may_part():
            self.connect()
            return
        self.lines.append("--- the twin starts")
        self.twins.part(self.rng.getrandbits(32))
        self.connect()
        self.compare_fences()
        self.do_ask()
        self.steps(self.rng.randrange(5, 50))
        self.do_ask()
        self.compare_fences()
        self.client.leave()
        self.twins.run()
        self.twins.end(twin_stays=self.is_likely(0.5))
        self.connect()


@pytest.mark.parametrize("seed", short_and_slow(range(500), 25))
def test_broker_that_has_started_anew_answers_like_the_one_that_has_not(seed, monkeypatch):
    history = TwinHistory(seed, monkeypatch)
    with history.told():
        for _ in range(ROUNDS):
            history.steps(history.rng.randrange(5, 60))
            history.go_on_as_twins()


@pytest.mark.heavy
def test_histories_have_groups_of_all_kinds_in_all_states_when_the_twin_starts(monkeypatch):
    """Or the comparison above compares little."""
    seen: set[str] = set()

    class Watched(TwinHistory):
        def compare_fences(self) -> None:
            super().compare_fences()
            live = self.twins.machines()[0]
            seen.update(f"{group.group_type} {group.state.value}" for group in live.groups.values())
            for (group_id, *_), codes in self.fences(live).items():
                seen.add(f"{live.groups[group_id].group_type} fence {codes[0].name}")
            seen.add("pending" if live.pending.count else "nothing pending")

    for seed in range(12):
        history = Watched(seed, monkeypatch)
        for _ in range(2):
            history.steps(40)
            history.go_on_as_twins()
    wanted = {
        *("classic Stable", "consumer Stable", "consumer Reconciling", "consumer Assigning", "streams Stable"),
        *("streams Reconciling", "streams Assigning", "consumer fence NONE", "consumer fence STALE_MEMBER_EPOCH"),
        *("streams fence NONE", "streams fence STALE_MEMBER_EPOCH", "consumer fence ILLEGAL_GENERATION", "pending"),
    }
    assert wanted <= seen, wanted - seen
