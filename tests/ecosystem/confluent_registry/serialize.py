"""confluent-kafka's client of registries, its three serializers. Arguments: addresses of broker and registry."""

from __future__ import annotations

import sys
import uuid
from typing import Any

from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import (
    AssociationCreateOrUpdateInfo,
    AssociationCreateOrUpdateRequest,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

BROKER, REGISTRY = sys.argv[1:]
MONEY = '{"type":"record","name":"shop.Money","fields":[{"name":"cents","type":"long"}]}'
ORDER = (
    '{"type":"record","name":"shop.Order","fields":[{"name":"id","type":"long"},{"name":"price","type":"shop.Money"}]}'
)
JSON_MONEY = '{"$id":"money.json","type":"object","properties":{"cents":{"type":"integer"}},"required":["cents"]}'
JSON_ORDER = (
    '{"$schema":"http://json-schema.org/draft-07/schema#","title":"Order","type":"object",'
    '"properties":{"id":{"type":"integer"},"price":{"$ref":"money.json"}},"required":["id"]}'
)


def proto_class() -> Any:
    """A message with a well-known type, made without protoc."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1, json_name="id")
    message.field.add(name="at", number=2, type=11, type_name=".google.protobuf.Timestamp", label=1, json_name="at")
    pool = descriptor_pool.Default()
    assert timestamp_pb2.DESCRIPTOR
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def round_trip(topic: str, serializer: Any, deserializer: Any, value: Any) -> Any:
    """Produce by a schema, consume by the id that is in the message."""
    context = SerializationContext(topic, MessageField.VALUE)
    producer = Producer({"bootstrap.servers": BROKER})
    producer.produce(topic, serializer(value, context))
    assert producer.flush(60) == 0
    settings = {"bootstrap.servers": BROKER, "group.id": str(uuid.uuid4()), "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    message = None
    while message is None:
        message = consumer.poll(10)
    assert message.error() is None, message.error()
    consumer.close()
    return deserializer(message.value(), context)


def refused(call: Any) -> tuple[int, int]:
    try:
        call()
    except SchemaRegistryError as error:
        return error.http_status_code, error.error_code
    raise AssertionError("it was not refused")


def check_associations(client: SchemaRegistryClient, order: Schema, value: Any) -> None:
    """Its serializers ask which subject a topic has before they take the topic's name."""
    client.register_schema("orders", order)
    item = AssociationCreateOrUpdateInfo("orders", "value", "WEAK")
    request = AssociationCreateOrUpdateRequest("associated", "cluster", "an-id", "topic", [item])
    assert client.create_association(request).associations[0].subject == "orders"
    found = round_trip("associated", AvroSerializer(client, order), AvroDeserializer(client), value)
    assert found == value, found
    assert "associated-value" not in client.get_subjects()
    assert refused(lambda: client.delete_subject("orders")) == (409, 40904)
    client.delete_associations("an-id")
    assert client.get_associations_by_resource_name("associated", "cluster") == []
    assert client.delete_subject("orders") == [1]


def main() -> None:
    client = SchemaRegistryClient({"url": REGISTRY})
    client.register_schema("money", Schema(MONEY, "AVRO"))
    order = Schema(ORDER, "AVRO", [SchemaReference("shop.Money", "money", 1)])
    value = {"id": 7, "price": {"cents": 250}}
    found = round_trip("avro", AvroSerializer(client, order), AvroDeserializer(client), value)
    assert found == value, found

    check_associations(client, order, value)

    client.register_schema("money.json", Schema(JSON_MONEY, "JSON"))
    json_order = Schema(JSON_ORDER, "JSON", [SchemaReference("money.json", "money.json", 1)])
    serializer = JSONSerializer(json_order, client)
    found = round_trip("json", serializer, JSONDeserializer(json_order, schema_registry_client=client), value)
    assert found == value, found

    order_class = proto_class()
    message = order_class(id=7)
    message.at.seconds = 1
    serializer = ProtobufSerializer(order_class, client, {"use.deprecated.format": False})
    found = round_trip(
        "protobuf", serializer, ProtobufDeserializer(order_class, {"use.deprecated.format": False}), message
    )
    assert found == message, found
    by_registry = ProtobufDeserializer(order_class, {"use.deprecated.format": False}, client)
    assert round_trip("protobuf2", serializer, by_registry, message) == message

    assert sorted(client.get_subjects()) == [
        "avro-value",
        "json-value",
        "money",
        "money.json",
        "protobuf-value",
        "protobuf2-value",
    ]
    latest = client.get_latest_version("avro-value")
    assert client.get_schema(latest.schema_id).schema_str == latest.schema.schema_str
    assert client.lookup_schema("avro-value", order).version == 1
    assert client.get_versions("avro-value") == [1]
    wider = Schema(MONEY.replace("]}", ',{"name":"unit","type":"string"}]}'), "AVRO")
    assert not client.test_compatibility("money", wider)
    assert refused(lambda: client.register_schema("money", wider)) == (409, 409)
    assert refused(lambda: client.get_latest_version("none")) == (404, 40401)
    client.set_compatibility("money", "NONE")
    assert client.get_compatibility("money") == "NONE"
    assert client.register_schema("money", wider) > 0
    assert client.delete_version("money", 2) == 2
    assert refused(lambda: client.delete_subject("money")) == (422, 42206)
    assert client.delete_subject("protobuf-value") == [1]
    assert client.delete_subject("protobuf-value", permanent=True) == [1]


if __name__ == "__main__":
    main()
