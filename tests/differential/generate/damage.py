"""One thing of a good request made wrong: a field at its border, a list doubled, emptied or null, a name that is
none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from differential.generate.builder import MAX_INT, ODD_NAMES, Case, data, said
from differential.plain import Plain, Values

# Fields that would end the comparison (waits, all there is on the broker), or make huge things.
LEFT_ALONE: Final = {
    "TopicPartitions", "IsolationLevel", "Transactions", "MaxWaitMs", "NumPartitions", "Count", "TransactionTimeoutMs",
    "TimeoutMs", "RebalanceTimeoutMs", "SessionTimeoutMs", "ReplicationFactor", "MaxBytes", "UpdateType", "Acks",
    "AllowAutoTopicCreation", "ResourceType",
}  # fmt: skip  # a list of words, not a column of 16 lines
OWN_TOPICS: Final = ("__consumer_offsets", "__transaction_state", "__share_group_state")
FATAL_TO_OWN_TOPICS: Final = ("max.message.bytes", "min.insync.replicas", "max.decompressed.message.bytes")
BORDERS: Final = (-1, 0, 1, 2, -2, 5, 127, 99, MAX_INT, -(2**31), -(2**63), 2**63 - 1)


def _spots(value: Plain) -> Iterator[tuple[Any, Any]]:
    """Container and key of everything that may be changed."""
    if isinstance(value, dict):
        if "$" not in value and "$f" not in value:
            for key, each in value.items():
                if key not in LEFT_ALONE:
                    yield value, key
                yield from _spots(each)
    elif isinstance(value, list):
        for at, each in enumerate(value):
            yield value, at
            yield from _spots(each)


def damage(case: Case, step: Values) -> None:
    """Change one value of a step."""
    spots = list(_spots(step["b"]))
    if spots:
        container, key = case.rng.choice(spots)
        container[key] = _other(case, container[key])
    if step["api"] in ("DeleteTopics", "DeleteRecords"):
        spare_own_topics(step)


def _other(case: Case, value: Plain) -> Plain:
    if isinstance(value, list):
        return _other_list(case, value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, dict) and "$" in value:
        return _other_said(case, value)
    if isinstance(value, dict):
        return value if value.get("$f") == "batch" else case.one(data(b""), data(b"\0"), data(b"zz" * 30), None)
    if isinstance(value, int):
        return case.rng.choice(BORDERS)
    return case.one(case.rng.choice(ODD_NAMES), "", None, "%nope")


def _other_list(case: Case, value: list[Plain]) -> Plain:
    how = case.one("double", "drop", "empty", "null")
    if how == "double" and value:
        return [*value, case.rng.choice(value)]
    if how == "drop" and value:
        gone = case.rng.randrange(len(value))
        return [each for at, each in enumerate(value) if at != gone]
    return None if how == "null" else []


def _other_said(case: Case, value: Values) -> Plain:
    if value["$"].startswith("id:"):
        return case.one({"$f": "id", "n": 77}, {"$f": "id", "n": 0}, said("id:&s0", 0, None))
    if isinstance(value.get("d"), int) and case.maybe(0.6):
        return {**value, "+": value.get("+", 0) + case.one(-1, 1, 1, -2, 5)}
    if isinstance(value.get("d"), str):
        return case.one("", None, "%nope")
    return case.rng.choice(BORDERS)


def spare_own_topics(step: Values) -> None:
    """Kafka deletes its own topics when told to, and then serves no other case. The lasting topics stay as well."""
    kept = {*OWN_TOPICS, "&s0", "&s1", "&s2"}
    body = step["b"]
    if body.get("TopicNames"):
        body["TopicNames"] = ["%own" if name in kept else name for name in body["TopicNames"]]
    for topic in body.get("Topics") or []:
        if isinstance(topic, dict):
            if topic.get("Name") in kept:
                topic["Name"] = "%own"
            if isinstance(topic.get("TopicId"), dict) and "&" in str(topic["TopicId"].get("$")):
                topic["TopicId"] = {"$f": "id", "n": 77}


def spare_own_settings(step: Values) -> None:
    """With these Kafka's coordinators can no longer write, and serve no other case: they are only validated."""
    if step.get("api") not in ("AlterConfigs", "IncrementalAlterConfigs") or step["b"].get("ValidateOnly"):
        return
    for resource in step["b"].get("Resources") or []:
        if isinstance(resource, dict) and str(resource.get("ResourceName")) in OWN_TOPICS:
            rows = [row for row in resource.get("Configs") or [] if isinstance(row, dict)]
            resource["Configs"] = [row for row in rows if str(row.get("Name")) not in FATAL_TO_OWN_TOPICS]
