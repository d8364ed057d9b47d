"""What clients ask of the cluster itself: metadata, coordinators, versions; and versions that nobody serves."""

from __future__ import annotations

from collections.abc import Sequence

from differential.generate import records as r
from differential.generate.anything import SERVED, any_request
from differential.generate.builder import Case, Mix, topic_id
from differential.plain import Plain, Values, versions

SERVED_SINCE_0 = {"OffsetCommit": (0, 1), "OffsetFetch": (0,)}  # momus answers, Kafka 4 does not: SUPPORTED.md


def metadata(case: Case, names: Sequence[str] = ("%t0", "%t1")) -> Values:
    """By name, by id, by both, or all; never creating a topic, which Kafka does behind its answer."""
    version = case.version("Metadata")
    topics: list[Values] = []
    for _ in range(case.count(0.8, 6, 2, 1)):
        name = case.weighted(((case.rng.choice(names), 8), ("&s0", 2), ("%nope", 1), (case.odd_topic(), 0.7)))
        if version >= 12 and case.maybe(0.35):
            topics.append({"Name": None, "TopicId": topic_id(name)})
        else:
            number = topic_id(name) if version >= 10 and case.maybe(0.1) else {"$f": "id", "n": 0}
            topics.append({"Name": name, "TopicId": number})
    body: Values = {
        "Topics": topics if case.maybe(0.92) else None,
        "AllowAutoTopicCreation": False,
        "IncludeClusterAuthorizedOperations": case.maybe(0.3),
        "IncludeTopicAuthorizedOperations": case.maybe(0.3),
    }
    if version < 4:  # these create what they do not find: only what is there, and what cannot be made
        body["Topics"] = [{"Name": name} for name in case.rng.sample(["&s0", "&s1", "&s2"], case.one(1, 2, 3))]
        if case.maybe(0.3):
            body["Topics"].append({"Name": case.one("", ".", "a b", "x/y", "a" * 300)})
    return case.add("Metadata", version, body)


def describe_cluster(case: Case) -> Values:
    body = {
        "IncludeClusterAuthorizedOperations": case.maybe(0.5),
        "EndpointType": case.weighted(((1, 6), (2, 0.5), (0, 0.3), (9, 0.2))),
        "IncludeFencedBrokers": case.maybe(0.3),
    }
    return case.add("DescribeCluster", case.version("DescribeCluster"), body)


def find_coordinator(case: Case) -> Values:
    keys = [case.one("%g0", "%g1", "", "ünï-😀", "a" * 300) for _ in range(case.one(1, 1, 2, 0))]
    kind = case.weighted(((0, 6), (1, 4), (2, 0.5), (3, 0.3), (-1, 0.2)))
    body = {"Key": keys[0] if keys else "", "KeyType": kind, "CoordinatorKeys": keys}
    return case.add("FindCoordinator", case.version("FindCoordinator"), body)


def cluster(case: Case) -> None:
    """One topic, and questions about it and the brokers."""
    case.topics({"%t0": 2})
    topics = ("%t0",)

    def create_by_asking() -> None:
        name = f"%auto{case.rng.randrange(3)}"
        body: Values = {"Topics": [{"Name": name}], "AllowAutoTopicCreation": True}
        case.add("Metadata", case.version("Metadata"), body, creates=[name])
        body = {"Topics": [{"Name": name}], "AllowAutoTopicCreation": False}
        case.add("Metadata", case.version("Metadata", 4), body)

    def sizes() -> Values:
        wanted: Plain = case.weighted((([{"Topic": "%t0", "Partitions": [0, 1, 5]}], 4), (None, 1)))
        return case.add("DescribeLogDirs", case.version("DescribeLogDirs"), {"Topics": wanted})

    def api_versions() -> Values:
        body = {"ClientSoftwareName": case.one("differ", "a.b-c"), "ClientSoftwareVersion": "1.0"}
        return case.add("ApiVersions", case.version("ApiVersions"), body)

    mix = Mix(case, 0.12)
    mix.action(10, lambda: _safe(metadata(case, ("%t0", "%t0", "&s2"))))
    mix.action(3, lambda: find_coordinator(case))
    mix.action(2, lambda: describe_cluster(case))
    mix.action(1.5, create_by_asking)
    mix.action(1, lambda: r.list_offsets(case, topics))
    mix.action(1, lambda: r.fetch(case, topics))
    mix.action(1, sizes)
    mix.action(1, api_versions)
    mix.run(case.rng.randint(8, 20))


def _safe(step: Values) -> Values | None:
    """Not to be damaged where the version creates topics on its own."""
    return step if step["v"] >= 4 else None


def foreign_versions(case: Case) -> None:
    """Versions below and above what is served, and heads that are odd."""
    for _ in range(12):
        api = case.rng.choice(SERVED)
        first, last = versions(api)
        version = case.one(last + 1, first - 1, last + 5, -1, 99, 32_767, -32_768)
        if version in SERVED_SINCE_0.get(api, ()) or (api, version) == ("InitProducerId", 6):
            continue
        any_request(case, api, version)
        if case.maybe(0.3):
            body = {
                "ClientSoftwareName": case.one("differ", "", "a b", "-x", "x-", "x.y"),
                "ClientSoftwareVersion": case.one("1.0", "", "1 0", "."),
            }
            case.add("ApiVersions", case.one(0, 1, 2, 3, 4, 5, 6, 99, -1), body, case.one("a", "m0"))
