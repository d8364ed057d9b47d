"""What of a normalised answer is compared: not what other cases made, nor how rows of one topic are grouped."""

from __future__ import annotations

from typing import Any

from differential.plain import Plain, Values
from differential.symbols import Symbols, identity

# API -> the list of topics, and the list of partitions in each row of it
GROUPED = {
    "OffsetCommit": ("Topics", "Partitions"),
    "TxnOffsetCommit": ("Topics", "Partitions"),
    "OffsetFetch": ("Topics", "Partitions"),
    "OffsetDelete": ("Topics", "Partitions"),
    "Produce": ("Responses", "PartitionResponses"),
    "Fetch": ("Responses", "Partitions"),
    "ListOffsets": ("Topics", "Partitions"),
    "DeleteRecords": ("Topics", "Partitions"),
    "OffsetForLeaderEpoch": ("Topics", "Partitions"),
    "DescribeProducers": ("Topics", "Partitions"),
    "AddPartitionsToTxn": ("ResultsByTopicV3AndBelow", "ResultsByPartition"),
}
# Lists that show all there is on the broker: API -> list and the name in its rows
OPEN_LISTS = {
    "ListGroups": ("Groups", "GroupId"),
    "ListTransactions": ("TransactionStates", "TransactionalId"),
    "ListConfigResources": ("ConfigResources", "ResourceName"),
}
# Others are absent by choice (SUPPORTED.md), and a version of a whole release moves on.
FEATURES = ("metadata.version", "group.version", "transaction.version", "streams.version")
API_VERSIONS_KEY = 18


def trim(api: str, version: int, body: Values, answer: Values, symbols: Symbols) -> Values:
    """The part of an answer that two brokers must agree on; changes it in place."""
    if api in OPEN_LISTS:
        rows, name = OPEN_LISTS[api]
        answer[rows] = [row for row in answer.get(rows) or [] if symbols.is_ours(row[name])]
    elif api == "Metadata" and (body.get("Topics") is None or (version == 0 and not body["Topics"])):
        _keep_ours(answer, "Topics", "Name", symbols)
    elif api == "DescribeLogDirs":
        for row in answer.get("Results") or []:
            _keep_ours(row, "Topics", "Name", symbols)
    elif api == "DescribeTopicPartitions" and not body.get("Topics"):
        _keep_ours(answer, "Topics", "Name", symbols)
        if answer.get("NextCursor") and not symbols.is_ours(answer["NextCursor"]["TopicName"]):
            answer["NextCursor"] = "of another case"
    elif api == "DescribeClientQuotas" and answer.get("Entries"):  # without components: those of all cases
        rows = answer["Entries"]
        answer["Entries"] = [row for row in rows if any(symbols.is_ours(part["EntityName"]) for part in row["Entity"])]
    elif api == "ShareGroupHeartbeat":  # when Kafka assigns, and what, goes by its speed and its hash tables
        answer.pop("Assignment", None)
    elif api == "ShareGroupDescribe":
        for row in answer.get("Groups") or []:
            for member in row.get("Members") or []:
                member.pop("Assignment", None)
    elif api == "DescribeConfigs":
        for row in answer.get("Results") or []:
            for config in row.get("Configs") or []:
                config["Synonyms"] = [each["Source"] for each in config.get("Synonyms") or []]
    elif api == "ApiVersions":
        answer.pop("FinalizedFeaturesEpoch", None)
        for rows in ("SupportedFeatures", "FinalizedFeatures"):
            answer[rows] = [row for row in answer.get(rows) or [] if row["Name"] in FEATURES]
        answer["ApiKeys"] = [row for row in answer.get("ApiKeys") or [] if row["ApiKey"] == API_VERSIONS_KEY]
    if api in GROUPED:
        _group(answer, *GROUPED[api])
        for row in answer.get("Groups") or []:
            _group(row, *GROUPED[api])
    for outer, rows, parts in (
        ("Markers", "Topics", "Partitions"),
        ("TransactionStates", "Topics", "Partitions"),
        ("ResultsByTransaction", "TopicResults", "ResultsByPartition"),
    ):
        for row in answer.get(outer) or []:
            _group(row, rows, parts)
    return answer


def _keep_ours(answer: Values, rows: str, name: str, symbols: Symbols) -> None:
    answer[rows] = [row for row in answer.get(rows) or [] if symbols.is_ours(row[name])]


def _group(answer: Values, rows: str, parts: str) -> None:
    if not isinstance(answer.get(rows), list):
        return
    found: dict[Any, Values] = {}
    for row in answer[rows]:
        if row.get(parts):
            key = row.get("Name", row.get("Topic")), row.get("TopicId")
            if key in found:
                both: list[Plain] = sorted(found[key][parts] + row[parts], key=_order)
                found[key][parts] = [
                    each
                    for at, each in enumerate(both)
                    if not at or each != both[at - 1] or parts == "PartitionResponses"
                ]
            else:
                found[key] = dict(row)
    answer[rows] = sorted(found.values(), key=identity)


def _order(row: Plain) -> tuple[str, ...]:
    return identity(row) if isinstance(row, dict) else (str(row),)
