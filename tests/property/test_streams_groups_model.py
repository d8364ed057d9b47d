"""A streams group under random joins, leaves, take-overs, heartbeats, silence, late commits and restarts, checked.

No task is active twice at one time, nor has one process two copies of it; the order of the epochs holds; a commit of
a current owner is accepted; one that is accepted though the task is not the member's comes from a member at its own
epoch; what the log says is what the broker knows.
"""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule
from unit.coordinator.groups.streams.kit import Member, StreamsWorld, subtopology, topic_info, topology

from broker.coordinator.groups.streams import target as streams_target
from protocol.errors import ErrorCode

WORK_AT_ONCE = streams_target.WORK_AT_ONCE
PARTITIONS = 3
SHAPE = topology(
    subtopology("0", "in", sinks=("g-r",)),
    subtopology("1", repartition=(topic_info("g-r"),), changelogs=(topic_info("g-log"),)),
)
TOPIC_OF = {"0": "in", "1": "g-r"}


class StreamsGroups(RuleBasedStateMachine):
    members = Bundle("members")

    @initialize(exact=st.booleans(), standbys=st.integers(0, 1), work_at_once=st.sampled_from([0, WORK_AT_ONCE]))
    def begin(self, exact: bool, standbys: int, work_at_once: int) -> None:
        streams_target.WORK_AT_ONCE = work_at_once  # 0: every target is made between the turns
        self.exact = exact
        self.world = StreamsWorld(
            {"in": PARTITIONS},
            group_commit_fencing="assignment-epoch-exact" if exact else "assignment-epoch",
            group_streams_num_standby_replicas=str(standbys),
        )
        self.made = 0

    @rule(target=members, process=st.integers(0, 2))
    def join(self, process: int) -> Member:
        self.made += 1
        member = self.world.member(f"m{self.made}", f"p{process}", shape=SHAPE)
        assert member.join().error_code == 0
        return member

    @rule(target=members, instance=st.sampled_from("012"))
    def join_or_take_over(self, instance: str) -> Member:
        """A static member, in place of the one before it if that has left for a while.

        It has the process of the one before: who brings the tasks of one process to another one may meet copies there,
        in Kafka too.
        """
        self.made += 1
        member = self.world.member(f"m{self.made}", f"p{instance}", shape=SHAPE, instance=instance)
        self.join_as_it_may(member)
        return member

    @rule(member=members)
    def leave_for_a_while(self, member: Member) -> None:
        if member.instance is not None:
            code = member.go_for_a_while().error_code
            assert code in (0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)

    @rule(member=members)
    def say_what_it_has(self, member: Member) -> None:
        self.seen(member, member.ack().error_code)

    @rule(member=members)
    def say_nothing(self, member: Member) -> None:
        self.seen(member, member.beat().error_code)

    @rule(member=members)
    def lose_a_reply(self, member: Member) -> None:
        epoch, active, standby = member.epoch, member.active, member.standby
        member.ack()
        member.epoch, member.active, member.standby = epoch, active, standby

    @rule(member=members)
    def join_again(self, member: Member) -> None:
        self.join_as_it_may(member)

    @rule(member=consumes(members))
    def leave(self, member: Member) -> None:
        assert member.leave().error_code in (0, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)

    @rule(seconds=st.sampled_from((1, 20, 44)))
    def let_time_pass(self, seconds: int) -> None:
        self.world.world.advance(seconds * 1000)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule(member=members, behind=st.integers(0, 3), of=st.sampled_from("01"), partition=st.integers(0, PARTITIONS - 1))
    def commit(self, member: Member, behind: int, of: str, partition: int) -> None:
        topic = TOPIC_OF[of]
        if topic not in self.world.world.broker.metadata.topics:
            return
        known = self.world.group().members.get(member.member_id)
        epoch = member.epoch - behind
        (code,) = member.commit(epoch, {topic: [partition]})
        if known is None:
            assert code == ErrorCode.UNKNOWN_MEMBER_ID or not self.world.group().members
            return
        current = known.current
        since = current.assignment_epoch(of, partition)
        if since is not None and since <= epoch <= current.member_epoch:
            assert code == 0, "an owner is refused"
        elif self.exact or epoch != current.member_epoch:
            assert code == ErrorCode.STALE_MEMBER_EPOCH, "a zombie is let in"
        else:
            assert code == 0, "at the member's own epoch the task is not looked at"

    def seen(self, member: Member, code: int) -> None:
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.FENCED_INSTANCE_ID):
            member.active, member.standby, member.epoch = {}, {}, 0
            self.join_as_it_may(member)
        else:
            assert code == 0

    def join_as_it_may(self, member: Member) -> None:
        """Join, without the instance id if another member has it, or the member itself: it is not away."""
        code = member.join().error_code
        if code == ErrorCode.UNRELEASED_INSTANCE_ID:
            member.instance = None
            code = member.join().error_code
        assert code == 0

    @invariant()
    def no_task_is_had_twice(self) -> None:
        if not self.made or not self.world.list():
            return
        group = self.world.group()
        assert group.inconsistencies() == []
        on: dict[tuple[str, str, int], str] = {}
        for member_id, member in group.members.items():
            held = member.current.assigned
            for tasks in (held.active, held.standby):
                for subtopology_id, partitions in tasks.items():
                    for partition in partitions:
                        where = (member.member_metadata.process_id, subtopology_id, partition)
                        assert on.setdefault(where, member_id) == member_id, f"{where} twice"

    def teardown(self) -> None:
        streams_target.WORK_AT_ONCE = WORK_AT_ONCE
        if hasattr(self, "world"):
            self.world.restart()


TestStreamsGroups = pytest.mark.heavy(StreamsGroups.TestCase)
