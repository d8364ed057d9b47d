"""What people's compose files call and mount: Kafka's tools as healthchecks, a server.properties."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from docker_engine import run
from image_kit import IMAGE, Container

Start = Callable[..., Container]
COMPOSE = """\
services:
  kafka:
    image: {image}
    healthcheck:
      test: {test}
      interval: 1s
      timeout: 10s
      retries: 30
"""
# Of public compose files, as they stand.
HEALTHCHECKS = [
    '["CMD-SHELL", "kafka-topics --bootstrap-server localhost:9092 --list"]',
    '["CMD", "kafka-topics.sh", "--bootstrap-server", "localhost:9092", "--list"]',
    '["CMD-SHELL", "/opt/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --list || exit 1"]',
    '["CMD-SHELL", "/opt/bitnami/kafka/bin/kafka-topics.sh --bootstrap-server localhost:9092 --list"]',
    '["CMD", "kafka-broker-api-versions", "--bootstrap-server", "localhost:9092"]',
    '["CMD-SHELL", "/opt/kafka/bin/kafka-broker-api-versions.sh --bootstrap-server localhost:9092 >/dev/null 2>&1"]',
]
PLAIN = """\
listeners=SASL_PLAINTEXT://0.0.0.0:9092
advertised.listeners=SASL_PLAINTEXT://localhost:9092
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule \\
  required user_alice="pencil";
"""
USER = "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=alice -X sasl.password=pencil"


@pytest.mark.parametrize("test", HEALTHCHECKS)
def test_healthcheck_of_a_public_compose_file_is_passed(compose: list[str], tmp_path: Path, test: str) -> None:
    file = tmp_path / "compose.yml"
    file.write_text(COMPOSE.format(image=IMAGE, test=test))
    command = [*compose, "-p", "momus-calls", "-f", str(file)]
    try:
        run(*command, "up", "--wait")
    finally:
        run(*command, "down", "--volumes")


@pytest.mark.parametrize("folder", ["/mnt/shared/config", "/bitnami/kafka/config", "/opt/kafka/config", "/etc/kafka"])
def test_file_of_settings_that_asks_for_passwords_is_obeyed(start: Start, tmp_path: Path, folder: str) -> None:
    file = tmp_path / "server.properties"
    file.write_text(PLAIN)
    file.chmod(0o644)
    container = start("-v", f"{file}:{folder}/server.properties:ro")
    log = container.wait_for("momus ready")
    assert f"settings are read from {folder}/server.properties" in log
    assert run("docker", "exec", container.id, "momus", "health", check=False).returncode == 1
    assert container.exec("momus", "health", *USER.split()).strip() == "ok"


def test_tools_print_what_kafkas_print_and_name_an_option_that_is_not_here(start: Start) -> None:
    container = start()
    container.wait_for("momus ready")
    asked = ("kafka-topics.sh", "--bootstrap-server", "localhost:9092")
    assert container.exec(*asked, "--create", "--topic", "orders", "--partitions", "2") == "Created topic orders.\n"
    assert container.exec(*asked, "--list", "--exclude-internal") == "orders\n"
    told = container.exec(*asked, "--describe", "--topic", "orders").splitlines()
    assert told[0].endswith("\tPartitionCount: 2\tReplicationFactor: 1\tConfigs: ")
    assert told[2] == "\tTopic: orders\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    refused = run("docker", "exec", container.id, *asked, "--list", "--nothing", check=False)
    assert (refused.returncode, "--nothing is not a recognized option" in refused.stderr) == (1, True)
    user = "kafka-configs.sh --bootstrap-server localhost:9092 --alter --entity-type users --entity-name alice"
    assert "Completed" in container.exec(*user.split(), "--add-config", "SCRAM-SHA-256=[password=x]")


def test_image_runs_momus_fault_set(start: Start) -> None:
    container = start("-e", "MOMUS_CONTROL=127.0.0.1:9644")
    container.wait_for("momus ready")
    words = "momus fault set inject_error api=OffsetCommit error=NOT_COORDINATOR --control 127.0.0.1:9644"
    assert container.exec(*words.split()).strip()


def test_storage_tool_says_that_it_formats_nothing(start: Start) -> None:
    container = start()
    asked = ("kafka-storage.sh", "format", "-t", "momusmomusmomusmomusAA", "-c", "/opt/kafka/config/server.properties")
    told = "kafka-storage: momus formats its data directory itself: there is nothing to do"
    assert container.exec(*asked) == f"{told}\n"
    users = container.exec(*asked, "--add-scram", "SCRAM-SHA-256=[name=alice,password=pencil]")
    assert users == f"{told} but to keep the users\n"
    assert container.exec("cat", "/tmp/momus-users") == "alice:pencil\n"
