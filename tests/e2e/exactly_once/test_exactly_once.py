"""The short form of copy_run.py: each process and the broker are killed once, always inside a transaction."""

from __future__ import annotations

import pytest
from budget import slow
from copy_run import WORKERS, copy, python_client

SEED = 5


@pytest.mark.parametrize(
    ("client", "protocol", "records"),
    [
        ("aiokafka", "classic", 1000),
        slow("aiokafka", "classic", 3000),
        slow("confluent", "classic", 3000),
        slow("confluent", "consumer", 3000),
        slow("kafka_python", "classic", 3000),
    ],
)
def test_copies_of_killed_processes_and_a_killed_broker_are_there_once_and_in_order(client, protocol, records):
    zombies = 0 if client == "aiokafka" else 1
    told = {"records": records, "kills": 1, "broker_kills": 1, "zombies": zombies, "seed": SEED}
    figures = copy(python_client(client), protocol=protocol, **told)
    assert (figures.killed, figures.broker_killed, figures.zombies) == ([1] * WORKERS, 1, zombies)
    assert figures.refused + figures.gave_up >= zombies
