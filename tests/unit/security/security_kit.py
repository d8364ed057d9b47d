"""A world with a SASL listener, clients that authenticate, and the client's side of each mechanism."""

from __future__ import annotations

import base64
import json
from typing import Any

from core_broker import Client, World
from scramp import ScramClient
from scramp.core import Salt

from protocol.messages.cluster import MetadataRequest
from protocol.messages.metadata_records import UserScramCredentialRecord, encode_record
from protocol.messages.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

Salt.MIN_LENGTH = 1  # Kafka and its clients have no such limit
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER"
PLAIN_MODULE = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret" user_bob="b";'


def sasl_world(**settings: str) -> World:
    """One broker with a SASL_PLAINTEXT listener; alice and bob have passwords for PLAIN."""
    given = {
        "listeners": "SASL_PLAINTEXT://:9092",
        "sasl_enabled_mechanisms": MECHANISMS,
        "sasl_jaas_config": PLAIN_MODULE,
        **settings,
    }
    return World(**given)


def add_scram_user(world: World, user: str, password: str, mechanism: int = 1, salt: bytes = b"salt") -> None:
    """Write a credential into the cluster's records."""
    from broker.security.mechanisms import scram_keys

    keys = scram_keys(password, mechanism, salt)
    record = UserScramCredentialRecord(name=user, mechanism=mechanism, **keys._asdict())
    world.broker.metadata_shard.append([(None, encode_record(record, 0))], world.broker.turn.now_ms)
    world.run()


class SaslClient(Client):
    """A client of a SASL listener, not authenticated yet."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        guard = world.broker.security.guard(world.broker.nodes.up[0].main)
        self.connection.guard = self.connection.service = guard
        self.transport.set_protocol = lambda protocol: setattr(self, "protocol", protocol)
        self.protocol: Any = self.connection

    def deliver(self, most: int = 1 << 18) -> None:
        while self.pending and self.transport.reading and not self.transport.closed:
            data = bytes(self.pending[:most])
            del self.pending[:most]
            self.protocol.data_received(data)

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        return self.call(SaslHandshakeRequest(mechanism=mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.call(SaslAuthenticateRequest(auth_bytes=token), version)

    def plain(self, user: str, password: str) -> Any:
        assert self.handshake("PLAIN").error_code == 0
        return self.token(f"\0{user}\0{password}".encode())

    def scram(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> Any:
        assert self.handshake(mechanism).error_code == 0
        client = ScramClient([mechanism], user, password)
        first = self.token(client.get_client_first().encode())
        if first.error_code or first.auth_bytes.find(b",i=") < 0:
            return first
        client.set_server_first(first.auth_bytes.decode())
        last = self.token(client.get_client_final().encode())
        if not last.error_code:
            client.set_server_final(last.auth_bytes.decode())
        return last

    def oauth(self, **claims: Any) -> Any:
        assert self.handshake("OAUTHBEARER").error_code == 0
        return self.token(f"n,,\1auth=Bearer {unsigned(**claims)}\1\1".encode())


def serves(client: Client) -> bool:
    """Whether it is served what needs authentication."""
    return bool(client.call(MetadataRequest(topics=[]), 9).brokers)


def unsigned(**claims: Any) -> str:
    """A token with the algorithm "none"."""
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(content: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(content).encode()).rstrip(b"=").decode()
