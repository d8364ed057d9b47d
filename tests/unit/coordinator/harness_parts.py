"""What a harness of a shard works with: subscriptions, the replies that wait, and a log that is a list."""

from __future__ import annotations

from protocol.codegen import codec


def subscription(*topics: str, version: int = 0) -> bytes:
    """A ConsumerProtocolSubscription without user data."""
    names = b"".join(len(t.encode()).to_bytes(2, "big") + t.encode() for t in topics)
    return version.to_bytes(2, "big") + len(topics).to_bytes(4, "big") + names + b"\xff\xff\xff\xff"


RANGE = (("range", subscription("t")),)


class Reply:
    """The reply to one request: None while it is parked."""

    def __init__(self, token: int, version: int) -> None:
        self.token = token
        self.version = version
        self.response = None

    @property
    def parked(self) -> bool:
        return self.response is None

    def give(self, response: object) -> None:
        assert self.response is None, "a request was answered twice"
        wire = codec(type(response), self.version)
        self.response, _ = wire.decode(wire.encode(response), 0)

    def __getattr__(self, name: str) -> object:
        assert self.response is not None, "the request is still parked"
        return getattr(self.response, name)


class LogList(list[tuple[bytes, bytes | None]]):
    """The records of a log."""

    @property
    def end_offset(self) -> int:
        return len(self)
