"""python-schema-registry-client, FastStream and Quix Streams. Arguments: the broker's and the registry's address."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from faststream.confluent import KafkaBroker
from quixstreams import Application
from quixstreams.models.serializers.avro import AvroDeserializer, AvroSerializer
from quixstreams.models.serializers.schema_registry import SchemaRegistryClientConfig
from schema_registry.client import SchemaRegistryClient, schema
from schema_registry.serializers import AvroMessageSerializer, JsonMessageSerializer

BROKER, REGISTRY = sys.argv[1:]
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
WIDER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string"}]}


def by_client() -> None:
    client = SchemaRegistryClient(url=REGISTRY)
    order = schema.AvroSchema(ORDER)
    number = client.register("order-value", order)
    assert client.get_by_id(number).raw_schema == ORDER
    assert client.check_version("order-value", order).schema_id == number
    assert not client.test_compatibility("order-value", schema.AvroSchema(WIDER))
    assert client.get_subjects() == ["order-value"]
    assert client.get_versions("order-value") == [1]
    client.update_compatibility(level="FULL", subject="order-value")
    assert client.get_compatibility(subject="order-value") == "FULL"
    serializer = AvroMessageSerializer(client)
    data = serializer.encode_record_with_schema("order-value", order, {"id": 7})
    assert serializer.decode_message(data) == {"id": 7}
    text = schema.JsonSchema({"type": "object", "properties": {"id": {"type": "integer"}}})
    json_serializer = JsonMessageSerializer(client)
    assert json_serializer.decode_message(json_serializer.encode_record_with_schema("json", text, {"id": 8})) == {
        "id": 8
    }


async def by_faststream() -> None:
    """A subscriber whose decoder asks the registry, as FastStream's guide shows it."""
    client = SchemaRegistryClient(url=REGISTRY)
    serializer = AvroMessageSerializer(client)
    broker = KafkaBroker(BROKER)
    got: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    async def decode(message: Any) -> Any:
        return serializer.decode_message(message.body)

    @broker.subscriber("faststream", auto_offset_reset="earliest", decoder=decode)
    async def receive(order: dict[str, Any]) -> None:
        if not got.done():
            got.set_result(order)

    await broker.start()
    data = serializer.encode_record_with_schema("faststream-value", schema.AvroSchema(ORDER), {"id": 9})
    await broker.publish(data, "faststream")
    assert await asyncio.wait_for(got, 60) == {"id": 9}
    await broker.stop()


def by_quix() -> None:
    config = SchemaRegistryClientConfig(url=REGISTRY)
    app = Application(broker_address=BROKER, consumer_group="quix", auto_offset_reset="earliest")
    topic = app.topic(
        "quix",
        value_serializer=AvroSerializer(ORDER, schema_registry_client_config=config),
        value_deserializer=AvroDeserializer(schema_registry_client_config=config),
    )
    with app.get_producer() as producer:
        message = topic.serialize(key="k", value={"id": 10})
        producer.produce(topic=topic.name, key=message.key, value=message.value)
    found: list[Any] = []
    app.dataframe(topic).update(found.append)
    app.run(count=1, timeout=60)
    assert found == [{"id": 10}], found


if __name__ == "__main__":
    by_client()
    asyncio.run(by_faststream())
    by_quix()
