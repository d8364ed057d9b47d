"""Kafka settings as text: properties files, KEY=VALUE, and the Docker image's variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from momus.client.properties import (
    environment_users,
    parse_assignments,
    parse_environment,
    parse_properties,
    secrets_of_images,
)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=x\\ty\\nz\\rq\\ff", {"a": "x\ty\nz\rq\ff"}),
        ("a\\tb\\u003d=c", {"a\tb=": "c"}),
        ("a=\\q\\\"\\'", {"a": "q\"'"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=x\\\r\n   y", {"a": "xy"}),
        ("a=1\u20282\x0b3", {"a": "1\u20282\x0b3"}),
        ("# c\\\na=1", {"a": "1"}),
        ("a\\ b=1", {"a b": "1"}),
        ("a\f=\t1 \t", {"a": "1"}),
    ],
)
def test_escapes_and_line_ends_are_those_of_java(text, expected):
    assert parse_properties(text) == expected


def test_u_without_four_digits_is_refused_as_java_does():
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties("a=\\u12")


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ("-Xmx1g -Djava.security.auth.login.config=/etc/a.conf -Dx=y", "/etc/a.conf"),
        ("-Djava.security.auth.login.config=/a -Djava.security.auth.login.config=/b", "/b"),
        ('-Djava.security.auth.login.config="/a b/c.conf"', "/a b/c.conf"),
        ("'-Djava.security.auth.login.config==/q'", "/q"),
    ],
)
def test_file_of_logins_is_found_in_javas_options(options, path):
    assert parse_environment({"KAFKA_OPTS": options}) == {"java.security.auth.login.config": path}


def test_users_of_bitnamis_image_are_read():
    assert environment_users({"KAFKA_CLIENT_USERS": "alice, bob", "KAFKA_CLIENT_PASSWORDS": "a;b"}) == {
        "alice": "a",
        "bob": "b",
    }
    assert environment_users({}) == environment_users({"KAFKA_CLIENT_USERS": ""}) == {}
    assert parse_environment({"KAFKA_CLIENT_USERS": "alice", "KAFKA_CLIENT_PASSWORDS": "a"}) == {}


@pytest.mark.parametrize("passwords", ["", "a", "a,b,c", "a,"])
def test_users_without_a_password_each_are_refused(passwords):
    with pytest.raises(ValueError, match="a password for each user"):
        environment_users({"KAFKA_CLIENT_USERS": "alice,bob", "KAFKA_CLIENT_PASSWORDS": passwords})


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


def test_stores_in_the_folder_of_secrets_are_settings_of_files_and_passwords(tmp_path: Path) -> None:
    for name, text in (("broker.p12", "a store"), ("store", "one\n"), ("key", "two\n")):
        (tmp_path / name).write_text(text)
    variables = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "broker.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store",
        "KAFKA_SSL_KEY_CREDENTIALS": "key",
    }
    assert secrets_of_images(variables, str(tmp_path)) == {
        "ssl.keystore.location": str(tmp_path / "broker.p12"),
        "ssl.keystore.password": "one",
        "ssl.key.password": "two",
    }
    assert parse_environment(variables) == {}
    with pytest.raises(FileNotFoundError):
        secrets_of_images({"KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "absent"}, str(tmp_path))


def test_file_of_logins_that_bitnamis_image_would_write_is_left_out_where_users_are_told(tmp_path: Path) -> None:
    options = f"-Djava.security.auth.login.config={tmp_path}/kafka_jaas.conf"
    users = {"KAFKA_CLIENT_USERS": "alice", "KAFKA_CLIENT_PASSWORDS": "pencil"}
    assert parse_environment({"KAFKA_OPTS": options, **users}) == {}
    (tmp_path / "kafka_jaas.conf").touch()
    assert set(parse_environment({"KAFKA_OPTS": options, **users})) == {"java.security.auth.login.config"}
