"""Administration: topics made, grown and deleted, settings, quotas, reassignments, elections, features."""

from __future__ import annotations

from typing import Final

from differential.generate import settings
from differential.generate.builder import TIMEOUT_MS, Case, Mix, data, topic_id
from differential.generate.damage import spare_own_topics
from differential.generate.offsets import GROUP
from differential.plain import Plain, Values

NAMES: Final = ("%t0", "%t1", "%t2", "%T.0", "%T_0")
ASSIGNMENTS: Final[tuple[list[tuple[int, list[int]]], ...]] = (
    [(0, [1])], [(0, [1]), (1, [1])], [(1, [1])], [(0, [])], [(0, [1, 1])], [(0, [9])], [(0, [1]), (0, [1])], [(-1,
    [1])], )  # fmt: skip  # partition and replicas, in one line

USERS: Final = ("%u0", "%u1", "%u2")
RATES: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate", "bogus")
LIMITS: Final = (1e15, 2e15, 3e15 + 0.5, 1e19, 1e300, 1e-9, float(2**31))
FEATURES: Final = (
    *("group.version", "transaction.version", "streams.version", "share.version", "eligible.leader.replicas.version"),
)


class Admin:
    """Requests of an admin client about a few topics."""

    def __init__(self, case: Case) -> None:
        self.case = case

    def topic(self) -> str:
        case = self.case
        return case.weighted(((case.rng.choice(NAMES), 10), ("%nope", 1), (case.odd_topic(), 1)))

    def _wanted(self, name: str) -> Values:
        case = self.case
        row: Values = {
            "Name": name,
            "NumPartitions": case.weighted(((1, 5), (2, 2), (-1, 1))),
            "ReplicationFactor": case.weighted(((1, 6), (-1, 2))),
            "Assignments": [],
            "Configs": [],
        }
        how = case.do({"plain": 6, "configs": 4, "odd": 3, "assigned": 2})
        if how == "configs":
            row["Configs"] = settings.rows(case)
        elif how == "odd":
            changes: tuple[Values, ...] = (
                *({"NumPartitions": count} for count in (0, -2)),
                *({"ReplicationFactor": count} for count in (0, 2, -2)),
                *({"Name": each} for each in (case.odd_topic(), "%x\u00e9", "&s0")),
                {"NumPartitions": -1, "ReplicationFactor": -1},
            )
            row.update(case.rng.choice(changes))
        elif how == "assigned":
            row["NumPartitions"], row["ReplicationFactor"] = case.one(-1, -1, -1, 1, 2), case.one(-1, -1, 1)
            rows = case.rng.choice(ASSIGNMENTS)
            row["Assignments"] = [{"PartitionIndex": index, "BrokerIds": nodes} for index, nodes in rows]
        return row

    def create(self) -> Values:
        case = self.case
        topics = [self._wanted(case.rng.choice(NAMES)) for _ in range(1 + case.count(3, 1))]
        body = {"Topics": topics, "TimeoutMs": TIMEOUT_MS, "ValidateOnly": case.maybe(0.15)}
        return case.add("CreateTopics", case.version("CreateTopics"), body)

    def grow(self) -> Values:
        case = self.case
        choices: tuple[tuple[Plain, float], ...] = (
            (None, 6), ([[1]], 1), ([[9]], 0.5), ([], 0.5), ([[1], [1]], 0.5), ([[]], 0.3),
        )  # fmt: skip  # replicas of the new partitions, in one line
        topics = []
        for _ in range(1 + case.count(3, 1)):
            nodes = case.weighted(choices)
            assigned = None if nodes is None else [{"BrokerIds": each} for each in nodes]
            topics.append({"Name": self.topic(), "Count": case.one(1, 2, 3, 4, 0, -1), "Assignments": assigned})
        body = {"Topics": topics, "TimeoutMs": TIMEOUT_MS, "ValidateOnly": case.maybe(0.2)}
        return case.add("CreatePartitions", case.version("CreatePartitions"), body)

    def delete(self) -> Values:
        case, name = self.case, self.topic()
        rows = []
        for _ in range(case.one(1, 1, 2)):
            by_id = topic_id(case.rng.choice(NAMES))
            choices = ((name, None, 4), (None, by_id, 2), (name, by_id, 0.4), (None, None, 0.2))
            told, number = case.weighted([((each, wanted), weight) for each, wanted, weight in choices])
            rows.append({"Name": told, **({"TopicId": number} if number else {})})
        names = [name, *([case.rng.choice(NAMES)] if case.maybe(0.2) else [])]
        step = case.add(
            "DeleteTopics", case.version("DeleteTopics"), {"TopicNames": names, "Topics": rows, "TimeoutMs": TIMEOUT_MS}
        )
        spare_own_topics(step)
        return step

    def delete_records(self) -> Values:
        case = self.case
        part = {"PartitionIndex": case.one(0, 9), "Offset": case.one(-1, 0, 1)}
        body = {"Topics": [{"Name": self.topic(), "Partitions": [part]}], "TimeoutMs": 5000}
        step = case.add("DeleteRecords", case.version("DeleteRecords"), body)
        spare_own_topics(step)
        return step

    # -- settings

    def describe_configs(self) -> Values:
        case = self.case
        keys: Plain = case.weighted(((None, 3), (["retention.ms", "cleanup.policy", "nope"], 2), ([], 1)))
        kinds = ((2, 9), (32, 1), (0, 0.2), (3, 0.2), (99, 0.2))
        resources = [
            {"ResourceType": case.weighted(kinds), "ResourceName": self.topic(), "ConfigurationKeys": keys}
            for _ in range(1 + case.count(2, 1))
        ]
        body = {"Resources": resources, "IncludeSynonyms": case.maybe(0.5), "IncludeDocumentation": False}
        return case.add("DescribeConfigs", case.version("DescribeConfigs"), body)

    def describe_broker(self) -> Values:
        case = self.case
        keys = ["num.partitions", "log.retention.ms", "group.min.session.timeout.ms", "nope", "message.max.bytes"]
        name = case.one("1", "", "9", "x", "-1")
        resources = [{"ResourceType": case.one(4, 4, 8), "ResourceName": name, "ConfigurationKeys": keys}]
        body = {"Resources": resources, "IncludeSynonyms": case.maybe(0.3)}
        return case.add("DescribeConfigs", case.version("DescribeConfigs"), body)

    def _kind(self) -> int:
        return self.case.weighted(((2, 10), (0, 0.3), (99, 0.3), (3, 0.3)))

    def alter_configs(self) -> Values:
        case = self.case
        resources = [{"ResourceType": self._kind(), "ResourceName": self.topic(), "Configs": settings.rows(case)}]
        body = {"Resources": resources, "ValidateOnly": case.maybe(0.2)}
        return case.add("AlterConfigs", case.version("AlterConfigs"), body)

    def change_configs(self) -> Values:
        case = self.case
        resources = [
            {"ResourceType": self._kind(), "ResourceName": self.topic(), "Configs": settings.changes(case)}
            for _ in range(1 + case.count(9, 1))
        ]
        body = {"Resources": resources, "ValidateOnly": case.maybe(0.2)}
        return case.add("IncrementalAlterConfigs", case.version("IncrementalAlterConfigs"), body)

    def group_configs(self) -> Values:
        case = self.case
        name = case.weighted(((GROUP, 6), ("%ünï-😀", 0.3)))
        rows = settings.changes(case, settings.GROUPS)
        body: Values = {
            "Resources": [{"ResourceType": 32, "ResourceName": name, "Configs": rows}],
            "ValidateOnly": case.maybe(0.2),
        }
        case.add("IncrementalAlterConfigs", 1, body)
        resources = [{"ResourceType": 32, "ResourceName": name, "ConfigurationKeys": None}]
        body = {"Resources": resources, "IncludeSynonyms": case.maybe(0.5)}
        return case.add("DescribeConfigs", case.version("DescribeConfigs"), body)

    def list_resources(self) -> Values:
        case = self.case
        kinds: list[int] = case.weighted((([], 3), ([2], 1), ([32], 1), ([16], 1), ([99], 0.3), ([2, 32], 1)))
        return case.add("ListConfigResources", case.version("ListConfigResources"), {"ResourceTypes": kinds})

    # -- the cluster

    def pages(self) -> Values:
        case, name = self.case, self.topic()
        topics: Plain = case.weighted(
            (([{"Name": name}], 5), ([{"Name": n} for n in NAMES], 3), ([{"Name": name}] * 2, 0.5))
        )
        limit = case.weighted(((2000, 5), (1, 2), (2, 1), (0, 0.3), (-1, 0.3), (5000, 0.2)))
        place = {"TopicName": case.rng.choice(NAMES), "PartitionIndex": case.one(0, 1, 5, -1)}
        cursor = case.weighted(((None, 5), (place, 3), ({"TopicName": "", "PartitionIndex": 0}, 0.3)))
        body = {"Topics": topics, "ResponsePartitionLimit": limit, "Cursor": cursor}
        return case.add("DescribeTopicPartitions", 0, body)

    def log_sizes(self) -> Values:
        case = self.case
        wanted: Plain = case.weighted((([{"Topic": self.topic(), "Partitions": [0, 1]}], 4), (None, 1)))
        return case.add("DescribeLogDirs", case.version("DescribeLogDirs"), {"Topics": wanted})

    def reassign(self) -> Values:
        case = self.case
        if case.maybe(0.4):
            rows: Plain = case.weighted(((None, 2), ([{"Name": self.topic(), "PartitionIndexes": [0, 9]}], 3)))
            return case.add("ListPartitionReassignments", 0, {"TimeoutMs": TIMEOUT_MS, "Topics": rows})
        replicas: Plain = case.one([1], [1], None, [], [9], [1, 1])
        part = {"PartitionIndex": case.weighted(((0, 6), (1, 2), (9, 1), (-1, 0.3))), "Replicas": replicas}
        body = {
            "TimeoutMs": TIMEOUT_MS,
            "AllowReplicationFactorChange": case.maybe(0.7),
            "Topics": [{"Name": self.topic(), "Partitions": [part]}],
        }
        return case.add("AlterPartitionReassignments", case.version("AlterPartitionReassignments"), body)

    def elect(self) -> Values:
        case = self.case
        rows: Plain = case.weighted((([{"Topic": self.topic(), "Partitions": [0, 9]}], 5), ([], 0.5)))
        kind = case.weighted(((0, 6), (1, 3), (5, 0.3)))
        body = {"ElectionType": kind, "TopicPartitions": rows, "TimeoutMs": TIMEOUT_MS}
        return case.add("ElectLeaders", case.version("ElectLeaders"), body)

    def quotas(self) -> Values:
        case = self.case
        entity = [
            {"EntityType": case.one("user", "client-id", "user", "ip", "bogus"), "EntityName": case.one("%u0", "%u1")}
        ]
        rates = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "bogus", "connection_creation_rate")
        op = {"Key": case.rng.choice(rates), "Value": case.one(1000.0, 0.0, -1.0, 1.5), "Remove": case.maybe(0.3)}
        body: Values = {"Entries": [{"Entity": entity, "Ops": [op]}], "ValidateOnly": case.maybe(0.3)}
        case.add("AlterClientQuotas", case.version("AlterClientQuotas"), body)
        match = case.weighted(((0, 6), (5, 0.3)))
        component = {"EntityType": case.one("user", "client-id", "ip", "bogus"), "MatchType": match, "Match": "%u0"}
        body = {"Components": [component], "Strict": case.maybe(0.4)}
        return case.add("DescribeClientQuotas", case.version("DescribeClientQuotas"), body)

    def more_quotas(self) -> Values:
        """Entities of two parts with several keys, and filters of every kind."""
        case = self.case
        kinds: tuple[list[str], ...] = (
            ["user"],
            ["client-id"],
            ["user", "client-id"],
            ["client-id", "user"],
            ["user", "user"],
            ["user", "ip"],
            [],
        )
        entries = []
        for _ in range(case.one(1, 1, 2)):
            entity = [{"EntityType": kind, "EntityName": case.rng.choice(USERS)} for kind in case.rng.choice(kinds)]
            ops = [
                {"Key": case.rng.choice(RATES), "Value": case.rng.choice(LIMITS), "Remove": case.maybe(0.3)}
                for _ in range(case.one(0, 1, 1, 2))
            ]
            entries.append({"Entity": entity, "Ops": ops})
        body: Values = {"Entries": entries, "ValidateOnly": case.maybe(0.1)}
        case.add("AlterClientQuotas", case.version("AlterClientQuotas"), body)
        parts: list[Plain] = []
        for kind in case.one(["user"], ["client-id"], ["user", "client-id"]):
            how = case.one(0, 0, 1, 2) if parts else 0  # every user is a user of other cases as well
            name = case.rng.choice(USERS) if how == 0 else None
            parts.append({"EntityType": kind, "MatchType": how, "Match": name})
        body = {"Components": parts, "Strict": case.maybe(0.5)}
        return case.add("DescribeClientQuotas", case.version("DescribeClientQuotas"), body)

    def validate(self) -> Values:
        """Levels of features and settings of brokers, which are everybody's: only validated."""
        case = self.case
        if case.maybe(0.6):
            rows = settings.changes(case, settings.BROKERS)
            resources = [{"ResourceType": 4, "ResourceName": case.one("", "1", "1", "9", "x"), "Configs": rows}]
            return case.add("IncrementalAlterConfigs", 1, {"Resources": resources, "ValidateOnly": True})
        levels = (0, 1, 1, 2, 3)
        updates = [
            {"Feature": name, "MaxVersionLevel": case.rng.choice(levels), "UpgradeType": case.one(1, 1, 2, 3, 0, 4)}
            for name in case.rng.sample(FEATURES, case.one(1, 1, 2))
        ]
        body = {"TimeoutMs": TIMEOUT_MS, "FeatureUpdates": updates, "ValidateOnly": True}
        return case.add("UpdateFeatures", case.version("UpdateFeatures", 1), body)

    def alter_credentials(self) -> Values:
        """Set and delete credentials, and ask."""
        case = self.case
        upsertions = [
            {
                "Name": case.one(*USERS, ""),
                "Mechanism": case.weighted(((1, 4), (2, 3), (0, 0.3), (3, 0.3))),
                "Iterations": case.weighted(((4096, 5), (16_384, 2), (4095, 0.5), (16_385, 0.5), (0, 0.2))),
                "Salt": data(case.one(b"salt", b"")),
                "SaltedPassword": data(case.one(b"p" * 32, b"p")),
            }
            for _ in range(case.one(0, 1, 1, 2))
        ]
        gone = [{"Name": case.one(*USERS, ""), "Mechanism": case.one(1, 1, 2, 9)} for _ in range(case.one(0, 0, 1, 2))]
        case.add("AlterUserScramCredentials", 0, {"Deletions": gone, "Upsertions": upsertions})
        return self.credentials()

    def credentials(self) -> Values:
        users = [{"Name": self.case.one("%u0", "", "%u1")} for _ in range(self.case.one(1, 2))]
        return self.case.add("DescribeUserScramCredentials", 0, {"Users": users})

    def features(self) -> Values:
        case = self.case
        update = {
            "Feature": case.one("bogus", "group.version", "", "transaction.version"),
            "MaxVersionLevel": case.one(99, -1),
            "AllowDowngrade": case.maybe(0.5),
            "UpgradeType": case.one(1, 2, 9),
        }
        body = {"TimeoutMs": TIMEOUT_MS, "FeatureUpdates": [update], "ValidateOnly": True}
        return case.add("UpdateFeatures", case.version("UpdateFeatures"), body)

    def quorum(self) -> Values:
        topics = [{"TopicName": self.case.one("bogus", "%t0"), "Partitions": [{"PartitionIndex": 0}]}]
        return self.case.add("DescribeQuorum", self.case.version("DescribeQuorum"), {"Topics": topics})


def admin(case: Case) -> None:
    """A few topics and a group."""
    from differential.generate.cluster import describe_cluster, metadata

    client = Admin(case)
    mix = Mix(case, 0.08)
    for weight, action in (
        (6, client.create), (3, client.grow), (2, client.delete), (5, client.describe_configs), (1.5,
        client.alter_configs), (5, client.change_configs), (3, client.pages), (2, client.group_configs), (1,
        client.describe_broker), (0.7, client.list_resources), (0.7, client.log_sizes), (1, client.reassign), (0.5,
        client.elect), (0.8, client.quotas), (0.3, client.credentials), (0.3, client.features), (0.2, client.quorum),
        (0.5, client.delete_records), (1, client.alter_credentials), (1.5, client.more_quotas), (2,
        client.validate), ):  # fmt: skip  # a table of weights
        mix.action(weight, action)
    mix.action(4, lambda: metadata(case, NAMES))
    mix.action(0.7, lambda: describe_cluster(case))
    mix.run(case.rng.randint(10, 30))
