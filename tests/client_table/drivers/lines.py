"""The line protocol of the drivers, for those in Python: one command a line, one answer a line, words parted by tabs.

A driver says `client`, its name and version, and then serves: `producer ADDRESS`, `consumer ADDRESS GROUP`, `produce
VALUE`, `consume` (answers offset and value), `commit` (what was consumed), `close`. It answers `ok ...` or `error NAME
TEXT`, when the client's own call has returned. The drivers of other languages speak the same.
"""

from __future__ import annotations

import importlib.metadata
import sys

TOPIC = "orders"
REQUEST_MS = 10_000  # how long a client waits for one reply, where it can be told so
WHOLE_MS = 30_000  # how long it may try in all, where it can be told so
# Of kafka-python and aiokafka, which have the same words.
CLIENT = {"client_id": "driver", "request_timeout_ms": REQUEST_MS}
CONSUMER = {**CLIENT, "auto_offset_reset": "earliest", "enable_auto_commit": False}


def say(*words: object) -> None:
    sys.stdout.write("\t".join(" ".join(str(word).split()) for word in words) + "\n")
    sys.stdout.flush()


def hello(package: str, more: str = "") -> None:
    say("client", package, importlib.metadata.version(package) + more)


def refusal(error: BaseException, name: str = "") -> None:
    """Answer with an error by the name that the client gives it."""
    say("error", name or type(error).__name__, str(error)[:200])


def commands() -> list[str]:
    """The next command's words; none at the end."""
    return sys.stdin.readline().rstrip("\n").split("\t")
