"""What moves the group epoch and the assignment epoch of a consumer group beside subscriptions and topics."""

from __future__ import annotations

from consumer_kit import Groups


def test_assignor_that_most_members_ask_for_is_a_new_epoch_and_assigns_at_once():
    with Groups({"t": 2, "u": 2}) as g:
        a, b = g.joined("a", "b", topics=["t", "u"])
        g.settle([a, b])
        epoch = g.group().group_epoch
        a.beat(server_assignor="uniform")
        assert (g.group().group_epoch, g.describe().assignor_name) == (epoch, "uniform"), "it is the default"
        a.beat(server_assignor="range")
        assert (g.group().group_epoch, g.describe().assignor_name) == (epoch + 1, "range")
        a.beat(server_assignor="range")
        b.beat(server_assignor="range")
        assert g.group().group_epoch == epoch + 1, "one vote more changes nothing"
        g.settle([a, b])
        assert (a.assigned, b.assigned) == ({"t": [0], "u": [0]}, {"t": [1], "u": [1]})
        a.beat(server_assignor="uniform")
        assert g.group().group_epoch == epoch + 2, "a draw: uniform goes first"


def test_group_without_members_has_an_assignment_of_its_epoch_and_the_next_one_does_not_wait():
    with Groups({"t": 4}, group_consumer_assignment_interval_ms="15000") as g:
        a, b = g.member("a"), g.member("b")
        a.join()
        b.join()
        assert g.describe().group_state == "Assigning", "the interval holds the second target up"
        a.leave()
        assert g.group().assignment_epoch < g.group().group_epoch, "one is left"
        b.leave()
        found = g.describe()
        assert (found.group_state, found.assignment_epoch) == ("Empty", found.group_epoch)
        g.restart()
        assert g.describe().assignment_epoch == found.group_epoch
        (c,) = g.joined("c")
        assert (c.epoch, c.assigned) == (found.group_epoch + 1, {"t": [0, 1, 2, 3]})
