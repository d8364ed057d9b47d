"""What the doctor says of what it was told: the rules that no test can set up on one machine."""

from __future__ import annotations

import pytest

from momus.cli.doctor.findings import (
    OK,
    PROBLEM,
    WARNING,
    of_advertised,
    of_identity,
    of_partitions,
    of_skew,
    of_versions,
)

MODERN = {0: (3, 12), 1: (4, 17), 3: (0, 13)}


@pytest.mark.parametrize(
    ("asked", "advertised", "said"),
    [
        ("10.0.0.5:9092", "localhost:9092", "which is their own machine and not 10.0.0.5:9092"),
        ("broker:9092", "127.0.0.1:9092", "which is their own machine"),
        ("broker:9092", "[::1]:9092", "which is their own machine"),
        ("localhost:9092", "0.0.0.0:9092", "advertises 0.0.0.0"),
        ("localhost:9092", "[::]:9092", "advertises [::]"),
        ("localhost:9092", "broker:0", "advertises port 0"),
    ],
)
def test_advertised_address_that_cannot_be_right(asked, advertised, said):
    found = of_advertised(asked, "broker 1", advertised)
    assert found is not None
    assert (found.level, said in found.sentence) == (PROBLEM, True)


@pytest.mark.parametrize(
    ("asked", "advertised"), [("localhost:1", "127.0.0.1:1"), ("b:1", "b:2"), ("127.0.0.1:1", "b:1")]
)
def test_advertised_address_that_may_be_right(asked, advertised):
    assert of_advertised(asked, "broker 1", advertised) is None


def test_broker_that_answers_for_another_is_told():
    found = of_identity("broker 2", "b:9092", "one", "one", is_other_node=True)
    assert found is not None
    assert "another broker of the cluster answers" in found.sentence
    assert of_identity("broker 2", "b:9092", "one", "one", is_other_node=False) is None


def test_versions_tell_the_release_and_who_is_too_old():
    assert of_versions("b:1", MODERN, "4.3").sentence == (
        "it answers as Apache Kafka 4.3 does; clients below 2.1 are too old for it (KIP-896)"
    )
    assert "KIP-896" not in of_versions("b:1", {**MODERN, 1: (0, 17)}, None).sentence
    assert of_versions("b:1", {3: (0, 9)}, None).sentence.startswith("Produce is not there")
    assert of_versions("b:1", {}, None).level == PROBLEM


@pytest.mark.parametrize(
    ("ahead_ms", "level", "said"),
    [
        (4999, OK, "agree within 5 s"),
        (-90_000, PROBLEM, "is 90 s behind"),
        (7_200_000, PROBLEM, "is 2 hours ahead of"),
        (600_000, PROBLEM, "is 10 minutes ahead"),
    ],
)
def test_skew_is_told_in_the_largest_unit_that_fits(ahead_ms, level, said):
    found = of_skew("b:1", ahead_ms)
    assert (found.level, said in found.sentence) == (level, True)


def test_partitions_in_trouble_are_named_five_at_most():
    none, some = of_partitions([f"t-{n}" for n in range(7)], ["u-0"])
    assert (none.level, none.sentence) == (
        PROBLEM,
        "t-0, t-1, t-2, t-3, t-4 and 2 more have no leader: their brokers are down",
    )
    assert (some.level, some.sentence) == (WARNING, "u-0 have replicas that are not in sync")
    assert of_partitions([], []) == []
