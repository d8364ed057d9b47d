"""Bytes as the page shows them: what looks like text or JSON, and the records of the coordinators."""

from __future__ import annotations

import json

import pytest

from broker.shell.page.texts import internal, shown
from protocol.codegen import codec
from protocol.messages.coordinator_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from protocol.messages.share_state_records import ShareSnapshotKey, ShareSnapshotValue, ShareUpdateKey, ShareUpdateValue


def encoded(kind: int, message: object, version: int = 0) -> bytes:
    return kind.to_bytes(2, "big") + codec(type(message), version).encode(message)


SHARE = {"group_id": "g", "topic_id": bytes(16), "partition": 3}


@pytest.mark.parametrize(
    ("topic", "kind", "key", "value", "version"),
    [
        (
            "__consumer_offsets",
            1,
            OffsetCommitKey(group="g", topic="t", partition=3),
            OffsetCommitValue(offset=7, leader_epoch=2, metadata="m", commit_timestamp=5),
            3,
        ),
        (
            "__transaction_state",
            0,
            TransactionLogKey(transactional_id="x"),
            TransactionLogValue(
                producer_id=4,
                producer_epoch=2,
                transaction_timeout_ms=9,
                transaction_status=1,
                transaction_partitions=[],
                transaction_last_update_timestamp_ms=3,
                transaction_start_timestamp_ms=2,
            ),
            1,
        ),
        (
            "__share_group_state",
            0,
            ShareSnapshotKey(**SHARE),
            ShareSnapshotValue(
                snapshot_epoch=1,
                state_epoch=2,
                leader_epoch=3,
                start_offset=7,
                create_timestamp=1,
                write_timestamp=2,
                state_batches=[],
            ),
            0,
        ),
        (
            "__share_group_state",
            1,
            ShareUpdateKey(**SHARE),
            ShareUpdateValue(snapshot_epoch=1, leader_epoch=3, start_offset=7, state_batches=[]),
            0,
        ),
    ],
)
def test_records_of_coordinators_are_decoded_by_topic_and_kind(topic, kind, key, value, version):
    written = encoded(kind, key), encoded(version, value, version)
    found = internal(topic, *written)
    assert found is not None
    texts = [json.loads(each["text"]) for each in found]
    assert texts[0]["record"] == type(key).__name__.removesuffix("Key")
    for text, message in zip(texts, (key, value), strict=True):
        named = {name: getattr(message, name) for name in text if name not in ("record", "topic_id")}
        assert named == {name: each for name, each in text.items() if name in named}
        assert len(named) >= len(text) - 2
    assert [(each["bytes"], each["form"], each["is_cut"]) for each in found] == [
        (len(data), "internal", False) for data in written
    ]
    assert internal(topic, written[0], None) == (found[0], None)  # a tombstone
    assert internal("orders", *written) is None


@pytest.mark.parametrize("topic", ["__consumer_offsets", "__transaction_state", "__share_group_state"])
@pytest.mark.parametrize("key", [None, b"", b"\0", b"\x00\x63", b"\x00\x00", b"\x00\x01\xff\xff", b"\xff" * 40])
def test_keys_that_are_of_no_known_record_are_left_as_they_are(topic, key):
    assert internal(topic, key, b"\0\0") is None


@pytest.mark.parametrize(
    ("data", "form", "text"),
    [
        (b"", "text", ""),
        ("größe €".encode(), "text", "größe €"),
        (b'{"a": 1}', "json", '{"a": 1}'),
        (b"{not json", "text", "{not json"),
        (b"[" * 60_000, "text", "[" * 2000),
        (b"\xff\x00", "hex", "ff00"),
        (b"bell\x07", "hex", b"bell\x07".hex()),
    ],
)
def test_bytes_are_text_json_or_hex(data, form, text):
    found = shown(data)
    assert found is not None
    assert (found["form"], found["text"], found["bytes"]) == (form, text, len(data))
    assert found["is_cut"] == (len(data) > 2000)


def test_no_bytes_are_none():
    assert shown(None) is None
