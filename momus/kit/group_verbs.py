"""What a test may do with the groups of a cluster: look, wait, seek members out, delete."""

from __future__ import annotations

from momus.kit.asks import Asks, late
from momus.kit.hidden import hides as __tracebackhide__  # noqa: F401  # pytest looks for it
from momus.kit.words import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class GroupVerbs(Asks):
    """The calls of a cluster that concern groups."""

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """The offsets that a group has committed, by topic and partition."""
        answer = self._ask("GET", f"/groups/{quoted(group)}/offsets")
        return {(row["topic"], row["partition"]): row["offset"] for row in answer}

    def wait_for_group(
        self, group: str, state: str = "stable", *, members: int | None = None, timeout: float = 10.0
    ) -> list[str]:
        """Wait until a group has a state, and so many members. Returns the ids of its members.

        state     "stable", "empty", "dead", "assigning", "reconciling", "preparing-rebalance", "completing-rebalance",
                  "not-ready".
        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError. ControlError: there is no such state.
        """
        body: dict[str, object] = {"state": state}
        if members is not None:
            body["members"] = members
        answer = self._wait(f"/groups/{quoted(group)}/wait", body, timeout)
        if not answer["met"]:
            raise late(answer["why"], timeout, "broker.aio.wait_for_group(...)")
        found: list[str] = answer["members"]
        return found

    def wait_for_committed(
        self, group: str, offsets: Mapping[tuple[str, int], int], *, timeout: float = 10.0
    ) -> dict[tuple[str, int], int]:
        """Wait until a group has committed these offsets, or later ones, by topic and partition. Returns what it has.

        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError: with what is committed. ControlError: the coordinator does not answer.
        """
        rows = [{"topic": topic, "partition": index, "offset": at} for (topic, index), at in offsets.items()]
        answer = self._wait(f"/groups/{quoted(group)}/wait-for-offsets", {"offsets": rows}, timeout)
        found = {(row["topic"], row["partition"]): row for row in answer["offsets"]}
        if not answer["met"]:
            raise late(answer["why"], timeout, "broker.aio.wait_for_committed(...)")
        return {place: row["offset"] for place, row in found.items()}

    def wait_for_lag(self, group: str, lag: int = 0, *, topic: str | None = None, timeout: float = 10.0) -> int:
        """Wait until a group is at most so many records after the ends of its partitions. Returns its lag.

        topic     of this one alone; None: of all that it has committed, and of all that its members have.
        timeout   seconds, of the machine's clock.
        Errors:   WaitTimeoutError: with the lag of each partition. ControlError: the coordinator does not answer.
        """
        body: dict[str, object] = {"lag": lag}
        if topic is not None:
            body["topic"] = topic
        answer = self._wait(f"/groups/{quoted(group)}/wait-for-lag", body, timeout)
        if not answer["met"]:
            raise late(answer["why"], timeout, "broker.aio.wait_for_lag(...)")
        return int(answer["lag"])

    def delete_group(self, group: str) -> None:
        """Delete a group without members, with its offsets. Errors: ControlError: it has members, or there is none."""
        self._ask("DELETE", f"/groups/{quoted(group)}")

    def rebalance(self, group: str) -> list[str]:
        """Start a rebalance of a group. Returns the ids of its members.

        Members of a classic group join again; in other groups the epoch increases, and members get the next one.
        Errors: ControlError: there is no such group, or it has no members.
        """
        return list(self._ask("POST", f"/groups/{quoted(group)}/rebalance")["members"])

    def expel_member(self, group: str, member: str) -> None:
        """Remove a member, by its id or the id of a static one: its next request is refused with UNKNOWN_MEMBER_ID.

        Errors: ControlError: there is no such group or member.
        """
        self._ask("POST", f"/groups/{quoted(group)}/expel", {"member": member})
