"""Asks a cluster of this process, or the one that a proxy stands before: the driver of broker/asks in asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from broker.asks.ask import PAUSE_S, AnswerError, Ask, Group, Leader, Node, Places, Sending, To, routed
from broker.shell.control.routes import RefusedError
from broker.shell.local_client import LocalClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType
    from typing import Self

    from broker.broker import Broker
    from broker.shell.cluster_server import ClusterServer
    from protocol.declare import Message

T = TypeVar("T")


class _OwnPlaces(Places):
    """Who leads and coordinates what in a cluster of this process, of which no node has to be asked."""

    def __init__(self, broker: Broker) -> None:
        super().__init__()
        self._broker = broker

    def find(self, to: To) -> Sending[int | None]:
        """The id of the node; None: any node says why there is none."""
        yield from ()  # it sends nothing
        broker = self._broker
        if isinstance(to, Leader):
            topic = broker.metadata.topics.get(to.topic)
            is_there = topic is not None and 0 <= to.partition < len(topic.partitions)
            return topic.partitions[to.partition].leader if topic is not None and is_there else None
        if isinstance(to, Group):
            return broker.groups.coordinator_of(to.group_id)
        return to.node_id if isinstance(to, Node) else None


class Asking:
    """A client of the control plane's own, as a context: `await asking.ask(topics.create(...))`."""

    def __init__(self, cluster: ClusterServer) -> None:
        self._client = LocalClient(cluster.broker, cluster.config)
        upstream = cluster.broker.upstream
        self._places = _OwnPlaces(cluster.broker) if upstream is None else Places(upstream.PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    async def ask(self, ask: Ask[T]) -> T:
        """The answer. Errors: RefusedError: the cluster refuses; TimeoutError, OSError: it does not answer."""
        try:
            return await self.answer(ask)
        except AnswerError as error:
            raise RefusedError(409, str(error)) from None

    async def answer(self, ask: Ask[T]) -> T:
        """The same for who looks at Kafka's code. Errors: AnswerError: the cluster refuses; TimeoutError, OSError."""
        return await answer_of(routed(ask, self._places), self._client.call)


async def answer_of(sending: Sending[T], call: Callable[[Message, int, int | None], Awaitable[Any]]) -> T:
    """What is asked for by `call`: of a request, its version and the id of a node. Errors: AnswerError; of call."""
    response: Any = None
    try:
        while True:
            sent = sending.send(response)
            response = await (asyncio.sleep(PAUSE_S) if sent is None else call(*sent))
    except StopIteration as end:
        value: T = end.value
        return value


async def ask(cluster: ClusterServer, question: Ask[T]) -> T:
    """The answer of a cluster to one question. Errors: as those of Asking.ask."""
    with Asking(cluster) as asking:
        return await asking.ask(question)
