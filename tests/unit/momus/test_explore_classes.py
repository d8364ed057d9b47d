"""Requests that are alike are one class, of which some are taken: first, last, second, middle, more of what lasts."""

from __future__ import annotations

from momus.explore.classes import find, pattern

NOTHING = {
    "cluster": 1,
    "client_id": "app",
    "groups": [],
    "topics": [],
    "transactional_ids": [],
    "member": "",
    "producer_id": -1,
    "known": True,
}


def row(api, **words):
    return {**NOTHING, "api": api, **words}


def commit(**words):
    return row("OffsetCommit", groups=["g"], topics=["t"], member="m", **words)


def taken(rows, **words):
    return [(each.api, each.number, each.position) for each in find(rows, **words).requests]


def test_four_of_many_alike_are_taken():
    join = row("JoinGroup", groups=["g"], member="m")
    assert taken([join] * 10)[1:] == [  # the first is in another state
        ("JoinGroup", 2, "first"),
        ("JoinGroup", 3, "second"),
        ("JoinGroup", 6, "middle"),
        ("JoinGroup", 10, "last"),
    ]
    assert taken([join]) == [("JoinGroup", 1, "first")]


def test_ten_of_many_alike_that_last_are_taken():
    assert [each[1] for each in taken([commit()] * 2)] == [1, 2]
    nine = taken([commit()] * 9)
    assert [each[1] for each in nine] == list(range(1, 10))
    assert [each[2] for each in nine] == ["first", "second", *["other"] * 2, "middle", *["other"] * 3, "last"]
    assert [each[1] for each in taken([commit()] * 46)] == [1, 2, 6, 11, 16, 21, 24, 26, 31, 36, 41, 46]


def test_polls_are_looked_at_once_in_each_state_of_their_group():
    beat = row("Heartbeat", groups=["g"], member="m")
    join, sync = row("JoinGroup", groups=["g"]), row("SyncGroup", groups=["g"], member="m")
    rows = [join, sync, beat, beat, beat, join, beat, sync, beat]
    assert [each for each in taken(rows) if each[0] == "Heartbeat"] == [
        ("Heartbeat", 1, "first"),  # stable
        ("Heartbeat", 4, "first"),  # while it joins
    ]


def test_requests_are_counted_by_what_tells_them_apart():
    rows = [commit(), {**commit(), "groups": ["h"]}, commit(), row("Fetch", topics=["t"])]
    found = find(rows).requests
    assert [(each.names, each.number) for each in found if each.api == "OffsetCommit"] == [
        ((("group", "g"),), 1),
        ((("group", "g"),), 2),
        ((("group", "h"),), 1),
    ]
    assert found[-1].names == ()  # one client fetches: nothing need tell its requests from others


def test_two_clients_of_one_api_are_told_apart_and_drawn_names_are_patterns():
    rows = [row("Metadata", client_id="app"), row("Metadata", client_id="app-7f3a")]
    found = find(rows, [{**NOTHING, "client_id": each} for each in ("app", "app-11ce")]).requests
    assert [each.names for each in found] == [(("client_id", "app"),), (("client_id", "app-*"),)]
    assert pattern("producer-1", {"producer-1"}) == "producer-1"


def test_names_that_another_run_has_not_are_patterns_and_count_whatever_fits_them():
    def run(topic, group):
        return [
            row("Produce", topics=["audit-2"]),
            row("Produce", topics=[f"orders-{topic}"]),
            row("Produce", topics=[f"orders-{topic}", "audit-2"]),
            row("Produce", topics=["orders-all"]),
            {**commit(), "groups": [group]},
        ]

    found = find(run("3f9a", "0c21-77"), run("be07", "a1d4-e3")).requests
    assert [(each.api, each.names, each.number) for each in found] == [
        ("Produce", (("topic", "audit-2"),), 1),
        ("Produce", (("topic", "orders-*"),), 1),
        ("Produce", (), 3),
        ("Produce", (("topic", "orders-all"),), 1),
        ("OffsetCommit", (("group", "*"),), 1),
    ]


def test_names_are_left_out_where_a_request_was_too_large_to_be_known():
    large = row("Produce", known=False)
    found = find([row("Produce", topics=["t"]), large, row("Produce", topics=["t"])]).requests
    assert [(each.names, each.number) for each in found] == [((), 1), ((), 2), ((), 3)]


def test_transaction_is_open_between_its_first_request_and_its_end():
    names = {"transactional_ids": ["x"]}
    rows = [row("InitProducerId", **names), row("AddPartitionsToTxn", **names), row("EndTxn", **names)]
    assert [each.is_open for each in find(rows).requests] == [False, True, True]
    assert [each.is_open for each in find([*rows, row("EndTxn", **names)]).requests][-1] is False


def test_all_are_taken_if_all_are_asked_for():
    assert len(find([commit()] * 10, all_of_them=True).requests) == 10
