"""Consumer groups under everything that can happen to them, as a model with a client's eye on each member.

Members join, leave, go silent, lose answers, commit late; topics grow; time passes; the coordinator is killed. After
every step the replayed state is the live one, no partition is owned twice at one epoch, and every commit of an owner is
accepted. A *zombie* commit is one for a partition that has had another owner since the committing client had it, with
the epoch of then or with a later one:

    assignment-epoch-exact   refuses every zombie
    assignment-epoch         accepts a zombie only at the member's current epoch, as Apache Kafka does; one is found
"""

from __future__ import annotations

import pytest
from budget import budget
from consumer_group_model import Group
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test


class ExactGroup(Group):
    """With the rule to the letter, a zombie is never accepted."""

    fencing = "assignment-epoch-exact"

    def on_zombie(self, epoch: int, member_epoch: int) -> None:
        raise AssertionError("a zombie was accepted")


class ZombieAccepted(Exception):  # noqa: N818  # no error
    """What the hunt is for."""


class Hunt(Group):
    """Looks for a zombie that the default accepts."""

    def on_zombie(self, epoch: int, member_epoch: int) -> None:
        super().on_zombie(epoch, member_epoch)
        raise ZombieAccepted


QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
MODEL = budget(8, stateful_step_count=40, suppress_health_check=QUIET)
GENERATE = [Phase.generate]


@pytest.mark.heavy
@pytest.mark.parametrize("machine", [Group, ExactGroup], ids=["assignment-epoch", "assignment-epoch-exact"])
def test_group_holds_under_everything(machine):
    run_state_machine_as_test(machine, settings=MODEL)


@pytest.mark.heavy
def test_default_accepts_a_zombie_at_the_members_own_epoch():
    hunt = settings(
        MODEL, max_examples=400, phases=GENERATE, derandomize=True, database=None, report_multiple_bugs=False
    )
    with pytest.raises(ZombieAccepted):
        run_state_machine_as_test(Hunt, settings=hunt)
