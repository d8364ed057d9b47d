"""The records of `_schemas`, as Confluent's registry writes them and leaves them behind."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

from broker.registry.records import Record, Unread, decode, encode
from broker.registry.state import RegistryState
from broker.registry.versions import Content, Version


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


KEY = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'
INSIDES = [
    rb"",
    rb"x",
    rb"\"string\"",
    rb"a\nb",
    rb"\"",
    rb"\n",
    rb"\\",
    rb"\\\"",
    rb"\\n",
    rb"\\\\n\"",
    rb"\u0041",
    rb"\t",
    rb"\q",
    rb"\\" + b'"n',
    b'"',
    b'","deleted":true,"x":"',
    rb"\\" + b'","deleted":true,"x":"',
    b'\\","deleted":true,"x":"',
    b"a\nb",
    b"\x7f",
    "ü".encode(),
    b"\xff",
    rb"\""[:1],
]


@pytest.mark.parametrize("inside", INSIDES)
@pytest.mark.parametrize("schema_type", [b"", b'"schemaType":"PROTOBUF",'])
def test_record_of_the_usual_form_says_what_a_reading_of_all_of_it_says(inside, schema_type):
    value = b'{"subject":"s","version":1,"id":7,' + schema_type + b'"schema":"' + inside + b'","deleted":false}'
    read = []
    for key, text in ((KEY, value), (KEY, value.replace(b'"id":7', b'"id": 7'))):
        state = RegistryState()
        try:
            state.replay(decode(key, text))
            read.append(state.facts())
        except ValueError as error:
            read.append(type(error).__mro__[-3])
    assert read[0] == read[1]


def test_usual_form_is_what_is_written():
    row = Version("s", 1, 7, Content("JSON", '{"type":"object",\n"title":"t"}'))
    key, value = encode(Record("SCHEMA", "s", 1, row.to_value()))
    assert isinstance(decode(key, value).value, Unread)


def test_content_has_the_highest_of_its_ids_whenever_it_is_asked_for():
    def put(state, subject, number, schema):
        state.replay(Record("SCHEMA", subject, 1, {"subject": subject, "version": 1, "id": number, "schema": schema}))

    def gone(state, subject):
        state.replay(Record("SCHEMA", subject, 1, None))

    digest = Content("AVRO", '"int"').digest()
    found = []
    for asks in (False, True):
        state = RegistryState()
        for step in (
            lambda state: put(state, "a", 5, '"int"'),
            lambda state: put(state, "b", 6, '"int"'),
            lambda state: put(state, "c", 5, '"int"'),
            lambda state: put(state, "d", 7, '"long"'),
            lambda state: gone(state, "b"),
            lambda state: gone(state, "a"),
        ):
            step(state)
            if asks:
                state.id_of(digest)
        found.append((state.id_of(digest), state.facts()))
        gone(state, "c")
        assert state.id_of(digest) is None
    assert found[0] == found[1]
    assert found[0][0] == 5


def test_record_is_of_the_subject_and_version_in_its_key(registry):
    registry.register("s", '"int"')
    value = registry.log[-1][1]
    registry.append(b'{"keytype":"SCHEMA","subject":"t","version":2,"magic":1}', value)
    assert registry.ask("GET", "/subjects/t/versions") == [2]
    assert registry.ask("GET", "/subjects/s/versions") == [1]


def test_version_that_is_written_again_has_the_new_id_alone(registry):
    registry.register("s", '"int"')
    key, value = registry.log[-1]
    registry.append(key, value.replace(b'"id":1', b'"id":5').replace(b"int", b"long"))
    assert registry.ask("GET", "/schemas/ids/1")[:2] == (404, 40403)
    assert registry.ask("GET", "/subjects/s/versions/1")["id"] == 5
