"""Consumer groups from outside: describing, listing, deleting, and what becomes of their offsets."""

from __future__ import annotations

import pytest
from consumer_kit import Groups
from core_broker import Client

from broker.coordinator.groups.consumer.group import ConsumerGroup
from broker.coordinator.groups.consumer.member import CurrentAssignment
from broker.coordinator.groups.consumer.records import current_record, group_record, target_epoch_record
from protocol.errors import ErrorCode as E
from protocol.messages.consumer_group import ConsumerGroupDescribeRequest
from protocol.messages.group_admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from protocol.messages.offsets import OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic


@pytest.fixture
def g():
    retention = {"offsets_retention_minutes": "10", "offsets_retention_check_interval_ms": "60000"}
    with Groups({"t": 4, "u": 1}, **retention) as groups:
        yield groups


def listed(groups: Groups, states=(), types=(), version=5):
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    found = groups.client.call(request, version).groups
    return [(x.group_id, x.protocol_type, x.group_state, x.group_type) for x in found]


def delete_offsets(groups: Groups, topic: str, partition: int):
    row = OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)])
    answer = groups.client.call(OffsetDeleteRequest(group_id="g", topics=[row]), 0)
    return answer.error_code or answer.topics[0].partitions[0].error_code


def test_describe_tells_epochs_members_and_both_assignments(g):
    a = g.member("a", rack="r", instance="i")
    a.join()
    b = g.member("b")
    b.join()
    a.beat()
    found = g.describe()
    assert (found.error_code, found.group_state, found.group_epoch, found.assignment_epoch) == (0, "Reconciling", 3, 3)
    assert found.assignor_name == "uniform"
    one, two = found.members
    assert (one.member_id, one.instance_id, one.rack_id, one.member_epoch) == ("a", "i", "r", 2)
    assert (one.client_id, one.client_host, one.subscribed_topic_names) == ("client", "/127.0.0.1", ["t"])
    (has,) = one.assignment.topic_partitions
    assert (has.topic_name, has.partitions) == ("t", [0, 1, 2, 3])  # what it has to give back is still its own
    assert [t.partitions for t in one.target_assignment.topic_partitions] == [[0, 1]]
    assert (two.assignment.topic_partitions, two.member_type) == ([], 1)
    assert g.describe(version=0).members[0].member_type == -1


def test_describe_of_what_is_no_consumer_group_is_not_found(g):
    g.commit("", -1, 0, group_id="simple")
    for group_id, text in (("nothing", "not found"), ("simple", "is not a consumer group")):
        found = g.describe(group_id)
        assert (found.error_code, text in found.error_message) == (E.GROUP_ID_NOT_FOUND, True)
    assert g.describe("").error_code == E.INVALID_GROUP_ID


def test_describe_tells_operations_of_known_groups_when_asked(g):
    g.joined("a")
    request = ConsumerGroupDescribeRequest(group_ids=["g", "missing"], include_authorized_operations=True)
    found, missing = g.client.call(request, 1).groups
    assert (found.authorized_operations, missing.authorized_operations) == (3400, -(2**31))
    assert g.describe().authorized_operations == -(2**31)


def test_listing_tells_type_and_state_and_filters_by_both(g):
    g.joined("a")
    g.commit("", -1, 0, group_id="simple")
    row = ("g", "consumer", "Stable", "consumer")
    assert set(listed(g)) == {row, ("simple", "", "Empty", "classic")}
    assert listed(g, types=["CONSUMER"]) == [row]
    assert listed(g, states=["stable"]) == [row]
    assert listed(g, states=["Assigning"]) == []
    assert listed(g, types=["streams"]) == []


def test_describe_groups_knows_classic_groups_only(g):
    g.joined("a")
    new, old = (g.client.call(DescribeGroupsRequest(groups=["g"]), v).groups[0] for v in (6, 5))
    assert (new.error_code, new.group_state) == (E.GROUP_ID_NOT_FOUND, "Dead")
    assert "is not a classic group" in new.error_message
    assert (old.error_code, old.group_state) == (0, "Dead")


def test_group_with_members_is_not_deleted_and_an_empty_one_goes_with_its_offsets(g):
    (a,) = g.joined("a")
    a.commit(0)
    answer = g.client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == E.NON_EMPTY_GROUP
    a.leave()
    answer = g.client.call(DeleteGroupsRequest(groups_names=["g"]), 2)
    assert answer.results[0].error_code == 0
    assert (g.group(), g.committed()) == (None, {})
    g.restart()
    g.world.broker.groups.of("g").require()
    assert g.group() is None


def test_offsets_of_subscribed_topics_cannot_be_deleted(g):
    (a,) = g.joined("a")
    a.commit(0)
    a.commit(0, topic="u")
    assert delete_offsets(g, "t", 0) == E.GROUP_SUBSCRIBED_TO_TOPIC
    assert delete_offsets(g, "u", 0) == 0
    assert (g.committed("t"), g.committed("u")) == ({0: 1}, {})
    a.leave()
    assert delete_offsets(g, "t", 0) == 0


def test_offsets_expire_when_their_topic_is_not_subscribed_and_the_group_with_them(g):
    (a,) = g.joined("a")
    a.commit(0)
    a.commit(0, topic="u")
    for _ in range(20):
        g.advance(40_000)
        a.beat()
    assert (g.committed("t"), g.committed("u")) == ({0: 1}, {})
    a.leave()
    g.advance(70_000)
    assert (g.committed("t"), g.group()) == ({}, None)


def test_group_found_broken_is_reported_and_served(caplog):
    g = Groups({"t": 4})
    g.joined("a")
    shard = g.world.broker.groups.of("g")
    with pytest.raises(AssertionError, match=r"group g: .*member a is at 99, above 2"):
        shard.append(
            [current_record("g", "a", CurrentAssignment(99, 98, 0, {g.ids["t"]: {0: 120}})), group_record("g", 1, 0)]
        )
    g.world.run()
    g.world = g.world.crash()
    g.world.broker.groups.of("g").require()
    assert sum("as it was loaded" in r.getMessage() for r in caplog.records) == 3
    g.client = Client(g.world)
    assert g.describe().members[0].member_epoch == 99
    assert g.member("a").join().error_code == 0
    assert g.member("b").join().error_code == 0


def test_member_ahead_of_its_group_is_found_by_its_own_record_and_by_the_groups():
    g = Groups({"t": 4})
    g.joined("a", "b")
    shard = g.world.broker.groups.of("g")
    epoch = g.group().assignment_epoch
    for records in ([current_record("g", "a", CurrentAssignment(99, 98, 0, {}))], [target_epoch_record("g", epoch, 0)]):
        with pytest.raises(AssertionError, match=rf"group g: \['member a is at 99, above {epoch}'\]"):
            shard.append(records)


def test_group_is_the_same_whatever_order_its_records_are_in(g):
    a, b = g.joined("a", "b", instance=None)
    log = g.world.broker.groups.of("g").log
    from protocol.messages.coordinator_records import decode_record
    from protocol.record_batch import iter_records

    last: dict[bytes, bytes | None] = {}
    for _, batch in log.batches(0):
        for record in iter_records(batch):
            last[record.key] = record.value
    forward, backward = ConsumerGroup("g"), ConsumerGroup("g")
    for group, keys in ((forward, list(last)), (backward, list(last)[::-1])):
        for key in keys:
            group.replay(*decode_record(key, last[key]))
    assert forward.facts() == backward.facts() == g.group().facts()
    assert group_record("g", 1, 0)[0] in last
    assert {a.member_id, b.member_id} == set(forward.members)


def test_new_racks_of_the_brokers_move_the_group_epoch_and_nothing_else(g):
    a, b = g.joined("a", "b")
    before, epoch = (a.assigned, b.assigned), g.group().group_epoch
    g.world = g.world.restart(broker_rack="north")
    g.client = Client(g.world)
    a.beat()
    assert g.group().group_epoch == epoch + 1
    g.settle([a, b])
    assert (g.group().group_epoch, (a.assigned, b.assigned)) == (epoch + 1, before)
