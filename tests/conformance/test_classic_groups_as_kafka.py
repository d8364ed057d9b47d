"""The answers that Apache Kafka 4.4.0 gave to random scripts of group requests, given again.

classic_groups.json was written by `group_scripts.py` on a fresh broker of Apache Kafka with
group.initial.rebalance.delay.ms=0. Where Kafka leaves the choice to the order of a hash map (who leads
when the leader went away) a script is compared up to the step in which the two brokers choose differently.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from conformance.group_scripts import CLIENTS, RECORDED, TOPIC, Answer, Player
from unit.coordinator.harness import ShardHarness
from unit.coordinator.harness_parts import Reply

from broker.handlers.classic_group import heartbeat, join_group, leave_group, sync_group
from protocol.messages.offsets import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

SCRIPTS = json.loads(RECORDED.read_text())
HANDLERS = {11: join_group, 12: heartbeat, 13: leave_group, 14: sync_group}


class HarnessWorld:
    """A world without sockets: a ShardHarness whose timers run when nothing else happens."""

    def __init__(self, harness: ShardHarness) -> None:
        self.harness = harness
        self.waiting: dict[int, Reply] = {}

    def is_busy(self, number: int) -> bool:
        return number in self.waiting

    def send(self, number: int, request: Any, version: int) -> None:
        h = self.harness
        if request.API_KEY == 8:
            generation = request.generation_id_or_member_epoch
            member = (request.member_id, request.group_instance_id)
            code = h.commit_check(generation, *member, group=request.group_id, version=version)
            partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
            if code == 0:
                h.commit(TOPIC, 0, 1, group=request.group_id)
            reply = Reply(0, version)
            reply.give(OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name=TOPIC, partitions=[partition])]))
        else:
            reply = h.send(HANDLERS[request.API_KEY], h.shard, request, version, f"client{number}")
        self.waiting[number] = reply

    def collect(self) -> list[tuple[int, Any]]:
        self.harness.advance()
        done = [(n, reply.response) for n, reply in self.waiting.items() if not reply.parked]
        for n, _ in done:
            del self.waiting[n]
        return done

    def describe(self, group_id: str) -> Any:
        return self.harness.describe(group_id, version=5)[0]


def left_to_chance(ours: list[Answer], theirs: list[Answer]) -> bool:
    """Whether nothing but the choice of a leader differs."""

    def without_choice(answers: list[Answer]) -> list[Answer]:
        return sorted(([*a[:5], a[6]] if a[1] == "JoinGroup" else a for a in answers), key=repr)

    return ours != theirs and without_choice(ours) == without_choice(theirs)


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_script_is_answered_as_kafka_answers_it(number: int) -> None:
    recorded = SCRIPTS[number]
    with ShardHarness(seed=number, group_max_session_timeout_ms=1_800_000) as h:
        player = Player(HarnessWorld(h), "g")
        for at, (step, theirs) in enumerate(zip(recorded["script"], recorded["answers"], strict=True)):
            ours = json.loads(json.dumps(player.step(*step)))
            if left_to_chance(ours, theirs):
                return
            assert ours == theirs, f"step {at}: {step} by a client {CLIENTS[step[1]]}"
