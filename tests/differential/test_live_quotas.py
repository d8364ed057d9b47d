"""Random quotas to a live Apache Kafka and to this broker, by another seed each day: whose counts.
tests/conformance/test_quotas_as_kafka.py has recorded answers."""

from __future__ import annotations

import datetime
from pathlib import Path

from apache_kafka import apache_kafka
from conformance.test_quotas_as_kafka import answers_of

from differential.quota_live import SETTINGS, ask_kafka


def test_live_kafka_throttles_the_same(kafka_libs: str, tmp_path: Path) -> None:
    seed = datetime.date.today().toordinal()
    with apache_kafka(kafka_libs, tmp_path, SETTINGS, protocol="SASL_PLAINTEXT") as address:
        theirs = ask_kafka(address, seed)
    mine = answers_of(seed)
    wrong = [(what, kafka, here) for (what, here), kafka in zip(mine, theirs, strict=True) if here != kafka]
    assert not wrong, f"seed {seed}: {len(wrong)} differ, the first: {wrong[0]}"
