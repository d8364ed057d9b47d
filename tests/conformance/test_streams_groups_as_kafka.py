"""The answers that Apache Kafka 4.4.0 gave to random scripts of streams group requests, given again.

streams_groups.json was written by `streams_scripts.py`. Where loads are even Kafka leaves the choice of a process or a
member to the order of a heap: a script is compared up to the step in which it shows that the brokers chose differently.
That is soon where members have no tasks yet: an assignment starts from what they have.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from conformance.streams_scripts import RECORDED, TOPICS, Answer, Player
from core_broker import Client, World, make_topic

SCRIPTS = json.loads(RECORDED.read_text())


def is_other_choice(mine: Answer, other: Answer) -> bool:
    """Whether two answers may differ by the tasks that were chosen: what is given back and waited for follows."""
    return mine[1] != "commit" and mine[:3] == other[:3] and (mine[1] == "describe" or mine[4] == other[4])


def same_steps(ours: list[Answer], theirs: list[Answer]) -> int:
    """How many steps were answered the same, up to a different choice of tasks."""
    for step, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if mine != other:
            assert is_other_choice(mine, other), f"step {step}"
            return step
    return len(ours)


def play(script: list[Any], group_id: str) -> list[Answer]:
    world = World(group_streams_num_standby_replicas="1")
    client = Client(world)
    for name, partitions in TOPICS.items():
        make_topic(client, name, partitions)
    return json.loads(json.dumps(Player(client.call, group_id).play(script)))


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_streams_group_answers_as_kafka(number):
    recorded = SCRIPTS[number]
    same_steps(play(recorded["script"], f"s{number}"), recorded["answers"])


@pytest.mark.heavy
def test_most_steps_are_answered_the_same():
    ours = [same_steps(play(r["script"], f"s{n}"), r["answers"]) for n, r in enumerate(SCRIPTS)]
    assert sum(ours) > 0.6 * sum(len(r["answers"]) for r in SCRIPTS)
