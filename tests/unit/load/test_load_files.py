"""Files that fill a cluster: what they may say in three languages, and what is said of what is wrong with them."""

from __future__ import annotations

import json
import tomllib

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from broker.load import json_text, toml_text, values
from broker.load.create_topics import topics_of
from broker.load.problems import LoadError
from broker.load.sources import names_beside, read_documents, read_value
from broker.load.texts import read_text
from broker.load.yaml_text import Node

YAML = """\
# a comment
topics:
  - name: orders
    partitions: 3
    config: {retention.ms: -1, preallocate: true}
    records:
      - {key: a, value: {item: coffee, price: 3.5}}
      - value: yes
        headers: {trace: x, none: null}
        timestamp: 2026-01-01T00:00Z
      - {value: {base64: AAEC}, partition: 2}
groups:
  - name: billing
    offsets:
      - {topic: orders, offset: 1}
"""
JSON = json.dumps(
    {
        "topics": [
            {
                "name": "orders",
                "partitions": 3,
                "config": {"retention.ms": -1, "preallocate": True},
                "records": [
                    {"key": "a", "value": {"item": "coffee", "price": 3.5}},
                    {"value": "yes", "headers": [["trace", "x"], ["none", None]], "timestamp": 1767225600000},
                    {"value": {"base64": "AAEC"}, "partition": 2},
                ],
            }
        ],
        "groups": [{"name": "billing", "offsets": [{"topic": "orders", "offset": 1}]}],
    }
)
TOML = """\
[[topics]]
name = "orders"
partitions = 3
config = { "retention.ms" = -1, preallocate = true }
[[topics.records]]
key = "a"
value = { item = "coffee", price = 3.5 }
[[topics.records]]
value = "yes"
headers = [["trace", "x"], ["none"]]
timestamp = 2026-01-01T00:00:00Z
[[topics.records]]
value = { base64 = "AAEC" }
partition = 2
[[groups]]
name = "billing"
offsets = [{ topic = "orders", offset = 1 }]
""".replace(', ["none"]', "")  # TOML has no null


def load_of(name: str, text: str, **beside: str):
    files = {key.replace("_", "."): each for key, each in beside.items()}

    def fetch(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[path]

    return read_documents([(name, text)], fetch)


def wrong(name: str, text: str, **beside: str) -> list[str]:
    with pytest.raises(LoadError) as refused:
        load_of(name, text, **beside)
    return str(refused.value).splitlines()


@pytest.mark.parametrize(("name", "text"), [("o.yaml", YAML), ("o.yml", YAML), ("o.json", JSON), ("o.toml", TOML)])
def test_file_says_the_same_in_each_language(name, text):
    load = load_of(name, text)
    (topic,), (group,) = load.topics, load.groups
    assert (topic.name, topic.partitions, topic.replicas) == ("orders", 3, -1)
    assert topic.config == {"retention.ms": "-1", "preallocate": "true"}
    none = () if name == "o.toml" else (("none", None),)
    assert [row[1:] for row in topic.rows] == [
        (None, b"a", b'{"item":"coffee","price":3.5}', (), None),
        (None, None, b"yes", (("trace", b"x"), *none), 1767225600000),
        (2, None, b"\0\1\2", (), None),
    ]
    assert [offset[1:] for offset in group.offsets] == [("orders", 0, 1, "")]


def test_yaml_of_1_1_alone_is_a_text():
    assert Node("[yes, on, 0o17, 12:30, 2030-01-01, 1_000, 007, 1e3, 'null', \"true\"]").value() == [
        *("yes", "on", "0o17", "12:30", "2030-01-01", "1_000", "007", "1e3", "null", "true")
    ]
    assert Node("[true, null, ~, -5, +7, 0, 1.5, 2.0e+3, a]").value() == [True, None, None, -5, 7, 0, 1.5, 2000.0, "a"]


def test_alias_is_what_its_anchor_is():
    load = load_of("a.yaml", "topics:\n - &o {name: a, partitions: 2}\n - {name: b, records: [{value: *o}]}\n")
    assert load.topics[1].rows[0].value == b'{"name":"a","partitions":2}'


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "a.yaml",
            "topics:\n- name: a\n  partitons: 3\n",
            "a.yaml:3: topics[0].partitons: no such field. Did you mean partitions?",
        ),
        (
            "a.yaml",
            "topics:\n- name: a\n  records:\n  - {valeu: 1}\n",
            "a.yaml:4: topics[0].records[0].valeu: no such field. Did you mean value?",
        ),
        ("a.yaml", "topics: [\n", "a.yaml:2: this is not YAML: "),
        ("a.yaml", "topics:\n- name: a\n  name: b\n", 'a.yaml:3: "name" is there twice'),
        ("a.yaml", "topics:\n- name: !!binary AAEC\n", "a.yaml:2: the tag tag:yaml.org,2002:binary is not read here"),
        ("a.yaml", "topics:\n- name: 5\n", "a.yaml:2: topics[0].name: takes a text, not a number: write it in quotes"),
        ("a.yaml", "topics:\n- {partitions: 1}\n", 'a.yaml:2: topics[0]: "name" is missing'),
        ("a.yaml", "topics:\n- name: a\n- name: a\n", "a.yaml:3: topics[1]: topic a is in a.yaml:2 too"),
        (
            "a.json",
            '{"topics": [\n{"name": "a",\n"partitions": 0}]}',
            "a.json:3: topics[0].partitions: takes at least 1, not 0",
        ),
        ("a.json", '{"topics": [\n{"name": "a", "name": "b"}]}', 'a.json:2: "name" is there twice'),
        ("a.json", '{"topics":\n}', "a.json:2: this is not JSON: Expecting value"),
        ("a.json", '{"clock":\n NaN}', "a.json:2: NaN is no number of JSON"),
        (
            "a.toml",
            '[[topics]]\nname = "a"\n\n[[topics]]\nname = "b"\n[topics.config]\nx = []\n',
            "a.toml:7: topics[1].config.x: takes a text, a number, true or false, not a list",
        ),
        (
            "a.toml",
            'topics = [\n{ name = "a" },\n{ name = 3 }]\n',
            "a.toml:3: topics[1].name: takes a text, not a number: write it in quotes",
        ),
        ("a.toml", "topics = [\n", "a.toml:2: this is not TOML: "),
        (
            "a.yaml",
            "acls:\n- {principal: 'User:a', operation: red, resource: topic, name: a}\n",
            "a.yaml:2: acls[0].operation: takes one of ",
        ),
        ("a.yaml", "quotas:\n- {user: a}\n", "a.yaml:2: quotas[0]: one of producer_byte_rate, "),
        (
            "a.yaml",
            "clock: {advance: 3 days}\n",
            "a.yaml:1: clock.advance: 3 days is no duration such as 90s, 8d, 1h30m or 250ms",
        ),
        (
            "a.yaml",
            "topics:\n- name: a\n  records:\n  - value: {base64: '?'}\n",
            'a.yaml:4: topics[0].records[0].value: "base64" holds what is not base64',
        ),
        (
            "a.yaml",
            "topics:\n- name: a\n  records:\n  - timestamp: today\n",
            "a.yaml:4: topics[0].records[0].timestamp: today is no time such as",
        ),
        (
            "a.yaml",
            "topics:\n- name: a\n  records_from: b.jsonl\n",
            "a.yaml:3: topics[0].records_from: b.jsonl: No such file or directory",
        ),
        (
            "a.yaml",
            "schemas:\n- {subject: a, type: XML, schema: x}\n",
            "a.yaml:2: schemas[0].type: takes one of AVRO, JSON, PROTOBUF, not XML",
        ),
        ("a.yaml", "5\n", "a.yaml:1: takes an object, not a number"),
    ],
)
def test_what_is_wrong_is_named_with_file_line_and_field(name, text, said):
    found = wrong(name, text)
    assert found[0].startswith(said), found


def test_all_that_is_wrong_is_said_at_once():
    assert len(wrong("a.yaml", "topics:\n- {name: 5, config: []}\n- {nam: x}\nusers: {}\n")) == 5


def test_lines_of_a_file_beside_are_records_and_are_named_by_their_own_place():
    text = "topics: [{name: a, records: [{value: first}], records_from: b.jsonl}]\n"
    rows = (
        load_of("a.yaml", text, b_jsonl='{"value": 1}\n\n{"key": "k", "timestamp_ms": 5, "offset": 7}\n').topics[0].rows
    )
    assert [(row.key, row.value, row.timestamp_ms) for row in rows] == [
        (None, b"first", None),
        (None, b"1", None),
        (b"k", None, 5),
    ]
    found = wrong("a.yaml", text, b_jsonl='{"value": 1}\n\n{"vale": 1}\n')
    assert found == ["b.jsonl:3: [1].vale: no such field. Did you mean value?"]
    assert wrong("a.yaml", text, b_jsonl='{"value": 1}\n{\n')[0].startswith("b.jsonl:2: this is not JSON")


def test_file_that_another_names_is_no_document():
    documents = [("d/a.yaml", "schemas: [{subject: s, type: JSON, file: s.json}]"), ("d/s.json", '{"type": "object"}')]
    load = read_documents(documents, dict(documents).__getitem__)
    assert load.files == ["d/a.yaml"]
    assert load.schemas[0].schema == '{"type": "object"}'
    assert names_beside(*documents[0]) == ["d/s.json"]


def test_digest_is_of_all_texts():
    text = "topics: [{name: a, records_from: b.jsonl}]\n"
    digests = [
        load_of("a.yaml", text, b_jsonl="{}").digest,
        load_of("a.yaml", text, b_jsonl="{} ").digest,
        load_of("a.yaml", text + "#", b_jsonl="{}").digest,
    ]
    assert len(set(digests)) == 3
    assert load_of("a.yaml", text, b_jsonl="{}").digest == digests[0]


def test_value_that_is_from_no_file_has_no_lines():
    with pytest.raises(LoadError, match=r"^load: topics\[0\].name: is empty$"):
        read_value("load", {"topics": [{"name": ""}]})


def test_topics_of_wurstmeisters_variable():
    assert topics_of("a:3:1, b:1:2:compact,")["topics"] == [
        {"name": "a", "partitions": 3, "replicas": 1, "config": {}},
        {"name": "b", "partitions": 1, "replicas": 2, "config": {"cleanup.policy": "compact"}},
    ]
    assert len(topics_of("a:3:1\nb:1:2\n", "\n")["topics"]) == 2
    for text in ("a", "a:3", "a:x:1", ":3:1", "a:1:1:compact:x", "a:-1:1"):
        with pytest.raises(LoadError, match="KAFKA_CREATE_TOPICS: "):
            topics_of(text)


@pytest.mark.parametrize(
    ("given_", "ms"),
    [(5, 5), ("1970-01-01", 0), ("1970-01-01T01:00+01:00", 0), ("2026-01-01T00:00:00.007Z", 1767225600007)],
)
def test_moments(given_, ms):
    assert values.moment_ms(given_) == ms


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(),
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(st.text(), inside, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_lines_of_json_are_found_in_any_layout(value):
    for indent in (None, 0, 2):
        text = json.dumps(value, indent=indent, ensure_ascii=False)
        if "\r" in text or not isinstance(value, (dict, list)):
            continue
        assert json_text.parse(text) == value
        assert set(json_text.index(text)) == paths(value)


@given(VALUES)
def test_yaml_that_its_library_writes_is_read_back(value):
    text = yaml.safe_dump(value, sort_keys=False)
    assert read_text("a.yaml", text).value == value


def test_lines_of_toml_are_found_in_any_layout():
    text = '# c\na.b = 1\n"q.r" = [1, 2,\n 3]\n[t]\nx = """\n[no]\n"""\ny = {z = 1, w = [ {v = 2} ]}\n'
    text += "[[t.l]]\nk=1\n[[t.l]]\nk=2\n[t.l.m]\nn='#'\n"
    index = toml_text.index(text)
    assert {path for path in index if path not in paths(tomllib.loads(text))} == set()
    expected = {("a", "b"): 2, ("q.r",): 3, ("q.r", 2): 4, ("t", "x"): 6, ("t", "y", "w", 0, "v"): 9}
    expected |= {("t", "l", 1, "k"): 13, ("t", "l", 1, "m", "n"): 15}
    assert {path: index[path] for path in expected} == expected


def paths(value, before=()):
    inside = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    found = set()
    for step, each in inside:
        found |= {(*before, step)} | paths(each, (*before, step))
    return found
