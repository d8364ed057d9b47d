"""Removes delegation tokens that have expired, as Kafka does each delegation.token.expiry.check.interval.ms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from protocol.messages.metadata_records import RemoveDelegationTokenRecord, encode_record

if TYPE_CHECKING:
    from broker.coordinator.runtime import Shard
    from broker.turn.turn import Turn

AT_ONCE = 100  # tokens removed by a batch


def remove_expired_tokens(turn: Turn, metadata_shard: Shard) -> Iterator[None]:
    """One look at all tokens, a batch a step."""
    from broker.security.delegation_tokens import is_expired  # 5 ms: few brokers have tokens

    machine = metadata_shard.machine
    gone = [each.token_id for each in machine.clients.tokens.values() if is_expired(each, turn.now_ms)]
    for at in range(0, len(gone), AT_ONCE):
        turn.begin()
        known = [each for each in gone[at : at + AT_ONCE] if each in metadata_shard.machine.clients.tokens]
        records = [(None, encode_record(RemoveDelegationTokenRecord(token_id=each), 0)) for each in known]
        if records:
            metadata_shard.append(records, turn.now_ms)
            turn.touch(metadata_shard.flush_state)
        yield
