"""Asks an installed wheel whether it is compiled, and takes a record through its broker; cibuildwheel runs it.

    python tools/try_wheel.py       exit code 1: it is pure Python

It imports nothing but the wheel and its dependencies.
"""

from __future__ import annotations

import sys

from momus import Broker, launch


def main() -> None:
    """Serve one record, from a folder other than the checkout's."""
    sys.stderr.write(f"{sys.version.split()[0]}: {launch.build()}\n")
    if launch.build() == "pure Python":
        sys.exit(1)
    with Broker() as broker:
        broker.create_topic("orders")
        broker.produce("orders", "one coffee")
        assert [record.value for record in broker.consume("orders", 1)] == [b"one coffee"]
    assert broker.log == "", broker.log


if __name__ == "__main__":
    main()
