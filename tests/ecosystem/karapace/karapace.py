"""Karapace, a schema registry that keeps its schemas in a Kafka topic. The check is the one that Apicurio Registry
passes; Karapace itself has not been run here, for pip cannot fetch it."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above
import registry  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above


def prove() -> str:
    program = kit.virtual_environment(HERE, hashed=False).with_name("karapace")
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        port = kit.free_port()
        address = registry.Registry(f"http://127.0.0.1:{port}")
        broker = stack.enter_context(Broker(config={"schema.registry.url": address.url}))
        settings = {
            "bootstrap_uri": broker.bootstrap_servers,
            "host": "127.0.0.1",
            "port": port,
            "karapace_registry": True,
            "replication_factor": 1,
        }
        config = folder / "karapace.config.json"
        config.write_text(json.dumps(settings))
        return registry.prove(broker, address, lambda: kit.Program((program, config), folder / "karapace.log"))


if __name__ == "__main__":
    found = re.search(r"^karapace==(\S+)", (HERE / "requirements.txt").read_text(), re.MULTILINE)
    assert found
    kit.run("Karapace", found[1], prove)
