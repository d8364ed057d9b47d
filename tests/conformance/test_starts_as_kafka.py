"""264 sets of settings with which a live Apache Kafka 4.4.0 was started: this broker starts and refuses as it did, but
for DEPARTURES, and reads files of settings and login modules as Java does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from differential.start_cases import RECORDED
from differential.start_here import has_ipv6, start_here
from differential.start_texts import MODULES, TEXTS

from broker.config.config_values import ConfigError
from broker.security.jaas import parse_jaas
from momus.client.properties import parse_properties

SUPPORTED = (Path(__file__).parents[2] / "SUPPORTED.md").read_text()
JAVA_S_WHITE = "".join(map(chr, range(33)))

# A sentence of SUPPORTED.md, and the cases that it is about.
DEPARTURES = {
    "clients are sent to the address that they used": ("listeners: every address, and none advertised",),
    "What Kafka needs for brokers and controllers to find each other may be missing": (
        "listeners: missing",
        "advertised: one of two, and not that between brokers",
        "inter broker: missing, and none is PLAINTEXT",
        "controllers: names missing",
        "controllers: names empty",
        "controllers: in small letters",
        "quorum: voters missing",
        "quorum: voters empty",
        "quorum: id missing",
        "sasl: no listener between brokers",
        "sasl: between brokers by a mechanism that is not enabled",
    ),
    "`::` is no address to advertise": ("advertised: every address of IPv6",),
    "A listener with SASL and no mechanism, with one that is unknown, or with a login module of another mechanism": (
        "sasl: mechanisms empty",
        "sasl: a module that does not fit",
    ),
    "A listener with TLS that has no key, or the certificate of another key": (
        "tls: no key",
        "tls: of another listener",
        "tls: SASL_SSL without a key",
        "tls: the certificate of another key",
        "tls: client.auth without trust",
        "tls: no version",
        "tls: a version that is none",
        "tls: a version that is old",
        "tls: a cipher suite that is none",
    ),
    "A key in the settings is PEM, whatever `ssl.keystore.type` says, and may be encrypted by PBES2": (
        "tls: the type left out",
        "tls: the type in small letters",
        "tls: a key with its password",
    ),
    "A map that gives one name two protocols is refused": ("map: two protocols for one name",),
    "several controllers are refused": ("quorum: three voters", "quorum: three servers"),
    "so is a process that is a controller alone": ("quorum: controller alone",),
    "SCRAM and OAUTHBEARER need no login module": (
        "sasl: a second without a module",
        "sasl: SCRAM-SHA-256 without a module",
        "sasl: OAUTHBEARER without a module",
    ),
    "`sasl.jaas.config` counts without a listener or a mechanism in its key too": (
        "sasl: module of no listener",
        "sasl: module of the listener, of no mechanism",
    ),
}
# Refused by both, here in other words, since Kafka's name no setting, are Java's, hold a part of a secret, or because
# another of several wrong things is told first.
OWN_WORDS = {
    "a list or a number that is none, with its value": (
        "listeners: a comma at the end",
        "listeners: empty",
        "listeners: a blank",
        "listeners: a comma",
        "advertised: a comma",
        "advertised: a comma at the end",
        "quorum: no id",
        "quorum: a comma at the end",
        "quorum: id empty",
        "quorum: id of letters",
        "sasl: a comma at the end",
    ),
    "a port or an address, with the listener": (
        "listeners: a negative port",
        "listeners: a port too high",
        "listeners: a host that is unknown",
        "listeners: an address of another machine",
        "advertised: a negative port",
        "advertised: a port too high",
    ),
    "the pair that is wrong, where Kafka tells an index in a Java string": (
        "map: an empty name",
        "map: no colon",
        "map: an equals sign",
    ),
    "what to do": ("quorum: controller with a listener of clients",),
    "the mechanism that is not here": (
        "sasl: mechanisms missing",
        "sasl: with one wrong letter",
        "sasl: a semicolon between",
        "sasl: GSSAPI without a module",
    ),
    "what a login module must look like, without its text": (
        "sasl: the file, cut",
        "sasl: the file, an entry without modules",
        "sasl: the file, two entries of one name",
        "jaas: empty",
        "jaas: a blank",
        "jaas: no flag",
        "jaas: a flag with one wrong letter",
        "jaas: no value",
        "jaas: no equals sign",
        "jaas: an unquoted number",
        "jaas: an entry of a file",
        "jaas: in quotes",
    ),
    "the setting and the file, where Kafka tells what Java's key stores say": (
        "tls: an empty key",
        "tls: a key with a wrong password",
        "tls: a key without its password",
        "tls: trust that is none",
        "tls: rules that are none",
        "stores: PKCS12, a wrong password",
        "stores: a file that is not there",
        "stores: an empty path",
        "stores: a file that is no store",
        "stores: an empty file",
        "stores: PEM, called JKS",
        "stores: trust in a file that is not there",
        "stores: trust in a file that is none",
        "stores: trust in a file, called JKS",
    ),
}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> dict[str, str]:
    found = start_here(tmp_path_factory.mktemp("starts"))
    if not has_ipv6():
        for name in found:
            if "IPv6" in name and json.loads(RECORDED.read_text())["starts"][name]["starts"]:
                found[name] = ""  # Kafka could listen on it
    return found


def test_cases_are_those_that_were_recorded(recorded, here):
    assert recorded["starts"].keys() == here.keys()
    assert len(here) >= 200
    assert 40 < sum(not why for why in here.values()) < 150


def test_start_is_that_of_kafka_but_for_the_departures(recorded, here):
    differ = {name for name, answer in recorded["starts"].items() if bool(answer["starts"]) != (here[name] == "")}
    told = {name for names in DEPARTURES.values() for name in names}
    waits = {name for name, answer in recorded["starts"].items() if answer["starts"] is None}
    shown = [
        f"{name}: Kafka {recorded['starts'][name]}, here {here[name] or 'starts'}" for name in differ ^ (told - waits)
    ]
    assert not shown, f"{len(shown)} differ:\n" + "\n".join(sorted(shown))


def test_refusal_has_the_words_of_kafka_but_where_ours_say_more(recorded, here):
    own = set()
    for name, answer in recorded["starts"].items():
        if answer["starts"] is False and here[name]:
            theirs = answer["why"][-1].removeprefix("requirement failed: ")
            mine = re.sub(r"\b\d{4,5}\b", "PORT", here[name])
            if theirs[:40] not in mine:
                own.add(name)
    assert own == {name for names in OWN_WORDS.values() for name in names}


def test_files_of_settings_are_read_as_java_does(recorded):
    for text, answer in zip(TEXTS, recorded["texts"], strict=True):
        if "why" in answer:
            with pytest.raises(ValueError, match=re.escape(answer["why"][0])):
                parse_properties(text)
        else:  # what Kafka makes of the values is trimmed
            expected = {key: value.strip(JAVA_S_WHITE) for key, value in answer["read"].items()}
            assert parse_properties(text) == expected, text


def test_login_modules_are_read_as_kafka_does(recorded):
    for text, answer in zip(MODULES, recorded["modules"], strict=True):
        if "why" in answer:
            with pytest.raises(ConfigError):
                parse_jaas(text)
        else:
            assert tuple(parse_jaas(text)) == (answer["name"], answer["options"]), text


@pytest.mark.parametrize("sentence", DEPARTURES)
def test_departure_is_documented(sentence):
    assert sentence in SUPPORTED
