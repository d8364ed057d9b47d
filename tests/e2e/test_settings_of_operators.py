"""Settings in the forms that operators have them: `momus serve` obeys them, warns, or says why it does not start."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from momus.client.kafka_client import Client

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
ID = "4L6g3nShT-eMCtK--X86sw"
SASL = {
    "KAFKA_LISTENERS": "CLIENT://127.0.0.1:0",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "CLIENT:SASL_PLAINTEXT",
    "KAFKA_SASL_ENABLED_MECHANISMS": "PLAIN",
}


class Operator:
    """Starts `momus serve` with words and variables."""

    def __init__(self, folder: Path, ends: ExitStack) -> None:
        self.folder = folder
        self._ends = ends
        self._log = folder / "log"

    def start(self, *words: str, **variables: str) -> str:
        """HOST:PORT where it serves."""
        process = self._run(words, variables)
        self._ends.callback(process.communicate)
        self._ends.callback(process.terminate)
        line = process.stdout.readline()
        assert line.startswith("momus ready "), self.log
        return line.split()[2]

    def refused(self, *words: str, **variables: str) -> str:
        """Why it does not start."""
        process = self._run(words, variables)
        out, _ = process.communicate()
        assert (process.returncode, out) == (2, ""), out + self.log
        return self.log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def _run(self, words: tuple[str, ...], variables: dict[str, str]) -> Any:
        command = [sys.executable, "-m", "momus", "serve", "-d", str(self.folder / "data"), *words]
        environment = {key: text for key, text in os.environ.items() if not key.startswith("KAFKA")} | variables
        with open(self._log, "w") as log:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=log, text=True)


@pytest.fixture
def operator(tmp_path) -> Iterator[Operator]:
    with ExitStack() as ends:
        yield Operator(tmp_path, ends)


def clusters_seen(address: str, **settings: str) -> int:
    """How many brokers a client sees."""
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=address, **settings)
    try:
        return len(admin.describe_cluster()["brokers"])
    finally:
        admin.close()


def as_user(name: str, password: str) -> dict[str, str]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": name,
        "sasl_plain_password": password,
    }


def test_listener_that_the_map_does_not_have_does_not_start(operator):
    told = operator.refused(
        KAFKA_LISTENERS="CLIENTS://127.0.0.1:0", KAFKA_LISTENER_SECURITY_PROTOCOL_MAP="CLIENT:SASL_SSL"
    )
    assert "No security protocol defined for listener CLIENTS" in told
    assert "Did you mean CLIENT?" in told


def test_ipv6_address_is_printed_and_advertised_with_brackets(operator):
    address = operator.start("--listen", "[::1]:0", "--control", "[::1]:0")
    assert address.startswith("[::1]:")
    with Client(address) as client:
        assert [(node.host, f"[::1]:{node.port}") for node in client.cluster().brokers] == [("::1", address)]


def test_listen_takes_the_name_of_a_listener(operator):
    address = operator.start("--listen", "PLAINTEXT://127.0.0.1:0")
    assert address.startswith("127.0.0.1:")
    assert clusters_seen(address) == 1


def test_control_with_a_scheme_is_bad_usage(operator):
    assert "leave http:// out" in operator.refused("--listen", "127.0.0.1:0", "--control", "http://127.0.0.1:0")


def test_quorum_of_three_names_the_option(operator):
    told = operator.refused("--listen", "127.0.0.1:0", KAFKA_CONTROLLER_QUORUM_VOTERS="1@a:1,2@b:1,3@c:1")
    assert "--brokers 3" in told


def test_plain_without_users_does_not_start_and_starts_with_those_that_the_data_has(operator):
    told = operator.refused(**SASL)
    assert "Could not find a 'KafkaServer' or 'client.KafkaServer' entry in the JAAS configuration" in told
    address = operator.start("--user", "alice:secret", **SASL)
    assert clusters_seen(address, **as_user("alice", "secret")) == 1


def test_users_that_the_data_has_are_enough(operator):
    with ExitStack() as first:
        before = Operator(operator.folder, first)
        before.start("--user", "alice:secret", **SASL)
    assert clusters_seen(operator.start(**SASL), **as_user("alice", "secret")) == 1


def test_file_of_logins_in_kafka_opts_is_read(operator):
    file = operator.folder / "jaas.conf"
    file.write_text(f'KafkaServer {{\n  {PLAIN} required\n  user_alice="a\\tb";\n}};\n')
    options = f"-Xmx1g -Djava.security.auth.login.config={file}"
    address = operator.start(**SASL, KAFKA_OPTS=options)
    assert clusters_seen(address, **as_user("alice", "a\tb")) == 1


def test_file_of_logins_that_is_not_there_is_named(operator):
    told = operator.refused(**SASL, KAFKA_OPTS="-Djava.security.auth.login.config=/no/such/file")
    assert "/no/such/file" in told
    assert "cannot be read: No such file or directory" in told


def test_users_of_bitnamis_image_may_log_in(operator):
    address = operator.start(**SASL, KAFKA_CLIENT_USERS="alice,bob", KAFKA_CLIENT_PASSWORDS="a,b")
    assert clusters_seen(address, **as_user("bob", "b")) == 1
    assert operator.log == ""


def test_escapes_of_a_file_of_settings_are_read(operator):
    module = f'{PLAIN} required \\\n  user_alice="p\\u00e4 ss";'
    (operator.folder / "server.properties").write_text(
        "listeners=SASL_PLAINTEXT\\://127.0.0.1\\:0\nsasl.enabled.mechanisms=PLAIN\n"
        f"listener.name.sasl_plaintext.plain.sasl.jaas.config={module}\n"
    )
    address = operator.start("--config", str(operator.folder / "server.properties"))
    assert clusters_seen(address, **as_user("alice", "pä ss")) == 1


def test_typo_in_a_file_or_a_variable_is_a_warning_with_a_question(operator):
    (operator.folder / "server.properties").write_text("num.partitons=3\n")
    config = str(operator.folder / "server.properties")
    operator.start("--listen", "127.0.0.1:0", "--config", config, KAFKA_NUM_PARTITION="3")
    assert "num.partitons is no setting of a broker. Did you mean num.partitions?" in operator.log
    assert "num.partition is no setting of a broker. Did you mean num.partitions?" in operator.log


def test_other_cluster_and_second_directory_are_one_warning_each(operator):
    with ExitStack() as first:
        Operator(operator.folder, first).start("--listen", "127.0.0.1:0", CLUSTER_ID=ID)
    logs = f"{operator.folder}/data,/other"
    operator.start("--listen", "127.0.0.1:0", CLUSTER_ID="another", KAFKA_LOG_DIRS=logs, KAFKA_NUM_IO_THREADS="2")
    lines = [line.partition(" momus.server ")[2] for line in operator.log.splitlines()]
    data = operator.folder / "data"
    assert sorted(lines) == [
        f"log.dirs: only {data} is used; /other gets no data",
        "settings of Kafka that have no effect here: num.io.threads",
        f"the data in {data} is of the cluster {ID}, which it stays: cluster.id=another has no effect",
    ]
