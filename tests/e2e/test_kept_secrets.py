"""What holds secrets is the owner's alone, and no secret is in the list of processes."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Producer

from momus import Broker
from momus.kit.kept_run import keep_run

FEW = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, ({0}, {0}))
os.execv(sys.executable, [sys.executable, "-m", "momus", "serve", *sys.argv[1:]])
"""


def open_to_others(folder: Path) -> list[str]:
    return [str(each) for each in folder.rglob("*") if each.is_file() and each.stat().st_mode & 0o077]


def test_files_with_keys_of_users_are_the_owners_alone(tmp_path):
    data = tmp_path / "data"
    with Broker(data_dir=data, security="sasl_plaintext", users={"alice": "pencil"}) as broker:
        broker.create_topic("orders")
        broker.snapshot("one")
        broker.fork("one").close()
        broker.restart()
        metadata = [each for each in data.rglob("*") if "__cluster_metadata" in str(each)]
        assert len([each for each in metadata if each.suffix == ".log"]) >= 2, "the cluster's and the snapshot's"
        assert not [each for folder in metadata if folder.is_dir() for each in open_to_others(folder)]


def test_kept_run_is_the_owners_alone(tmp_path):
    with Broker() as broker, broker.create_cluster() as cluster:
        cluster.record()
        kept = keep_run(str(tmp_path), "test", cluster, "it failed")
    assert kept.stat().st_mode & 0o777 == 0o600


def serve(*words: str, **more: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "momus", "serve", "--listen", "127.0.0.1:0", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)


def test_token_and_users_come_from_files(tmp_path):
    token, users = tmp_path / "token", tmp_path / "users"
    token.write_text("a secret of the test\n")
    users.write_text("alice:pencil\n\nbob:ink\n")
    words = ("-d", str(tmp_path / "data"), "--control", "127.0.0.1:0", "--control-token-file", str(token))
    process = serve(*words, "--security", "sasl_plaintext", "--user-file", str(users))
    try:
        ready = process.stdout.readline().split()[2]
        address = next(line for line in process.stdout if line.startswith("momus control ")).split()[2]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"http://{address}/_admin/clock")
        asked = urllib.request.Request(
            f"http://{address}/_admin/clock", headers={"Authorization": "Bearer a secret of the test"}
        )
        urllib.request.urlopen(asked).close()
        words_shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert b"secret of the test" not in words_shown
        assert b"pencil" not in words_shown
        login = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
        producer = Producer(
            {"bootstrap.servers": ready, **login, "sasl.username": "bob", "sasl.password": "ink", "log_level": 0}
        )
        producer.produce("orders", b"x")
        assert producer.flush(30) == 0
    finally:
        process.terminate()
        process.communicate()


@pytest.mark.parametrize(
    ("content", "more", "sentence"),
    [
        ("", (), "is empty"),
        ("one", ("--control-token", "two"), "not both"),
    ],
)
def test_file_of_the_token_that_cannot_be_meant_is_refused(tmp_path, content, more, sentence):
    file = tmp_path / "token"
    file.write_text(content)
    done = serve("--control", "127.0.0.1:0", "--control-token-file", str(file), *more, cwd=tmp_path)
    _, error = done.communicate(timeout=60)
    assert done.returncode == 2
    assert sentence in " ".join(error.split())


def with_few(descriptors: int, tmp_path: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", FEW.format(descriptors), "--listen", "127.0.0.1:0", "-d", str(tmp_path / "data")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)


@pytest.mark.parametrize("descriptors", [48, 64, 128])
def test_clients_are_served_with_few_descriptors(tmp_path, descriptors):
    process = with_few(descriptors, tmp_path)
    try:
        address = process.stdout.readline().split()[2]
        for number in range(3):
            producer = Producer({"bootstrap.servers": address})
            for partition in range(5):
                producer.produce(f"topic-{number}-{partition}", b"x")
            assert producer.flush(30) == 0
    finally:
        process.terminate()
        _, error = process.communicate()
    assert f"the limit of open files is {descriptors}: at most" in error


def test_start_is_refused_where_no_client_could_be_served(tmp_path):
    process = with_few(40, tmp_path)
    output, error = process.communicate(timeout=60)
    assert (process.returncode != 0, output) == (True, "")
    assert "the limit of open files is 40, and a broker needs 48 to serve clients" in error
