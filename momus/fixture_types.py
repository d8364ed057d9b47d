"""The type of a fixture that is called: what `make_kafka_broker` takes. For type checkers and editors alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from momus.cluster import Cluster
    from momus.kit.load_files import Loadable
    from momus.kit.typed import Flush, Security


class MakeKafkaBroker(Protocol):
    """The fixture `make_kafka_broker`.

    def test_two(make_kafka_broker: momus.MakeKafkaBroker) -> None:
        first, second = make_kafka_broker(brokers=3), make_kafka_broker(seed=7)
    """

    def __call__(
        self,
        *,
        name: str | None = None,
        brokers: int = 1,
        flush: Flush = "memory",
        as_version: str | None = None,
        fetch_waits: Literal["real", "frozen"] | None = None,
        config: Mapping[str, object] | None = None,
        listen: str = "127.0.0.1:0",
        journal_mb: int | None = None,
        seed: int | None = None,
        at: datetime | None = None,
        security: Security | None = None,
        users: Mapping[str, str] | None = None,
        registry: bool = False,
        load: Loadable | None = None,
    ) -> Cluster:
        """Make a cluster; it is verified when it is closed."""
