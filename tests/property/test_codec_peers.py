"""Two independent codecs, kio and kafka-python, read what ours wrote and write the same bytes again."""

from __future__ import annotations

import io
import random
import uuid
from importlib import import_module
from typing import Any

import pytest
from cases import each_case
from codec_values import MESSAGES, NAMES, sample, versions
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from protocol.codegen import codec
from protocol.declare import Message

_REQUESTS = [each for each in MESSAGES if each.__name__.endswith("Request")]
_RESPONSES = [each for each in MESSAGES if each.__name__.endswith("Response")]
_APIS = _REQUESTS + _RESPONSES
_KIO_LACKS = {
    "AlterConfigs": range(3),
    "OffsetCommit": range(2),
    "OffsetFetch": range(1),
    # Kafka 4 has given these up; momus serves them where an older release is imitated
    "Produce": range(3),
    "Fetch": range(4),
    "ListOffsets": range(1),
    # it is of Kafka 4.3
    "ApiVersions": range(5, 6),
    "DeleteGroups": range(3, 4),
    "TxnOffsetCommit": range(6, 7),
    "UnregisterController": range(1),
    "StreamsGroupDescribe": range(1, 2),
    "StreamsGroupHeartbeat": range(1, 2),
    "StreamsGroupTopologyDescriptionUpdate": range(1),
}
_KAFKA_PYTHON = [
    import_module(f"kafka.protocol.{name}") for name in ["admin", "consumer", "metadata", "producer", "sasl"]
]


def _sample(cls: type[Message], version: int) -> Message:
    value = sample(cls, version, random.Random(version), unknown_tags=False)
    if cls.__name__ == "ApiVersionsResponse":
        value.error_code = 0
    return value


@pytest.mark.heavy
@each_case("cls", _APIS, ids=[each.__name__ for each in _APIS])
def test_bytes_of_every_version_equal_those_of_kio(cls: type[Message]) -> None:
    load: Any = load_request_schema if cls in _REQUESTS else load_response_schema
    lacking = _KIO_LACKS.get(cls.__name__.removesuffix("Request").removesuffix("Response"), ())
    for version in versions(cls):
        if version in lacking:
            continue
        data = codec(cls, version).encode(_sample(cls, version))
        schema = load(cls.API_KEY, version)
        read, size = entity_reader(schema)(memoryview(data), 0)
        written = io.BytesIO()
        entity_writer(schema)(written, read)
        assert (size, written.getvalue()) == (len(data), data)


# what kafka-python names or shows in another way; the bytes are compared all the same
_OTHERWISE = {
    "authorized_operations",
    "cluster_authorized_operations",
    "enable_2pc",
    "generation_id_or_member_epoch",
    "topic_authorized_operations",
}


def _kafka_python(name: str) -> Any:
    found = [vars(module)[name] for module in _KAFKA_PYTHON if name in vars(module)]
    return found[0] if found else None


def _plain(value: Any, version: int) -> Any:
    """Values by name, of a version's fields that are not tagged, as kafka-python has them."""
    if isinstance(value, list):
        return [_plain(each, version) for each in value]
    if isinstance(value, Message):
        present = [each for each in value.FIELDS if each.is_in(version) and not each.is_tagged(version)]
        return {each.name: _plain(getattr(value, each.name), version) for each in present}
    return value


def _same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, dict):
        return all(_same(value, getattr(theirs, name)) for name, value in mine.items() if name not in _OTHERWISE)
    if isinstance(mine, list):
        return len(mine) == len(theirs) and all(map(_same, mine, theirs))
    if isinstance(theirs, uuid.UUID):
        return bool(mine == theirs.bytes)
    return bool(mine == theirs)


_SHARED = [each for each in _APIS if _kafka_python(each.__name__)]


@pytest.mark.heavy
@each_case("cls", _SHARED, ids=[each.__name__ for each in _SHARED])
def test_bytes_of_every_version_equal_those_of_kafka_python(cls: type[Message]) -> None:
    peer = _kafka_python(cls.__name__)
    for version in versions(cls):
        if version > peer.max_version:
            continue
        value = _sample(cls, version)
        data = codec(cls, version).encode(value)
        read = peer.decode(data, version=version)
        read._header = None  # only set when it comes from a connection
        assert read.encode(version=version) == data
        assert _same(_plain(value, version), read)


def test_peers_cover_nearly_all_apis() -> None:
    assert len(NAMES) > 150
    assert len(_SHARED) >= 80
