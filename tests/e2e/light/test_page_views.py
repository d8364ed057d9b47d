"""What the page is told of offsets that are moved, of commits and of transactions, and what it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from cluster_kit import Wire
from core_requests import commit_request, first_heartbeat
from txn_kit import Producer

from momus import Broker
from momus.control import ControlError
from protocol.messages.share_group import ShareGroupHeartbeatRequest

FOREVER_MS = 99_999_999_999_999
Ask = Callable[..., Any]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """It keeps a journal, and has all groups in one log, and all transactions."""
    shards = ("offsets.topic.num.partitions", "transaction.state.log.num.partitions")
    with Broker(config=dict.fromkeys(shards, 1)) as broker:
        broker.journal.keep()
        yield broker
        assert (broker.stop(), broker.log) == (0, "")


@pytest.fixture(scope="module")
def wire(broker: Broker) -> Iterator[Wire]:
    """A client."""
    with closing(Wire(broker.bootstrap_servers)) as wire:
        wire.world = None  # what it talks to is another process
        yield wire


@pytest.fixture
def ask(broker: Broker) -> Ask:
    """GET, or POST where there is a body."""

    def ask(path: str, **body: Any) -> Any:
        return broker.control.ask("POST" if body else "GET", f"/_admin/{path}", body or None)

    return ask


@pytest.fixture
def topic(broker: Broker, name: str) -> str:
    """A topic of three records in partition 0 and one in partition 1."""
    broker.create_topic(name, partitions=2)
    for partition, value in ((0, "a"), (0, "b"), (0, "c"), (1, "d")):
        broker.produce(name, value, partition=partition)
    return name


@pytest.fixture
def seek(ask: Ask, name: str) -> Ask:
    """Moves the group NAME; its plan as (partition, before, after, remark)."""

    def seek(to: str, **words: Any) -> list[tuple[int, int, int, str]]:
        plan = ask(f"groups/{name}/seek", to=to, **words)["plan"]
        return [(row["partition"], row["before"], row["after"], row["remark"]) for row in plan]

    return seek


# ---- seek


def test_group_goes_where_each_word_says(broker, topic, seek):
    assert seek("latest") == []  # it has committed nothing
    assert seek("latest", topic=topic, dry_run=True) == [(0, -1, 3, ""), (1, -1, 1, "")]
    assert broker.committed(topic) == {}
    assert seek("offset", number=1, topic=topic, partitions=[0]) == [(0, -1, 1, "")]
    assert broker.committed(topic) == {(topic, 0): 1}
    assert seek("shift", number=1) == [(0, 1, 2, "")]
    assert seek("time", number=5, topic=topic, partitions=[1, 1]) == [(1, -1, 0, "")]
    assert seek("shift", number=9) == [(0, 2, 3, "11 is above the end 3"), (1, 0, 1, "9 is above the end 1")]
    assert seek("earliest", topic=topic, partitions=[0]) == [(0, 3, 0, "")]
    late = "no record is as new: the end"
    assert seek("time", number=FOREVER_MS) == [(0, 0, 3, late), (1, 1, 1, late)]
    assert broker.committed(topic) == {(topic, 0): 3, (topic, 1): 1}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"to": "middle"}, '"to" takes earliest, latest, offset, shift, time'),
        ({"to": "offset"}, '"number" goes with offset, shift, time alone'),
        ({"to": "latest", "number": 1}, '"number" goes with offset, shift, time alone'),
        ({"to": "latest", "topic": "none"}, "no such topic: none"),
        ({"to": "latest", "partitions": [0]}, '"partitions" goes with "topic"'),
    ],
)
def test_seek_that_cannot_be_is_refused(seek, body, said):
    with pytest.raises(ControlError, match=said):
        seek(**body)


def test_seek_beyond_the_partitions_or_by_nothing_is_refused(topic, seek):
    with pytest.raises(ControlError, match=f"{topic} has no partition 2, but 0 to 1"):
        seek("latest", topic=topic, partitions=[0, 2])
    with pytest.raises(ControlError, match=f"{topic}-0: nothing is committed"):
        seek("shift", number=1, topic=topic)


def test_group_with_a_member_is_not_moved_and_is_when_it_has_left(topic, wire, seek):
    heartbeat = first_heartbeat(topic, topic)
    assert wire.call(heartbeat, 1).error_code == 0
    with pytest.raises(ControlError, match=f"group {topic} is Stable: stop its members first"):
        seek("latest", topic=topic)
    heartbeat.member_epoch = -1
    assert wire.call(heartbeat, 1).error_code == 0
    assert seek("latest", topic=topic, partitions=[1]) == [(1, -1, 1, "")]


def test_share_group_starts_where_it_is_told(topic, wire, seek):
    heartbeat = ShareGroupHeartbeatRequest(
        group_id=topic, member_id="m" * 22, member_epoch=0, subscribed_topic_names=[topic]
    )
    assert wire.call(heartbeat, 1).error_code == 0
    heartbeat.member_epoch = -1
    assert wire.call(heartbeat, 1).error_code == 0
    assert seek("offset", number=2, topic=topic, partitions=[0])[0][2:] == (2, "")
    assert seek("shift", number=-1, topic=topic, partitions=[0]) == [(0, 2, 1, "")]


# ---- history


def test_history_has_accepted_and_refused_commits_with_the_reason(topic, wire, ask):
    wire.call(commit_request("another", {0: 1}, topic), 9)
    wire.call(commit_request("another", {0: 1}, topic, member_id="x", generation_id_or_member_epoch=3), 9)
    nothing = ask(f"groups/{topic}/history")
    assert (nothing["group"], nothing["has_journal"], nothing["history"]) == (topic, True, [])
    assert nothing["records_seen"] >= 1
    wire.call(commit_request(topic, {0: 2}, topic), 9)
    wire.call(commit_request(topic, {0: 3, 1: 1}, topic, member_id="x", generation_id_or_member_epoch=3), 9)
    found = ask(f"groups/{topic}/history")
    assert [(row["partition"], row["offset"], row["verdict"]) for row in found["history"]] == [
        (1, 1, "UNKNOWN_MEMBER_ID"),
        (0, 3, "UNKNOWN_MEMBER_ID"),
        (0, 2, "accepted"),
    ]
    refused, _, accepted = found["history"]
    assert (refused["member"], refused["epoch"], refused["topic"]) == ("x", 3, topic)
    assert refused["why"] == f"member x sent epoch 3, and group {topic} has no members"
    assert (accepted["member"], accepted["epoch"], accepted["client"], accepted["why"]) == ("", -1, "client", "")
    assert found["records_seen"] == nothing["records_seen"] + 1
    assert ask(f"groups/{topic}/history?limit=1")["history"] == [refused]
    with pytest.raises(ControlError, match='"limit" is a whole number from 1 to 500, not 0'):
        ask(f"groups/{topic}/history?limit=0")


def test_history_tells_which_offsets_were_deleted(broker, topic, seek, ask):
    seek("latest", topic=topic, partitions=[1])
    broker.delete_group(topic)
    assert [(row["partition"], row["offset"], row["verdict"]) for row in ask(f"groups/{topic}/history")["history"]] == [
        (1, -1, "deleted"),
        (1, 1, "accepted"),
    ]


# ---- transactions


def test_transaction_is_listed_and_its_steps_and_its_fenced_zombie_are_told(topic, wire, ask):
    for name in (f"{topic}-2", topic):  # of the other one nothing is told
        zombie, heir = Producer(wire, name, v2=False), Producer(wire, name, v2=False)
        assert zombie.init() == 0
        assert zombie.add({topic: [0]}) == {(topic, 0): 0}
        assert zombie.add({topic: [0, 1]}) == {(topic, 0): 0, (topic, 1): 0}
        assert ask(f"transactions/{name}")["partitions"] == [f"{topic}-0", f"{topic}-1"]
        assert zombie.end() == 0
        assert heir.init() == 0
        assert zombie.end() != 0
    row, _ = ask(f"transactions?filter={topic}")["transactions"]
    assert (row["transactional_id"], row["state"]) == (topic, "Empty")
    assert (row["producer_id"], row["producer_epoch"], row["timeout_ms"]) == (zombie.id, heir.epoch, 60_000)
    told = ask(f"transactions/{topic}")
    assert (told["state"], told["groups"], told["partitions"]) == ("Empty", [], [])
    events = told["events"]
    steps = [(each["what"], each["added"]) for each in events[::-1]]
    begun = [("Empty", []), ("Ongoing", [f"{topic}-0"]), ("Ongoing", [f"{topic}-1"])]
    ended = [("PrepareCommit", []), ("CompleteCommit", []), ("Empty", []), ("PRODUCER_FENCED", [])]
    assert steps == begun + ended
    assert {each["what"]: each["why"] for each in events}["CompleteCommit"] == "all markers are written"
    fenced = events[0]
    assert (fenced["producer_id"], fenced["producer_epoch"], fenced["fault"]) == (zombie.id, zombie.epoch, "")
    assert fenced["why"].startswith("client: EndTxn: ")
    assert ask(f"transactions/{topic}?limit=1")["events"] == [fenced]


def test_transaction_that_is_not_there_is_dead(wire, ask):
    assert Producer(wire, "there").init() == 0
    told = ask("transactions/not-there")
    assert (told["state"], told["producer_id"], told["events"]) == ("Dead", -1, [])
    assert ask("transactions?filter=not-there") == {"offset": 0, "total": 0, "loading": 0, "transactions": []}
