"""The loads of the soak, one process each: `python loads.py NAME BOOTSTRAP SEED`. Each runs until it is ended.

The broker is killed under them, so each goes on after an error of its client or socket. Whether answers are right is
checked by the copied records (see soak.py).
"""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from kafka.errors import KafkaError

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from wire_peer import Peer

from protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

STEADY, STEADY_PARTITIONS = "steady", 8
LIMIT_S = 30
PARKED = 40  # connections at a time, each with a Fetch that would wait for minutes
WAIT_MS = 600_000


@contextlib.contextmanager
def going_on() -> Iterator[None]:
    """The broker may be down: wait a moment, and let the caller try again."""
    try:
        yield
    except (KafkaException, KafkaError, OSError, AssertionError):
        time.sleep(0.5)


def settings(servers: str) -> dict[str, str | int]:
    return {"bootstrap.servers": servers, "log_level": 0, "metadata.recovery.strategy": "none"}


def produce(servers: str, rng: Random) -> None:
    """An idempotent producer: 200 records a second."""
    producer = Producer({**settings(servers), "enable.idempotence": True, "linger.ms": 20})
    for number in itertools.count():
        with contextlib.suppress(BufferError):
            producer.produce(STEADY, b"%012d" % number * 8, b"key-%d" % rng.randrange(1000))
        producer.poll(0)
        time.sleep(0.005)


def rebalance(servers: str, rng: Random) -> None:
    """Members of a classic and of a consumer group that commit, and join and leave all the time."""
    while True:
        with going_on():
            classic = KafkaConsumer(
                STEADY,
                bootstrap_servers=servers,
                group_id="soak-classic",
                enable_auto_commit=False,
                client_id=f"soak-{rng.randrange(3)}",
                auto_offset_reset="latest",
            )
            try:
                for _ in range(rng.randrange(5, 30)):
                    if classic.poll(timeout_ms=200):
                        classic.commit()
            finally:
                classic.close(autocommit=False)
        with going_on():
            protocol = {"group.protocol": "consumer", "group.id": "soak-consumer", "auto.offset.reset": "latest"}
            consumer = Consumer({**settings(servers), **protocol, "enable.auto.commit": False})
            try:
                consumer.subscribe([STEADY])
                for _ in range(rng.randrange(5, 30)):
                    if any(message.error() is None for message in consumer.consume(500, 0.2)):
                        consumer.commit(asynchronous=False)
            finally:
                consumer.close()


def topics(servers: str, rng: Random) -> None:
    """Topics and groups that are made, used and deleted; the same few names again and again."""
    admin = AdminClient(settings(servers))
    while True:
        name = f"short-lived-{rng.randrange(5)}"
        with going_on():
            for future in admin.create_topics([NewTopic(name, 4, 1)]).values():
                future.result(LIMIT_S)
            producer = Producer({**settings(servers), "transactional.id": f"short-{rng.randrange(5)}"})
            producer.init_transactions(LIMIT_S)
            producer.begin_transaction()
            for number in range(40):
                producer.produce(name, bytes(200), partition=number % 4)
            group = f"group-of-{name}"
            consumer = Consumer({**settings(servers), "group.id": group})
            offsets = [TopicPartition(name, partition, 10) for partition in range(4)]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), LIMIT_S)
            if rng.random() < 0.5:
                producer.commit_transaction(LIMIT_S)
            else:
                producer.abort_transaction(LIMIT_S)
            consumer.commit(offsets=offsets, asynchronous=False)
            consumer.close()
            if rng.random() < 0.7:
                admin.delete_consumer_groups([group])[group].result(LIMIT_S)
        with going_on():
            for future in admin.delete_topics([name]).values():
                future.result(LIMIT_S)


def fetches(servers: str, rng: Random) -> None:
    """Connections that are cut while their Fetch is parked."""
    open_peers: list[Peer] = []
    partitions = [
        FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        for partition in range(STEADY_PARTITIONS)
    ]
    wanted = [FetchTopic(topic=STEADY, partitions=partitions)]
    request = FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1 << 30, max_bytes=1 << 30, topics=wanted)
    while True:
        with going_on():
            peer = Peer(servers)
            peer.send(request, 12)
            open_peers.append(peer)
        while len(open_peers) > PARKED:
            open_peers.pop(rng.randrange(len(open_peers))).close()
        time.sleep(0.05)


LOADS: dict[str, Callable[[str, Random], None]] = {
    "produce": produce,
    "rebalance": rebalance,
    "topics": topics,
    "fetches": fetches,
}


def main() -> None:
    name, servers, seed = sys.argv[1:]
    parent = os.getppid()
    load = LOADS[name]

    def end_with_parent() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=end_with_parent, daemon=True).start()
    load(servers, Random(int(seed)))


if __name__ == "__main__":
    main()
