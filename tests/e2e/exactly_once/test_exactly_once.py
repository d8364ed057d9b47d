"""The short form of copy_run.py: each process and the broker are killed once, always inside a transaction."""

from __future__ import annotations

import pytest
from copy_run import WORKERS, copy, python_client

SEED = 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("client", "protocol"),
    [("confluent", "classic"), ("confluent", "consumer"), ("kafka_python", "classic"), ("aiokafka", "classic")],
)
def test_copies_of_killed_processes_and_a_killed_broker_are_there_once_and_in_order(client, protocol):
    zombies = 0 if client == "aiokafka" else 1
    told = {"records": 3000, "kills": 1, "broker_kills": 1, "zombies": zombies, "seed": SEED}
    figures = copy(python_client(client), protocol=protocol, **told)
    assert (figures.killed, figures.broker_killed, figures.zombies) == ([1] * WORKERS, 1, zombies)
    assert figures.refused + figures.gave_up >= zombies
