"""The checks of Apache Kafka's Java clients before one node of it and before three: directly, and through a proxy."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from kafka_trio import Trio, wait_for_nodes

from momus import Broker

sys.path.insert(0, str(Path(__file__).parents[1] / "java"))
from java_checks import CHECKS, compiled, results_of_all_checks  # of the folder beside

pytestmark = [pytest.mark.java, pytest.mark.proxy]
SIZES = (1, 3)
# They look at once for what they have changed, as they may on momus; a node of Apache Kafka learns of it a moment
# later, with a proxy or without.
RACES = ("topic-is-created-described-grown-and-deleted", "topic-configs-are-set-appended-and-deleted")


def failures(classes: str, libs: str, directory: Path, *, through_proxy: bool) -> set[str]:
    """The checks that fail, on clusters of their own: topics and groups bear the names of the checks."""
    clusters = [Trio(libs, directory / str(size), size) for size in SIZES]
    proxies: list[Broker] = []
    try:
        for cluster, size in zip(clusters, SIZES, strict=True):
            cluster.start_all()
            wait_for_nodes(AdminClient({"bootstrap.servers": cluster.servers, "log_level": 0}), size)
        servers = [cluster.servers for cluster in clusters]
        if through_proxy:
            proxies = [Broker(upstream=each, journal_mb=64).start() for each in servers]
            servers = [proxy.bootstrap_servers for proxy in proxies]
        found = results_of_all_checks(classes, *servers)
        for proxy in proxies:
            for api in ("Produce", "Fetch", "EndTxn"):
                proxy.journal.verify(api=api)  # these went through it, to the places that its answers named
        print("".join(told for told in found.values() if told.startswith("FAIL")))  # noqa: T201 - for who looks
        return {name for name, told in found.items() if told.startswith("FAIL") and name not in RACES}
    finally:
        for each in (*proxies, *clusters):
            each.close()


def test_each_check_of_the_java_clients_that_passes_on_the_cluster_passes_through_the_proxy(kafka_libs, tmp_path):
    classes = compiled(kafka_libs, *CHECKS)
    directly = failures(classes, kafka_libs, tmp_path / "directly", through_proxy=False)
    assert len(directly) < 5, "else a proxy that answers nothing would do"
    through = failures(classes, kafka_libs, tmp_path / "through", through_proxy=True)
    assert through <= directly  # on a busy machine one may run into its limit on the cluster itself
