"""Jobs that ask a broker whose listener is SASL_SSL: `-X` and `--config`, in Java's words and librdkafka's."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from momus import Broker
from momus.client.connect_settings import SETTINGS
from momus.client.kafka_client import Client
from pipeline.connection_options import add_client_arguments, for_librdkafka, given_settings
from pipeline.errors import PipelineError
from pipeline.jobs import bridge, lag, migrate
from pipeline.jobs.registry import job_parser

SECRET = "s3same"
WRONG = {
    "confluent": {"sasl.password": "other"},
    "java": {"sasl.jaas.config": 'x.ScramLoginModule required username="alice" password="other";'},
}


@pytest.fixture(scope="module")
def cluster():
    with Broker(security="sasl_ssl", users={"alice": SECRET}) as broker:
        yield broker


@pytest.fixture(autouse=True)
def _forget():
    """A job is a process of its own; here others follow."""
    yield
    SETTINGS.clear()


def spelled(cluster: Broker, client: str, folder: Path, **changes: str) -> list[str]:
    """The options of a job: each setting by itself, or a file with all."""
    settings = {**cluster.client_config(client, user="alice"), **changes}
    del settings["bootstrap.servers"]
    if client == "confluent":
        return [word for key, text in settings.items() for word in ("-X", f"{key}={text}")]
    path = folder / "client.properties"
    path.write_text("".join(f"{key}={text}\n" for key, text in settings.items()))
    return ["--config", str(path)]


def parsed(job: Any, *words: str) -> argparse.Namespace:
    return job_parser(job.__name__.rpartition(".")[2], job).parse_args(list(words))


@pytest.mark.parametrize("client", ["confluent", "java"])
def test_bridge_commits_as_a_user(cluster, tmp_path, client, capsys):
    for folder, text in (("offsets", {client: {"0": 3}}), ("commits", {})):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "0").write_text("v1\n{}\n" + json.dumps(text))
    cluster.create_topic(client)
    words = ["--checkpoint", str(tmp_path), "--group", client, "--bootstrap-server", cluster.bootstrap_servers]
    assert bridge.run(None, parsed(bridge, *words, *spelled(cluster, client, tmp_path))) == 0
    assert cluster.committed(client) == {(client, 0): 3}
    assert not capsys.readouterr().err
    bridge.run(None, parsed(bridge, *words))
    assert "cannot commit" in capsys.readouterr().err, "nothing is left of the settings before"


@pytest.mark.parametrize("client", ["confluent", "java"])
def test_lag_and_migrate_as_a_user(spark, tmp_path, client):
    data = tmp_path / "data"
    with Broker(data_dir=data) as source:
        source.create_topic(f"from-{client}")
        for _ in range(5):
            source.produce(f"from-{client}", b"v")
        offsets = {"topic": f"from-{client}", "partition": 0, "offset": 2, "leader_epoch": -1, "metadata": "m"}
        with Client(source.bootstrap_servers) as asked:
            asked.commit_offsets(f"group-{client}", [offsets])
    with Broker(security="sasl_ssl", users={"alice": SECRET}) as target:
        words = ["--input", str(data), "--bootstrap-server", target.bootstrap_servers]
        more = spelled(target, client, tmp_path)
        proof = tmp_path / "proof.json"
        assert migrate.run(spark, parsed(migrate, *words, "--output", str(proof), *more)) == 0
        assert json.loads(proof.read_text())["equal"]
        assert SECRET not in proof.read_text()
        assert target.committed(f"group-{client}") == {(f"from-{client}", 0): 2}
        found = tmp_path / "lag"
        assert lag.run(spark, parsed(lag, *words, "--output", str(found), *more)) == 0
        assert [row["kafka_consumergroup_lag"] for row in spark.read.parquet(str(found)).collect()] == [3]
        wrong = spelled(target, client, tmp_path, **WRONG[client])
        with pytest.raises(PipelineError) as refused:
            migrate.run(spark, parsed(migrate, *words, "--output", str(proof), *wrong))
        assert SECRET not in str(refused.value)


def test_words_of_java_become_those_of_librdkafka(cluster, tmp_path):
    parser = argparse.ArgumentParser()
    add_client_arguments(parser)
    given = given_settings(parser.parse_args([*spelled(cluster, "java", tmp_path), "-X", "client.id=me"]))
    found = for_librdkafka(given)
    assert (found["sasl.username"], found["sasl.password"], found["client.id"]) == ("alice", SECRET, "me")
    assert found["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE")
    assert not any(key.startswith(("ssl.truststore", "sasl.jaas")) for key in found)
    for words in (["-X", SECRET], ["--config", str(tmp_path / "none")]):
        with pytest.raises(PipelineError) as refused:
            given_settings(parser.parse_args(words))
        assert SECRET not in str(refused.value)
