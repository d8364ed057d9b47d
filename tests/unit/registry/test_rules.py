"""Rule sets and groups of compatibility: what the registry keeps for clients, and what it judges by itself."""

from __future__ import annotations

import json

import pytest
from registry_kit import record_of

ONE = record_of(id="long")
THREE = record_of(id="long", price="double")  # no default: BACKWARD refuses it
RULE = {"name": "short", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "size(x) < 5"}
RULES = {"domainRules": [RULE]}


def test_rules_are_kept_and_are_part_of_the_content(registry):
    first = registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": RULES})
    assert registry.ask("GET", "/subjects/s/versions/1")["ruleSet"] == {"domainRules": [{**RULE, "disabled": False}]}
    assert registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": RULES})["version"] == 1
    other = {"domainRules": [{**RULE, "expr": "true"}]}
    second = registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": other})
    assert (second["version"], second["id"]) == (2, first["id"] + 1)
    assert registry.register("s", ONE)["version"] == 2  # of the version before it


def test_default_and_override_are_put_together_by_name(registry):
    override = {"domainRules": [{**RULE, "expr": "false"}]}
    default = {"domainRules": [{**RULE, "name": "long"}], "encodingRules": [{**RULE, "name": "enc", "type": "ENCRYPT"}]}
    registry.ask("PUT", "/config/s", {"defaultRuleSet": default, "overrideRuleSet": override})
    registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": RULES})
    found = registry.ask("GET", "/subjects/s/versions/1")["ruleSet"]
    assert [(each["name"], each["expr"]) for each in found["domainRules"]] == [
        ("long", RULE["expr"]),
        ("short", "false"),
    ]
    assert [each["name"] for each in found["encodingRules"]] == ["enc"]


@pytest.mark.parametrize(
    "rules",
    [
        {"domainRules": [{**RULE, "name": "1a"}]},
        {"domainRules": [{**RULE, "name": "a b"}]},
        {"domainRules": [{**RULE, "name": ""}]},
        {"domainRules": [{**RULE, "name": "a" * 257}]},
        {"domainRules": [{key: RULE[key] for key in RULE if key != "type"}]},
        {"domainRules": [RULE, RULE]},
        {"domainRules": [{**RULE, "mode": "UPGRADE"}]},
        {"migrationRules": [RULE]},
        {"encodingRules": [{**RULE, "mode": "UPDOWN"}]},
        {"domainRules": [{**RULE, "onFailure": "DLQ,ERROR"}]},
    ],
)
def test_rules_that_are_not_in_order_are_refused(registry, rules):
    for method, path, name in (("POST", "/subjects/s/versions", "ruleSet"), ("PUT", "/config/s", "defaultRuleSet")):
        answer = registry.ask(
            method, path, {"schema": json.dumps(ONE), name: rules} if method == "POST" else {name: rules}
        )
        assert answer[:2] == (422, 42210)
    assert registry.log == []


@pytest.mark.parametrize(
    "rules",
    [
        5,
        {"domainRules": 5},
        {"domainRules": [5]},
        {"domainRules": [{**RULE, "kind": "X"}]},
        {"domainRules": [{**RULE, "tags": "x"}]},
    ],
)
def test_rules_of_another_form_are_refused(registry, rules):
    assert registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": rules})[:2] == (422, 422)


def test_schemas_are_compared_with_those_of_their_group(registry):
    registry.ask("PUT", "/config/s", {"compatibilityGroup": "major"})
    assert registry.register("s", ONE, metadata={"properties": {"major": "1"}})["version"] == 1
    refused = registry.register("s", THREE, metadata={"properties": {"major": "1"}})
    assert refused[0] == 409
    assert registry.register("s", THREE, metadata={"properties": {"major": "2"}})["version"] == 2


def test_schemas_are_listed_by_the_type_of_their_rules(registry):
    registry.ask("POST", "/subjects/s/versions", {"schema": json.dumps(ONE), "ruleSet": RULES})
    registry.register("t", ONE)
    assert [each["subject"] for each in registry.ask("GET", "/schemas?ruleType=CEL")] == ["s"]
    assert registry.ask("GET", "/schemas?ruleType=ENCRYPT") == []
