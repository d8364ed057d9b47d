"""Real clients on a cluster with security: served with the settings that momus gives, refused without, and told why."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka.errors import KafkaConnectionError
from budget import short_and_slow
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer
from kafka.errors import KafkaError
from test_control_plane import fits

from momus import Broker
from momus.cluster import Cluster
from momus.control import ControlError

HERE = Path(__file__).parent
WORDS = ("sasl_ssl", "sasl_plaintext", "ssl", "mtls")
USERS = {"alice": 'pen"cil\\1', "bob": "b"}
LIMIT_S = 60.0


@pytest.fixture(scope="module")
def process() -> Iterator[Broker]:
    with Broker(flush="memory") as broker:
        yield broker


@pytest.fixture
def make(process) -> Iterator[Callable[..., Cluster]]:
    made = []

    def cluster(word: str, **words: Any) -> Cluster:
        users = None if word == "ssl" else USERS
        made.append(process.create_cluster(security=word, users=users, **words))
        return made[-1]

    yield cluster
    for each in made:
        each.close()


# -- a client asks for topics: nothing when it is served, else its exception


def kafka_python(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    KafkaProducer(**settings, bootstrap_timeout_ms=limit_ms).close()


def in_aiokafka(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    async def ask() -> None:
        producer = aiokafka.AIOKafkaProducer(**settings, request_timeout_ms=limit_ms)
        try:
            await producer.start()
        finally:
            await producer.stop()

    asyncio.run(ask())
    collect()  # the loop has ended before its TLS connections were closed


def collect() -> None:
    """Collect sockets that clients leave open, here and not in another test, where the warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def librdkafka(settings: dict[str, Any], limit_ms: int = 60_000) -> None:
    errors: list[Any] = []
    admin = AdminClient({**settings, "error_cb": errors.append, "log_level": 0})
    try:
        admin.list_topics(timeout=limit_ms / 1000)
    except KafkaException as error:
        admin.poll(0)
        raise RuntimeError(" ".join(str(each) for each in errors) or str(error)) from None


CLIENTS = {"kafka-python": kafka_python, "aiokafka": in_aiokafka, "confluent": librdkafka}


@pytest.fixture
def ask(caplog) -> Callable[[str, dict[str, Any]], str]:
    """Have a client connect. Answers "" or its exception, with what it has logged.

    limit_ms   how long a client tries that is to be refused: it tries again and again.
    """

    def connect(client: str, settings: dict[str, Any], limit_ms: int = 1500) -> str:
        caplog.clear()
        with caplog.at_level(logging.ERROR):
            try:
                CLIENTS[client](settings, limit_ms)
            except (KafkaError, KafkaConnectionError, RuntimeError) as error:
                found = f"{type(error).__name__}: {error}\n{caplog.text}"
            else:
                found = ""
        collect()  # clients that were refused leave sockets open
        return found

    return connect


@pytest.mark.parametrize("word", WORDS)
def test_clients_connect_with_the_settings_and_not_without(make, ask, word):
    cluster = make(word)
    for client in CLIENTS:
        settings = cluster.client_config(client)
        assert ask(client, settings, 60_000) == ""
        assert ask(
            client, {key: text for key, text in settings.items() if key.replace(".", "_") == "bootstrap_servers"}
        )
    if word != "ssl":
        assert ask("kafka-python", cluster.client_config("kafka-python", user="bob"), 60_000) == ""


WRONG = {"kafka-python": "sasl_plain_password", "aiokafka": "sasl_plain_password", "confluent": "sasl.password"}


@pytest.mark.parametrize("client", CLIENTS)
def test_wrong_password_is_the_client_s_authentication_error(make, ask, client):
    cluster = make("sasl_plaintext")
    found = ask(client, {**cluster.client_config(client), WRONG[client]: "wrong"})
    assert "Authentication failed during authentication due to invalid credentials" in found


@pytest.mark.parametrize("client", short_and_slow(CLIENTS, 2))
def test_each_fault_of_the_broker_s_certificate_is_named_by_the_client(make, ask, client):
    cluster = make("ssl")
    before = cluster.client_config(client)
    assert ask(client, before, 60_000) == ""
    cluster.certificates.expire()
    expired = ask(client, before)
    cluster.certificates.issue(hosts=["elsewhere.example"])
    other_host = ask(client, before)
    cluster.certificates.rotate(authority=True)
    untrusted = ask(client, before)
    after = ask(client, cluster.client_config(client), 60_000)
    if client == "confluent":  # it names them alike, all but the host
        assert "certificate verify failed" in expired
        assert "certificate verify failed" in other_host
        assert "certificate verify failed" in untrusted
    else:
        assert "certificate has expired" in expired
        assert re.search("IP address mismatch|Hostname mismatch", other_host)
        assert re.search("unable to get local issuer|self-signed|signature failure|unable to get issuer", untrusted)
    assert after == "", "with the new authority it connects"


def test_expired_certificate_of_a_client_is_refused(make, ask):
    cluster = make("mtls")
    cluster.certificates.expire("alice")
    settings = cluster.client_config("confluent", user="alice")
    assert "certificate expired" in ask("confluent", settings)
    assert ask("confluent", cluster.client_config("confluent", user="bob"), 60_000) == ""
    cluster.certificates.rotate()
    assert ask("confluent", cluster.client_config("confluent", user="alice"), 60_000) == ""


def test_user_that_is_added_connects_and_one_that_is_removed_does_not(make, ask):
    cluster = make("sasl_plaintext")
    cluster.users.add("carol", "pencil")
    settings = cluster.client_config("confluent", user="carol")
    assert ask("confluent", settings, 60_000) == ""
    with pytest.raises(ControlError, match="car%6Fl"):
        cluster.users.remove("car%6Fl")
    cluster.users.remove("carol")
    assert cluster.users.list() == ["alice", "bob"]
    assert "invalid credentials" in ask("confluent", settings)


def test_acls_of_the_test_kit_are_obeyed(make):
    cluster = make("sasl_plaintext")
    cluster.create_topic("orders")
    cluster.acls.allow("bob", "write", "describe", topic="orders")
    cluster.acls.deny("*", "read", topic="ord", pattern="prefixed")
    assert len(cluster.acls.list()) == 3

    def produce(user: str) -> str:
        told: list[Any] = []
        producer = Producer(cluster.client_config("confluent", user=user))
        producer.produce("orders", b"x", on_delivery=lambda error, record: told.append(error))
        assert producer.flush(LIMIT_S) == 0
        return str(told[0] and told[0].name())

    assert produce("bob") == "None"
    assert produce("alice") == "TOPIC_AUTHORIZATION_FAILED"
    assert cluster.acls.remove("bob") == 2
    assert cluster.acls.remove() == 1
    assert produce("alice") == "None"


def test_routes_answer_as_the_description_says(make):
    cluster = make("mtls")
    described = cluster.control.ask("GET", "/openapi.json")["paths"]
    for path, operations in described.items():
        if path.startswith("/_admin/clusters/") and path.endswith(("/users", "/acls", "/certificates", "/security")):
            for method, operation in operations.items():
                content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                answer = cluster.control.ask(method.upper(), path.format(cluster=cluster.name), content.get("example"))
                assert fits(answer, operation["responses"]["200"]["content"]["application/json"]["schema"])


@pytest.mark.parametrize("body", [{"action": "burn"}, {"action": "expire", "name": "nobody"}])
def test_certificate_that_cannot_be_changed_is_told(make, body):
    cluster = make("ssl")
    with pytest.raises(ControlError):
        cluster.control.ask("POST", f"{cluster.control.prefix}/certificates", body)


def test_journal_names_the_principal(make, ask):
    cluster = make("sasl_plaintext", journal_mb=1)
    for user in ("alice", "bob"):
        assert ask("confluent", cluster.client_config("confluent", user=user), 60_000) == ""
    path = f"{cluster.control.prefix}/journal?api=Metadata"
    found = {user: cluster.control.ask("GET", f"{path}&principal=User:{user}")["entries"] for user in ("alice", "bob")}
    assert {user: {each["principal"] for each in rows} for user, rows in found.items()} == {
        "alice": {"User:alice"},
        "bob": {"User:bob"},
    }


def test_clusters_of_a_process_have_users_and_certificates_of_their_own(make, ask):
    one, two = make("sasl_ssl"), make("sasl_ssl")
    one.users.add("carol", "pencil")
    mine = one.client_config("confluent", user="carol")
    assert ask("confluent", mine, 60_000) == ""
    assert "verify failed" in ask("confluent", {**mine, "bootstrap.servers": two.bootstrap_servers})
    trusted = {**two.client_config("confluent"), "sasl.username": "carol", "sasl.password": "pencil"}
    assert "invalid credentials" in ask("confluent", trusted)


def test_fork_has_the_users_and_the_authority_and_then_its_own(make, ask):
    cluster = make("sasl_ssl")
    before = cluster.client_config("confluent")
    with cluster.fork() as fork:
        assert ask("confluent", {**before, "bootstrap.servers": fork.bootstrap_servers}, 60_000) == ""
        fork.users.add("carol", "ink")
        assert ask("confluent", fork.client_config("confluent", user="carol"), 60_000) == ""
        assert cluster.users.list() == ["alice", "bob"]


def test_users_and_authority_survive_a_reset_and_a_restart():
    with Broker(security="sasl_ssl", users=USERS) as broker:
        settings = broker.client_config("confluent")
        for again in (broker.reset, broker.restart, broker.kill):
            again()
            broker.start()
            producer = Producer(settings)
            producer.produce("t", b"x")
            assert producer.flush(LIMIT_S) == 0


@pytest.mark.parametrize("word", ["sasl_plaintext", "mtls"])
@pytest.mark.parametrize("end", [Broker.kill, Broker.stop])
def test_users_are_those_of_the_process_before(ask, word, end):
    with Broker(security=word, users=USERS) as broker:
        broker.users.add("carol", "pencil")
        broker.users.add("bob", "ink")
        broker.users.remove("alice")
        end(broker)
        broker.start()
        assert broker.users.list() == ["bob", "carol"]
        for name in ("bob", "carol"):
            assert ask("confluent", broker.client_config("confluent", user=name), 60_000) == ""
        with pytest.raises(ControlError, match="no such user"):
            broker.client_config("confluent", user="alice")


def test_last_user_that_was_removed_stays_away():
    with Broker(security="sasl_plaintext") as broker:
        (made,) = broker.users.list()
        broker.users.remove(made)
        broker.restart()
        assert broker.users.list() == []
        with pytest.raises(ControlError, match="there are none"):
            broker.client_config("confluent")
        with broker.create_cluster(security="sasl_plaintext") as cluster:
            assert cluster.users.list() == [made]


def test_users_are_those_of_the_snapshot_after_a_restart(ask):
    with Broker(security="sasl_plaintext", users=USERS) as broker:
        broker.users.add("bob", "before")
        snapshot = broker.snapshot()
        broker.users.add("bob", "after")
        broker.users.add("carol", "pencil")
        broker.restore(snapshot)
        broker.restart()
        assert broker.users.list() == ["alice", "bob"]
        assert ask("confluent", broker.client_config("confluent", user="bob"), 60_000) == ""


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


def test_franz_go_connects_with_its_file(served, tmp_path):
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    _, folder = served
    program = tmp_path / "go"
    shutil.copytree(HERE / "franz_go", program)
    (program / "options").mkdir()
    shutil.copy(folder / "franz_go.go", program / "options")
    run = subprocess.run(
        ["go", "run", "."],
        cwd=program,
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
    )
    assert run.stdout.strip() == "ok", run.stdout + run.stderr
    bare = (folder / "franz_go.go").read_text()
    bare = (
        re.sub(r"\n\toptions = append.*", "", bare)
        .replace("\tconfig := ", "\t_ = ")
        .replace('"github.com/twmb/franz-go/pkg/sasl/scram"', "")
    )
    bare = re.sub(r"\n\tmine, err[^}]*}\n\tconfig\.[^\n]*", "", bare)
    (program / "options" / "franz_go.go").write_text(bare)
    run = subprocess.run(
        ["go", "run", "."],
        cwd=program,
        capture_output=True,
        text=True,
        timeout=4 * LIMIT_S,
        env={**os.environ, "GOFLAGS": "-mod=mod"},
    )
    assert run.returncode == 1, run.stdout + run.stderr
    assert "EOF" in run.stdout or "reset" in run.stdout or "tls" in run.stdout.lower(), run.stdout + run.stderr


# -- our own command line


def momus_says(servers: str, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "momus", *words, "-b", servers]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
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
    assert momus_says(servers, "health", "-X", "security.protocol=TLS")[0] == 1
    assert momus_says(servers, "health", "-X", "s3same")[0] == 2
    assert "s3same" not in momus_says(servers, "health", "-X", "s3same")[1]
