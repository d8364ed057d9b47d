"""The driver of aiokafka. Its event loop runs while no command does, so that the client's own tasks do."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from lines import CLIENT, CONSUMER, TOPIC, commands, hello, refusal, say


class Driver:
    """One producer or one consumer at a time."""

    async def producer(self, address: str) -> None:
        await self._start(AIOKafkaProducer(bootstrap_servers=address, **CLIENT))

    async def consumer(self, address: str, group: str) -> None:
        await self._start(AIOKafkaConsumer(TOPIC, bootstrap_servers=address, group_id=group, **CONSUMER))

    async def _start(self, made: AIOKafkaProducer | AIOKafkaConsumer) -> None:
        try:
            await made.start()
        except BaseException:
            await made.stop()
            raise
        self.made = made

    async def produce(self, value: str) -> None:
        await self.made.send_and_wait(TOPIC, value.encode())

    async def consume(self) -> tuple[int, str]:
        record = await self.made.getone()
        return record.offset, record.value.decode()

    async def commit(self) -> None:
        await self.made.commit()

    async def close(self) -> None:
        await self.made.stop()


async def main() -> None:
    driver = Driver()
    hello("aiokafka")
    while (words := await asyncio.to_thread(commands)) != [""]:
        try:
            say("ok", *(await getattr(driver, words[0])(*words[1:]) or ()))
        except Exception as error:
            refusal(error)


asyncio.run(main())
