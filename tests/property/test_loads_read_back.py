"""Random documents are loaded, and what a consumer, the groups and a dump then say is what the document says."""

from __future__ import annotations

import base64
import json
from collections import defaultdict

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.load.texts import read_text
from broker.load.values import data_of
from momus import Broker
from momus.cli.dump.dumping import Dumper, Wanted
from momus.cli.dump.layout import text_of
from momus.cli.records.client import RecordClient
from protocol.partitioner import partition_of_key

TEXTS = st.text(max_size=12).filter(lambda text: not any("\ud800" <= letter <= "\udfff" for letter in text))
PLAIN = (
    st.none()
    | TEXTS
    | st.integers(-(10**20), 10**20)
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    PLAIN | st.binary(max_size=8).map(lambda data: {"base64": base64.b64encode(data).decode()}),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(TEXTS, inside, max_size=3),
    max_leaves=8,
)
HEADERS = st.dictionaries(TEXTS, VALUES, max_size=2) | st.lists(st.tuples(TEXTS, VALUES).map(list), max_size=3)
RECORDS = st.fixed_dictionaries(
    {}, optional={"key": VALUES, "value": VALUES, "headers": HEADERS, "timestamp": st.integers(10**12, 10**12 + 10**6)}
)
TOPICS = st.fixed_dictionaries(
    {"name": st.sampled_from("abcd"), "partitions": st.integers(1, 3), "records": st.lists(RECORDS, max_size=12)},
    optional={"config": st.just({"retention.ms": -1})},
)


@st.composite
def documents(draw):
    """Topics with records, some of which name their partition, and groups with offsets in them."""
    topics = draw(st.lists(TOPICS, unique_by=lambda topic: topic["name"], max_size=3))
    for topic in topics:
        topic.setdefault("config", {})["message.timestamp.after.max.ms"] = 2**62
        for record in topic["records"]:
            if draw(st.booleans()):
                record["partition"] = draw(st.integers(0, topic["partitions"] - 1))
    offsets = [
        {"topic": topic["name"], "partition": partition, "offset": draw(st.integers(0, 20)), "metadata": draw(TEXTS)}
        for topic in topics
        for partition in range(topic["partitions"])
        if draw(st.booleans())
    ]
    return {"topics": topics, "groups": [{"name": "g", "offsets": offsets}] if offsets else []}


@pytest.fixture(scope="module")
def broker():
    with Broker(flush="memory", brokers=2) as made:
        yield made


def expected(topic):
    """Keys, values and headers of each partition, by a rule that is written down here once more."""
    found, turn = defaultdict(list), 0
    for record in topic["records"]:
        key = data_of(record.get("key"))
        partition = record.get("partition")
        if partition is None and key is not None:
            partition = partition_of_key(key, topic["partitions"])
        elif partition is None:
            partition, turn = turn % topic["partitions"], turn + 1
        headers = record.get("headers", {})
        pairs = list(headers.items()) if isinstance(headers, dict) else headers
        row = (key, data_of(record.get("value")), [(name, data_of(value)) for name, value in pairs])
        found[partition].append((*row, record.get("timestamp")))
    return found


LINES = st.text(alphabet=st.sampled_from(list("a \n\r\x85\u2028\u2029\"'|@#:-é\t\x00\ufeff💥")), max_size=8)
ANYTHING = st.recursive(
    LINES | PLAIN, lambda inside: st.lists(inside, max_size=3) | st.dictionaries(LINES | TEXTS, inside, max_size=3)
)


@given(ANYTHING)
def test_text_of_a_dump_is_read_as_what_was_written(value):
    """By the library's parser in C and by that in Python, which is used where there is no other."""
    document = {"topics": [{"records": [{"value": value}]}]}
    for name in ("x.json", "x.yaml"):
        assert read_text(name, text_of(document, name)).value == document
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(yaml, "CSafeDumper", raising=False)
        assert read_text("x.yaml", text_of(document, "x.yaml")).value == document


@settings(max_examples=6, deadline=None)
@given(documents())
def test_loaded_documents_are_read_back_and_dumped_and_loaded_again_to_the_same_text(
    tmp_path_factory, broker, document
):
    folder = tmp_path_factory.mktemp("load")
    (folder / "1.json").write_text(json.dumps(document))
    (folder / "2.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    texts = []
    for name in ("1.json", "2.yaml"):
        with broker.create_cluster(load=folder / name, brokers=2) as cluster:
            for topic in document["topics"]:
                read = defaultdict(list)
                wanted = expected(topic)
                for record in cluster.consume(topic["name"]):
                    rows = wanted[record.partition]
                    at_ms = rows[len(read[record.partition])][3] if len(read[record.partition]) < len(rows) else None
                    time = None if at_ms is None else record.timestamp_ms
                    read[record.partition].append((record.key, record.value, record.headers, time))
                assert read == {partition: rows for partition, rows in wanted.items() if rows}
            offsets = document["groups"][0]["offsets"] if document["groups"] else []
            assert cluster.committed("g") == {(row["topic"], row["partition"]): row["offset"] for row in offsets}
            texts.append(dumped(cluster, "x.json"))
            (folder / f"again-{name}").write_text(dumped(cluster, name))
            with broker.create_cluster(load=folder / f"again-{name}") as copy:
                assert dumped(copy, "x.json") == texts[-1]


def dumped(cluster, name):
    with RecordClient(cluster.bootstrap_servers) as client:
        return text_of(Dumper(client, Wanted((), (), None, None, False)).document(), name)
