"""240 random sets of quotas, and whose counts, as a live Apache Kafka 4.3.1 said, and 4.4.0 as well."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

from core_broker import Client, World
from differential.quota_cases import RECORDED, STEP_MS, ask, cases, change, free_admin, prepare

from broker.quotas.client_quotas import ClientQuotas


def answers_of(seed: int) -> list[tuple[str, list[Any]]]:
    """Each case, and what this broker answers. A handler takes a millisecond: the clock of a World stands still."""
    took = ClientQuotas.took
    with patch.object(ClientQuotas, "took", lambda self, ctx, elapsed_us: took(self, ctx, 1000)):
        return _answers_of(seed)


def _answers_of(seed: int) -> list[tuple[str, list[Any]]]:
    world = World("memory")
    admin = Client(world)
    admin.connection.principal = "User:admin"
    prepare(admin.call)
    free_admin(admin.call)
    found = []
    for number, case in enumerate(cases(seed)):
        change(admin.call, case, remove=False)
        world.advance(STEP_MS)
        client = Client(world)
        client.connection.principal = f"User:{case.user}"

        def call(request: Any, version: int, client: Client = client, name: str = case.client_id) -> Any:
            client.send(request, version, client_id=name)
            world.run()
            if not client.asked or not (replies := client.replies()):
                world.advance(2000)  # it waits: it is throttled, or for records
                replies = client.replies()
            return replies[-1]

        found.append((str(case), ask(call, case, number)))
        client.leave()
        world.run()
        change(admin.call, case, remove=True)
    return found


def test_quota_that_counts_is_that_of_kafka():
    recorded = json.loads(RECORDED.read_text())
    mine = answers_of(recorded["seed"])
    assert len(mine) == len(recorded["answers"]) >= 200
    wrong = [
        f"{what}: Kafka {kafka}, here {here}"
        for (what, here), kafka in zip(mine, recorded["answers"], strict=True)
        if here != kafka
    ]
    assert not wrong, f"{len(wrong)} differ:\n" + "\n".join(wrong[:20])
    assert 50 < sum(answer[0] for _, answer in mine) < 190
