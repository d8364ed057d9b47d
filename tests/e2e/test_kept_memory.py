"""Large requests that follow each other use the same memory; when no more come, the kernel has it back."""

from __future__ import annotations

import platform
import random
from pathlib import Path

import pytest
from clientwork import until
from core_requests import produce_request
from test_large_fetch import resident_bytes
from wire_peer import Peer, make_topic

from broker.shell.kept_memory import IDLE_S

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these limits"),
]

BATCH_BYTES = 1_000_000
PAGES = BATCH_BYTES // 4096


def new_pages(pid: int) -> int:
    """Pages that the kernel has given to a process so far."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def test_large_requests_use_memory_again_and_give_it_back(broker_factory):
    broker = broker_factory(flush="os")
    value = random.Random(7).randbytes(BATCH_BYTES - 200)
    with Peer(broker.bootstrap_servers) as peer:
        make_topic(peer, "t", 1)

        def produce(count: int) -> None:
            for _ in range(count):
                answer = peer.call(produce_request("t", 0, value), 9)
                assert answer.responses[0].partition_responses[0].error_code == 0

        at_first = resident_bytes(broker.pid)
        produce(10)
        before = new_pages(broker.pid)
        produce(30)
        assert new_pages(broker.pid) - before < 30 * PAGES // 4
        assert resident_bytes(broker.pid) > at_first + BATCH_BYTES

        until(lambda: resident_bytes(broker.pid) < at_first + BATCH_BYTES, "the memory is given back", 10 * IDLE_S)
        before = new_pages(broker.pid)
        produce(10)  # kept anew
        produce(30)
        assert new_pages(broker.pid) - before < 40 * PAGES
