"""Topic subscriptions by regular expression (patterns.py).

Expressions are resolved to topic names between the turns of the event loop, never inside a heartbeat: until then they
stand for no topics. The result is logged, so that it survives a restart. Expressions are resolved again if the group
has an unresolved one, if topics were created since, or if group.consumer.regex.refresh.interval.ms has passed; never
twice within 10 seconds.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from broker.cluster.acls import DESCRIBE, TOPIC
from broker.coordinator import patterns
from broker.coordinator.groups.common.metadata_hash import metadata_hash
from broker.coordinator.groups.consumer.records import ResolvedRegex, group_record, regex_record, regex_tombstone
from broker.coordinator.patterns import STEPS_A_SLICE, Pattern
from broker.turn.decision import Record
from protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from broker.cluster.metadata import ClusterMetadata
    from broker.coordinator.groups.consumer.group import ConsumerGroup, Resolution
    from broker.coordinator.groups.consumer.member import MemberMetadata
    from broker.coordinator.groups.consumer.target import Draft

logger = logging.getLogger("momus.groups")

LEAST_INTERVAL_MS: Final = 10_000

NO_CHANGE, UPDATED, UPDATED_AND_RESOLVED = 0, 1, 2


def compiled(regex: str) -> Pattern:
    """The compiled expression. Errors: INVALID_REGULAR_EXPRESSION."""
    try:
        return patterns.compiled(regex)
    except patterns.PatternError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def changed(group: ConsumerGroup, old: MemberMetadata, new: MemberMetadata, records: list[Record]) -> int:
    """How a heartbeat changes the member's expression.

    | before | now                                | result               |
    |--------|------------------------------------|----------------------|
    | any    | the same                           | NO_CHANGE            |
    | any    | one that no member has             | UPDATED              |
    | any    | another member's, not resolved yet | UPDATED              |
    | any    | another member's, resolved         | UPDATED_AND_RESOLVED |
    | one    | none                               | UPDATED_AND_RESOLVED |

    Shape:   a tombstone of the expression before, if no other member has it.
    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    before, now = old.topic_regex, new.topic_regex
    if before == now:
        return NO_CHANGE
    if now and not group.members_with_regex(now):
        compiled(now)
    if before and group.members_with_regex(before) == 1:
        records.append(regex_tombstone(group.group_id, before))
    if not now:
        return UPDATED_AND_RESOLVED
    return UPDATED_AND_RESOLVED if group.members_with_regex(now) and now in group.regexes else UPDATED


def is_due(group: ConsumerGroup, draft: Draft, metadata: ClusterMetadata, now_ms: int, interval_ms: int) -> bool:
    """Whether the expressions have to be resolved now: the rule is in the module's docstring."""
    if group.resolving is not None:
        return False
    wanted = {regex for _, regex in draft.subscriptions if regex}
    if not wanted:
        return False
    last_ms = min((r.timestamp_ms for r in group.regexes.values()), default=None)
    if last_ms is not None and last_ms <= now_ms <= last_ms + LEAST_INTERVAL_MS:
        return False
    return (
        last_ms is None
        or not wanted <= group.regexes.keys()
        or group.topics_made_seen < metadata.topics_made
        or not last_ms <= now_ms <= last_ms + interval_ms
    )


def resolve(regexes: Iterable[str], names: Iterable[str], asker: Any = None) -> Resolution:
    """The topics whose whole name each expression matches, and which `asker` may describe; None: all.

    As in Kafka other members with the same expression get these topics as well. An expression that cannot be compiled
    (another broker logged it) is reported, and matches nothing, as in Kafka.
    """
    found_by = {regex: set[str]() for regex in regexes}
    wanted: list[tuple[Pattern, set[str]]] = []
    for regex, found in found_by.items():
        try:
            wanted.append((compiled(regex), found))
        except KafkaError as error:
            logger.error("a subscription to `%s` is ignored: %s", regex, error.message)
    steps = 0
    for name in names:
        for pattern, found in wanted:
            steps += pattern.steps(name)
            if steps > STEPS_A_SLICE:
                steps = pattern.steps(name)
                yield
            if pattern.matches(name) and (asker is None or asker.may(DESCRIBE, TOPIC, name, log=False)):
                found.add(name)
    return {regex: frozenset(found) for regex, found in found_by.items()}


def resolution_records(
    group: ConsumerGroup, found: dict[str, frozenset[str]], metadata: ClusterMetadata, now_ms: int
) -> list[Record]:
    """The records of resolved expressions that are still in use, and a new group epoch if the topics changed."""
    records: list[Record] = []
    topics = dict(group.regexes)
    has_changed = False
    for regex, names in found.items():
        if not group.members_with_regex(regex):
            continue
        before = group.regexes.get(regex)
        has_changed = has_changed or (before.topics if before is not None else frozenset()) != names
        topics[regex] = ResolvedRegex(names, metadata.version, now_ms)
        records.append(regex_record(group.group_id, regex, topics[regex]))
    names = frozenset().union(
        *(names | (topics[regex].topics if regex in topics else frozenset()) for names, regex in group.subscriptions)
    )
    hash_ = metadata_hash(names, metadata)
    if has_changed or hash_ != group.metadata_hash:
        records.append(group_record(group.group_id, group.group_epoch + 1, hash_))
    return records
