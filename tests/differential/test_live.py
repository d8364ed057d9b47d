"""A short run against a live Apache Kafka: the machine as `make differ` starts it, in two of its profiles."""

from __future__ import annotations

from pathlib import Path

import pytest

from differential.campaign import Brokers, Plan, run

CASES = {"default": 60, "assignors": 20}


@pytest.mark.usefixtures("kafka_libs")
@pytest.mark.parametrize("profile", sorted(CASES))
def test_random_requests_are_answered_as_kafka_answers_them(profile: str, tmp_path: Path) -> None:
    brokers = Brokers(profile, inside=False)
    try:
        result = run(Plan(profile, 1, CASES[profile], scripts=tmp_path), brokers)
    finally:
        brokers.stop()
    assert result.pairs > CASES[profile]
    assert not result.broken
    assert not result.real, "the cases are in the captured output"
