"""The driver of kafka-python."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer
from lines import CLIENT, CONSUMER, TOPIC, WHOLE_MS, commands, hello, refusal, say


class Driver:
    """One producer or one consumer at a time."""

    def producer(self, address: str) -> None:
        self.made = KafkaProducer(
            bootstrap_servers=address,
            delivery_timeout_ms=WHOLE_MS,
            max_block_ms=WHOLE_MS,
            **CLIENT,
        )

    def consumer(self, address: str, group: str) -> None:
        self.made = KafkaConsumer(
            TOPIC,
            bootstrap_servers=address,
            group_id=group,
            max_poll_records=1,
            **CONSUMER,
        )

    def produce(self, value: str) -> None:
        self.made.send(TOPIC, value.encode()).get()

    def consume(self) -> tuple[int, str]:
        while True:
            for records in self.made.poll(timeout_ms=200).values():
                return records[0].offset, records[0].value.decode()

    def commit(self) -> None:
        self.made.commit()

    def close(self) -> None:
        self.made.close()


driver = Driver()
hello("kafka-python")
while (words := commands()) != [""]:
    try:
        say("ok", *(getattr(driver, words[0])(*words[1:]) or ()))
    except Exception as error:
        refusal(error)
