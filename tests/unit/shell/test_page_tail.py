"""A look at the newest messages of a topic: where the next one goes on, whatever this one has found."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest

from broker.shell.control.routes import Call, RefusedError
from broker.shell.page.messages import Seen
from broker.shell.page.search.follow import FIRST, MOST_LOOKED_AT, Look

CLUSTER: Any = SimpleNamespace(name="c", registry=None, config=SimpleNamespace(schema_registry_url=""))


def looked(first: int, end: int, **query: str) -> tuple[list[int], int, str]:
    """The offsets that are shown of a partition with a message at each, how many are not, and `since` of the next."""

    async def records(position: int) -> AsyncIterator[Seen]:
        for offset in range(position, end):
            yield Seen(0, offset, offset, offset, None, b"v", (), "", -1, -1)

    async def answered() -> dict[str, Any]:
        look = Look(Call({}, query, {}))
        await look.read(0, first, end, records)
        return await look.answer(CLUSTER, "t")

    answer = asyncio.run(answered())
    since = answer["next"].partition("since=")[2].partition("&")[0].replace("%3A", ":")
    return [row["offset"] for row in answer["messages"]], answer["not_shown"], since


def test_a_tail_goes_on_after_what_it_has_seen():
    assert looked(0, 3) == ([0, 1, 2], 0, "0:3")
    assert looked(0, 5, since="0:3") == ([3, 4], 0, "0:5")
    assert looked(0, 5, since="0:5") == ([], 0, "0:5")
    assert looked(0, 5, since="0:3", value="other") == ([], 0, "0:5")


def test_a_tail_goes_on_in_a_topic_that_was_made_again():
    assert looked(0, 2, since="0:90") == ([], 0, "0:2")
    assert looked(0, 3, since="0:2") == ([2], 0, "0:3")


def test_what_is_left_out_is_counted():
    shown, not_shown, since = looked(0, 1000)
    assert (shown, not_shown, since) == (list(range(900, 1000)), FIRST - 100, "0:1000")
    shown, not_shown, since = looked(0, MOST_LOOKED_AT + 10, since="0:0", limit="5")
    assert (len(shown), not_shown, since) == (5, MOST_LOOKED_AT + 5, f"0:{MOST_LOOKED_AT + 10}")


@pytest.mark.parametrize("since", ["0", "0:-1", "a:1", "0:1,", "\u0663:1"])
def test_a_place_that_no_answer_has_told_is_refused(since):
    with pytest.raises(RefusedError, match='"since" is PARTITION:OFFSET'):
        looked(0, 1, since=since)
