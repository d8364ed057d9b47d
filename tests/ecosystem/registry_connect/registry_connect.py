"""Kafka Connect with Apicurio's Avro converter: lines of a file become Avro messages in Confluent's wire format, and a
file again. The converter finds its schemas as the serdes of `registry_java` do."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parent)]

import kit  # noqa: E402 - found by the line above

from momus import Broker  # noqa: E402 - found by the line above

JAVA = HERE.parent / "registry_java"
TOPIC = "lines"
LINES = [f"line {number}" for number in range(200)]
LIMIT_S = 120
CONVERTER = "io.apicurio.registry.utils.converter.AvroConverter"
WORKER = """\
bootstrap.servers={bootstrap}
offset.storage.file.filename={folder}/offsets
offset.flush.interval.ms=1000
listeners=http://127.0.0.1:{port}
key.converter=org.apache.kafka.connect.storage.StringConverter
value.converter={converter}
value.converter.apicurio.registry.url={registry}
value.converter.apicurio.registry.schema-resolver=Resolver
value.converter.apicurio.registry.as-confluent=true
value.converter.apicurio.registry.headers.enabled=false
"""
FILE = "org.apache.kafka.connect.file.FileStream"
SOURCE = "name=source\nconnector.class={FILE}SourceConnector\nfile={folder}/source.txt\ntopic={TOPIC}\nbatch.size=50\n"
SINK = "name=sink\nconnector.class={FILE}SinkConnector\nfile={folder}/target.txt\ntopics={TOPIC}\n"


def prove() -> str:
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        broker = stack.enter_context(Broker(registry=True))
        (folder / "source.txt").write_text("".join(f"{line}\n" for line in LINES))
        words = {"bootstrap": broker.bootstrap_servers, "registry": broker.registry_url, "port": kit.free_port()}
        files = []
        for name, text in (("worker", WORKER), ("source", SOURCE), ("sink", SINK)):
            files.append(folder / f"{name}.properties")
            files[-1].write_text(text.format(**words, folder=folder, converter=CONVERTER, FILE=FILE, TOPIC=TOPIC))
        kit.make_topic(broker.bootstrap_servers, TOPIC)
        main = ("-cp", kit.compiled(JAVA, "Resolver.java"), "org.apache.kafka.connect.cli.ConnectStandalone")
        stack.enter_context(kit.Program((*kit.JVM, *main, *files), folder / "worker.log"))
        target = folder / "target.txt"

        def copied() -> list[str]:
            with (folder / "source.txt").open("a") as source:
                source.write("more\n")  # the connector keeps lines in its buffer until the file grows
            return target.read_text().splitlines()[: len(LINES)] if target.exists() else []

        kit.until(lambda: copied() == LINES, "all lines are in the file", LIMIT_S)
        with urllib.request.urlopen(f"{broker.registry_url}/subjects/{TOPIC}-value/versions/1", timeout=60) as reply:
            told: Any = json.load(reply)
        assert json.loads(told["schema"]) == "string", told
        rows: Any = broker.control.ask("GET", f"/_admin/topics/{TOPIC}/messages?offset=0&limit=200")["messages"]
        assert [row["value"].get("schema") for row in rows] == [told["id"]] * len(LINES)
        assert [json.loads(row["value"]["text"]) for row in rows][: len(LINES)] == LINES
    return (
        f"{len(LINES)} lines through a topic as Avro, schema registered by the converter; the page decodes each of them"
    )


if __name__ == "__main__":
    version = f"{kit.version_in(JAVA, 'kafka.version')}, {kit.version_in(JAVA, 'apicurio.version')}"
    kit.run("Kafka Connect with Apicurio's converter", version, prove)
