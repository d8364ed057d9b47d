"""Requests that proofs of rules are made of: to groups, to logs, and to the cluster."""

from __future__ import annotations

from differential.generate import offsets as o
from differential.generate.builder import TIME, TIMEOUT_MS, Case, said, topic_id
from differential.plain import Plain, Values

GROUP, TOPIC = o.GROUP, "%t0"


def batch(count: int = 1, **fields: Plain) -> Values:
    rows: list[Plain] = [[None, f"v{at}"] for at in range(count)]
    return {"$f": "batch", "list": [{"recs": rows, "ts": TIME, **fields}], "n": count}


def by(label: str, sequence: int, **more: Plain) -> dict[str, Plain]:
    return {"pid": said("pid:" + label), "epoch": said("pep:" + label), "seq": sequence, **more}


def produce(case: Case, version: int, *batches: Values, acks: int = -1, transactional_id: str | None = None) -> Values:
    """A batch for each partition from 0 on."""
    parts: list[Plain] = [{"Index": at, "Records": batch} for at, batch in enumerate(batches)]
    topics: list[Plain] = [{"Name": TOPIC, "TopicId": topic_id(TOPIC), "PartitionData": parts}]
    body = {"TransactionalId": transactional_id, "Acks": acks, "TimeoutMs": TIMEOUT_MS, "TopicData": topics}
    return case.add("Produce", version, body, label="w")


def list_offsets(case: Case, partition: int = 0, time: int = -1, isolation: int = 0) -> Values:
    parts: list[Plain] = [{"PartitionIndex": partition, "CurrentLeaderEpoch": -1, "Timestamp": time}]
    topics: list[Plain] = [{"Name": TOPIC, "Partitions": parts}]
    body = {"ReplicaId": -1, "IsolationLevel": isolation, "Topics": topics}
    return case.add("ListOffsets", 7, body, "reader")  # that of a refused batch with acks=0 is closed


def fetch(case: Case, version: int, topics: list[Plain], **more: Plain) -> Values:
    body: Values = {"MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1 << 20, "SessionEpoch": -1, "Topics": topics, **more}
    return case.add("Fetch", version, body, label="f")


def fetched(partition: int = 0, offset: int = 0) -> Values:
    return {"Partition": partition, "FetchOffset": offset, "PartitionMaxBytes": 1 << 20, "CurrentLeaderEpoch": -1}


def add_partitions(case: Case, version: int = 3) -> Values:
    topics: list[Plain] = [{"Name": TOPIC, "Partitions": [0]}]
    who = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
    return case.add("AddPartitionsToTxn", version, {"V3AndBelow" + key: value for key, value in who.items()} | {
        "V3AndBelowTopics": topics})  # fmt: skip  # one request


def end(case: Case, version: int = 3, *, committed: bool = True) -> Values:
    who = {"TransactionalId": "%x0", "ProducerId": said("pid:p0"), "ProducerEpoch": said("pep:p0")}
    return case.add("EndTxn", version, {**who, "Committed": committed}, label="p0")


def join(case: Case, member: str, metadata: Plain, version: int = 9, link: str = "", **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 60_000, "ProtocolType": "consumer",
        "MemberId": said("mid:" + member, 0, ""), "GroupInstanceId": None, "Reason": None,
        "Protocols": [{"Name": "range", "Metadata": metadata}], **more,
    }  # fmt: skip  # a table, not a column of 9 lines
    return case.add("JoinGroup", version, body, link or member, member)


def sync(case: Case, member: str, *members: str, **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "GenerationId": said("gen:" + member), "MemberId": said("mid:" + member, 0, ""),
        "GroupInstanceId": None, "ProtocolType": "consumer", "ProtocolName": "range",
        "Assignments": {"$f": "assign", "m": member, "all": list(members)}, **more,
    }  # fmt: skip  # a table, not a column of 7 lines
    return case.add("SyncGroup", 5, body, member, member)


def consumer_beat(case: Case, member: str, epoch: Plain, **more: Plain) -> Values:
    body: Values = {
        "GroupId": GROUP, "MemberId": "%" + member, "MemberEpoch": epoch, "RebalanceTimeoutMs": 60_000,
        "SubscribedTopicNames": ["&s0"], "ServerAssignor": "range", "TopicPartitions": [], **more,
    }  # fmt: skip  # a table, not a column of 7 lines
    return case.add("ConsumerGroupHeartbeat", 1, body, member, member)


def commit(case: Case, topics: list[str], metadata: str = "") -> Values:
    part: Values = {"PartitionIndex": 0, "CommittedOffset": 1, "CommittedLeaderEpoch": -1}
    rows: list[Plain] = [{"Name": topic, "Partitions": [{**part, "CommittedMetadata": metadata}]} for topic in topics]
    body: Values = {"GroupId": GROUP, "GenerationIdOrMemberEpoch": -1, "MemberId": "", "Topics": rows}
    return case.add("OffsetCommit", 9, body)


def streams(case: Case, epoch: int, **part: Plain) -> Values:
    first: Values = {
        "SubtopologyId": "0", "SourceTopics": ["&s0"], "SourceTopicRegex": [], "StateChangelogTopics": [],
        "RepartitionSinkTopics": [], "RepartitionSourceTopics": [], "CopartitionGroups": [], **part,
    }  # fmt: skip  # a table, not a column of 7 lines
    body: Values = {
        "GroupId": GROUP, "MemberId": "%q0", "MemberEpoch": epoch, "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": 60_000, "Topology": {"Epoch": 0, "Subtopologies": [first]} if epoch == 0 else None,
        "ActiveTasks": [], "StandbyTasks": [], "WarmupTasks": [], "ProcessId": "p", "ClientTags": [],
    }  # fmt: skip  # a table, not a column of 9 lines
    return case.add("StreamsGroupHeartbeat", 1, body, "q0", "q0")


def internal(name: str, **more: Plain) -> Values:
    return {"Name": name, "Partitions": 0, "ReplicationFactor": 0, "TopicConfigs": [], **more}


def describe(case: Case, kind: int, name: str, *keys: str) -> Values:
    resource: Values = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": list(keys) or None}
    return case.add("DescribeConfigs", 4, {"Resources": [resource]})
