"""The program of the process that examines schemas: reads Jobs from standard input, writes what was found out.

Run as a file under `python -I -S`. A message is its length (4 bytes, big-endian) and JSON; the first one is a list: the
folders to import from, and whether to import what Avro needs before the first Job asks for it. Standard input that
ends, ends the process: so it lives no longer than the broker.

Schemas may refer to each other a thousand times deep, which takes a larger stack than Python's.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import warnings
from importlib import import_module
from typing import IO, Any, Final

DEEPEST: Final = 12_000  # calls within calls
STACK_BYTES: Final = 256 << 20  # of addresses; what is not used takes no memory


def answer(given: Any) -> Any:
    """What is sent back for a Job as JSON: {"found": [text, messages, differences]} or {"fault": why}."""
    # 0 ms of the broker's start: this is another process, which has its path by now
    from broker.registry.formats.checker import check
    from broker.registry.jobs import SchemaFaultError, job_of

    def protoc(files: dict[str, str], main: str) -> bytes:
        from broker.shell.registry.protoc import compiled  # 20 ms: Avro and JSON Schema do without

        return compiled(files, main)

    try:
        return {"found": check(job_of(given), protoc)}
    except SchemaFaultError as error:
        return {"fault": str(error), "is_of_new": error.is_of_new}
    except MemoryError:
        return {"fault": "it takes more memory than there is"}
    except BaseException as error:  # whatever a library makes of a text that it does not expect, a panic of Rust too
        if "RecursionError" in str(error):
            return {"fault": "it is nested too deeply"}
        return {"fault": f"it cannot be examined ({type(error).__name__}: {error})"[:1000]}


def _find_broker() -> None:
    """Find this package, in an editable installation too, which needs the `site` that `python -S` leaves out."""
    try:
        import_module("broker")
    except ImportError:
        import site  # 6 ms: an ordinary installation does without

        site.main()


def prepare() -> None:
    """Import what most first Jobs need, 60 ms, before a client waits for it."""
    with contextlib.suppress(ImportError):  # the first Job that needs it says what is missing
        for name in ("avro_format", "checker"):
            import_module(f"broker.registry.formats.{name}")


def read(source: IO[bytes]) -> Any:
    """A message; None: there are no more."""
    head = source.read(4)
    if len(head) < 4:
        return None
    return json.loads(source.read(int.from_bytes(head, "big")))


def main() -> None:
    """Answer until nothing is asked any more."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    paths, has_time = read(source)
    sys.path[:0] = [path for path in paths if path not in sys.path]
    _find_broker()
    warnings.simplefilter("ignore")  # of `avro` about logical types, which it passes over as the standard says
    if has_time:
        prepare()
    while (given := read(source)) is not None:
        data = json.dumps(answer(given)).encode()
        sink.write(len(data).to_bytes(4, "big") + data)
        sink.flush()


if __name__ == "__main__":
    sys.setrecursionlimit(DEEPEST)
    threading.stack_size(STACK_BYTES)
    threading.Thread(target=main).start()
