"""The commands `momus group wait`, `rebalance` and `expel`, which a broker obeys at its control endpoint."""

from __future__ import annotations

import click

from momus.cli.control_commands import _connect, _do
from momus.cli.control_place import Endpoint
from momus.cli.control_place import endpoint as _endpoint
from momus.cli.groups.commands import group
from momus.kit.asks import WaitTimeoutError
from momus.kit.group_verbs import GroupVerbs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from momus.control import Control

__all__ = ["group"]

_cluster = click.option("--cluster", metavar="NAME", help="Of a process with several clusters, this one.")
_timeout = click.option("--timeout", "timeout_s", default=10.0, show_default=True, help="Seconds to wait at most.")


class _Groups(GroupVerbs):
    """The groups of a cluster that a command names."""

    def __init__(self, address: Endpoint, cluster: str | None) -> None:
        control = _connect(address)
        self._control = control if cluster is None else control.of_cluster(cluster)

    @property
    def control(self) -> Control:
        return self._control


def _wait(work: Callable[[], object]) -> None:
    """Do it; exit code 1 with a sentence where it does not come in time."""
    try:
        _do(work)
    except WaitTimeoutError as error:
        raise click.ClickException(str(error)) from None


def _offset(text: str) -> tuple[tuple[str, int], int]:
    """TOPIC:PARTITION=OFFSET."""
    place, _, offset = text.rpartition("=")
    topic, _, index = place.rpartition(":")
    if not (topic and index.isdecimal() and offset.isdecimal()):
        raise click.BadParameter(f"{text!r} is not TOPIC:PARTITION=OFFSET", param_hint="--committed")
    return (topic, int(index)), int(offset)


@group.command("wait")
@click.argument("name", metavar="GROUP")
@click.option("--lag", type=click.IntRange(0), help="Until it is at most so many records after the ends.")
@click.option("--topic", help="With --lag: of this topic alone.")
@click.option(
    "--committed", multiple=True, metavar="TOPIC:PARTITION=OFFSET", help="Until this offset, or a later one, is."
)
@click.option("--state", help="Until it is stable, empty, dead, ...")
@click.option("--members", type=click.IntRange(0), help="With --state: and has so many members.")
@_timeout
@_cluster
@_endpoint
def group_wait(
    name: str,
    lag: int | None,
    topic: str | None,
    committed: tuple[str, ...],
    state: str | None,
    members: int | None,
    timeout_s: float,
    cluster: str | None,
    address: Endpoint,
) -> None:
    """Wait until a group has a state, a lag, or offsets; exit code 1 where that takes too long."""
    if (lag is not None) + bool(committed) + (state is not None) != 1:
        raise click.UsageError("wait for what? One of --lag, --committed and --state")
    if (topic is not None and lag is None) or (members is not None and state is None):
        raise click.UsageError("--topic goes with --lag, --members with --state")
    groups = _Groups(address, cluster)
    if lag is not None:
        _wait(lambda: groups.wait_for_lag(name, lag, topic=topic, timeout=timeout_s))
    elif committed:
        offsets = dict(map(_offset, committed))
        _wait(lambda: groups.wait_for_committed(name, offsets, timeout=timeout_s))
    else:
        assert state is not None
        _wait(lambda: groups.wait_for_group(name, state, members=members, timeout=timeout_s))


@group.command("rebalance")
@click.argument("name", metavar="GROUP")
@_cluster
@_endpoint
def group_rebalance(name: str, cluster: str | None, address: Endpoint) -> None:
    """Start a rebalance: classic members join again, others get the next epoch."""
    groups = _Groups(address, cluster)
    _do(lambda: groups.rebalance(name))
    click.echo(f"{name} rebalances")


@group.command("expel")
@click.argument("name", metavar="GROUP")
@click.argument("member")
@_cluster
@_endpoint
def group_expel(name: str, member: str, cluster: str | None, address: Endpoint) -> None:
    """Remove a member, by its id or its instance id: its next request meets UNKNOWN_MEMBER_ID."""
    groups = _Groups(address, cluster)
    _do(lambda: groups.expel_member(name, member))
    click.echo(f"expelled {member}")
