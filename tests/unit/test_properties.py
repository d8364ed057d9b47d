"""Kafka settings as text: properties files, KEY=VALUE, and the Docker image's variables."""

from __future__ import annotations

import pytest

from momus.properties import parse_assignments, parse_environment, parse_properties


def test_properties_file_is_read_as_java_reads_it():
    text = "\n".join(
        [
            "# a comment",
            "  ! another",
            "",
            "num.partitions=4",
            "  log.dirs = /a,/b  ",
            "listeners: PLAINTEXT://:9092",
            "message.max.bytes 1000",
            "advertised.listeners=A://a:1,\\",
            "    B://b:2",
            "path=C:\\\\data",
            "secret=p\\u00e4ss \\uD83D\\ude00 \\\\u00e4",
            "odd\\=key=x=y",
            "empty=",
            "alone",
        ]
    )
    assert parse_properties(text) == {
        "num.partitions": "4",
        "log.dirs": "/a,/b",
        "listeners": "PLAINTEXT://:9092",
        "message.max.bytes": "1000",
        "advertised.listeners": "A://a:1,B://b:2",
        "path": "C:\\data",
        "secret": "päss 😀 \\u00e4",
        "odd=key": "x=y",
        "empty": "",
        "alone": "",
    }


def test_properties_file_ending_in_a_continuation_ends():
    assert parse_properties("a=b\\") == {"a": "b"}


def test_assignments_later_wins_and_value_may_hold_equals():
    assert parse_assignments(["a=1", "b=x=y", "a = 2"]) == {"a": "2", "b": "x=y"}


@pytest.mark.parametrize("text", ["a", "=1", ""])
def test_assignment_without_key_or_equals_is_refused_by_name(text):
    with pytest.raises(ValueError, match="is not KEY=VALUE") as refused:
        parse_assignments([text])
    assert repr(text) in str(refused.value)


def test_environment_follows_the_docker_images_rule():
    environment = {
        "KAFKA_NUM_PARTITIONS": "4",
        "KAFKA_A__B___C": "x",
        "KAFKA_OPTS": "-Xmx1g",
        "KAFKA_HEAP_OPTS": "-Xmx1g",
        "HOME": "/home",
    }
    assert parse_environment(environment) == {"num.partitions": "4", "a_b-c": "x"}
