"""The table of releases beside a running Apache Kafka: what it answers is what the table says that it answers."""

from __future__ import annotations

import pytest
from apache_kafka import apache_kafka

from broker.config.releases import release_named
from momus.cli.doctor.probe import probe
from momus.client.wire import Connection
from protocol.messages.cluster import ApiVersionsRequest

# One worker: one JVM at a time.
pytestmark = pytest.mark.xdist_group("java")
TELEMETRY = {71, 72}  # offered where a plugin takes the clients' metrics


def test_kafka_4_4_answers_as_its_line_in_the_table(kafka_libs, tmp_path):
    release = release_named("4.4")
    assert release is not None
    with apache_kafka(kafka_libs, tmp_path) as address:
        host, _, port = address.rpartition(":")
        while (found := probe(host, int(port), 5)).kind != "kafka":
            pass
        connection = Connection(host, int(port), 30)
        hello = ApiVersionsRequest(client_software_name="momus", client_software_version="1")
        features = {f.name: (f.min_version, f.max_version) for f in connection.call(hello).supported_features}
        connection.close()
    ours = {key: versions for key, versions in release.apis.items() if key not in TELEMETRY}
    theirs = {key: (0, 13) if key == 0 else versions for key, versions in found.versions.items()}
    ours[0] = (0, ours[0][1])  # Produce 0 to 2 are listed for librdkafka's sake, and refused
    assert theirs == ours
    assert features == {name: levels[:2] for name, levels in release.features.items()}
