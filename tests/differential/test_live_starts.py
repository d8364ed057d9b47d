"""Some of the cases of start_cases.py, other ones each day, to a live Apache Kafka: does it start as was recorded?"""

from __future__ import annotations

import datetime
import json
from pathlib import Path

from differential.start_cases import RECORDED, cases
from differential.start_live import kafka

PARTS = 12


def test_live_kafka_starts_as_recorded(kafka_libs: str, tmp_path: Path) -> None:
    part = datetime.date.today().toordinal() % PARTS
    recorded = json.loads(RECORDED.read_text())["starts"]
    with kafka(kafka_libs, tmp_path) as asked:
        found = {case.name: asked.start(case) for case in list(cases())[part::PARTS]}
    wrong = [
        f"{name}: {answer}, recorded {recorded[name]}" for name, answer in found.items() if answer != recorded[name]
    ]
    assert len(found) >= 20
    assert not wrong, "\n".join(wrong)
