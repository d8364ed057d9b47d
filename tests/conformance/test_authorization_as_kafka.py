"""2,560 random requests under random ACLs, answered as a live Apache Kafka 4.4.0 with StandardAuthorizer did."""

from __future__ import annotations

import json
import lzma
import random

import pytest
from core_broker import Client, World
from differential.authorization_cases import PRINCIPALS, RECORDED, acl_sets, cases
from differential.authorization_state import FIELDS, prepare, replace_acls, summary

from broker.config.authorizer_setting import CLASS


def client_of(world: World, principal: str) -> Client:
    client = Client(world)
    client.connection.principal = principal
    return client


def answers_of(seed: int) -> list[tuple[str, str]]:
    """Each case, and what this broker answers."""
    rng = random.Random(seed)
    world = World("memory", authorizer_class_name=CLASS, super_users="User:admin", auto_create_topics_enable="false")
    admin = client_of(world, "User:admin")
    ids = prepare(admin.call)
    sets = acl_sets(rng)
    clients = {principal: client_of(world, principal) for principal in PRINCIPALS}
    answers, current = [], -1
    for case in cases(rng, ids):
        if case.acl_set != current:
            current = case.acl_set
            replace_acls(admin.call, sets[current])
        rules = [[getattr(each, field) for field in FIELDS] for each in sets[current]]
        what = f"{case.principal} {case.request} v{case.version} under {rules}"
        answers.append((what, summary(clients[case.principal].call(case.request, case.version))))
    return answers


@pytest.mark.heavy
def test_requests_are_allowed_and_denied_as_kafka_does():
    recorded = json.loads(lzma.decompress(RECORDED.read_bytes()))
    mine = answers_of(recorded["seed"])
    assert len(mine) == len(recorded["answers"]) >= 2000
    wrong = [
        f"{what}\n  Kafka {kafka}\n  here  {here}"
        for (what, here), kafka in zip(mine, recorded["answers"], strict=True)
        if here != kafka
    ]
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])
