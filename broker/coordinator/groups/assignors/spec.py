"""The input and the output of the assignors of consumer groups.

An assignor is a generator. It returns the changed targets, and yields now and then, so that a large group is assigned
between the turns of the event loop. Its input is a snapshot, which it does not change; it uses no clock or randomness.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

Assignment: TypeAlias = Mapping[bytes, tuple[int, ...]]  # topic id -> partitions
UNASSIGNED: Final[Assignment] = {}

Answer = TypeVar("Answer")
Changes: TypeAlias = dict[str, Assignment]  # member id -> new target; without unchanged ones
Steps: TypeAlias = Generator[None, None, Changes]


class Spec:
    """What an assignor knows of a group.

    topics      topic id -> partition count, of all topics that members subscribe to
    wants       member id -> the topics it subscribes to; None if all members subscribe to all of `topics`
    targets     member id -> its last target, of which it keeps what it can
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
        """The last target of a member."""
        return self.targets.get(member_id, UNASSIGNED)


def run(steps: Generator[None, None, Answer]) -> Answer:
    """Run all steps of an assignor at once; what it returns."""
    while True:
        try:
            next(steps)
        except StopIteration as stop:
            answer: Answer = stop.value
            return answer
