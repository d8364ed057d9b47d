"""The records of `_schemas`, as Confluent's registry writes them and leaves them behind."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

from broker.registry.records import decode


def dumped(value):
    return json.dumps(value).encode()


def test_records_have_confluents_forms(registry):
    registry.register("s", '"string"')
    registry.ask("PUT", "/config/s", {"compatibility": "FULL"})
    registry.ask("PUT", "/mode", {"mode": "READWRITE"})
    registry.ask("DELETE", "/subjects/s")
    assert registry.log == [
        (
            b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
            b'{"subject":"s","version":1,"id":1,"schema":"\\"string\\"","deleted":false}',
        ),
        (b'{"keytype":"CONFIG","subject":"s","magic":0}', b'{"subject":"s","compatibilityLevel":"FULL"}'),
        (b'{"keytype":"MODE","magic":0}', b'{"mode":"READWRITE"}'),
        (b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":1}'),
    ]


# What registries of Confluent Platform 5 to 8 leave in the topic: other orders, null subjects, md5, other kinds.
LEFT = [
    (b'{"keytype":"NOOP","magic":0}', None),
    (b'{"magic":0,"keytype":"CONFIG","subject":null}', b'{"subject":null,"compatibilityLevel":"NONE"}'),
    (b'{"keytype":"CONTEXT","tenant":"default","context":".x","magic":0}', b'{"tenant":"default","context":".x"}'),
    (
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}',
        b'{"subject":"s","version":1,"id":7,"md5":"x","schemaType":"AVRO","references":[],"schema":"\\"int\\"","deleted":false}',
    ),
    (b'{"keytype":"MODE","subject":"s","magic":0}', b'{"subject":"s","mode":"READONLY"}'),
]


def test_topic_of_another_registry_is_read(registry):
    for key, value in LEFT:
        registry.append(key, value)
    assert registry.ask("GET", "/config") == {"compatibilityLevel": "NONE"}
    assert registry.ask("GET", "/subjects/s/versions/1")["id"] == 7
    assert registry.ask("GET", "/mode/s") == {"mode": "READONLY"}
    assert registry.register("t", '"long"')["id"] == 8


def test_compacted_topic_is_read_without_its_first_records(registry):
    registry.register("s", '"int"')
    registry.ask("DELETE", "/subjects/s/versions/1")
    last = registry.log[-1]
    registry.state.__init__()
    registry.log.clear()
    registry.append(*last)
    assert registry.ask("GET", "/subjects/s/versions?deleted=true") == [1]
    assert registry.register("s", '"int"')["id"] == 1


def test_id_of_another_content_is_passed_over_and_counted(registry):
    registry.register("s", '"int"')
    value = {"subject": "t", "version": 1, "id": 1, "schema": '"long"', "deleted": False}
    registry.append(dumped({"keytype": "SCHEMA", "subject": "t", "version": 1, "magic": 1}), dumped(value))
    assert registry.ask("GET", "/subjects") == ["s"]
    assert registry.state.refused == (1, "id 1 belongs to version 1 of s, and to another schema here")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"x", b"{}"),
        (b"[]", b"{}"),
        (b"[" * 100_000, b"{}"),
        (dumped({"keytype": "SCHEMA", "subject": "s"}), b"{}"),
        (dumped({"keytype": "SCHEMA", "subject": "s", "version": 1}), b"{}"),
        (dumped({"keytype": "SCHEMA", "subject": 5, "version": 1}), None),
        (dumped({"keytype": "SCHEMA", "subject": "s", "version": 1}), dumped({"id": -1, "schema": ""})),
        (
            dumped({"keytype": "SCHEMA", "subject": "s", "version": 1}),
            dumped({"id": 1, "schema": "", "references": [{"name": "x"}]}),
        ),
    ],
)
def test_record_that_is_none_of_confluents_is_an_error(key, value):
    with pytest.raises(ValueError):  # noqa: PT011 - each has its own words
        decode(key, value)


def test_delete_subject_reaches_up_to_its_version(registry):
    registry.register("s", record_of(a="int"))
    registry.register("s", record_of(a="int", b=("int", 1)))
    registry.append(b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":1}')
    assert registry.ask("GET", "/subjects/s/versions") == [2]
