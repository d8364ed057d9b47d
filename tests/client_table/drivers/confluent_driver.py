"""The driver of confluent-kafka, librdkafka's binding for Python."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, libversion
from lines import REQUEST_MS, TOPIC, WHOLE_MS, commands, hello, refusal, say


class Driver:
    """One producer or one consumer at a time."""

    def _settings(self, address: str, **more: Any) -> dict[str, Any]:
        return {"bootstrap.servers": address, "client.id": "driver", "socket.timeout.ms": REQUEST_MS, **more}

    def producer(self, address: str) -> None:
        self.made = Producer(self._settings(address, **{"message.timeout.ms": WHOLE_MS}))

    def consumer(self, address: str, group: str) -> None:
        settings = {"group.id": group, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self.made = Consumer(self._settings(address, **settings))
        self.made.subscribe([TOPIC])

    def produce(self, value: str) -> None:
        told: list[Any] = []
        self.made.produce(TOPIC, value.encode(), on_delivery=lambda error, _: told.append(error))
        while not told:
            self.made.poll(0.2)
        if told[0] is not None:
            raise KafkaException(told[0])

    def consume(self) -> tuple[int, str]:
        while True:
            message = self.made.poll(0.2)
            if message is None:
                continue
            if message.error() is not None:
                raise KafkaException(message.error())
            return message.offset(), message.value().decode()

    def commit(self) -> None:
        self.made.commit(asynchronous=False)

    def close(self) -> None:
        if isinstance(self.made, Consumer):
            self.made.close()
        else:
            self.made.flush(1)
        del self.made


driver = Driver()
hello("confluent-kafka", f" (librdkafka {libversion()[0]})")
while (words := commands()) != [""]:
    try:
        say("ok", *(getattr(driver, words[0])(*words[1:]) or ()))
    except KafkaException as error:
        refusal(error, error.args[0].name())
    except Exception as error:
        refusal(error)
