"""Who had which partition, by records of a group of each type: stretches begin, go on and end."""

from __future__ import annotations

from broker.shell.page.past.owners import Owners
from protocol.codegen import codec
from protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolAssignmentTopicPartition
from protocol.messages.coordinator_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from protocol.messages.streams_group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupCurrentMemberAssignmentValueTaskIds,
)

TOPIC = bytes(15) + b"\x01"


def made() -> Owners:
    return Owners(lambda topic_id: "orders" if topic_id == TOPIC else "")


def stretches(owners: Owners) -> list[tuple[str, str, int, int, int]]:
    return [(r["partition"], r["member"], r["epoch"], r["since_ms"], r["until_ms"]) for r in owners.rows()]


def generation(owners: Owners, number: int, at_ms: int, **has: list[int]) -> None:
    """A generation of a classic group: member -> its partitions."""
    members = []
    for member, places in has.items():
        topic = ConsumerProtocolAssignmentTopicPartition(topic="orders", partitions=places)
        assignment = codec(ConsumerProtocolAssignment, 1).encode(
            ConsumerProtocolAssignment(assigned_partitions=[topic])
        )
        members.append(
            MemberMetadata(
                member_id=member,
                client_id=f"{member}-client",
                client_host="/h",
                session_timeout=1,
                subscription=b"",
                assignment=b"\x00\x01" + assignment,
            )
        )
    value = GroupMetadataValue(
        protocol_type="consumer", generation=number, protocol="range", leader="a", members=members
    )
    owners.add(GroupMetadataKey(group="g"), value, at_ms)


def consumer(owners: Owners, member: str, at_ms: int, has: dict[int, int], gives_up: list[int] | None = None) -> None:
    """A member of a consumer group: partition -> epoch."""
    topic = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
    owners.add(
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id=member),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=9,
            previous_member_epoch=8,
            state=0,
            assigned_partitions=[topic(topic_id=TOPIC, partitions=list(has), assignment_epochs=list(has.values()))],
            partitions_pending_revocation=[topic(topic_id=TOPIC, partitions=gives_up)] if gives_up else [],
        ),
        at_ms,
    )


def test_classic_owner_keeps_its_stretch_over_generations_and_gives_up_the_rest():
    owners = made()
    generation(owners, 1, 10, a=[0, 1])
    generation(owners, 2, 20, a=[0], b=[1])
    owners.add(GroupMetadataKey(group="g"), None, 30)
    assert stretches(owners) == [
        ("orders-1", "b", 2, 20, 30),
        ("orders-0", "a", 1, 10, 30),
        ("orders-1", "a", 1, 10, 20),
    ]
    assert owners.rows()[0]["client"] == "b-client"


def test_consumer_owner_has_what_it_must_give_up_until_it_has_given_it_up():
    owners = made()
    said = ConsumerGroupMemberMetadataValue(
        client_id="bar", client_host="/h", subscribed_topic_names=[], rebalance_timeout_ms=1, server_assignor=None
    )
    owners.add(ConsumerGroupMemberMetadataKey(group_id="g", member_id="a"), said, 5)
    consumer(owners, "a", 10, {0: 3, 1: 3})
    consumer(owners, "a", 20, {0: 3}, gives_up=[1])
    assert stretches(owners) == [("orders-0", "a", 3, 10, -1), ("orders-1", "a", 3, 10, -1)]
    consumer(owners, "a", 30, {0: 3})
    consumer(owners, "b", 40, {1: 4})
    owners.add(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), None, 50)
    assert stretches(owners) == [
        ("orders-1", "b", 4, 40, -1),
        ("orders-0", "a", 3, 10, 50),
        ("orders-1", "a", 3, 10, 30),
    ]
    assert {row["client"] for row in owners.rows()} == {"bar", ""}


def test_group_that_changes_its_type_keeps_those_of_its_new_type():
    owners = made()
    generation(owners, 1, 10, a=[0])
    consumer(owners, "a", 20, {0: 2})
    owners.add(GroupMetadataKey(group="g"), None, 20)
    assert stretches(owners) == [("orders-0", "a", 2, 20, -1), ("orders-0", "a", 1, 10, 20)]


def test_streams_owner_has_tasks_of_each_role():
    owners, task = made(), StreamsGroupCurrentMemberAssignmentValueTaskIds
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        state=0,
        active_tasks=[task(subtopology_id="0", partitions=[1])],
        standby_tasks=[task(subtopology_id="0", partitions=[2])],
        warmup_tasks=[],
        active_tasks_pending_revocation=[task(subtopology_id="0", partitions=[3])],
        standby_tasks_pending_revocation=[],
        warmup_tasks_pending_revocation=[],
    )
    owners.add(StreamsGroupCurrentMemberAssignmentKey(group_id="g", member_id="s"), value, 7)
    assert [row["partition"] for row in owners.rows()] == ["0_1", "0_2 (standby)", "0_3"]
