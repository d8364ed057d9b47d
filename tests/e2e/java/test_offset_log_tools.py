"""Apache Kafka's DumpLogSegments on our `__consumer_offsets`: commits of one batch and of several, cleaned or not."""

from __future__ import annotations

import re

import pytest
from clientwork import until

from momus.optimistic import NONE, commit_if

pytestmark = pytest.mark.xdist_group("java")

TOOLS = "org.apache.kafka.tools."
MANY = 60
COMMITS = 260  # more than one segment


def cleaned(data_dir) -> bool:
    return len((data_dir / "__consumer_offsets-0" / f"{0:020d}.log").read_bytes()) < 1 << 19


def test_dump_tool_decodes_commits_of_any_size_without_complaint(toolbox, broker_factory, tmp_path):
    config = {
        "message.max.bytes": 1000,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.segment.bytes": 1 << 20,
        "log.cleaner.backoff.ms": 100,
        "log.cleaner.min.cleanable.ratio": 0.01,
    }
    broker = broker_factory(data_dir=tmp_path, config=config)
    at = broker.bootstrap_servers
    toolbox.run(TOOLS + "TopicCommand", "--create", "--topic", "t", "--partitions", str(MANY), "--bootstrap-server", at)
    for n in range(COMMITS):
        commit_if(at, "g", {("t", p): (n, n - 1 if n else NONE) for p in range(MANY)})
    commit_if(at, "g", {("t", 0): (999, COMMITS - 1)})
    until(lambda: cleaned(tmp_path), "the first segment is cleaned")
    broker.stop()
    segments = sorted(tmp_path.glob("__consumer_offsets-0/*.log"))
    printed = ""
    for segment in segments:
        dump = (TOOLS + "DumpLogSegments", "--deep-iteration", "--print-data-log", "--offsets-decoder", "--files")
        code, text = toolbox.run(*dump, str(segment))
        assert code == 0
        assert not re.search(r"isvalid: false|[Ee]xception|[Mm]ismatch|not (in|de)", text), text[-2000:]
        printed += text
    last: dict[int, int] = {}
    for partition, offset in re.findall(r'"partition":(\d+).*?"offset":(\d+)', printed):
        last[int(partition)] = int(offset)
    assert last == {**dict.fromkeys(range(MANY), COMMITS - 1), 0: 999}
    assert "txsize" in printed
    for index in tmp_path.glob("__consumer_offsets-0/*index"):
        code, text = toolbox.run(TOOLS + "DumpLogSegments", "--index-sanity-check", "--files", str(index))
        assert code == 0
        assert "passed sanity check" in text or "is empty" in text
