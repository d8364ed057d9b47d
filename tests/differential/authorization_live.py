"""Asks a live Apache Kafka with StandardAuthorizer; run as a program it records the answers. Needs java and mvn.

`PYTHONPATH=tests python -m differential.authorization_live`
"""

from __future__ import annotations

import json
import lzma
import random
import socket
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from differential.authorization_cases import GROUPS, IDS, PRINCIPALS, RECORDED, SEED, acl_sets, cases
from differential.authorization_state import prepare, replace_acls, summary
from protocol.api import ApiKey, response_class
from protocol.codegen import codec
from protocol.declare import Message
from protocol.header import encode_request_header, response_header_version
from protocol.messages import cluster, sasl

T = TypeVar("T")


class Peer:
    """A connection that authenticates by PLAIN."""

    def __init__(self, address: str, user: str, client_id: str = "cases") -> None:
        self._client_id = client_id
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=60)
        try:
            assert self.call(sasl.SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
            answer = self.call(sasl.SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{user}".encode()), 1)
            assert answer.error_code == 0, answer.error_message
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def call(self, request: Message, version: int) -> Any:
        key = ApiKey(request.API_KEY)
        body = encode_request_header(key, version, 1, self._client_id) + codec(type(request), version).encode(request)
        self._socket.sendall(len(body).to_bytes(4, "big") + body)
        data = self._read(int.from_bytes(self._read(4), "big"))[4:]
        return codec(response_class(key), version).decode(data, response_header_version(key, version))[0]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError("closed")
            data += part
        return data


def prepared(address: str, prepare: Callable[[Any], T]) -> tuple[Peer, T]:
    """An administrator of a Kafka that has just been started, and what came of its first calls."""
    end = time.monotonic() + 90
    admin: Peer | None = None
    while True:
        try:
            admin = admin or Peer(address, "admin")
            return admin, prepare(admin.call)
        except (OSError, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.5)


def ask_kafka(address: str, seed: int) -> list[str]:
    """What a Kafka answers to each case."""
    rng = random.Random(seed)
    admin, ids = prepared(address, prepare)
    for name in GROUPS:
        admin.call(cluster.FindCoordinatorRequest(key=name, key_type=0), 3)
    for name in IDS:
        admin.call(cluster.FindCoordinatorRequest(key=name, key_type=1), 3)
    sets = acl_sets(rng)
    peers = {principal: Peer(address, principal.removeprefix("User:")) for principal in PRINCIPALS}
    answers, current = [], -1
    for case in cases(rng, ids):
        if case.acl_set != current:
            current = case.acl_set
            replace_acls(admin.call, sets[current])
        answers.append(summary(peers[case.principal].call(case.request, case.version)))
    for peer in (admin, *peers.values()):
        peer.close()
    return answers


USERS = 'user_admin="admin" user_alice="alice" user_bob="bob"'
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SECURED = f"""\
listener.security.protocol.map=CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT
inter.broker.listener.name=SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={PLAIN} required username="admin" password="admin" {USERS};
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
auto.create.topics.enable=false
"""


def main() -> None:
    """Record what Apache Kafka answers."""
    from apache_kafka import apache_kafka  # type: ignore[import-untyped,unused-ignore]  # tests have no types
    from kafka_jars import fetch_jars  # type: ignore[import-untyped,unused-ignore]  # the same

    with (
        tempfile.TemporaryDirectory() as folder,
        apache_kafka(f"{fetch_jars('current')}/*", Path(folder), SECURED, protocol="SASL_PLAINTEXT") as address,
    ):
        answers = ask_kafka(address, SEED)
    RECORDED.write_bytes(lzma.compress(json.dumps({"seed": SEED, "answers": answers}, separators=(",", ":")).encode()))
    sys.stdout.write(f"{len(answers)} cases, {len(set(answers))} different answers\n")


if __name__ == "__main__":
    main()
