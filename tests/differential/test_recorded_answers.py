"""momus against what Apache Kafka 4.3.1 answered to five thousand requests: tests/differential/recorded.jsonl.xz."""

from __future__ import annotations

import pytest

from differential import recording
from differential.brokers import WorldPeer
from differential.campaign import allow_list
from differential.pair import Pair
from differential.play import Play
from differential.script import Script, describe

PARTS = 8  # so that the workers of pytest share them
LEAST_PAIRS = 5500


def play(part: int) -> list[tuple[int, Play]]:
    """Every PARTS-th case, on a broker of its own."""
    pair = Pair([WorldPeer()], allow_list())
    cases = [(number, case) for number, case in enumerate(recording.read()) if number % PARTS == part]
    return [(number, recording.replay(pair, case)) for number, case in cases]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The broker's own log tells of every connection that it closes: dozens here, on purpose."""
    caplog.set_level("ERROR", "momus.connection")


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_those_kafka_gave(part: int) -> None:
    wrong = []
    for number, played in play(part):
        if played.outcome.findings:
            kind = played.outcome.findings[0].kind
            wrong.append(describe(Script(kind, "recorded", number, played.steps), played.outcome))
    assert not wrong, "\n".join(wrong)


def test_recording_holds_enough_pairs_of_every_family() -> None:
    cases = list(recording.read())
    assert sum(len(case.steps) for case in cases) >= LEAST_PAIRS
    assert len({case.family for case in cases}) == 11
