"""Apache Kafka's own Java clients, the newest ones and those of 3.9: the checks of src/, and kill -9."""

from __future__ import annotations

import subprocess
import threading
from contextlib import contextmanager

import pytest
from clientwork import LEDGER_PARTITIONS, commit_through_kills
from java_checks import JVM, results_of_all_checks

pytestmark = pytest.mark.xdist_group("java")


def failures_of_all_checks(classes: str, one: str, three: str) -> list[str]:
    results = results_of_all_checks(classes, one, three)
    return [each for each in results.values() if each.startswith("FAIL")]


def test_every_check_of_the_newest_java_clients_passes(client_classes, shared_broker, trio):
    failures = failures_of_all_checks(client_classes, shared_broker.bootstrap_servers, trio.bootstrap_servers)
    assert not failures, "\n".join(failures)


def test_every_check_of_the_java_clients_of_3_9_passes(old_client_classes, broker_factory):
    prompt = {"group.initial.rebalance.delay.ms": 0}
    one, three = broker_factory(config=prompt), broker_factory(config=prompt, brokers=3)
    failures = failures_of_all_checks(old_client_classes, one.bootstrap_servers, three.bootstrap_servers)
    assert not failures, "\n".join(failures)


def test_commits_survive_kill_9_whole_and_none_is_invented(client_classes, broker_factory, crash_rounds):
    broker = broker_factory()
    command = [*JVM, "-cp", client_classes, "Ledger", broker.bootstrap_servers, "g", "t", str(LEDGER_PARTITIONS)]
    one_at_a_time = threading.Lock()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as client:

        def ask(line: str) -> str:
            with one_at_a_time:
                print(line, file=client.stdin, flush=True)
                return client.stdout.readline().strip()

        def commit(offsets: dict[int, int]) -> None:
            answer = ask(" ".join(f"{partition}={at}" for partition, at in offsets.items()))
            if answer != "ok":
                raise RuntimeError(answer)

        def committed() -> dict[int, int]:
            return {int(partition): int(at) for partition, at in (each.split("=") for each in ask("").split())}

        @contextmanager
        def committer():
            yield commit

        try:
            commit_through_kills(broker, committer, committed, crash_rounds)
        finally:
            client.stdin.close()
