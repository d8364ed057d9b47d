"""Delegation tokens by Kafka's own tool: made, shown, used by a Java client, and expired."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from momus import Broker

LIMIT_S = 240.0
TOKENS, TOPICS = "org.apache.kafka.tools.DelegationTokenCommand", "org.apache.kafka.tools.TopicCommand"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture
def java(kafka_libs, tmp_path):
    """Runs a tool of Kafka with a client's settings: its exit code and its words."""

    def run(tool: str, settings: dict[str, str], *words: str) -> tuple[int, str]:
        file = tmp_path / "client.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", kafka_libs, tool]
        command += ["--bootstrap-server", settings["bootstrap.servers"], "--command-config", str(file), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        return done.returncode, done.stdout + done.stderr

    return run


def test_token_made_by_kafkas_tool_lets_a_java_client_in(java, tmp_path: Path):
    config = {"delegation.token.secret.key": "s3same"}
    with Broker(security="sasl_plaintext", users={"alice": "pencil"}, config=config) as broker:
        settings = broker.client_config("java", user="alice")
        code, text = java(
            TOKENS, settings, "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
        )
        assert code == 0, text
        row = re.search(r"^([\w-]{22})\s+(\S+)\s+User:alice", text, re.MULTILINE)
        assert row is not None, text
        by_token = {
            **settings,
            "sasl.jaas.config": f'{MODULE} required username="{row[1]}" password="{row[2]}" tokenauth="true";',
            "default.api.timeout.ms": "15000",
            "request.timeout.ms": "5000",
        }
        assert java(TOPICS, by_token, "--create", "--topic", "by-token")[0] == 0
        assert "by-token" in java(TOPICS, settings, "--list")[1]
        assert row[1] in java(TOKENS, settings, "--describe", "--owner-principal", "User:alice")[1]
        code, text = java(TOKENS, settings, "--expire", "--expiry-time-period", "-1", "--hmac", row[2])
        assert code == 0, text
        code, text = java(TOPICS, by_token, "--list")
        assert (code != 0, "SaslAuthenticationException" in text) == (True, True), text
