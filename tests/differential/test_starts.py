"""What clients are told does not depend on starts: random cases on two momus, of which one ends and starts again.

What a start forgets, as in Kafka: producers of whom a kill leaves no record (DeleteRecords), the epoch before a fence,
a group without a record. And a refused batch no longer begins a segment, where a Fetch ends.
"""

from __future__ import annotations

from random import Random

import pytest
from core_broker import DATA

from differential.allow import AllowList
from differential.brokers import WorldPeer
from differential.generate.profiles import make_case
from differential.pair import Pair
from differential.plain import Values
from differential.play import Finding
from storage.files.sim_env import MemoryFiles

CASES = {"admin": 25, "cluster": 25, "offsets": 25, "log": 40, "transactions": 30}
FIRST = 22_040  # a case of the log soon after it deletes records right after a kill
STARTS = 3  # in each case
SETTINGS = {"producer.state": "latest"}  # by Kafka's rule a start forgets all but the last batch


class Staying(WorldPeer):
    """One that goes on where the other starts again."""

    def restart(self) -> None:
        self.world.clock.advance(1000)  # as long as a start of the other one takes
        self.world.run()


class Starting(WorldPeer):
    """One that is killed, stopped, or left for a fork of it."""

    rng = Random(0)

    def restart(self) -> None:
        how = self.rng.choice(["killed", "stopped", "forked"])
        if how == "killed":
            self.world = self.world.crash()
        elif how == "stopped":
            self.world = self.world.restart()
        else:
            files = MemoryFiles()
            self.world.run()
            self.world.broker.directory.copy_to(files, DATA)
            self.world = self.world.again(files)


def is_forgotten(finding: Finding, steps: list[Values]) -> bool:
    """Whether a start may forget what a difference is about."""
    api = finding.step["api"]
    if api in ("Produce", "DescribeProducers"):
        before = steps[: finding.number]
        last_start = max(at for at, step in enumerate(before) if step.get("do") == "restart")
        return any(step.get("api") == "DeleteRecords" for step in before[:last_start])
    if api == "Fetch":
        return all("Records" in each.path for each in finding.differences)
    return api in ("InitProducerId", "OffsetDelete", "DeleteGroups")


@pytest.mark.heavy
@pytest.mark.parametrize("family", sorted(CASES))
def test_cases_go_on_as_if_there_had_been_no_start(family: str) -> None:
    rng = Starting.rng = Random(family)
    pair = Pair([Staying(settings=SETTINGS), Starting(settings=SETTINGS)], AllowList([]))
    pairs = 0
    for number in range(CASES[family]):
        _, steps = make_case("default", FIRST + number, [family])
        for _ in range(STARTS):
            steps.insert(rng.randint(2, len(steps)), {"do": "restart"})
        outcome = pair.play(steps)
        pairs += outcome.pairs
        wrong = [each for each in outcome.findings if not is_forgotten(each, steps)]
        assert not wrong, (steps, wrong)
    assert pairs > 10 * CASES[family]
