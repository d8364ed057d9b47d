"""The machine itself: cases follow from their seeds, rules say why, differences are seen, cases shrink."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from differential.allow import AllowList
from differential.batches import make_batch, read_batches
from differential.campaign import Kind, Plan, Result, _dig
from differential.compare import Difference, class_of, differences
from differential.generate.damage import spare_own_settings
from differential.generate.profiles import PROFILES, make_case
from differential.pair import ALLOW, in_order, java_bucket
from differential.plain import KEYS, Plain, Values, decode_response, encode_request
from differential.play import names_in
from differential.proofs import BY_CHANCE, PROOFS, proof_of
from differential.script import Script
from differential.shrink import shrink
from differential.symbols import Symbols
from differential.trim import trim

REPOSITORY = Path(__file__).parents[2]
REASONS = ("Kafka's own failure", "Kafka's own chance", "Not one case's", "SUPPORTED.md, ")


@pytest.mark.parametrize("profile", sorted(PROFILES))
def test_case_follows_from_its_seed_and_fits_json(profile: str) -> None:
    for seed in range(40):
        family, steps = make_case(profile, seed)
        assert make_case(profile, seed) == (family, steps)
        assert json.loads(json.dumps(steps)) == steps
        assert all("do" in step or step["api"] in KEYS for step in steps)


def test_every_case_can_be_encoded_whatever_its_values() -> None:
    for seed in range(60):
        for step in make_case("default", seed)[1]:
            encode_request(
                step["api"], step["v"], 1, "differ", step["b"]
            )  # references and functions are no values: defaults


def test_settings_that_stop_kafkas_coordinators_are_only_validated() -> None:
    """Case 829 of seed 4621 once set max.message.bytes of __consumer_offsets to 0."""
    name, keys = "__consumer_offsets", ["max.message.bytes", "retention.ms"]
    for is_validated in (False, True):
        rows: list[Plain] = [{"Name": key, "Value": "0"} for key in keys]
        resources: list[Plain] = [None, {"ResourceName": name, "Configs": rows}]
        step: Values = {"api": "AlterConfigs", "b": {"Resources": resources, "ValidateOnly": is_validated}}
        spare_own_settings(step)
        assert [row["Name"] for row in step["b"]["Resources"][1]["Configs"]] == keys[not is_validated :]
    assert "max.message.bytes" not in str(make_case("default", 4621_0000829)[1][19])


def test_rules_say_where_their_difference_is_told() -> None:
    supported = (REPOSITORY / "SUPPORTED.md").read_text()
    for rule in json.loads(ALLOW.read_text()) + json.loads(ALLOW.with_name("latest.json").read_text()):
        assert rule["why"].startswith(REASONS), rule["name"]
        assert rule.get("kind") != "a", rule["name"]
        if rule["why"].startswith("SUPPORTED.md"):
            heading = rule["why"].removeprefix("SUPPORTED.md, ").partition(":")[0]
            assert f"## {heading}\n" in supported or f"| {heading.split()[0]} |" in supported, rule["name"]
    AllowList([ALLOW])


def test_proofs_are_of_rules_and_can_be_encoded() -> None:
    names = [rule.name for rule in AllowList([ALLOW]).rules]
    assert [name for name in (*PROOFS, *BY_CHANCE) if name not in names] == []
    assert PROOFS.keys().isdisjoint(BY_CHANCE)
    for name in PROOFS:
        steps = proof_of(name)
        assert json.loads(json.dumps(steps)) == steps
        for step in steps:
            assert "do" in step or encode_request(step["api"], step["v"], 1, "differ", step["b"])


def test_rule_matches_its_difference_alone() -> None:
    allow = AllowList([ALLOW])
    step: Values = {"api": "AddPartitionsToTxn", "v": 4, "b": {"Transactions": [{"TransactionalId": "x"}] * 2}}
    found = allow.rule_for(step, Difference(".ErrorCode", 0, 42), {}, {}, False, [])
    assert found is not None
    assert found.name == "one-id-twice-between-brokers"
    step["b"]["Transactions"].pop()
    assert allow.rule_for(step, Difference(".ErrorCode", 0, 42), {}, {}, False, []) is None


def test_difference_is_seen_in_values_lengths_types_and_absence() -> None:
    kafka: Values = {"a": [{"ErrorCode": 0, "x": 1}], "b": None, "c": [1, 2]}
    momus: Values = {"a": [{"ErrorCode": 3, "x": True}], "c": [1]}
    assert [each.path for each in differences(kafka, momus)] == [".a[].ErrorCode", ".a[].x", ".b", ".c#"]
    assert class_of("Fetch", Difference(".a[].ErrorCode", 0, 3), False) == "Fetch .a[].ErrorCode 0 -> 3"
    assert differences(kafka, kafka) == []


def test_names_of_one_case_are_the_same_whatever_its_prefix() -> None:
    def seen(prefix: str, producer_id: int, topic_id: bytes) -> Values:
        symbols = Symbols(prefix, "w-", {topic_id: "%t"}, False)
        symbols.producer(producer_id)
        symbols.member(f"differ-{producer_id:08}-0000-0000-0000-000000000000", "m0")
        answer = {"ProducerId": producer_id, "TopicId": topic_id, "Time": 5_000, "Topics": [{"Name": prefix + "t"}]}
        answer["MemberId"] = f"differ-{producer_id:08}-0000-0000-0000-000000000000"
        return symbols.normal(answer, 4_000)

    assert seen("c1-", 7, b"7" * 16) == seen("c22-", 9, b"9" * 16)
    assert seen("c1-", 7, b"7" * 16)["Time"] == "<now>"


def test_quotas_of_other_cases_are_left_out() -> None:
    symbols = Symbols("c1-", "w-", {}, False)
    entries: list[Plain] = [
        {"Entity": [{"EntityType": "user", "EntityName": name}], "Values": []} for name in ("c1-u", "c2-u", None)
    ]
    normal = symbols.normal({"ErrorCode": 0, "Entries": entries}, 0)
    kept = trim("DescribeClientQuotas", 1, {"Components": []}, normal, symbols)["Entries"]
    assert [each["Entity"][0]["EntityName"] for each in kept] == ["%u"]


def test_batch_is_read_back_as_it_was_described() -> None:
    data = make_batch({"recs": [["k", "v"], [None, None, [["h", None]], 5]], "ts": 9, "pid": 3, "epoch": 1, "seq": 2})
    (row,) = read_batches(data, lambda number: number, lambda time_ms: time_ms)
    assert (row["ts"], row["maxts"], row["pid"], row["pepoch"], row["seq"], row["count"]) == (9, 14, 3, 1, 2, 2)
    (spoilt,) = read_batches(make_batch({"recs": [["k", "v"]], "fault": ["crc", 3]}), int, int)
    assert "bad" in spoilt


def test_answer_with_bytes_left_over_shows_them() -> None:
    assert decode_response("Heartbeat", 0, b"\0\0\0\1\0\0zz")["_trailing"] == 2


def test_names_of_a_step_hold_what_it_refers_to() -> None:
    body = {"GroupId": "%g", "Epoch": {"$": "ep:m0"}, "TopicId": {"$": "id:%t", "d": None}, "Other": "plain"}
    assert set(names_in(body)) == {"%g", "label m0", "%t"}


def test_prefix_puts_members_in_the_order_of_kafkas_maps() -> None:
    assert java_bucket("a") == 97 & 15
    prefix = in_order("c1n1")
    places = [java_bucket(prefix + member) for member in ("m0", "m1", "m2", "m3")]
    assert places == sorted(places)


def test_case_shrinks_to_what_shows_the_difference() -> None:
    steps: list[Values] = [{"api": "Heartbeat", "v": 0, "b": {"GroupId": "%g", "Rows": [1, 2, 3]}} for _ in range(9)]
    steps[4]["b"]["Rows"] = [7, 8]
    small = shrink(steps, lambda case: any(8 in step["b"].get("Rows", []) for step in case), 60)
    assert small == [{"api": "Heartbeat", "v": 0, "b": {"Rows": [8]}}]


def test_script_is_read_as_it_was_written(tmp_path: Path) -> None:
    script = Script("Fetch .a[] 0 -> 1", "default", 7, make_case("default", 7)[1], 0.5)
    assert Script.read(script.write(tmp_path)) == script
    assert not re.search(r"\W", script.write(tmp_path).stem)


def test_connections_that_play_a_class_again_are_closed() -> None:
    forgotten: list[bool] = []
    pair = SimpleNamespace(forget=lambda: forgotten.append(True))
    brokers: Any = SimpleNamespace(against="", pair=lambda *_: pair)
    result = Result()
    result.kinds["Fetch .ErrorCode 0 -> 1"] = Kind()
    _dig(Plan("default", 1, 1), brokers, result)
    assert (forgotten, result.noise) == ([True], ["Fetch .ErrorCode 0 -> 1"])
