"""A running Apache Kafka, for the tests that need one: its directory, or what it answers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ports import HeldPorts

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
log.dirs={logs}
offsets.topic.num.partitions=3
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""


@contextmanager
def apache_kafka(
    libs: str, directory: Path, more: str = "", *, protocol: str = "PLAINTEXT", formatting: tuple[str, ...] = ()
) -> Iterator[str]:
    """One KRaft node on a directory of its own, stopped in good order.

    more: lines of settings; formatting: options for a new directory.
    """
    held = HeldPorts(2)
    port, controller = held.numbers
    properties = directory / "server.properties"
    text = PROPERTIES.format(port=port, controller=controller, logs=directory / "logs")
    properties.write_text(text.replace("listeners=PLAINTEXT:", f"listeners={protocol}:") + more)
    java = ["java", "-Xmx256m", "-cp", libs]
    tool = ["kafka.tools.StorageTool", "format", "-g", "-t", "momusmomusmomusmomusAA", "-c", str(properties)]
    tool += formatting
    subprocess.run([*java, *tool], check=True, capture_output=True, timeout=300)
    with held, open(directory / "broker.log", "wb") as log:
        process = subprocess.Popen([*java, "kafka.Kafka", str(properties)], stdout=log, stderr=log)
        try:
            yield f"127.0.0.1:{port}"
            process.terminate()
            process.wait(120)
        except BaseException as failure:
            last = (directory / "broker.log").read_text(errors="replace")[-2000:]
            failure.add_note(f"Apache Kafka: exit code {process.poll()} (None: it runs); the end of its log:\n{last}")
            raise
        finally:
            process.kill()
            process.wait()
