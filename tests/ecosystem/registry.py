"""What a schema registry that keeps its schemas in Kafka has to do, by the interface that registries share."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from kafka import KafkaProducer
from kit import Program, until

from momus import Broker

SUBJECTS = 20
VERSIONS = 3  # of each subject; each adds a field with a default, so that readers of the one before still read it


def schema(subject: int, version: int) -> str:
    fields: list[dict[str, object]] = [{"name": "first", "type": "string"}]
    fields += [{"name": f"added{number}", "type": "long", "default": 0} for number in range(version)]
    return json.dumps({"type": "record", "name": f"Record{subject}", "fields": fields})


class Registry:
    """A registry at an address."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, path: str, body: object = None, method: str | None = None) -> tuple[int, Any]:
        """Status and JSON; a status of 0 where there is no answer."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/vnd.schemaregistry.v1+json"}
        request = urllib.request.Request(f"{self.url}{path}", content, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as refusal:
            refusal.read()
            return refusal.code, None
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return 0, None

    def contents(self) -> dict[tuple[int, int], tuple[int, object]]:
        """Id and schema of each version of each subject; each is also what its id gives."""
        found = {}
        for subject in range(SUBJECTS):
            for version in range(1, VERSIONS + 1):
                status, told = self.ask(f"/subjects/subject{subject}/versions/{version}")
                assert status == 200, (status, subject, version)
                by_id = self.ask(f"/schemas/ids/{told['id']}")[1]["schema"]
                assert json.loads(by_id) == json.loads(told["schema"])
                found[subject, version] = (told["id"], json.loads(told["schema"]))
        return found


def look_at_messages(broker: Broker, registry: Registry, avro: int) -> None:
    """The page's messages: by an Avro schema, and by a Protobuf one that refers to another."""
    money = 'syntax = "proto3"; package shop; message Money { int64 cents = 1; }'
    order = 'syntax = "proto3"; package shop; import "money.proto"; message Order { Money price = 1; }'
    reference = {"name": "money.proto", "subject": "money", "version": 1}
    ids = []
    for subject, text, references in (("money", money, []), ("order", order, [reference])):
        body = {"schemaType": "PROTOBUF", "schema": text, "references": references}
        status, told = registry.ask(f"/subjects/{subject}/versions", body)
        assert status == 200, told
        ids.append(told["id"])
    broker.create_topic("orders")
    values = ((avro, b"\x06tea"), (ids[1], b"\x00\x0a\x03\x08\xfa\x01"))
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    for number, data in values:
        producer.send("orders", b"\x00" + number.to_bytes(4, "big") + data).get(60)
    producer.close()
    answer: Any = broker.control.ask("GET", "/_admin/topics/orders/messages?offset=0")
    found = [row["value"] for row in answer["messages"]]
    assert [each.get("form") for each in found] == ["avro", "protobuf"], found
    assert [json.loads(each["text"]) for each in found] == [{"first": "tea"}, {"price": {"cents": "250"}}]


def prove(broker: Broker, registry: Registry, start: Callable[[], Program]) -> str:
    """Register, read back, kill -9 registry and broker, start both, read again. Returns what was shown."""
    with start() as program:
        until(lambda: registry.ask("/subjects") == (200, []), "the registry serves")
        assert registry.ask("/config", {"compatibility": "BACKWARD"}, "PUT")[0] == 200
        for version in range(VERSIONS):
            for subject in range(SUBJECTS):
                body = {"schema": schema(subject, version)}
                assert registry.ask(f"/subjects/subject{subject}/versions", body)[0] == 200
        before = registry.contents()
        wanted = {(s, v + 1): json.loads(schema(s, v)) for s in range(SUBJECTS) for v in range(VERSIONS)}
        assert {key: found for key, (_, found) in before.items()} == wanted
        assert len({number for number, _ in before.values()}) == len(before)
        program.kill()
        broker.kill()
        broker.start()
        program.start()
        until(lambda: len(registry.ask("/subjects")[1] or ()) == SUBJECTS, "the registry has its subjects again")
        assert registry.contents() == before
        changed = json.dumps({"type": "record", "name": "Record0", "fields": [{"name": "first", "type": "long"}]})
        assert registry.ask("/subjects/subject0/versions", {"schema": changed})[0] == 409
        look_at_messages(broker, registry, before[0, 1][0])
    return (
        f"{SUBJECTS * VERSIONS} Avro schemas of {SUBJECTS} subjects registered and read back by version and id; "
        "after kill -9 of registry and broker the same ids and schemas; an incompatible schema is refused; "
        "the page decodes an Avro and a Protobuf message by it"
    )
