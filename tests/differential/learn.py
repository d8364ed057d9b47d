"""What later steps need of earlier answers: ids, epochs, generations, assignments, sequences.

An answer to a step with the label "m0" leaves `mid:m0`, `gen:m0` and so on in the side's environment. A value
{"$": "gen:m0", "+": 1, "d": -1} in a later body stands for what this broker said, plus 1; for -1 where it said nothing.
"""

from __future__ import annotations

from typing import Any

from differential.plain import Plain, Values
from differential.symbols import NO_ID, Symbols

WRITTEN = (0, 46)  # 46: it is in the log already
Environment = dict[str, Any]


def learn(step: Values, answer: Values, environment: Environment, symbols: Symbols) -> None:
    """Keep what an answer tells."""
    label = step.get("as")
    learner = LEARNERS.get(step["api"])
    if learner is not None:
        learner(step, answer, label, environment, symbols)


def learn_topic(name: str, topic_id: bytes, environment: Environment, symbols: Symbols) -> None:
    """The id of a topic."""
    if topic_id != NO_ID:
        symbols.topic_ids[topic_id] = symbols.unname(name)
        environment["id:" + symbols.unname(name)] = topic_id


def _join(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    if answer["MemberId"]:
        symbols.member(answer["MemberId"], label or "?")
        if label:
            environment["mid:" + label] = answer["MemberId"]
    if label and not answer["ErrorCode"]:
        environment["gen:" + label] = answer["GenerationId"]
        environment["leader:" + label] = answer["Leader"]
        environment["proto:" + label] = answer["ProtocolName"]


def _producer(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    if answer.get("ProducerId", -1) < 0:
        return
    symbols.producer(answer["ProducerId"])
    if label and not answer["ErrorCode"]:
        environment["pid:" + label], environment["pep:" + label] = answer["ProducerId"], answer["ProducerEpoch"]
        for key in [key for key in environment if key.startswith(f"seq:{label}:")]:
            del environment[key]  # sequences begin anew with an epoch


def _member(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    if answer.get("MemberId"):
        symbols.member(answer["MemberId"], label or "?")
    if not label or answer["ErrorCode"]:
        return
    environment["ep:" + label] = answer["MemberEpoch"]
    if answer.get("MemberId"):
        environment["mid:" + label] = answer["MemberId"]
    if answer.get("Assignment") is not None:
        environment["own:" + label] = answer["Assignment"]["TopicPartitions"]
    for tasks in ("ActiveTasks", "StandbyTasks", "WarmupTasks"):
        if answer.get(tasks) is not None:
            environment[f"{tasks}:{label}"] = answer[tasks]


def _fetch(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    if answer.get("SessionId") and not answer["ErrorCode"]:  # Kafka names one in some answers that fail
        symbols.session(answer["SessionId"])
        if label:
            environment["session:" + label] = answer["SessionId"]


def _share_fetch(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    """What the member holds now, and the next epoch of its session."""
    _share_session(step, answer, label, environment, symbols)
    if label and not answer["ErrorCode"]:
        environment["held:" + label] = [
            (row["FirstOffset"], row["LastOffset"])
            for topic in answer["Responses"]
            for part in topic["Partitions"]
            for row in part["AcquiredRecords"]
        ]


def _share_session(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    if not label or answer["ErrorCode"]:
        return
    epoch = step["b"].get("ShareSessionEpoch")
    if epoch == -1:
        environment.pop("share:" + label, None)
    else:
        environment["share:" + label] = 1 if epoch == 0 else environment.get("share:" + label, 0) + 1
    environment.pop("held:" + label, None)


def _create(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    for row in answer["Topics"]:
        if not row["ErrorCode"] and row.get("TopicId", NO_ID) != NO_ID:
            learn_topic(row["Name"], row["TopicId"], environment, symbols)


def _produce(step: Values, answer: Values, label: str | None, environment: Environment, symbols: Symbols) -> None:
    """Sequences go on where nothing was refused."""
    if any(part["ErrorCode"] not in WRITTEN for topic in answer["Responses"] for part in topic["PartitionResponses"]):
        return
    for topic in step["b"].get("TopicData") or []:
        for part in topic.get("PartitionData") or []:
            records: Plain = part.get("Records")
            if isinstance(records, dict) and records.get("track"):
                environment[records["track"]] = environment.get(records["track"], 0) + records["n"]


LEARNERS = {
    "JoinGroup": _join,
    "InitProducerId": _producer,
    "EndTxn": _producer,
    "ConsumerGroupHeartbeat": _member,
    "StreamsGroupHeartbeat": _member,
    "ShareGroupHeartbeat": _member,
    "ShareFetch": _share_fetch,
    "ShareAcknowledge": _share_session,
    "Fetch": _fetch,
    "CreateTopics": _create,
    "Produce": _produce,
}
