"""Lines that the page shows for the kits in Go, Java and Node: they call what these kits have, with what was done."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.page
CLIENTS = Path(__file__).parents[3] / "clients"
CALLS = [
    ("POST", "/topics", {"name": 'o"x', "partitions": 2, "config": {"retention.ms": "1"}}),
    ("POST", "/topics", {"name": "orders"}),
    ("POST", "/topics/orders/records", {"records": [{"value": "one"}, {"value": "two"}]}),
    (
        "POST",
        "/topics/orders/records",
        {"records": [{"value": {"cups": [2, None]}, "key": "k", "partition": 1, "headers": [["to", "go"]]}]},
    ),
    ("POST", "/topics/orders/records", {"records": [{"value": {"cups": 2}, "key": "k", "timestamp_ms": 7}]}),
    ("POST", "/faults", {"fault": "inject_error", "api": "OffsetCommit", "trigger": {"times": 2}}),
    ("DELETE", "/faults", None),
    ("DELETE", "/faults/fault-1", None),
    ("POST", "/faults/fault-1/release", {}),
    ("POST", "/reset", None),
    ("POST", "/clock", {"advance_ms": 60000}),
    ("POST", "/clock", {"freeze": True}),
    ("POST", "/clock", {"resume": True}),
    *[("POST", f"/brokers/1/{verb}", None) for verb in ("stop", "start", "lag", "release", "pause", "resume")],
    ("POST", "/groups/billing/rebalance", None),
    ("POST", "/groups/billing/expel", {"member": "m"}),
    ("DELETE", "/groups/billing", None),
    ("POST", "/snapshots", {"name": "before"}),
    ("POST", "/snapshots", {}),
    ("POST", "/restore", {"snapshot": "before"}),
    ("DELETE", "/snapshots/before", None),
    ("POST", "/fork", {}),
    ("POST", "/journal", {"bytes": 16}),
    ("DELETE", "/journal", None),
    ("POST", "/users", {"name": "bob", "password": "b"}),
    ("DELETE", "/users/bob", None),
    (
        "POST",
        "/acls",
        {
            "acls": [
                {"principal": "User:bob", "operation": "read", "resource": "topic", "name": "o", "permission": "deny"}
            ]
        },
    ),
]
NO_LINE = {("POST", "/topics/orders/records", "java")}  # a null in its value: Java's Map.of takes none
GO = {"Faults", "Journal", "Clock", "Brokers", "Users", "Acls"}


@pytest.fixture(scope="module")
def lines(chromium, shared_broker):
    """What kits.js says of each of CALLS."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"http://{shared_broker.control.address}/ui/icon.svg")
    made = page.evaluate(
        """(calls) => import("/ui/kits.js").then(({ kitLines }) =>
            calls.map(([method, path, body]) => kitLines(method, path, body ?? undefined)))""",
        CALLS,
    )
    for each in made:  # it is a line of TypeScript that can be read
        page.evaluate("(line) => { Object.getPrototypeOf(async () => {}).constructor(line); }", each["node"])
    context.close()
    return made


def sources(folder: str, pattern: str) -> dict[str, str]:
    return {path.stem: path.read_text() for path in (CLIENTS / folder).glob(pattern)}


def has_go(line: str) -> bool:
    text = "\n".join(sources("go", "*.go").values())
    owner, field, method = re.fullmatch(r"(?:partition := \d+; )?(\w+)\.(?:(\w+)\.)?(\w+)\(.*\)", line).groups()
    kind = field if field in GO else {"cluster": "Cluster", "fault": "Fault", "snapshot": "Snapshot"}[owner]
    return re.search(rf"^func \(\w \*{kind}\) {method}\(", text, re.MULTILINE) is not None


def has_java(line: str) -> bool:
    text = sources("junit/src/main/java/test/momus", "*.java")
    owner, part, method = re.fullmatch(r"(\w+)\.(?:(\w+)\(\)\.)?(\w+)\(.*\);", line).groups()
    return re.search(rf"public \S.* {method}\(", text[(part or owner).capitalize()]) is not None


def has_node(line: str) -> bool:
    text = sources("node/src", "*.ts")
    owner, part, method = re.fullmatch(r"await (\w+)\.(?:(\w+)\.)?(\w+)\(.*\);", line).groups()
    kind = (part or owner).capitalize()
    (found,) = [each for each in text.values() if f"export class {kind} " in each]
    body = found.split(f"export class {kind} ", 1)[1].split("\nexport class ")[0]
    return re.search(rf"^  (?:async )?{method}\(", body, re.MULTILINE) is not None


@pytest.mark.parametrize(("kit", "has"), [("go", has_go), ("java", has_java), ("node", has_node)])
def test_line_of_each_call_names_a_method_that_the_kit_has(lines, kit, has):
    for call, made in zip(CALLS, lines, strict=True):
        if made.get(kit) is None:
            assert (*call[:2], kit) in NO_LINE
        else:
            assert has(made[kit]), made[kit]


def test_lines_say_what_was_done(lines):
    said = {f"{method} {path} {n}": each for n, ((method, path, _), each) in enumerate(zip(CALLS, lines, strict=True))}
    options = 'momus.TopicOptions{Config: map[string]string{"retention.ms": "1"}}'
    assert said["POST /topics 0"] == {
        "go": rf'cluster.CreateTopic("o\"x", 2, {options})',
        "java": r'cluster.createTopic("o\"x", 2, -1, Map.of("retention.ms", "1"));',
        "node": r'await cluster.createTopic("o\"x", 2, { config: { "retention.ms": "1" } });',
    }
    assert said["POST /topics/orders/records 2"]["node"] == 'await cluster.produce("orders", "one", "two");'
    go = 'momus.Message{Key: "k", Value: map[string]any{"cups": []any{2, nil}}, Partition: &partition, '
    assert said["POST /topics/orders/records 3"] == {
        "go": f'partition := 1; cluster.Produce("orders", {go}Headers: []momus.Header{{{{"to", []byte("go")}}}}}})',
        "node": 'await cluster.produce("orders", { value: { cups: [2, null] }, key: "k", partition: 1, '
        'headers: { to: "go" } });',
        "java": None,
    }
    assert said["POST /topics/orders/records 4"]["java"] == (
        'cluster.produce("orders", Message.of(Map.of("cups", 2)).key("k").timestampMs(7L));'
    )
    assert said["POST /faults 5"]["java"] == (
        'cluster.faults().add(Map.of("fault", "inject_error", "api", "OffsetCommit", "trigger", Map.of("times", 2)));'
    )
    assert said["POST /clock 10"]["go"] == "cluster.Clock.Advance(60000 * time.Millisecond)"
