"""Two answers of different runs: what is the same in them, in whatever order it stands."""

from __future__ import annotations

from momus.cli.replay.mapping import Mapping
from protocol.messages.classic_group import JoinGroupResponse, JoinGroupResponseMember
from protocol.messages.cluster import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from protocol.messages.offsets import OffsetFetchResponse, OffsetFetchResponsePartition, OffsetFetchResponseTopic
from protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


def topics(*rows: tuple[str, int]) -> MetadataResponse:
    """Names of topics, with the error code of the partition 1 of each; the partitions stand backwards."""
    made = []
    for name, code in rows:
        parts = [MetadataResponsePartition(partition_index=index, error_code=code * index) for index in (1, 0)]
        made.append(MetadataResponseTopic(name=name, partitions=parts))
    return MetadataResponse(topics=made)


def forwards(response: MetadataResponse) -> MetadataResponse:
    for topic in response.topics:
        topic.partitions.reverse()
    return response


def test_rows_of_another_broker_are_compared_by_name_whatever_their_order():
    mapping = Mapping(is_other=True)
    assert mapping.compare(topics(("a", 0), ("b", 5)), forwards(topics(("b", 5), ("a", 0)))) is None
    found = mapping.compare(topics(("a", 0), ("b", 5)), forwards(topics(("b", 6), ("a", 0))))
    assert found == ("topics[1].partitions[0].error_code", 5, 6)


def test_rows_that_only_one_of_the_two_has_are_a_difference_of_names():
    found = Mapping(is_other=True).compare(topics(("a", 0), ("c", 0)), topics(("b", 0), ("a", 0)))
    assert found == ("topics[1].name", "c", "b")


def produced(*topic_ids: bytes) -> ProduceResponse:
    rows = [TopicProduceResponse(topic_id=each, partition_responses=[]) for each in topic_ids]
    return ProduceResponse(responses=rows)


def test_topics_that_ids_name_alone_are_compared_by_those_of_this_run():
    mapping = Mapping(is_other=True)
    for theirs, ours in ((b"A", b"1"), (b"B", b"2")):
        assert mapping.compare(produced(theirs * 16), produced(ours * 16)) is None  # learnt
    assert mapping.compare(produced(b"A" * 16, b"B" * 16), produced(b"2" * 16, b"1" * 16)) is None
    found = mapping.compare(produced(b"A" * 16, b"B" * 16), produced(b"2" * 16, b"3" * 16))
    assert found is not None
    assert found.path == "responses[0].topic_id"


def test_rows_of_a_momus_stand_in_their_order():
    found = Mapping(is_other=False).compare(topics(("a", 0), ("b", 0)), topics(("b", 0), ("a", 0)))
    assert found == ("topics[0].name", "a", "b")


def test_static_members_are_paired_by_their_instance_and_keep_the_ids_of_each_run():
    def joined(*members: tuple[str, str]) -> JoinGroupResponse:
        rows = [JoinGroupResponseMember(member_id=each, group_instance_id=name, metadata=b"") for each, name in members]
        return JoinGroupResponse(protocol_type="consumer", protocol_name="range", leader=members[0][0], members=rows)

    mapping = Mapping(is_other=True)
    found = mapping.compare(joined(("m-1", "a"), ("m-2", "b")), joined(("n-1", "a"), ("n-2", "b")))
    assert found is None
    mapping = Mapping(is_other=True)
    kafka, momus = joined(("m-1", "a"), ("m-2", "b")), joined(("n-2", "b"), ("n-1", "a"))
    momus.leader = "n-1"
    assert mapping.compare(kafka, momus) is None
    again = joined(("m-2", "b"), ("m-1", "a"))
    mapping.translate(again)
    assert [each.member_id for each in again.members] == ["n-2", "n-1"]


def test_a_code_is_compared_before_what_follows_from_it():
    def fetched(offset: int, code: int) -> OffsetFetchResponse:
        row = OffsetFetchResponsePartition(partition_index=0, committed_offset=offset, metadata="", error_code=code)
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name="t", partitions=[row])])

    found = Mapping(is_other=True).compare(fetched(-1, 88), fetched(5, 0))
    assert found == ("topics[0].partitions[0].error_code", 88, 0)


def test_the_words_about_a_record_are_those_of_each_broker():
    def refused(index: int, words: str) -> ProduceResponse:
        errors = [BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=words)]
        row = PartitionProduceResponse(index=0, error_code=87, base_offset=-1, record_errors=errors)
        return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[row])])

    assert Mapping(is_other=True).compare(refused(1, "no key in t-0"), refused(1, "no key")) is None
    found = Mapping(is_other=True).compare(refused(1, "no key"), refused(2, "no key"))
    assert found == ("responses[0].partition_responses[0].record_errors[0].batch_index", 1, 2)


def test_members_are_paired_by_the_ids_that_are_known():
    def joined(leader: str, *ids: str) -> JoinGroupResponse:
        rows = [JoinGroupResponseMember(member_id=each, metadata=each[-1].encode()) for each in ids]
        return JoinGroupResponse(protocol_type="consumer", leader=leader, member_id=leader, members=rows)

    mapping = Mapping(is_other=True)
    assert mapping.compare(joined("m-1"), joined("n-1")) is None  # learnt
    # and the other one with it
    assert mapping.compare(joined("m-1", "m-1", "m-2"), joined("n-1", "n-2", "n-1")) is None
    assert mapping.compare(joined("m-2", "m-2", "m-1"), joined("n-2", "n-1", "n-2")) is None
    found = mapping.compare(joined("m-1", "m-1", "m-2"), joined("n-1", "n-1", "n-3"))
    assert found == ("members[1].member_id", "n-2", "n-3")
