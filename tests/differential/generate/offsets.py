"""Committed offsets outside of groups' membership: commit, fetch, delete, and the same in transactions."""

from __future__ import annotations

from collections.abc import Sequence

from differential.generate.builder import Case, Mix, said, topic_id
from differential.plain import Plain, Values

GROUP = "%g0"


def some_topic(case: Case, names: Sequence[str] | None = None) -> str:
    if names:
        return case.rng.choice(names)
    return case.weighted((("&s0", 6), ("&s1", 3), ("%nope", 1), (case.odd_topic(), 0.5)))


def commit_topics(case: Case, names: Sequence[str] | None = None) -> list[Values]:
    """What a commit carries: mostly one topic and partition, sometimes none, one twice, or texts at their limit."""
    rows: list[Values] = []
    for _ in range(case.count(0.4, 6, 2, 0.5)):
        name = some_topic(case, names)
        parts: list[Values] = []
        for _ in range(case.count(0.3, 6, 3, 1)):
            offset = case.weighted(((case.rng.randrange(1000), 8), (-1, 0.6), (0, 1), (2**62, 0.3), (-5, 0.3)))
            epoch = case.weighted(((-1, 5), (0, 2), (3, 1), (-7, 0.2)))
            texts = (("", 5), ("meta", 2), (None, 0.7), ("m" * 4096, 0.2), ("m" * 4097, 0.4), ("ü😀", 0.4))
            metadata = case.weighted(texts)
            parts.append(
                {
                    "PartitionIndex": case.partition(),
                    "CommittedOffset": offset,
                    "CommittedLeaderEpoch": epoch,
                    "CommittedMetadata": metadata,
                }
            )
        if parts and case.maybe(0.06):
            parts.append({**parts[0], "CommittedOffset": 77})
        rows.append({"Name": name, "TopicId": _id(case, name), "Partitions": parts})
    if rows and case.maybe(0.05):
        rows.append(rows[0])
    return rows


def _id(case: Case, name: str) -> Values:
    return {"$f": "id", "n": case.one(0, 77)} if case.maybe(0.04) else topic_id(name)


def fetch_topics(case: Case, names: Sequence[str] | None = None) -> list[Values]:
    rows = []
    for _ in range(case.count(0.5, 6, 3)):
        name = some_topic(case, names)
        indexes = [case.partition() for _ in range(case.weighted(((1, 4), (3, 3), (0, 0.4))))]
        rows.append({"Name": name, "TopicId": _id(case, name), "PartitionIndexes": indexes})
    return rows


def offset_commit(
    case: Case,
    group: str,
    epoch: Plain = -1,
    member: Plain = "",
    instance: str | None = None,
    link: str = "a",
    version: int | None = None,
    names: Sequence[str] | None = None,
) -> Values:
    version = case.version("OffsetCommit") if version is None else version
    body = {
        "GroupId": group,
        "GenerationIdOrMemberEpoch": epoch,
        "MemberId": member,
        "GroupInstanceId": instance,
        "RetentionTimeMs": case.weighted(((-1, 6), (100_000, 1), (0, 0.3))),
        "Topics": commit_topics(case, names),
    }
    return case.add("OffsetCommit", version, body, link)


def offset_fetch(
    case: Case,
    groups: Sequence[str],
    member: Plain = None,
    epoch: Plain = -1,
    link: str = "a",
    version: int | None = None,
) -> Values:
    version = case.version("OffsetFetch") if version is None else version
    wants_all = case.maybe(0.3) and version >= 2
    body = {
        "GroupId": groups[0],
        "Topics": None if wants_all else fetch_topics(case),
        "RequireStable": case.maybe(0.4),
        "Groups": [
            {
                "GroupId": group,
                "MemberId": member,
                "MemberEpoch": epoch,
                "Topics": None if case.maybe(0.35) else fetch_topics(case),
            }
            for group in groups
        ],
    }
    return case.add("OffsetFetch", version, body, link)


def offset_delete(case: Case, group: str) -> Values:
    topics = [
        {
            "Name": some_topic(case),
            "Partitions": [{"PartitionIndex": case.partition()} for _ in range(case.count(0.3, 3, 1))],
        }
        for _ in range(case.count(0.5, 3, 1))
    ]
    return case.add("OffsetDelete", 0, {"GroupId": group, "Topics": topics})


def delete_groups(case: Case, groups: Sequence[str]) -> Values:
    return case.add("DeleteGroups", case.version("DeleteGroups"), {"GroupsNames": list(groups)})


def group_reads(case: Case, groups: Sequence[str]) -> None:
    """What admin tools ask of groups."""
    how = case.do({"describe": 5, "list": 4, "consumer": 2, "streams": 1, "find": 1})
    names = [case.rng.choice(groups)]
    if case.maybe(0.2):
        names.append(case.one("%nogroup", "", case.rng.choice(groups)))
    operations = case.maybe(0.3)
    if how == "describe":
        body: Values = {"Groups": names, "IncludeAuthorizedOperations": operations}
        case.add("DescribeGroups", case.version("DescribeGroups"), body)
    elif how == "list":
        states: list[str] = case.one([], [], ["Stable"], ["empty"], ["Dead", "PreparingRebalance"], ["bogus"])
        types: list[str] = case.one([], [], [], ["consumer"], ["Classic"], ["streams"], ["bogus"], ["share"])
        case.add("ListGroups", case.version("ListGroups"), {"StatesFilter": states, "TypesFilter": types})
    elif how == "find":
        kind = case.weighted(((0, 5), (1, 2), (2, 0.3), (3, 0.2), (-1, 0.2)))
        body = {"Key": names[0], "KeyType": kind, "CoordinatorKeys": names}
        case.add("FindCoordinator", case.version("FindCoordinator"), body)
    else:
        api = "ConsumerGroupDescribe" if how == "consumer" else "StreamsGroupDescribe"
        body = {"GroupIds": names, "IncludeAuthorizedOperations": operations}
        case.add(api, case.version(api), body)


def init_transactional(case: Case, transactional_id: str, label: str, version: int | None = None) -> Values:
    body = {"TransactionalId": transactional_id, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}
    version = case.version("InitProducerId", 2) if version is None else version
    return case.add("InitProducerId", version, body, label=label)


def end_transaction(case: Case, transactional_id: str, label: str, version: int | None = None) -> Values:
    body = {
        "TransactionalId": transactional_id,
        "ProducerId": said("pid:" + label),
        "ProducerEpoch": said("pep:" + label),
        "Committed": case.maybe(0.6),
    }
    return case.add("EndTxn", case.version("EndTxn") if version is None else version, body, label=label)


def transactional_commit(
    case: Case,
    transactional_id: str,
    label: str,
    group: str,
    epoch: Plain = -1,
    member: Plain = "",
    instance: str | None = None,
    version: int | None = None,
    names: Sequence[str] | None = None,
) -> Values:
    """TxnOffsetCommit, mostly behind the AddOffsetsToTxn that versions below 5 need."""
    version = case.version("TxnOffsetCommit") if version is None else version
    who = {
        "TransactionalId": transactional_id,
        "ProducerId": said("pid:" + label),
        "ProducerEpoch": said("pep:" + label),
    }
    if version < 5 and case.maybe(0.75):
        case.add("AddOffsetsToTxn", case.version("AddOffsetsToTxn"), {**who, "GroupId": group})
    body = {
        **who,
        "GroupId": group,
        "GenerationId": epoch,
        "MemberId": member,
        "GroupInstanceId": instance,
        "Topics": commit_topics(case, names),
    }
    return case.add("TxnOffsetCommit", version, body)


def offsets(case: Case) -> None:
    """Two groups that only commit, a producer that commits for them, and readers on two connections."""
    groups = (GROUP, GROUP, "%g1")
    with_transactions = case.maybe(0.3)
    if with_transactions:
        init_transactional(case, "%x0", "p0")

    def commit() -> Values:
        epoch = case.weighted(((-1, 10), (0, 0.5), (3, 0.5)))
        member = case.weighted((("", 10), ("nobody", 0.6)))
        instance = case.weighted(((None, 10), ("i", 0.5)))
        return offset_commit(case, case.one(*groups), epoch, member, instance, case.one("a", "b"))

    def fetch() -> Values:
        names = [case.one(*groups)] if case.maybe(0.7) else [GROUP, case.one("%g1", GROUP, "%nogroup", "")]
        member = case.weighted(((None, 9), ("", 0.5), ("nobody", 0.5)))
        return offset_fetch(case, names, member, case.weighted(((-1, 9), (3, 0.5))), case.one("a", "b"))

    def transaction() -> Values:
        step = transactional_commit(case, "%x0", "p0", case.one(*groups))
        return end_transaction(case, "%x0", "p0") if case.maybe(0.4) else step

    def heartbeat() -> Values:
        body = {"GroupId": case.one(*groups), "GenerationId": case.one(0, -1, 1), "MemberId": case.one("", "x")}
        return case.add("Heartbeat", case.version("Heartbeat"), body)

    mix = Mix(case, 0.08)
    mix.action(10, commit)
    mix.action(10, fetch)
    mix.action(2, lambda: offset_delete(case, case.one(*groups)))
    mix.action(1, lambda: delete_groups(case, [case.one(*groups), *case.one([], ["%g1"], ["%nogroup"], [GROUP])]))
    mix.action(3, lambda: group_reads(case, [GROUP, "%g1"]))
    mix.action(3 if with_transactions else 0, transaction)
    mix.action(0.5, heartbeat)
    mix.run(case.rng.randint(10, 40))
