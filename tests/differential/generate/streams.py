"""Streams groups of KIP-1071: topologies, tasks, internal topics."""

from __future__ import annotations

from differential.generate import offsets as o
from differential.generate.builder import Case, Mix, said
from differential.generate.classic import consumer_heartbeat_of_a_stranger
from differential.plain import Plain, Values

GROUP = o.GROUP
TASKS = ("ActiveTasks", "StandbyTasks", "WarmupTasks")


def _part(number: str, sources: list[str]) -> Values:
    return {
        "SubtopologyId": number,
        "SourceTopics": sources,
        "SourceTopicRegex": [],
        "StateChangelogTopics": [],
        "RepartitionSinkTopics": [],
        "RepartitionSourceTopics": [],
        "CopartitionGroups": [],
    }


def _internal(name: str, partitions: int, configs: list[Values] | None = None) -> Values:
    return {"Name": name, "Partitions": partitions, "ReplicationFactor": 0, "TopicConfigs": configs or []}


def topology(case: Case) -> Values:
    """One or two parts; sometimes with internal topics, sometimes wrong."""
    first = _part("0", ["&s0"])
    parts = [first]
    how = case.do({"plain": 6, "two": 2, "changelog": 2, "repartition": 2, "missing": 1, "wrong": 1})
    if how == "two":
        parts.append(_part("1", ["&s1"]))
    elif how == "changelog":
        first["StateChangelogTopics"] = [_internal("%changes", 0, [{"Key": "cleanup.policy", "Value": "compact"}])]
    elif how == "repartition":
        first["RepartitionSinkTopics"] = ["%repartitioned"]
        second = _part("1", [])
        second["RepartitionSourceTopics"] = [_internal("%repartitioned", case.one(0, 0, 2))]
        parts.append(second)
    elif how == "missing":
        first["SourceTopics"] = ["%nope"]
    elif how == "wrong":
        _spoil(case, parts)
    return {"Epoch": case.weighted(((0, 9), (1, 1), (-1, 0.3))), "Subtopologies": parts}


def _spoil(case: Case, parts: list[Values]) -> None:
    first = parts[0]
    how = case.one("expression", "odd", "changelog", "twice", "none", "together")
    if how == "expression":
        first["SourceTopicRegex"] = ["a.*"]
    elif how == "odd":
        first["SourceTopics"] = [case.odd_topic()]
    elif how == "changelog":
        first["StateChangelogTopics"] = [_internal("%changes", 3)]
    elif how == "twice":
        parts.append(dict(first))
    elif how == "none":
        parts.clear()
    else:
        first["SourceTopics"] = ["&s0", "&s1"]
        first["CopartitionGroups"] = [{"SourceTopics": [0, 1], "SourceTopicRegex": [], "RepartitionSourceTopics": []}]


def streams_join(case: Case, member: str, plan: Values, **more: Plain) -> Values:
    body = {
        "GroupId": GROUP,
        "MemberId": "%" + member,
        "MemberEpoch": 0,
        "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": 60_000,
        "Topology": plan,
        "ActiveTasks": [],
        "StandbyTasks": [],
        "WarmupTasks": [],
        "ProcessId": "p-" + member,
        "ClientTags": [],
        "UserEndpoint": None,
        **more,
    }
    return case.add("StreamsGroupHeartbeat", case.version("StreamsGroupHeartbeat"), body, member, member)


def streams_beat(case: Case, member: str, epoch: Plain, confirms: bool = False, **more: Plain) -> Values:
    body = {
        "GroupId": GROUP,
        "MemberId": "%" + member,
        "MemberEpoch": epoch,
        "EndpointInformationEpoch": 0,
        "RebalanceTimeoutMs": -1,
        "Topology": None,
        "ProcessId": None,
        "ClientTags": None,
        **{tasks: said(f"{tasks}:{member}", 0, []) if confirms else None for tasks in TASKS},
        **more,
    }
    return case.add("StreamsGroupHeartbeat", case.version("StreamsGroupHeartbeat"), body, member, member)


def _odd(case: Case, member: str, plan: Values) -> Values:
    epoch = said("ep:" + member)
    active = [{"SubtopologyId": case.one("0", "9"), "Partitions": case.one([0], [9], [], [-1])}]
    warm: Values = {"WarmupTasks": [{"SubtopologyId": "0", "Partitions": [0]}], "ActiveTasks": [], "StandbyTasks": []}
    return case.act(
        lambda: streams_beat(case, member, epoch, InstanceId=case.one("x", "")),
        lambda: streams_beat(case, member, epoch, ActiveTasks=[]),
        lambda: streams_beat(case, member, epoch, **warm),
        lambda: streams_beat(case, member, epoch, True, ActiveTasks=active),
        lambda: streams_beat(case, member, epoch, Topology=plan),
        lambda: streams_beat(case, member, epoch, ProcessId="p-x"),
        lambda: streams_beat(case, member, epoch, RackId=case.one("r1", "")),
        lambda: streams_beat(case, member, epoch, MemberId=case.one("", "bogus")),
        lambda: streams_beat(case, member, epoch, GroupId=case.one("", "%g9")),
        lambda: streams_beat(case, member, epoch, RebalanceTimeoutMs=5000),
        lambda: streams_beat(case, member, epoch, UserEndpoint={"Host": "h2", "Port": 2}),
        lambda: streams_beat(case, member, epoch, ClientTags=[{"Key": "a", "Value": "b"}]),
        lambda: streams_beat(case, member, epoch, TaskOffsets=_offsets_of_tasks(case)),
        lambda: streams_beat(case, member, epoch, TaskEndOffsets=_offsets_of_tasks(case)),
        lambda: _describe_nodes(case, member),
        lambda: streams_join(case, member, plan, ActiveTasks=None),
        lambda: streams_join(case, member, plan, ProcessId=None),
        lambda: streams_join(case, member, plan, RebalanceTimeoutMs=-1),
        lambda: streams_beat(case, member, epoch, EndpointInformationEpoch=case.one(1, -1, 9)),
    )


def _offsets_of_tasks(case: Case) -> list[Values]:
    return [
        {"SubtopologyId": case.one("0", "0", "9"), "Partition": case.one(0, 1, 9), "Offset": case.one(0, 5, -2)}
        for _ in range(case.rng.randrange(4))
    ]


def _describe_nodes(case: Case, member: str) -> Values:
    node = {"Name": "n", "NodeType": 1, "SourceTopics": ["&s0"], "SinkTopic": None, "Stores": [], "Successors": []}
    nodes = {"Subtopologies": [{"SubtopologyId": "0", "Nodes": [node]}], "GlobalStores": []}
    body = {"GroupId": case.one(GROUP, ""), "MemberId": "%" + member, "TopologyEpoch": 0, "TopologyDescription": nodes}
    return case.add("StreamsGroupTopologyDescriptionUpdate", 0, body)


def _describe(case: Case) -> Values:
    version = case.version("StreamsGroupDescribe")
    asked = {"IncludeTopologyDescription": case.maybe(0.5)} if version else {}
    return case.add("StreamsGroupDescribe", version, {"GroupIds": [GROUP], **asked})


def _settings(case: Case) -> None:
    key = case.do(
        {
            "streams.num.standby.replicas": 4,
            "streams.rack.aware.assignment.tags": 2,
            "streams.task.offset.interval.ms": 1,
            "streams.acceptable.recovery.lag": 1,
            "streams.assignor.name": 1,
        }
    )
    value = {
        "streams.num.standby.replicas": case.one("1", "2", "3", "0"),
        "streams.rack.aware.assignment.tags": case.one("k", "k, zone", "k,k", ""),
        "streams.task.offset.interval.ms": case.one("15000", "14999", "70000"),
        "streams.acceptable.recovery.lag": case.one("0", "-1", "5000000000"),
        "streams.assignor.name": case.one("sticky", "other"),
    }[key]
    configs = [{"Name": key, "ConfigOperation": 0, "Value": value}]
    body = {"Resources": [{"ResourceType": 32, "ResourceName": GROUP, "Configs": configs}]}
    case.add("IncrementalAlterConfigs", 1, body)


def streams(case: Case) -> None:
    """One group of one or two members; the first may be static, and then another one may take over from it."""
    members = ["q0", "q1"][: 1 + case.count(6, 2)]
    static = {"q0": "i0", "q2": "i0"} if case.maybe(0.35) else {}
    plan = topology(case)
    if case.maybe(0.2):
        _settings(case)
    for member in members:
        endpoint = case.weighted(((None, 5), ({"Host": "h", "Port": 1}, 2)))
        tags: list[Values] = case.weighted((([], 5), ([{"Key": "k", "Value": "v"}], 1)))
        streams_join(case, member, plan, UserEndpoint=endpoint, ClientTags=tags, InstanceId=static.get(member))
    if static:
        members.append("q2")

    def some() -> str:
        return case.rng.choice(members)

    def instance(member: str) -> Plain:
        return static.get(member) if case.maybe(0.9) else None

    def beat(plus: int, confirms: bool) -> Values:
        member = some()
        return streams_beat(case, member, said("ep:" + member, plus), confirms, InstanceId=instance(member))

    def join(what: Values) -> Values:
        member = some()
        return streams_join(
            case, member, what, InstanceId=instance(member), **({"ProcessId": "p-q0"} if member == "q2" else {})
        )

    def leave() -> Values:
        member = some()
        epoch = case.weighted(((-1, 6), (-2, 6 if member in static else 1), (-3, 0.5)))
        return streams_beat(case, member, epoch, InstanceId=instance(member))

    mix = Mix(case, 0.05)
    mix.action(8, lambda: beat(0, False))
    mix.action(8, lambda: beat(0, True))
    mix.action(2, lambda: beat(-1, case.maybe(0.5)))
    mix.action(1, lambda: beat(case.one(1, 3), False))
    mix.action(4 if static else 3, lambda: join(plan))
    mix.action(1, lambda: join(topology(case)))
    mix.action(3 if static else 1.5, leave)
    mix.action(0.4, lambda: streams_beat(case, some(), said("ep:" + members[0]), ShutdownApplication=True))
    mix.action(4, lambda: _odd(case, some(), plan))
    _offsets(case, mix, members)
    mix.action(3, lambda: _describe(case))
    if case.maybe(0.1):
        mix.action(1, lambda: _settings(case))
    mix.action(3, lambda: o.group_reads(case, [GROUP]))
    mix.action(0.4, lambda: o.delete_groups(case, [GROUP]))
    mix.action(0.7, lambda: o.offset_delete(case, GROUP))
    mix.action(0.5, lambda: consumer_heartbeat_of_a_stranger(case, GROUP))
    mix.run(case.rng.randint(8, 26))


def _offsets(case: Case, mix: Mix, members: list[str]) -> None:
    def epoch(member: str) -> Values:
        return said("ep:" + member, case.weighted(((0, 6), (-1, 3), (1, 0.6), (-2, 1))))

    def commit() -> Values:
        member = case.rng.choice(members)
        who = "%" + member if case.maybe(0.9) else ""
        names = ("&s0", "&s0", "&s1", "%nope")
        version = case.version("OffsetCommit", 8)
        return o.offset_commit(case, GROUP, epoch(member), who, None, "o" + member, version, names)

    def transaction() -> Values:
        if not case.has("InitProducerId"):
            o.init_transactional(case, "%x0", "p0", 4)
        member = case.rng.choice(members)
        who = "%" + member if case.maybe(0.9) else ""
        names = ("&s0", "&s0", "&s1")
        return o.transactional_commit(case, "%x0", "p0", GROUP, epoch(member), who, None, case.one(3, 4, 5), names)

    def fetch() -> Values:
        member = case.rng.choice(members)
        who, at = case.one((None, -1), ("%" + member, said("ep:" + member)), ("%" + member, -1))
        return o.offset_fetch(case, [GROUP], who, at, version=case.version("OffsetFetch", 8))

    mix.action(6, commit)
    mix.action(2, transaction)
    mix.action(2, fetch)
