"""State that the log holds is written by replay alone, whatever is asked: by class, not by a list of names."""

from __future__ import annotations

from typing import Any

import pytest
from core_broker import Client, World
from history_kit import History
from hypothesis import given, settings
from hypothesis import strategies as st
from shortcuts_kit import Habit, ask, event
from state_guard import guarded, state_classes
from work.scripts import SCRIPTS

from broker.coordinator.groups.classic.group import ClassicGroup
from broker.coordinator.transactions.machine import TransactionMachine
from broker.coordinator.transactions.transaction import Transaction


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_usual_requests_write_state_by_replay_alone(script: Any) -> None:
    with guarded():
        client = Client(World("os"))
        run = script(client, 3)
        _, request, version = next(run)
        while True:
            client.send(request, version)
            client.world.run()
            reply = client.last_reply()
            client.world.clock.advance(2)
            try:
                _, request, version = run.send(reply)
            except StopIteration:
                return


@pytest.mark.heavy
def test_histories_write_state_by_replay_alone() -> None:
    @settings(max_examples=15)
    @given(st.data())
    def check(data: Any) -> None:
        with guarded():
            habits = [Habit(data) for _ in range(data.draw(st.integers(2, 5)))]
            history = History("os", 1, share_coordinator_state_topic_num_partitions="1")
            ask(history, habits)
            for _ in range(data.draw(st.integers(1, 6))):
                event(history, data, habits)
                ask(history, habits)

    check()


@pytest.mark.parametrize("slot", ["generation_id", "leader"])
def test_write_of_a_handler_is_refused(slot: str) -> None:
    with pytest.raises(AssertionError, match=f"ClassicGroup.{slot} is set outside of replay"), guarded():
        setattr(ClassicGroup("g", 0), slot, "planted")


def test_every_class_of_state_is_guarded() -> None:
    names = {kind.__name__ for kind in state_classes()}
    assert {"ClassicGroup", "ConsumerGroup", "ShareGroup", "StreamsGroup", "Transaction", "Topic", "Producers"} <= names


def test_transaction_is_guarded_once_it_is_replayed() -> None:
    broker = World("memory").broker
    machine = TransactionMachine(0, broker.config, broker.transactions)
    made = Transaction("t", 7, 1000)
    with pytest.raises(AssertionError, match=r"Transaction\.producer_epoch is set outside of replay"), guarded():
        _fill_replay_and_change(made, machine)
    assert made.producer_epoch == 1


def _fill_replay_and_change(made: Transaction, machine: TransactionMachine) -> None:
    made.producer_epoch = 1
    machine.replay_transaction(made)
    made.producer_epoch = 2
