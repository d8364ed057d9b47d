"""The entries of DescribeConfigs: each config with its value, its source and its synonyms."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import dropwhile

from broker.config.config_defs import UNITS, Row, is_internal
from broker.config.config_values import TYPE_IDS, format_value
from broker.config.settings import BROKER_KEYS, GROUP_KEYS, TOPIC_KEYS, BrokerConfig
from protocol.messages.configs import DescribeConfigsResourceResult, DescribeConfigsSynonym

TOPIC_CONFIG, NODE_CONFIG, ALL_NODES_CONFIG, STATIC_CONFIG, DEFAULT_CONFIG = 1, 2, 3, 4, 5
LOGGER_CONFIG, GROUP_CONFIG = 6, 8  # sources, by Kafka's numbers

LEVELS = {"TRACE": 5, "DEBUG": 10, "INFO": 20, "WARN": 30, "ERROR": 40, "FATAL": 50}
_IN_UNITS = {
    key: tuple(name for name, _ in names)
    for names in UNITS.values()
    for key, _ in names
    if key != "log.flush.scheduler.interval.ms"  # a default of the other key, not another unit
}
Source = tuple[str, "str | None", int]  # key, value, source


class Detail:
    """The parts of an entry that the client asks for."""

    __slots__ = ("documentation", "keys", "synonyms")

    def __init__(self, keys: Iterable[str] | None, synonyms: bool, documentation: bool) -> None:
        self.keys = frozenset(keys or ())  # empty: all of them
        self.synonyms = synonyms
        self.documentation = documentation

    def wants(self, key: str) -> bool:
        """Whether a setting was asked for."""
        return not self.keys or key in self.keys


def broker_sources(config: BrokerConfig, key: str, node: str) -> list[Source]:
    """The possible sources of a broker key's value, the one in force first."""
    names = _IN_UNITS.get(key, (key,))
    places: tuple[tuple[Mapping[str, str | None], int], ...] = (
        ({**config.dynamic.get(node, {})}, NODE_CONFIG),
        ({**config.dynamic.get("", {})}, ALL_NODES_CONFIG),
        ({**config.props, **config.unknown}, STATIC_CONFIG),
        ({name: BROKER_KEYS[name][2] for name in names if name in BROKER_KEYS}, DEFAULT_CONFIG),
    )
    found = [(name, texts[name], source) for texts, source in places for name in names if texts.get(name) is not None]
    return list(dropwhile(lambda entry: entry[0] != key, found))


def source_and_value(config: BrokerConfig, configs: Mapping[str, str]) -> Iterator[tuple[str, int, str | None]]:
    """Each topic key with its source and value for a topic with these configs."""
    for row in TOPIC_KEYS.values():
        if not is_internal(row[0]):
            sources = _topic_sources(config, row, configs, "")
            source = sources[0][2] if sources else DEFAULT_CONFIG
            yield row[0], source, format_value(config.topic_value(row[0], configs))


def _topic_sources(config: BrokerConfig, row: Row, configs: Mapping[str, str], node: str) -> list[Source]:
    own = [(row[0], configs[row[0]], TOPIC_CONFIG)] if row[0] in configs else []
    return own + (broker_sources(config, row[4], node) if row[4] else [])


def topic_entries(
    config: BrokerConfig, configs: Mapping[str, str], node: str, detail: Detail
) -> list[DescribeConfigsResourceResult]:
    """All public topic keys, and the internal ones that are set."""
    return [
        _entry(
            row,
            format_value(config.topic_value(row[0], configs)),
            _topic_sources(config, row, configs, node),
            detail,
        )
        for row in TOPIC_KEYS.values()
        if detail.wants(row[0]) and (row[0] in configs or not is_internal(row[0]))
    ]


def group_entries(
    config: BrokerConfig, configs: Mapping[str, str], node: str, detail: Detail
) -> list[DescribeConfigsResourceResult]:
    """All public group keys, and the internal ones that are set."""
    entries = []
    for row in GROUP_KEYS.values():
        if not detail.wants(row[0]) or (is_internal(row[0]) and row[0] not in configs):
            continue
        sources: list[Source] = [(row[0], configs[row[0]], GROUP_CONFIG)] if row[0] in configs else []
        sources += broker_sources(config, row[4], node) if row[4] else [(row[0], row[2], DEFAULT_CONFIG)]
        entries.append(_entry(row, format_value(config.group_value(row[0], configs)), sources, detail))
    return entries


def node_entries(config: BrokerConfig, node: str, detail: Detail) -> list[DescribeConfigsResourceResult]:
    """All public broker keys of one node, and internal and unknown ones that were set."""
    entries = []
    for key, row in BROKER_KEYS.items():
        if detail.wants(key):
            sources = broker_sources(config, key, node)
            if is_internal(key) and sources[0][2] == DEFAULT_CONFIG:
                continue
            dynamic = sources and sources[0][2] in (NODE_CONFIG, ALL_NODES_CONFIG)
            value = sources[0][1] if dynamic else format_value(config.value(key))
            entries.append(_entry(row, node if key in ("node.id", "broker.id") else value, sources, detail, not row[4]))
    for key in {**config.unknown, **config.dynamic.get("", {}), **config.dynamic.get(node, {})}:
        if key not in BROKER_KEYS and detail.wants(key):
            entries.append(_unknown_entry(key, broker_sources(config, key, node), detail))
    return entries


def all_nodes_entries(config: BrokerConfig, detail: Detail) -> list[DescribeConfigsResourceResult]:
    """The keys set dynamically for all nodes."""
    entries = []
    for key, text in config.dynamic.get("", {}).items():
        if detail.wants(key):
            sources: list[Source] = [(key, text, ALL_NODES_CONFIG)]
            row = BROKER_KEYS.get(key)
            entries.append(
                _entry(row, text, sources, detail, not row[4]) if row else _unknown_entry(key, sources, detail)
            )
    return entries


def _unknown_entry(key: str, sources: list[Source], detail: Detail) -> DescribeConfigsResourceResult:
    """An unknown key. It may be a secret, so its value is left out."""
    hidden: list[Source] = [(name, None, source) for name, _, source in sources]
    row: Row = (key, "", None, None, "", "")
    entry = _entry(row, None, hidden, detail, True)
    entry.is_sensitive = True
    return entry


def _entry(
    row: Row, value: str | None, sources: list[Source], detail: Detail, read_only: bool = False
) -> DescribeConfigsResourceResult:
    synonyms = sources if detail.synonyms else []
    is_secret = row[1] == "PASSWORD"
    return DescribeConfigsResourceResult(
        name=row[0],
        value=None if is_secret else value,
        read_only=read_only,
        config_source=sources[0][2] if sources else DEFAULT_CONFIG,
        is_sensitive=is_secret,
        synonyms=[
            DescribeConfigsSynonym(name=name, value=None if is_secret else text, source=source)
            for name, text, source in synonyms
        ],
        config_type=TYPE_IDS.get(row[1], 0),
        documentation=row[5] if detail.documentation else None,
    )


# -- loggers -------------------------------------------------------------------------------------------------


def logger_named(name: str) -> logging.Logger | None:
    """The logger of a name; "root" is the root of momus' loggers."""
    if name == "root":
        return logging.getLogger("momus")
    known = logging.Logger.manager.loggerDict
    return logging.getLogger(name) if name.startswith("momus.") and name in known else None


def logger_entries(detail: Detail) -> list[DescribeConfigsResourceResult]:
    """All loggers with their levels."""
    names = ["root", *sorted(n for n in logging.Logger.manager.loggerDict if n.startswith("momus."))]
    entries = []
    for name in names:
        logger = logger_named(name)
        if logger is not None and detail.wants(name):
            level = logger.getEffectiveLevel()
            word = max((number, word) for word, number in LEVELS.items() if number <= max(level, 5))[1]
            entries.append(
                DescribeConfigsResourceResult(
                    name=name, value=word, config_source=LOGGER_CONFIG, read_only=False, is_sensitive=False
                )
            )
    return entries
