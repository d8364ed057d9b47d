"""One case of a start: a change of BASE, with which Apache Kafka starts.

{a}, {b} and {c} are free ports, {folder} is the folder with the files of `write_material`. None as a value takes a key
out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ports import HeldPorts

CONTROLLER = ",CONTROLLER://127.0.0.1:{c}"
ONE = "PLAINTEXT://127.0.0.1:{a}"
MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:{c}",
    "controller.listener.names": "CONTROLLER",
    "listeners": ONE + CONTROLLER,
}
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
PROTOCOLS, CONTROLLERS = "listener.security.protocol.map", "controller.listener.names"
INTER, INTER_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
VOTERS, BOOTSTRAP, ROLES = "controller.quorum.voters", "controller.quorum.bootstrap.servers", "process.roles"
MECHANISMS, CLIENT_AUTH = "sasl.enabled.mechanisms", "ssl.client.auth"
OWN_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
ALICE = f'{PLAIN} required user_alice="secret";'


class Case(NamedTuple):
    """What is changed of BASE, and the file of logins."""

    name: str
    changes: Mapping[str, str | None]
    jaas: str | None = None

    def settings(self, folder: str) -> dict[str, str]:
        """The settings, with ports and files put in."""
        with HeldPorts(3) as held:  # given back at once: what is started must find them free
            a, b, c = held.numbers
        merged = {key: text for key, text in {**BASE, **self.changes}.items() if text is not None}
        words = {"{a}": str(a), "{b}": str(b), "{c}": str(c), "{folder}": folder}
        return {key: functools.reduce(lambda t, w: t.replace(*w), words.items(), text) for key, text in merged.items()}


def each_of(key: str, more: Mapping[str, str | None], values: Mapping[str, str | None]) -> Iterator[Case]:
    for name, value in values.items():
        yield Case(name, {**more, key: value})
