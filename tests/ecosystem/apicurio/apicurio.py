"""Apicurio Registry, a schema registry that keeps its schemas in Kafka topics."""

from __future__ import annotations

import contextlib
import sys
import tarfile
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
import registry  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above


def program() -> Path:
    """The runnable jar, unpacked."""
    fetched = kit.jars(HERE, "copy")
    if not (fetched / "unpacked").exists():
        with tarfile.open(next(fetched.glob("*-all.tar.gz"))) as packed:
            packed.extractall(fetched, filter="data")
        (fetched / "unpacked").touch()
    return next(fetched.glob("*-runner.jar"))


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = kit.free_port()
        address = registry.Registry(f"http://127.0.0.1:{port}/apis/ccompat/v7")
        broker = stack.enter_context(Broker(config={"schema.registry.url": address.url}))
        settings = {
            "apicurio.storage.kind": "kafkasql",
            "apicurio.kafkasql.bootstrap.servers": broker.bootstrap_servers,
            "quarkus.http.host": "127.0.0.1",
            "quarkus.http.port": port,
        }
        command = (*kit.JVM, *(f"-D{key}={value}" for key, value in settings.items()), "-jar", program())
        return registry.prove(broker, address, lambda: kit.Program(command, folder / "apicurio.log"))


if __name__ == "__main__":
    kit.run("Apicurio Registry", kit.version_in(HERE, "apicurio.version"), prove)
