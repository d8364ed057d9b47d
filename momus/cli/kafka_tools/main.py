"""Runs one of Kafka's tools by the name that it was called by, with or without `.sh`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence

from momus.cli.groups.reset import ResetError
from momus.cli.records.text import FormatError

TOOLS = {
    "cub": "readiness",
    "kafka-acls": "acls",
    "kafka-broker-api-versions": "cluster",
    "kafka-cluster": "cluster",
    "kafka-configs": "configs",
    "kafka-console-consumer": "consumer",
    "kafka-console-producer": "producer",
    "kafka-consumer-groups": "groups",
    "kafka-get-offsets": "offsets",
    "kafka-topics": "topics",
}


def main(words: Sequence[str] | None = None, name: str | None = None) -> None:
    """Run the tool, by default with the words that this process was started with. Ends the process where it fails: exit
    code 1 and a sentence."""
    tool = os.path.basename(sys.argv[0] if name is None else name).removesuffix(".sh")
    if tool not in TOOLS:
        sys.exit(f"{tool} is none of the tools that are here: {', '.join(TOOLS)}")
    module = importlib.import_module(f"momus.cli.kafka_tools.{TOOLS[tool]}")
    if words is None:
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # `timeout 10 kafka-console-consumer ...` commits
    try:
        module.run(tool, list(sys.argv[1:] if words is None else words))
        sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    except KeyboardInterrupt:
        sys.exit(130)
    except (FormatError, ResetError, OSError) as error:
        sys.exit(f"{tool}: {error}")
