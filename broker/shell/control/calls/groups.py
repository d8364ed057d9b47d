"""Handlers of groups, so that a test can look without a client: state, members, committed offsets; wait for a state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from broker.asks import groups
from broker.shell.asking import Asking, ask
from broker.shell.control.calls.group_members import describe
from broker.shell.control.calls.records import LOOK_AGAIN_S
from broker.shell.control.of_cluster.groups import STATES
from broker.shell.control.routes import Call, RefusedError
from broker.shell.control.waiting import Wait
from protocol.errors import KafkaError

if TYPE_CHECKING:
    from broker.shell.cluster_server import ClusterServer


class GroupState(TypedDict):
    """A group's state and the ids of its members."""

    group: str
    state: str
    type: str
    members: list[str]


class AwaitedGroup(GroupState):
    """A group that was waited for."""

    met: bool
    why: str


class CommittedRow(TypedDict):
    """An offset that a group has committed."""

    topic: str
    partition: int
    offset: int
    metadata: str


async def show_group(cluster: ClusterServer, call: Call) -> GroupState:
    """A group's state and members; a group that does not exist is Dead. Errors: as describe."""
    with Asking(cluster) as asking:
        return await _describe(cluster, asking, call.words["group"])


async def wait_for_group(cluster: ClusterServer, call: Call) -> AwaitedGroup:
    """Wait until a group has a state, and so many members. Errors: RefusedError, StorageError, OSError.

    While its coordinator does not answer, it is Unknown.
    """
    body, group = call.body, call.words["group"]
    state, members, timeout_ms = STATES.get(body["state"]), body.get("members"), body.get("timeout_ms", 0)
    if state is None:
        raise RefusedError(400, f'"state" takes one of {", ".join(STATES)}')
    with Asking(cluster) as asking, Wait(cluster, timeout_ms, LOOK_AGAIN_S) as wait:
        while True:
            failure = ""
            try:
                found = await _describe(cluster, asking, group)
            except (KafkaError, RefusedError) as error:  # another broker may lead soon
                found = {"group": group, "state": "Unknown", "type": "", "members": []}
                failure = f": {str(error) or type(error).__name__}"
            met = found["state"] == state and members in (None, len(found["members"]))
            if met or wait.is_over:
                return {**found, "met": met, "why": "" if met else _why(found, body) + failure}
            await wait.pause()


def _why(found: GroupState, wanted: Mapping[str, Any]) -> str:
    """Why a group is not as it was to be."""
    as_wanted = wanted["state"] + (f" with {_members(wanted['members'])}" if "members" in wanted else "")
    is_now = f"{found['state'].lower()} with {_members(len(found['members']))}"
    return f"group {found['group']:.100} is {is_now}, not {as_wanted}"


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"


async def _describe(cluster: ClusterServer, asking: Asking, group: str) -> GroupState:
    found = await describe(cluster, asking, group)
    members = [each["member"] for each in found["members"]]
    return {"group": group, "state": found["state"], "type": found["type"], "members": members}


async def committed(cluster: ClusterServer, call: Call) -> list[CommittedRow]:
    """The offsets that a group has committed. Errors: RefusedError."""
    return [
        {
            "topic": topic.name,
            "partition": each.partition_index,
            "offset": each.committed_offset,
            "metadata": each.metadata or "",
        }
        for topic in await ask(cluster, groups.committed(call.words["group"]))
        for each in topic.partitions
    ]
