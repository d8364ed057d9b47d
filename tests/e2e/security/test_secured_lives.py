"""Users and authorities over lives: of several clusters, of forks, after a reset, a restart and a snapshot."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer
from secured_kit import LIMIT_S, USERS

from momus import Broker
from momus.control import ControlError


def test_clusters_of_a_process_have_users_and_certificates_of_their_own(make, ask):
    one, two = make("sasl_ssl"), make("sasl_ssl")
    one.users.add("carol", "pencil")
    mine = one.client_config("confluent", user="carol")
    assert ask("confluent", mine, 60_000) == ""
    assert "verify failed" in ask("confluent", {**mine, "bootstrap.servers": two.bootstrap_servers})
    trusted = {**two.client_config("confluent"), "sasl.username": "carol", "sasl.password": "pencil"}
    assert "invalid credentials" in ask("confluent", trusted)


def test_fork_has_the_users_and_the_authority_and_then_its_own(make, ask):
    cluster = make("sasl_ssl")
    before = cluster.client_config("confluent")
    with cluster.fork() as fork:
        assert ask("confluent", {**before, "bootstrap.servers": fork.bootstrap_servers}, 60_000) == ""
        fork.users.add("carol", "ink")
        assert ask("confluent", fork.client_config("confluent", user="carol"), 60_000) == ""
        assert cluster.users.list() == ["alice", "bob"]


def test_users_and_authority_survive_a_reset_and_a_restart():
    with Broker(security="sasl_ssl", users=USERS) as broker:
        settings = broker.client_config("confluent")
        for again in (broker.reset, broker.restart, broker.kill):
            again()
            broker.start()
            producer = Producer(settings)
            producer.produce("t", b"x")
            assert producer.flush(LIMIT_S) == 0


@pytest.mark.parametrize("word", ["sasl_plaintext", "mtls"])
@pytest.mark.parametrize("end", [Broker.kill, Broker.stop])
def test_users_are_those_of_the_process_before(ask, word, end):
    with Broker(security=word, users=USERS) as broker:
        broker.users.add("carol", "pencil")
        broker.users.add("bob", "ink")
        broker.users.remove("alice")
        end(broker)
        broker.start()
        assert broker.users.list() == ["bob", "carol"]
        for name in ("bob", "carol"):
            assert ask("confluent", broker.client_config("confluent", user=name), 60_000) == ""
        with pytest.raises(ControlError, match="no such user"):
            broker.client_config("confluent", user="alice")


def test_last_user_that_was_removed_stays_away():
    with Broker(security="sasl_plaintext") as broker:
        (made,) = broker.users.list()
        broker.users.remove(made)
        broker.restart()
        assert broker.users.list() == []
        with pytest.raises(ControlError, match="there are none"):
            broker.client_config("confluent")
        with broker.create_cluster(security="sasl_plaintext") as cluster:
            assert cluster.users.list() == [made]


def test_users_are_those_of_the_snapshot_after_a_restart(ask):
    with Broker(security="sasl_plaintext", users=USERS) as broker:
        broker.users.add("bob", "before")
        snapshot = broker.snapshot()
        broker.users.add("bob", "after")
        broker.users.add("carol", "pencil")
        broker.restore(snapshot)
        broker.restart()
        assert broker.users.list() == ["alice", "bob"]
        assert ask("confluent", broker.client_config("confluent", user="bob"), 60_000) == ""
