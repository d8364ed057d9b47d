"""Names the settings that do nothing: in the log at a start, and to who made the cluster."""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from broker.config.config_values import StartRefusedError
from broker.config.near_names import did_you_mean
from broker.config.refused_keys import AUTHORIZER_KEYS, REFUSED, is_of_listener
from broker.config.settings import BROKER_KEYS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from broker.config.settings import BrokerConfig

logger = logging.getLogger("momus.server")


def warn_of_settings(config: BrokerConfig, given: Mapping[str, str] | None = None) -> None:
    """Log the settings that have no effect here: Kafka's, unknown ones, and data directories after the first.

    given   the settings as they were written, before the data directory was chosen; None: those in `config`.
    """
    props = {**config.props, **config.unknown}
    for key in ("log.dirs", "log.dir"):
        first, comma, others = (props if given is None else given).get(key, "").partition(",")
        if comma:
            logger.warning("%s: only %s is used; %s gets no data", key, first.strip(), others.strip())
    if not props.keys() - {"log.dirs", "flush"}:
        return
    from broker.config.key_effects import set_without_effect  # 0.5 ms

    unknown = _unknown(config)
    for keys, what in (
        (set_without_effect(props), "settings of Kafka that have no effect here"),
        (unknown, "unknown settings, kept but without effect"),
    ):
        if keys:
            logger.warning("%s: %s", what, ", ".join(keys))
    for key in unknown:
        if question := did_you_mean(key, BROKER_KEYS):
            logger.warning("%s is no setting of a broker.%s", key, question)


def check_known(config: BrokerConfig, keys: Collection[str]) -> None:
    """Refuse unknown settings among these keys. Errors: ConfigError."""
    if wrong := [key for key in _unknown(config) if key in keys]:
        raise StartRefusedError(
            ", ".join(wrong),
            " ".join(f"{key} is no setting of a broker.{did_you_mean(key, BROKER_KEYS)}" for key in wrong),
        )


def unknown_settings(config: BrokerConfig) -> list[str]:
    """A sentence for each unknown setting: most likely a name is wrong."""
    return [_sentence(key) for key in _unknown(config)]


@lru_cache(256)
def _sentence(key: str) -> str:
    return f"{key} is no setting of a broker, and has no effect.{did_you_mean(key, BROKER_KEYS)}"


def _unknown(config: BrokerConfig) -> list[str]:
    if not config.unknown:
        return []
    from broker.config.key_effects import WITHOUT_EFFECT  # 0.5 ms

    known = {*WITHOUT_EFFECT, *REFUSED, *AUTHORIZER_KEYS}
    return [key for key in config.unknown if key not in known and not is_of_listener(key)]
