"""Checks before configs are set: for topics, groups and brokers, also between several values."""

from __future__ import annotations

import re
from collections.abc import Mapping

from broker.config.config_values import ConfigError, parse_value
from broker.config.near_names import did_you_mean
from broker.config.refused_keys import is_of_listener, refusals
from broker.config.settings import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS, BrokerConfig
from broker.coordinator.share.dead_letters.addressee import TOPIC_NAME
from protocol.errors import ErrorCode, KafkaError

LONGEST_VALUE = 32767
RACK_TAGS = "streams.rack.aware.assignment.tags"
STREAMS_BOUNDS = (  # key, the broker's lowest and highest value
    ("streams.num.standby.replicas", None, "group.streams.max.standby.replicas"),
    ("streams.num.warmup.replicas", None, "group.streams.max.warmup.replicas"),
    ("streams.task.offset.interval.ms", "group.streams.min.task.offset.interval.ms", None),
)
GROUP_KINDS = ("consumer", "streams", "share")
SHARE_BOUNDS = ("delivery.count.limit", "partition.max.record.locks", "record.lock.duration.ms")


def check_topic_configs(config: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Refuse invalid topic configs. Errors: INVALID_CONFIG."""
    for key, text in configs.items():
        if key not in TOPIC_KEYS:
            raise _invalid(f"Unknown topic config name: {key}{_question(key, TOPIC_KEYS)}")
        _check_value(TOPIC_KEYS[key], key, text)
    least = config.topic_value("min.compaction.lag.ms", configs)
    most = config.topic_value("max.compaction.lag.ms", configs)
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        raise _invalid(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})"
        )
    if config.topic_value("remote.storage.enable", configs):
        raise _invalid("Tiered storage is not available: a topic cannot be configured with it.")


def check_group_configs(config: BrokerConfig, configs: Mapping[str, str]) -> None:
    """Refuse invalid group configs. Errors: INVALID_CONFIG."""
    for key, text in configs.items():
        if key not in GROUP_KEYS:
            raise _invalid(f"Unknown group config name: {key}{_question(key, GROUP_KEYS)}")
        _check_value(GROUP_KEYS[key], key, text)
    for kind in GROUP_KINDS:
        for what in ("heartbeat.interval.ms", "session.timeout.ms", "assignment.interval.ms"):
            key = f"{kind}.{what}"
            if key in configs:
                _check_between(config, configs, key, f"group.{kind}.min.{what}", f"group.{kind}.max.{what}")
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _number(config, configs, session) <= _number(config, configs, heartbeat):
            raise _invalid(f"{session} must be greater than {heartbeat}")
    for what in SHARE_BOUNDS:
        if f"share.{what}" in configs:
            _check_between(config, configs, f"share.{what}", f"group.share.min.{what}", f"group.share.max.{what}")
    if configs.get(TOPIC_NAME, "").startswith("__"):
        raise _invalid(f"{TOPIC_NAME}: DLQ topic name must not start with '__'")
    for key, low_key, high_key in STREAMS_BOUNDS:
        if key in configs:
            _check_between(config, configs, key, low_key, high_key)
    _check_assignor(config, configs.get("streams.assignor.name"))
    tags = re.split(r"\s*,\s*", configs.get(RACK_TAGS, "").strip())
    if len(set(tags)) < len(tags):
        raise _invalid(f"{RACK_TAGS} must not contain duplicate tag keys.")


def check_broker_configs(configs: Mapping[str, str]) -> None:
    """Refuse keys that cannot change while the broker runs, or that it cannot obey.

    Errors: INVALID_REQUEST, as in Kafka for brokers.

    Unknown keys are kept, as in Kafka, where plugins use them.
    """
    for key, advice in refusals(configs):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{key} cannot be obeyed: {advice}")
    fixed = [key for key in configs if is_of_listener(key) or (key in BROKER_KEYS and not BROKER_KEYS[key][4])]
    if fixed:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]")
    for key, text in configs.items():
        if len(text) > LONGEST_VALUE:
            raise _too_long()
        if key in BROKER_KEYS:
            row = BROKER_KEYS[key]
            try:
                parse_value(key, row[1], row[3], text)
            except ConfigError as error:
                raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None


def _question(key: str, known: Mapping[str, object]) -> str:
    question = did_you_mean(key, known)
    return f".{question}" if question else ""


def _check_value(row: tuple[object, ...], key: str, text: str) -> None:
    if len(text) > LONGEST_VALUE:
        raise _too_long()
    try:
        parse_value(key, row[1], row[3], text)  # type: ignore[arg-type]  # columns of a Row
    except ConfigError as error:
        raise _invalid(str(error)) from None


def _check_assignor(config: BrokerConfig, name: str | None) -> None:
    known = config.group_streams_assignors
    if name is not None and name.strip() not in known:
        raise _invalid(
            f"streams.assignor.name '{name.strip()}' is not a registered task assignor. Registered assignors are: "
            f"[{', '.join(known)}]."
        )


def _check_between(
    config: BrokerConfig, configs: Mapping[str, str], key: str, low_key: str | None, high_key: str | None
) -> None:
    value = _number(config, configs, key)
    lowest = config.value(low_key) if low_key else value
    highest = config.value(high_key) if high_key else value
    assert isinstance(lowest, int)
    assert isinstance(highest, int)
    if lowest <= value <= highest:
        return
    if low_key and high_key:
        raise _invalid(f"{key} must be in the range {lowest} to {highest} inclusive.")
    if low_key:
        raise _invalid(f"{key} must be greater than or equal to {lowest}")
    raise _invalid(f"{key} must be less than or equal to {highest}")


def _number(config: BrokerConfig, configs: Mapping[str, str], key: str) -> int:
    value = config.group_value(key, configs)
    assert isinstance(value, int)
    return value


def _too_long() -> KafkaError:
    return _invalid(f"A configuration value has at most {LONGEST_VALUE} characters.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, message)
