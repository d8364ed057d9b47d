"""The short form of copy_run.py: each process is killed once and the broker twice, always inside a transaction."""

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
    figures = copy(python_client(client), protocol=protocol, records=3000, kills=1, broker_kills=2, seed=SEED)
    assert (figures.killed, figures.broker_killed) == ([1] * WORKERS, 2)
