"""Who shall have which partition: what an assignor is given, what it answers, and which ones there are.

An assignor is a generator: it answers by returning, and yields now and then so that a large group can be assigned
between the turns of the loop. It is given a snapshot, changes nothing, and knows neither clock nor randomness.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

Assignment: TypeAlias = Mapping[bytes, tuple[int, ...]]  # topic id -> partitions
UNASSIGNED: Final[Assignment] = {}

Answer = TypeVar("Answer")
Changes: TypeAlias = dict[str, Assignment]  # member id -> new target; members whose target stays are left out
Steps: TypeAlias = Generator[None, None, Changes]


class Spec:
    """A group as an assignor sees it.

    topics      partition count of every topic that somebody wants
    wants       the topics each member wants; None where all want all of `topics`
    targets     the target assignments so far: a member keeps of them what it can
    """

    __slots__ = ("instance_ids", "members", "targets", "topics", "wants")

    def __init__(
        self,
        members: Sequence[str],
        topics: Mapping[bytes, int],
        targets: Mapping[str, Assignment],
        wants: Mapping[str, frozenset[bytes]] | None = None,
        instance_ids: Mapping[str, str] | None = None,
    ) -> None:
        self.members = members
        self.topics = topics
        self.targets = targets
        self.wants = wants
        self.instance_ids = instance_ids or {}  # by member id

    def target(self, member_id: str) -> Assignment:
        """What a member was to have so far."""
        return self.targets.get(member_id, UNASSIGNED)


def run(steps: Generator[None, None, Answer]) -> Answer:
    """The answer of an assignor, waiting for it."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer
