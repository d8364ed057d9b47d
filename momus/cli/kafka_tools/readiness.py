"""`cub kafka-ready -b HOST:PORT BROKERS SECONDS`, which start scripts of Confluent's images wait with."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from momus.cli.kafka_tools.options import Options, use_settings
from momus.client.kafka_client import Client

PAUSE_S = 0.2


def run(tool: str, words: Sequence[str]) -> None:
    """Wait until so many brokers are there. Ends the tool, with exit code 1 when they are not in time."""
    options = Options(tool)
    options.text("-b", "--bootstrap-servers", dest="bootstrap")
    options.text("-c", "--config")
    options.text("brokers", "seconds", type=int)
    if words[:1] != ["kafka-ready"]:
        options.error("kafka-ready is all that is here")
    given = options.read(words[1:])
    if given.bootstrap is None:
        options.error("name a broker by -b HOST:PORT")
    use_settings(options, [given.config])
    give_up = time.monotonic() + given.seconds
    said = f"fewer than {given.brokers} brokers"
    while time.monotonic() < give_up:
        try:
            with Client(given.bootstrap, timeout_s=max(give_up - time.monotonic(), PAUSE_S)) as client:
                if len(client.cluster().brokers) >= given.brokers:
                    return
        except OSError as error:
            said = str(error)
        time.sleep(PAUSE_S)
    sys.exit(f"{tool}: not ready in {given.seconds} s: {said}")
