"""A container of the image as a test sees it, and a client of it on this machine."""

from __future__ import annotations

import json
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from docker_engine import run
from kafka import KafkaConsumer, KafkaProducer

REPOSITORY = Path(__file__).parents[3]
IMAGE = "momus-test/momus"


class Container:
    """A container that was started."""

    def __init__(self, name: str) -> None:
        self.id = name

    def logs(self) -> str:
        """What it has printed, errors too."""
        done = run("docker", "logs", self.id)
        return done.stdout + done.stderr

    def state(self) -> dict[str, Any]:
        """What `docker inspect` says of its state."""
        told: dict[str, Any] = json.loads(run("docker", "inspect", "--format", "{{json .State}}", self.id).stdout)
        return told

    def address(self, port: int = 9092) -> str:
        """HOST:PORT on this machine."""
        return run("docker", "port", self.id, str(port)).stdout.split()[0]

    def wait_for(self, text: str) -> str:
        """Return the log once it has this text. Errors: AssertionError: the container has ended without."""
        while text not in (log := self.logs()):
            assert self.state()["Running"], log
            time.sleep(0.02)
        return log

    def ended(self) -> tuple[int, str]:
        """The exit code and the log, once it has ended."""
        code = int(run("docker", "wait", self.id).stdout)
        return code, self.logs()

    def exec(self, *command: str) -> str:
        """What a command in it prints."""
        return run("docker", "exec", self.id, *command).stdout


def round_trip(address: str, topic: str = "t", **settings: str) -> None:
    """Write a record and read the newest one back, as a client that knows only this address."""
    producer = KafkaProducer(bootstrap_servers=address, **settings)
    sent = producer.send(topic, b"one").get(60)
    producer.close()
    read(address, topic, sent.offset, **settings)


def read(address: str, topic: str, offset: int, **settings: str) -> None:
    """Read the topic up to a record at this offset."""
    consumer = KafkaConsumer(topic, bootstrap_servers=address, auto_offset_reset="earliest", **settings)
    while (record := next(consumer)).offset < offset:
        continue
    assert record.value == b"one"
    consumer.close()


def moment(text: str) -> float:
    """Seconds of a time as Docker writes it, with nanoseconds and Z or an offset."""
    return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", text)).timestamp()
