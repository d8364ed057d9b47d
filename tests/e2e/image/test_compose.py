"""docker-compose.yml, run by compose v2: a client on the host, and one in another container."""

from __future__ import annotations

from pathlib import Path

from docker_engine import run
from image_kit import IMAGE, REPOSITORY, round_trip

FILE = REPOSITORY / "docker-compose.yml"
# What this machine adds: the base image and the network of the build, and a client in a container of its own.
BESIDE = """
services:
  broker:
    image: {image}
    build: {{network: host, args: {{BASE: "{base}"}}}}
  client:
    image: {image}
    profiles: [client]
    environment: {{MOMUS_BOOTSTRAP_SERVERS: "broker:19092"}}
"""


def test_compose_serves_a_client_on_the_host_and_one_in_another_container(
    compose: list[str], base: str, tmp_path: Path
):
    beside = tmp_path / "beside.yml"
    beside.write_text(BESIDE.format(image=IMAGE, base=base))
    command = [*compose, "-p", "momus-test", "-f", str(FILE), "-f", str(beside)]
    try:
        run(*command, "build")
        run(*command, "up", "--wait")
        round_trip("localhost:9092", "host")
        for words in ("produce -t inside -v one", "consume -t inside -e"):
            done = run(*command, "run", "--rm", "-T", "client", *words.split())
        assert done.stdout == "one\n"
        assert "host" in run(*command, "run", "--rm", "-T", "client", "topic", "list").stdout
    finally:
        run(*command, "down", "--volumes")
