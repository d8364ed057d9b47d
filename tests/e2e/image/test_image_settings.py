"""Variables of a container: Kafka's, Bitnami's, Kubernetes' and momus' own; and volumes that cannot be used."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable

import pytest
from docker_engine import run
from image_kit import Container, round_trip
from kafka import KafkaAdminClient, KafkaProducer

from momus import __version__
from momus.control import Clock, Control, ControlError

Start = Callable[..., Container]
ON_HOST = ("-p", "127.0.0.1:9092:9092")
DATA = "/var/lib/momus"
# there is no pgrep in a slim image
STOP = "for each in /proc/[0-9]*; do grep -qa '^/opt/momus' $each/cmdline && kill -STOP ${each#/proc/}; done; true"
ID = "4L6g3nShT-eMCtK--X86sw"


def variables(**given: str) -> list[str]:
    """Options of `docker run`."""
    return [word for name, value in given.items() for word in ("-e", f"{name}={value}")]


@pytest.mark.parametrize(
    "given",
    [
        {"KAFKA_NUM_PARTITIONS": "7", "CLUSTER_ID": ID},
        {"KAFKA_CFG_NUM_PARTITIONS": "7", "KAFKA_KRAFT_CLUSTER_ID": ID},
        {"MOMUS_SET": "num.partitions=7", "KAFKA_NUM_PARTITIONS": "3", "CLUSTER_ID": ID},
    ],
    ids=" ".join,
)
def test_settings_of_kafka_are_obeyed(start: Start, given: dict[str, str]):
    container = start(*ON_HOST, *variables(**given))
    container.wait_for("momus ready")
    admin = KafkaAdminClient(bootstrap_servers="localhost:9092")
    told = admin.describe_cluster()
    admin.close()
    producer = KafkaProducer(bootstrap_servers="localhost:9092")
    assert producer.partitions_for("made") == set(range(7))
    producer.close()
    assert told["cluster_id"] == ID


PROTO = 'syntax = "proto3"; import "google/protobuf/timestamp.proto"; message A { google.protobuf.Timestamp at = 1; }'
SCHEMAS = {"AVRO": '"string"', "JSON": '{"type": "object"}', "PROTOBUF": PROTO}


@pytest.mark.parametrize(
    "given",
    [{"MOMUS_REGISTRY": "0.0.0.0:8081"}, {"SCHEMA_REGISTRY_LISTENERS": "http://0.0.0.0:8081"}],
    ids=" ".join,
)
def test_registry_is_served(start: Start, given: dict[str, str]):
    """With all three formats: the image leaves out what grpcio-tools wants beside protoc."""
    container = start("-p", "127.0.0.1:8081:8081", *variables(**given))
    container.wait_for("momus registry")
    for kind, schema in SCHEMAS.items():
        body = json.dumps({"schemaType": kind, "schema": schema}).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        asked = urllib.request.Request(f"http://127.0.0.1:8081/subjects/{kind}/versions", body, headers)
        with urllib.request.urlopen(asked) as answer:
            assert json.load(answer)["id"] == list(SCHEMAS).index(kind) + 1


def test_variables_of_kubernetes_are_ignored_with_a_word(start: Start):
    given = {
        "KAFKA_PORT": "tcp://10.96.0.7:9092",
        "KAFKA_SERVICE_PORT": "9092",
        "MOMUS_PORT_9092_TCP_ADDR": "10.96.0.7",
    }
    container = start(*ON_HOST, *variables(**given))
    log = container.wait_for("momus ready")
    assert "KAFKA_PORT, KAFKA_SERVICE_PORT, MOMUS_PORT_9092_TCP_ADDR: ignored, because Kubernetes sets it" in log
    assert "unknown settings" not in log
    round_trip("localhost:9092")


def test_control_port_steers_the_container_for_who_has_the_token(start: Start):
    given = {
        "MOMUS_CONTROL": "0.0.0.0:9644",
        "MOMUS_CONTROL_ANYONE": "1",
        "MOMUS_CONTROL_TOKEN": "s3cret",
        "MOMUS_UI": "1",
    }
    container = start(*ON_HOST, "-p", "127.0.0.1::9644", *variables(**given, MOMUS_FLUSH="memory"))
    container.wait_for("momus ui ")
    address = container.address(9644)
    with urllib.request.urlopen(f"http://{address}/ui") as page:
        assert b"<html" in page.read(500).lower()
    with pytest.raises(ControlError, match="a token is required"):
        Control(address, "wrong").brokers()
    control = Control(address, "s3cret")
    assert [each["id"] for each in control.brokers()] == [1]
    Clock(control).freeze()
    assert Clock(control).stands()
    assert container.exec("ls", DATA) == ""  # flush=memory


def test_control_port_for_all_without_a_token_is_refused(start: Start):
    code, log = start(*variables(MOMUS_CONTROL="0.0.0.0:9644")).ended()
    assert code == 2
    assert "add --control-anyone and --control-token-file FILE (or MOMUS_CONTROL_TOKEN)" in log


def test_brokers_of_a_cluster_are_reached_one_by_one(start: Start):
    container = start("-p", "127.0.0.1:9092-9094:9092-9094", *variables(MOMUS_BROKERS="3"))
    container.wait_for("momus ready")
    admin = KafkaAdminClient(bootstrap_servers="localhost:9093")
    assert {(each["host"], each["port"]) for each in admin.describe_cluster()["brokers"]} == {
        ("localhost", port) for port in (9092, 9093, 9094)
    }
    admin.close()
    round_trip("localhost:9094")


def test_security_by_a_word_serves_its_users_and_is_healthy(start: Start):
    container = start(*ON_HOST, *variables(MOMUS_SECURITY="sasl_plaintext", MOMUS_USER="alice:pencil\nbob:ink"))
    container.wait_for("momus ready")
    for user, password in (("alice", "pencil"), ("bob", "ink")):
        round_trip(
            "localhost:9092",
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-256",
            sasl_plain_username=user,
            sasl_plain_password=password,
        )
    assert container.exec("healthcheck") == "ok: port 9092 answers\n"


@pytest.mark.parametrize("word", ["ssl", "sasl_ssl", "mtls"])
def test_check_of_a_listener_with_tls_leaves_no_line_in_the_log(start: Start, word: str):
    users = {} if word == "ssl" else {"MOMUS_USER": "alice:pencil"}
    container = start(*variables(MOMUS_SECURITY=word, **users))
    container.wait_for("momus clients")
    before = container.logs()
    assert container.exec("healthcheck") == "ok: port 9092 answers\n"
    assert container.logs() == before


def test_check_fails_while_the_broker_does_not_answer(start: Start):
    container = start("--init")
    container.wait_for("momus ready")
    container.exec("bash", "-c", STOP)
    done = run("docker", "exec", container.id, "healthcheck", check=False)
    assert done.returncode == 1
    assert "no Kafka listener answers; listening: [9092, 19092]" in done.stderr


def test_log_dirs_of_kafkas_images_are_obeyed(start: Start):
    container = start(*ON_HOST, *variables(KAFKA_LOG_DIRS="/var/lib/kafka/data"))
    container.wait_for("momus ready")
    assert "meta.properties" in container.exec("ls", "/var/lib/kafka/data")


def test_volume_with_files_of_others_is_refused(start: Start, tmp_path):
    tmp_path.chmod(0o777)
    (tmp_path / "letter.txt").write_text("dear")
    code, log = start("-v", f"{tmp_path}:{DATA}").ended()
    assert code == 1
    assert f"{DATA} is no data directory, and it is not empty: it has letter.txt" in log


def test_volume_of_another_user_is_refused_with_what_to_do(start: Start, tmp_path):
    tmp_path.chmod(0o755)
    code, log = start("--user", "4321", "-v", f"{tmp_path}:{DATA}").ended()
    assert code == 1
    assert (
        f"{DATA} belongs to user 0, and this process runs as user 4321: give it to that user (chown 4321 {DATA})" in log
    )


def test_empty_folder_of_the_user_is_used(start: Start, tmp_path):
    tmp_path.chmod(0o777)
    container = start(*ON_HOST, "-v", f"{tmp_path}:{DATA}")
    container.wait_for("momus ready")
    round_trip("localhost:9092")


def test_labels_tell_version_and_source(image: str):
    labels = json.loads(run("docker", "image", "inspect", "--format", "{{json .Config.Labels}}", image).stdout)
    told = {name.removeprefix("org.opencontainers.image."): value for name, value in labels.items()}
    assert (told["version"], told["licenses"]) == (__version__, "Apache-2.0")
    assert told["source"]
    assert told["revision"]


def test_volume_where_another_image_keeps_its_data_is_named_and_may_be_used(volume: str, start: Start):
    container = start("-v", f"{volume}:/bitnami/kafka")
    told = (
        "data is in /var/lib/momus, not in the volume at /bitnami/kafka: KAFKA_LOG_DIRS=/bitnami/kafka/momus keeps it"
    )
    assert told in container.wait_for("momus ready")
    there = start("-v", f"{volume}:/bitnami/kafka", *variables(KAFKA_LOG_DIRS="/bitnami/kafka/momus"))
    assert told not in there.wait_for("momus ready")
    assert "meta.properties" in there.exec("ls", "/bitnami/kafka/momus")


def test_advertised_host_of_older_images_is_obeyed(start: Start):
    container = start(*ON_HOST, *variables(KAFKA_ADVERTISED_HOST_NAME="127.0.0.1", KAFKA_ADVERTISED_PORT="9092"))
    container.wait_for("momus ready")
    round_trip("127.0.0.1:9092")
