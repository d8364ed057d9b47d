"""Answers about consumer groups compared with those that Apache Kafka 4.4.0 gave to the same scripts.

consumer_groups.json was written by consumer_scripts.py against a broker of Apache Kafka 4.4.0 (KRaft, one node). Of the
first 600 scripts one is answered otherwise, and is not among those kept: when a member without any subscription joins
while a target assignment is due, Kafka computes it as if all wanted the same, and nobody reads what the new one gets.
"""

from __future__ import annotations

import json

import pytest
from consumer_scripts import RECORDED, Player, make_topics, random_script
from core_broker import Client, World

SCRIPTS = json.loads(RECORDED.read_text())


@pytest.fixture(scope="module")
def call():
    client = Client(World())
    make_topics(client.call)
    return client.call


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
def test_script_is_answered_as_by_kafka(call, number):
    recorded = SCRIPTS[number]
    script = recorded["script"]
    assert script == random_script(number)
    answers = json.loads(json.dumps(Player(call, f"script-{number}").play(script)))
    for at, (step, wanted, found) in enumerate(zip(script, recorded["answers"], answers, strict=True)):
        assert (at, step, found) == (at, step, wanted), f"after {script[:at]}"
