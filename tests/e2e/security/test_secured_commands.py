"""The command line on a cluster with security: files that it writes for clients, and its own connections."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from momus_command import run_momus
from secured_kit import CLIENTS, LIMIT_S, WORDS

HERE = Path(__file__).parent


# -- the command, and the files that it writes


@pytest.fixture(params=["sasl_ssl", "mtls"])
def served(request, tmp_path) -> Iterator[tuple[str, Path]]:
    """`momus serve --security`: its address, and the folder of alice's files."""
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", "-d", str(tmp_path / "data")]
    command += ["--security", request.param, "--user", "alice:pencil"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        select.select([process.stdout], [], [], LIMIT_S)
        ready, clients = process.stdout.readline().split(), process.stdout.readline().split()
        assert (ready[1], clients[1]) == ("ready", "clients")
        yield ready[2], Path(clients[2]) / "alice"
        process.send_signal(signal.SIGTERM)
        assert process.wait(LIMIT_S) == 0


def test_files_for_clients_work(served, kafka_libs, tmp_path):
    _, folder = served
    assert CLIENTS["kafka-python"](json.loads((folder / "kafka-python.json").read_text())) is None
    rows = (folder / "librdkafka.properties").read_text().splitlines()
    assert CLIENTS["confluent"](dict(row.split("=", 1) for row in rows)) is None
    place: dict[str, Any] = {}
    exec((folder / "aiokafka_client.py").read_text(), place)
    assert CLIENTS["aiokafka"](place["CLIENT"]) is None
    check = (
        subprocess.run(["node", "--check", str(folder / "kafkajs.js")], capture_output=True, text=True)
        if shutil.which("node")
        else None
    )
    assert check is None or check.returncode == 0, check.stderr
    assert list_topics(kafka_libs, folder / "client.properties") == ""
    bare = tmp_path / "bare.properties"
    bare.write_text("security.protocol=PLAINTEXT\nrequest.timeout.ms=1500\ndefault.api.timeout.ms=1500\n")
    assert list_topics(kafka_libs, bare, (folder / "client.properties").read_text())


def list_topics(libs: str, config: Path, other: str = "") -> str:
    """What Java's admin client says; nothing when it is served."""
    servers = re.search(r"bootstrap\.servers=(.*)", other or config.read_text())
    assert servers is not None
    command = ["java", "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", libs, "org.apache.kafka.tools.TopicCommand"]
    command += ["--bootstrap-server", servers[1], "--command-config", str(config), "--list"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=4 * LIMIT_S)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_java_names_each_fault_of_a_certificate(make, kafka_libs, tmp_path):
    cluster = make("sasl_ssl")
    config = tmp_path / "client.properties"

    def ask_java(**changes: str) -> str:
        settings = {**before, "default.api.timeout.ms": "20000", "request.timeout.ms": "10000", **changes}
        config.write_text("".join(f"{key}={text.replace(chr(92), chr(92) * 2)}\n" for key, text in settings.items()))
        return list_topics(kafka_libs, config)

    before = cluster.client_config("java")
    assert ask_java() == ""
    wrong = before["sasl.jaas.config"].replace("pen", "pan")
    assert "SaslAuthenticationException: Authentication failed during authentication" in ask_java(
        **{"sasl.jaas.config": wrong}
    )
    cluster.certificates.expire()
    assert "validity check failed" in ask_java()
    cluster.certificates.issue(hosts=["elsewhere.example"])
    assert "No subject alternative names matching IP address" in ask_java()
    cluster.certificates.rotate(authority=True)
    assert re.search("PKIX path (building|validation) failed", ask_java())


def run_go(program: Path) -> subprocess.CompletedProcess[str]:
    """What the Go program in this folder prints."""
    return subprocess.run(
        ["go", "run", "."],
        cwd=program,
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
    )


@pytest.mark.heavy
def test_franz_go_connects_with_its_file(served, tmp_path):
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    _, folder = served
    program = tmp_path / "go"
    shutil.copytree(HERE / "franz_go", program)
    (program / "options").mkdir()
    shutil.copy(folder / "franz_go.go", program / "options")
    run = run_go(program)
    assert run.stdout.strip() == "ok", run.stdout + run.stderr
    bare = (folder / "franz_go.go").read_text()
    bare = (
        re.sub(r"\n\toptions = append.*", "", bare)
        .replace("\tconfig := ", "\t_ = ")
        .replace('"github.com/twmb/franz-go/pkg/sasl/scram"', "")
    )
    bare = re.sub(r"\n\tmine, err[^}]*}\n\tconfig\.[^\n]*", "", bare)
    (program / "options" / "franz_go.go").write_text(bare)
    run = run_go(program)
    assert run.returncode == 1, run.stdout + run.stderr
    assert "EOF" in run.stdout or "reset" in run.stdout or "tls" in run.stdout.lower(), run.stdout + run.stderr


# -- our own command line


def momus_says(servers: str, *words: str) -> tuple[int, str]:
    done = run_momus(*words, "-b", servers)
    return done.returncode, done.stdout + done.stderr


def spelled(settings: dict[str, Any]) -> list[str]:
    return [text for key, value in settings.items() if key != "bootstrap.servers" for text in ("-X", f"{key}={value}")]


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("client", ["confluent", "java"])
def test_commands_take_the_settings_of_clients(make, tmp_path, word, client):
    cluster = make(word)
    cluster.create_topic("orders")
    settings, servers = cluster.client_config(client), cluster.bootstrap_servers
    code, text = momus_says(servers, "topic", "list", *spelled(settings))
    assert (code, "orders" in text) == (0, True), text
    file = tmp_path / "client.properties"
    file.write_text("".join(f"{key}={str(text).replace(chr(92), chr(92) * 2)}\n" for key, text in settings.items()))
    code, text = momus_says(servers, "group", "list", "--config", str(file))
    assert code == 0, text
    assert momus_says(servers, "health", "--timeout", "3")[0] == 1


def test_commands_say_why_they_are_refused(make):
    cluster = make("sasl_ssl")
    settings, servers = cluster.client_config("confluent"), cluster.bootstrap_servers
    code, text = momus_says(servers, "health", *spelled({**settings, "sasl.password": "wrong"}))
    assert code == 1
    assert "Authentication failed" in text
    assert "wrong" not in text
    cluster.certificates.rotate(authority=True)
    code, text = momus_says(servers, "health", *spelled(settings))
    assert code == 1
    assert "certificate is not accepted" in text
    code, text = momus_says(servers, "health", "-X", "security.protocol=TLS")
    assert (code, "security.protocol=TLS is none: PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL" in text) == (1, True)
    assert momus_says(servers, "health", "-X", "s3same")[0] == 2
    assert "s3same" not in momus_says(servers, "health", "-X", "s3same")[1]


def test_commands_authenticate_by_each_mechanism_and_name_those_that_are_there(make):
    cluster = make("sasl_plaintext")
    settings, servers = cluster.client_config("confluent"), cluster.bootstrap_servers
    for mechanism in ("PLAIN", "SCRAM-SHA-256", "scram-sha-512"):
        assert momus_says(servers, "health", *spelled({**settings, "sasl.mechanism": mechanism})) == (0, "ok\n")
        wrong = {**settings, "sasl.mechanism": mechanism, "sasl.password": "wrong"}
        code, text = momus_says(servers, "health", *spelled(wrong))
        assert (code, "Authentication failed" in text) == (1, True)
    code, text = momus_says(servers, "health", *spelled({**settings, "sasl.mechanism": "GSSAPI"}))
    assert (code, "sasl.mechanism=GSSAPI is not here: PLAIN, SCRAM-SHA-256, SCRAM-SHA-512" in text) == (1, True)
