"""The records that findings name, decoded: so that the page can show each of them without a server.

They are looked up in the views by log and offset. The coordinators' records are shown by their fields, a user's key,
value and headers as text where they are text, else in hexadecimal.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from pipeline import tables
from pipeline.audit.share_states import SNAPSHOT
from pipeline.audit.shares import STATE_TOPIC
from pipeline.decode.records import as_json
from pipeline.engine import F
from pipeline.schema import TOPICS
from protocol.codegen import codec
from protocol.errors import KafkaError, MalformedError
from protocol.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MOST_CHARACTERS: Final = 2000  # of a key, a value, and the headers together
_PLACE: Final = (
    "log", "topic", "segment", "position", "offset", "timestamp", "timestamp_type", "producer_id", "producer_epoch",
    "sequence", "transactional", "control",
)  # fmt: skip  # several to a line
_COMMIT: Final = ("commit_offset", "commit_leader_epoch", "commit_metadata", "commit_topic_id", "commit_timestamp")
_COMMITTER: Final = ("member_id", "instance_id", "generation", "client_id")
_SHARE: Final = ((ShareSnapshotKey, ShareSnapshotValue), (ShareUpdateKey, ShareUpdateValue))
COLUMNS: Final = {
    "raw": (*_PLACE, "key", "value", "headers"),
    "offsets": (
        *_PLACE, "kind", "tombstone", "group", "commit_topic", "commit_partition", *_COMMIT, *_COMMITTER, "key_json",
        "value_json",
    ),
    "transactions": (*_PLACE, "kind", "tombstone", "key_json", "value_json"),
}  # fmt: skip  # several to a line

Place = tuple[str, int]  # log, offset


def places_of(findings: Iterable[Mapping[str, Any]]) -> list[Place]:
    """The places that findings name: their own, and those that they contradict."""
    named = [
        (row[log], row[offset])
        for row in findings
        for log, offset in (("log", "offset"), ("proof_log", "proof_offset"))
    ]
    return sorted({(log, offset) for log, offset in named if log is not None and offset is not None})


def records_at(spark: SparkSession, path: str, places: Sequence[Place]) -> list[dict[str, Any]]:
    """The records there, as fields of text and numbers: by log and offset. A record that is not there is left out."""
    wanted = spark.createDataFrame(list(places), "wanted_log string, wanted_offset bigint") if places else None
    found: list[dict[str, Any]] = []
    for view, columns in COLUMNS.items():
        internal = [topic for name, topic in TOPICS.items() if name != "raw"]
        of_view = [
            log for log, _ in places if (_topic(log) == TOPICS[view] if view != "raw" else _topic(log) not in internal)
        ]
        if not of_view or wanted is None:
            continue
        rows = tables.view(spark, path, view, columns=columns).where(F.col("log").isin(*set(of_view)))
        found += [shown(view, row.asDict(recursive=True)) for row in _at(rows, wanted).collect()]
    return sorted(found, key=lambda each: (each["log"], each["offset"]))


def _at(rows: DataFrame, wanted: DataFrame) -> DataFrame:
    same = (F.col("log") == F.col("wanted_log")) & (F.col("offset") == F.col("wanted_offset"))
    return rows.join(F.broadcast(wanted), same, "left_semi")


def _topic(log: str) -> str:
    return log.rpartition("-")[0]


def shown(view: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a view as the page shows it: log, offset, and `fields` in order, name -> text."""
    made: dict[str, Any] = {
        "segment": f"{row['segment']:020d}.log, byte {row['position']:,}",
        "time": f"{_plain(row['timestamp'])} ({row['timestamp_type']})",
    }
    if row["producer_id"] is not None and row["producer_id"] >= 0:
        made["producer"] = f"id {row['producer_id']}, epoch {row['producer_epoch']}, sequence {row['sequence']}"
        made["transaction"] = "yes" if row["transactional"] else "no"
    if row["control"]:
        made["marker"] = row["control"]
    elif view == "raw":
        made |= _user_record(row)
    else:
        made |= _coordinator_record(row)
    return {"log": row["log"], "offset": row["offset"], "fields": made}


def _coordinator_record(row: Mapping[str, Any]) -> dict[str, str]:
    made = {"record": str(row["kind"])}
    if row.get("commit_topic") is not None:
        key = {"group": row["group"], "topic": row["commit_topic"], "partition": row["commit_partition"]}
        value = {name.removeprefix("commit_"): _plain(row[name]) for name in _COMMIT}
        by = {name: row[name] for name in _COMMITTER if row[name] is not None}
        made["key"] = _json(key)
        made["value"] = "none (deleted)" if row["tombstone"] else _json(value)
        return made | ({"committed by": _json(by)} if by else {})
    made["key"] = _cut(row["key_json"] or "cannot be decoded")
    made["value"] = "none (deleted)" if row["tombstone"] else _cut(row["value_json"] or "cannot be decoded")
    return made


def _user_record(row: Mapping[str, Any]) -> dict[str, str]:
    if row["topic"] == STATE_TOPIC and (told := share_record(row["key"], row["value"])) is not None:
        return told
    made = {"key": text(row["key"]), "value": text(row["value"])}
    if row["headers"]:
        made["headers"] = _cut(", ".join(f"{each['key']}: {text(each['value'])}" for each in row["headers"]))
    return made


def share_record(key: bytes | None, value: bytes | None) -> dict[str, str] | None:
    """A record of `__share_group_state` by its fields; None: it cannot be decoded."""
    if key is None:
        return None
    kind = int.from_bytes(key[:2], "big")
    if not SNAPSHOT <= kind < len(_SHARE):
        return None
    classes: tuple[type[Any], type[Any]] = _SHARE[kind]
    try:
        named = as_json(codec(classes[0], 0).decode(bytes(key), 2)[0])
        raw = None if value is None else bytes(value)
        said = None if raw is None else as_json(codec(classes[1], int.from_bytes(raw[:2], "big")).decode(raw, 2)[0])
    except (KafkaError, MalformedError, ValueError):
        return None
    return {
        "record": classes[0].__name__.removesuffix("Key"),
        "key": _cut(str(named)),
        "value": "none (deleted)" if said is None else _cut(said),
    }


def text(data: bytes | None) -> str:
    """Bytes as a person reads them: as text if they are UTF-8 and can be printed, else in hexadecimal."""
    if data is None:
        return "none"
    raw = bytes(data)
    head = raw[:MOST_CHARACTERS]
    try:
        found = getincrementaldecoder("utf-8")().decode(head, final=len(head) == len(raw))
        if not all(each.isprintable() or each in "\n\r\t" for each in found):
            raise UnicodeError
    except UnicodeError:
        head = raw[: MOST_CHARACTERS // 2]
        found = f"0x{head.hex()}"
    return found if len(head) == len(raw) else f"{found}… (the first {len(head):,} of {len(raw):,} bytes)"


def _cut(words: str) -> str:
    if len(words) <= MOST_CHARACTERS:
        return words
    return f"{words[:MOST_CHARACTERS]}… (the first {MOST_CHARACTERS:,} of {len(words):,} characters)"


def _json(made: Mapping[str, Any]) -> str:
    return _cut(json.dumps(made, separators=(",", ":"), ensure_ascii=False))


def _plain(value: Any) -> Any:
    return f"{value:%Y-%m-%d %H:%M:%S.%f}"[:-3] if isinstance(value, datetime) else value
