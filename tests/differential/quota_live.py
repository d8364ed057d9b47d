"""Asks a live Apache Kafka whose quota counts; run as a program it records the answers. Needs java and mvn.

`PYTHONPATH=tests python -m differential.quota_live`
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from differential.authorization_live import SECURED, Peer, prepared
from differential.quota_cases import RECORDED, SEED, ask, cases, change, free_admin, prepare

PATIENCE_S = 1.0  # on a busy machine Kafka takes longer than half a second
SETTINGS = "\n".join(line for line in SECURED.splitlines() if not line.startswith(("authorizer", "super"))) + "\n"


def ask_kafka(address: str, seed: int) -> list[Any]:
    """What a Kafka answers to each case."""
    admin, _ = prepared(address, prepare)
    free_admin(admin.call)
    answers = []
    for number, case in enumerate(cases(seed)):
        change(admin.call, case, remove=False)
        time.sleep(PATIENCE_S)  # until the broker has heard of it
        peer = Peer(address, case.user, case.client_id)
        answers.append(ask(peer.call, case, number))
        peer.close()
        change(admin.call, case, remove=True)
    admin.close()
    return answers


def main() -> None:
    """Record what Apache Kafka answers."""
    from apache_kafka import apache_kafka  # type: ignore[import-untyped,unused-ignore]  # tests have no types
    from kafka_jars import fetch_jars  # type: ignore[import-untyped,unused-ignore]  # the same

    with (
        tempfile.TemporaryDirectory() as folder,
        apache_kafka(f"{fetch_jars('current')}/*", Path(folder), SETTINGS, protocol="SASL_PLAINTEXT") as address,
    ):
        answers = ask_kafka(address, SEED)
    RECORDED.write_text(json.dumps({"seed": SEED, "answers": answers}, separators=(",", ":")) + "\n")
    sys.stdout.write(f"{len(answers)} cases, {sum(answer[0] for answer in answers)} throttled\n")


if __name__ == "__main__":
    main()
