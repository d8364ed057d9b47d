"""Each option of `momus serve` has a variable, and what is no variable of it is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import pytest

from broker.config.settings import BROKER_KEYS
from momus.cli.main import serve
from momus.cli.serve_variables import OF_OTHERS, words_about
from momus.client.image_variables import is_of_an_image
from momus.client.properties import is_of_kubernetes, parse_environment

REPOSITORY = Path(__file__).parents[3]
OPTIONS = [option for option in serve.params if isinstance(option, click.Option)]
# of options that are neither flags nor numbers, choices, or any text
FILES = ("--config", "--faults", "--control-token-file", "--user-file")
SAMPLES = dict.fromkeys(FILES, "pyproject.toml") | {"--user": "alice:pencil\nbob:ink"}


def given(*words: str, **environment: str) -> dict[str, Any]:
    """The options that `momus serve` is run with."""
    with patch.dict("os.environ", environment, clear=True), serve.make_context("serve", list(words)) as context:
        return {name: getattr(value, "name", value) for name, value in context.params.items()}


def sample(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return str(option.type.choices[-1])
    if isinstance(option.type, click.IntRange):
        return "7"
    return SAMPLES.get(option.opts[-1], "one\ntwo 2" if option.multiple else "some:1")


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.opts[-1])
def test_option_is_given_by_its_variable_as_by_its_word(option):
    (name,) = (each for each in option.opts if each.startswith("--"))
    variable = "MOMUS_" + name[2:].upper().replace("-", "_")
    assert option.envvar == variable
    if option.is_flag:
        assert given(**{variable: "yes"}) == given(name) != given()
        assert given(**{variable: "0"}) == given()
    else:
        text = sample(option)
        words = [word for line in text.split("\n") for word in (name, line)]
        assert given(**{variable: text}) == given(*words) != given()
    assert given(**{variable: ""}) == given()


def test_each_variable_is_documented():
    page = (REPOSITORY / "docs" / "container.md").read_text()
    assert [name for name in serve.variables if f"`{name}`" not in page] == []


def test_word_wins_over_its_variable():
    assert given("--flush", "fsync", MOMUS_FLUSH="memory")["flush"] == "fsync"


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("MOMUS_UI", "maybe", "MOMUS_UI.*not a valid boolean"),
        ("MOMUS_BROKERS", "0", "MOMUS_BROKERS.*not in the range"),
        ("MOMUS_USER", "alice:pencil bob:ink", "one NAME:PASSWORD a line"),
    ],
)
def test_variable_that_cannot_be_meant_is_refused(variable, value, told):
    with pytest.raises(click.BadParameter) as refused:
        given(**{variable: value})
    assert re.search(told, refused.value.format_message())
    assert "pencil" not in refused.value.format_message()


def test_variable_that_nothing_reads_is_told_with_the_near_one():
    environment = {"MOMUS_BROKRS": "3", "MOMUS_FLUSH": "os", "MOMUS_SEED": "1", "MOMUS_SERVICE_HOST": "10.0.0.1"}
    ignored, wrong = words_about(environment, serve.variables)
    assert ignored.startswith("MOMUS_SERVICE_HOST: ignored, because Kubernetes sets it for a Service")
    assert wrong == "MOMUS_BROKRS is no variable of `momus serve`, and has no effect. Did you mean MOMUS_BROKERS?"


def test_variables_of_other_programs_are_known():
    named = set()
    for folder in ("momus", "clients", "docs", "docker"):
        for path in (REPOSITORY / folder).rglob("*.*"):
            if path.suffix in (".py", ".go", ".java", ".md"):
                named |= set(re.findall(r"\bMOMUS_[A-Z_]*[A-Z]\b", path.read_text()))
    # what the pytest plugin makes of its own options is no secret to serve: both have FLUSH; serve has JOURNAL
    assert named - {"MOMUS_JOURNAL_MB", "MOMUS_BROKRS"} <= {*serve.variables, *OF_OTHERS}


def test_what_kubernetes_sets_for_a_service_is_no_setting():
    of_service = {
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT": "9092",
        "KAFKA_SERVICE_PORT_CLIENTS": "9092",
        "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP_PROTO": "tcp",
        "KAFKA_PORT_9092_TCP_PORT": "9092",
        "KAFKA_PORT_9092_TCP_ADDR": "10.0.0.1",
        "KAFKA_BROKER_PORT": "tcp://10.0.0.1:9092",
    }
    assert parse_environment({**of_service, "KAFKA_NUM_PARTITIONS": "4"}) == {"num.partitions": "4"}
    (told,) = words_about(of_service, serve.variables)
    assert all(name in told for name in of_service)


def test_no_setting_of_kafka_and_no_option_looks_like_kubernetes():
    names = [f"KAFKA_{key.upper().replace('.', '_')}" for key in BROKER_KEYS]
    assert [name for name in (*names, *serve.variables, "KAFKA_PORT") if is_of_kubernetes(name, "9092")] == []


def test_variables_of_images_are_named_with_what_to_do_and_are_no_settings():
    environment = {"KAFKA_TLS_TYPE": "PEM", "KAFKA_TLS_CLIENT_AUTH": "none", "KAFKA_CONFLUENT_LICENSE": "x"}
    assert parse_environment({**environment, "KAFKA_KRAFT_MODE_ENABLED": "yes"}) == {}
    confluent, stores = words_about(environment, serve.variables)
    assert confluent.startswith("KAFKA_CONFLUENT_LICENSE: no effect here: of Confluent's own server")
    assert stores.startswith("KAFKA_TLS_CLIENT_AUTH, KAFKA_TLS_TYPE: no effect here: name key stores by KAFKA_SSL_KEYS")


def test_no_setting_of_kafka_is_taken_for_a_variable_of_an_image():
    names = [f"{prefix}{key.upper().replace('.', '_')}" for prefix in ("KAFKA_", "KAFKA_CFG_") for key in BROKER_KEYS]
    assert [name for name in names if is_of_an_image(name)] == []
