"""Random requests under random ACLs to a live Apache Kafka with StandardAuthorizer and to this broker, by another seed
each day. tests/conformance/test_authorization_as_kafka.py has recorded answers."""

from __future__ import annotations

import datetime
from pathlib import Path

from apache_kafka import apache_kafka
from conformance.test_authorization_as_kafka import answers_of

from differential.authorization_live import SECURED, ask_kafka


def test_live_kafka_allows_and_denies_the_same(kafka_libs: str, tmp_path: Path) -> None:
    seed = datetime.date.today().toordinal()
    with apache_kafka(kafka_libs, tmp_path, SECURED, protocol="SASL_PLAINTEXT") as address:
        theirs = ask_kafka(address, seed)
    mine = answers_of(seed)
    wrong = [(what, kafka, here) for (what, here), kafka in zip(mine, theirs, strict=True) if here != kafka]
    assert not wrong, f"seed {seed}: {len(wrong)} differ, the first: {wrong[0]}"
