"""The pytest plugin, in a project of its own, run as its users run it."""

from __future__ import annotations

import subprocess
import sys

CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def kafka_broker_config():
    return {"num.partitions": 3}
"""

TESTS = """
from kafka.admin import KafkaAdminClient, NewTopic

seen = []

def topics(broker):
    admin = KafkaAdminClient(**broker.client_config("kafka-python"))
    try:
        return [name for name in admin.list_topics() if not name.startswith('__')]
    finally:
        admin.close()

def test_first(kafka_broker):
    assert topics(kafka_broker) == []
    admin = KafkaAdminClient(**kafka_broker.client_config("kafka-python"))
    admin.create_topics([NewTopic("mine", -1, -1)])
    assert len(admin.describe_topics(["mine"])[0]["partitions"]) == 3
    admin.close()
    seen.append(kafka_broker.bootstrap_servers)

def test_second_has_a_broker_of_its_own(kafka_broker):
    assert topics(kafka_broker) == []
    assert kafka_broker.bootstrap_servers not in seen

def test_without_the_fixture():
    pass
"""


def run_pytest(folder, *arguments):
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:asyncio", "-q", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500)


def test_plugin_gives_each_test_a_fresh_broker_with_the_projects_settings(tmp_path):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_mine.py").write_text(TESTS)
    done = run_pytest(tmp_path)
    assert "3 passed" in done.stdout, done.stdout + done.stderr


def test_plugin_adds_fixtures_that_explain_themselves_and_nothing_autouse(tmp_path):
    done = run_pytest(tmp_path, "--fixtures")
    for name in ("kafka_broker_config", "kafka_listen_address", "kafka_broker"):
        assert name in done.stdout
    (tmp_path / "test_plain.py").write_text(
        "def test_plain(request):\n    assert not [n for n in request.fixturenames if 'kafka' in n]\n"
    )
    assert "1 passed" in run_pytest(tmp_path).stdout
