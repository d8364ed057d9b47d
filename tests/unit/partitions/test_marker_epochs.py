"""The epochs of markers and of unknown producers: which are stale."""

from __future__ import annotations

import pytest

from broker.partitions.producers import Producers
from protocol.errors import ErrorCode, KafkaError

LAST_EPOCH = 2**15 - 1


@pytest.mark.parametrize("epoch", [0, LAST_EPOCH - 1])
def test_marker_with_the_epoch_of_an_open_transaction_is_stale(epoch):
    producers = Producers()
    producers.replay(7, epoch, 0, 0, 0, 0, 1, transactional=True)
    with pytest.raises(KafkaError) as refused:
        producers.check_marker(7, epoch, 0, 2)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    producers.check_marker(7, epoch, 0, 1)
    producers.check_marker(7, epoch + 1, 0, 2)


def test_marker_with_the_last_epoch_ends_a_transaction_of_that_epoch():
    producers = Producers()
    producers.replay(7, LAST_EPOCH, 0, 0, 0, 0, 1, transactional=True)
    producers.check_marker(7, LAST_EPOCH, 0, 2)


@pytest.mark.parametrize("version", [0, 2])
def test_unknown_producer_has_epochs_of_minus_1(version):
    producers = Producers()
    producers.check_marker(7, -1, -1, version)
    assert producers.decide(7, -1, 0, 0) is None
    with pytest.raises(KafkaError) as refused:
        producers.check_marker(7, -2, 0, version)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
    with pytest.raises(KafkaError) as refused:
        producers.check_marker(7, 0, -2, version)
    assert refused.value.code == ErrorCode.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(KafkaError) as refused:
        producers.decide(7, -2, 0, 0)
    assert refused.value.code == ErrorCode.INVALID_PRODUCER_EPOCH
