"""Records as text: formats, JSON lines, places to begin at, and the partition of a key."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from momus.cli.records.places import PlaceError, Places, moment_ms, places_of
from momus.cli.records.text import FIELDS, FormatError, In, compile_format, json_line, read_json_line, unescape
from protocol.partitioner import partition_of_key as partition_of

RECORD = In("orders", 3, 42, 1700000000123, b"k\xff", b"one coffee", [("a", b"1"), ("b", None)])


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        (r"%t-%p@%o: %s\n", b"orders-3@42: one coffee\n"),
        (r"%k|%K|%S|%T", b"k\xff|2|10|1700000000123"),
        (r"%R%s", b"\0\0\0\x0aone coffee"),
        (r"%h\t%%\x1e\\", b"a=1,b=NULL\t%\x1e\\"),
        ("", b""),
        ("ä%p", "ä3".encode()),
    ],
)
def test_format_shows_fields_as_kcat_does(form, shown):
    assert compile_format(form)(RECORD) == shown


def test_null_has_length_minus_one_and_no_bytes():
    record = RECORD._replace(key=None, value=None, headers=[])
    assert compile_format("%k,%K,%s,%S,%R,%h")(record) == b",-1,,-1,\xff\xff\xff\xff,"


@pytest.mark.parametrize("form", ["%x", r"\q", "%é"])
def test_format_with_an_unknown_field_is_refused_with_what_there_is(form):
    with pytest.raises(FormatError, match="is no"):
        compile_format(form)
    assert set(FIELDS) == set("sSRkKTtpoh")


def test_delimiter_is_read_as_it_is_typed():
    assert unescape(r"\t--\x1e\n") == "\t--\x1e\n"


bytes_or_null = st.none() | st.binary(max_size=20)


@given(
    bytes_or_null,
    bytes_or_null,
    st.lists(st.tuples(st.text(max_size=5), bytes_or_null), max_size=3),
    st.integers(0, 2**40),
)
def test_what_consume_writes_as_json_produce_reads_as_the_same_record(key, value, headers, at_ms):
    line = json_line(In("t", 2, 7, at_ms, key, value, headers))
    assert "\n" not in line
    assert read_json_line(line) == (key, value, headers, 2, at_ms)


def test_lines_of_kcat_are_read_too():
    line = {"topic": "t", "partition": 1, "offset": 5, "tstype": "create", "ts": 12, "broker": 1}
    line |= {"headers": ["a", "1"], "key": "k", "payload": "v"}
    assert read_json_line(json.dumps(line)) == (b"k", b"v", [("a", b"1")], 1, 12)


def test_value_that_is_json_itself_is_written_compactly():
    assert read_json_line('{"value": {"id": 1, "ok": true}}').value == b'{"id":1,"ok":true}'


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "not JSON"),
        ("[]", "no JSON object"),
        ('{"valu": "x"}', "valu: unknown"),
        ('{"partition": "1"}', "partition is no whole number"),
        ('{"partition": -1}', "partition is below 0"),
        ('{"key": {"base64": "?"}}', "not base64"),
        ('{"headers": ["a"]}', "headers are"),
        ('{"headers": 3}', "headers are"),
    ],
)
def test_line_that_is_no_record_is_refused_with_the_reason(line, why):
    with pytest.raises(FormatError, match=why):
        read_json_line(line)


def test_places_are_words_offsets_and_times():
    assert places_of(()) == Places("earliest")
    assert places_of(("end",)) == Places("latest")
    assert places_of(("-5",)) == Places(-5)
    assert places_of(("s@1000", "e@2030-01-01T00:00Z")) == Places("earliest", 1000, 1893456000000)
    assert places_of(("7", "e@2000")) == Places(7, None, 2000)


STRANGE = [("²",), ("s@²",), ("s@" + "9" * 5000,), ("s@999999999999d",), ("9" * 19,), ("s@1969-12-31T23:59:59.999Z",)]


@pytest.mark.parametrize("texts", [("somewhere",), ("s@noon",), ("3", "s@1"), ("1.5",), *STRANGE])
def test_place_that_does_not_read_as_one_is_refused(texts):
    with pytest.raises(PlaceError):
        places_of(texts)


def test_time_may_be_told_with_its_zone_and_is_utc_without():
    assert moment_ms("2030-01-01T00:00") == moment_ms("2030-01-01T01:00+01:00") == 1893456000000
    an_hour_ago = moment_ms("1h")
    assert moment_ms("1m") - an_hour_ago >= 59 * 60_000


@pytest.mark.parametrize("key", [b"21", b"foobar", b"a-little-bit-long-string", b""])
def test_partition_of_a_key_is_that_of_kafka_python(key):
    from kafka.partitioner.default import murmur2

    assert partition_of(key, 10) == (murmur2(key) & 0x7FFFFFFF) % 10


@given(st.binary(max_size=40), st.integers(1, 100))
def test_partition_of_any_key_is_that_of_kafka_python(key, count):
    from kafka.partitioner.default import murmur2

    assert partition_of(key, count) == (murmur2(key) & 0x7FFFFFFF) % count
