"""Answers about share groups compared with those that Apache Kafka 4.4.0 gave to the same scripts.

share_groups.json was written by share_scripts.py against a broker of Apache Kafka 4.4.0 (KRaft, one node).
"""

from __future__ import annotations

import json

import pytest
from core_broker import Client, World
from share_scripts import RECORDED, Player, random_script

# Kafka fails with a NullPointerException (SharePartition.fetchSubMapForAcknowledgementBatch): nothing is in flight, and
# the acknowledged records lie on both sides of the start offset. Here such an acknowledgement is refused.
FAILED, REFUSED = [-1, []], 121

ANSWERS = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def world():
    return World(share_coordinator_state_topic_num_partitions="5", group_share_first_assignment="next-heartbeat")


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_script_is_answered_as_by_kafka(world, number):
    client, script = Client(world), random_script(number)

    def call(request, version):
        client.send(request, version)
        world.run()
        replies = client.replies()
        if not replies:  # a ShareFetch that waits a little
            world.advance(request.max_wait_ms)
            replies = client.replies()
        return replies[0]

    answers = json.loads(json.dumps(Player(call, f"script-{number}", world.advance).play(script)))
    for at, (step, wanted, found) in enumerate(zip(script, ANSWERS[number], answers, strict=True)):
        if wanted == FAILED and step[0] == "wrong":
            assert found[1][0][1] == REFUSED
            break  # the sessions go different ways from here
        assert (at, step, found) == (at, step, wanted), f"after {script[:at]}"
