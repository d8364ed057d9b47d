"""A consumer of a real client, beside the handle."""

from __future__ import annotations

from confluent_kafka import Consumer

from momus.cluster import Cluster


def consumer_of(cluster: Cluster, group: str, **settings: object) -> Consumer:
    return Consumer(
        {
            **cluster.client_config("confluent"),
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
