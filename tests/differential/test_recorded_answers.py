"""momus against what Apache Kafka 4.4.0 answered to thousands of requests: tests/differential/recorded*.jsonl.xz."""

from __future__ import annotations

import pytest

from differential import recording
from differential.brokers import WorldPeer
from differential.campaign import allow_list
from differential.generate.profiles import PROFILES
from differential.pair import Pair
from differential.play import Play
from differential.script import Script, describe

PARTS = 8  # so that the workers of pytest share them
LEAST_PAIRS = 5500
SHARE_PARTS = 2
LEAST_SHARE_PAIRS = 1900


def play(profile: str, part: int, parts: int) -> list[tuple[int, Play]]:
    """Every so many-th case, on a broker of its own."""
    chosen = PROFILES[profile]
    pair = Pair([WorldPeer(settings={**chosen.settings, **chosen.momus})], allow_list(profile))
    cases = [(number, case) for number, case in enumerate(recording.read(profile)) if number % parts == part]
    return [(number, recording.replay(pair, case)) for number, case in cases]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    """The broker's own log tells of every connection that it closes: dozens here, on purpose."""
    caplog.set_level("ERROR", "momus.connection")


def check(profile: str, part: int, parts: int) -> None:
    wrong = []
    for number, played in play(profile, part, parts):
        if played.outcome.findings:
            kind = played.outcome.findings[0].kind
            wrong.append(describe(Script(kind, "recorded", number, played.steps), played.outcome))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("part", range(PARTS))
def test_answers_are_those_kafka_gave(part: int) -> None:
    check("default", part, PARTS)


@pytest.mark.parametrize("part", range(SHARE_PARTS))
def test_answers_to_share_consumers_are_those_kafka_gave(part: int) -> None:
    check("share", part, SHARE_PARTS)


def test_recording_of_share_consumers_holds_enough_pairs() -> None:
    assert sum(len(case.steps) for case in recording.read("share")) >= LEAST_SHARE_PAIRS


def test_recording_holds_enough_pairs_of_every_family() -> None:
    cases = list(recording.read())
    assert sum(len(case.steps) for case in cases) >= LEAST_PAIRS
    assert len({case.family for case in cases}) == 11
