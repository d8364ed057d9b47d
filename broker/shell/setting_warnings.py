"""Names, once at a start, the settings that do nothing."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.config.near_names import did_you_mean
from broker.config.refused_keys import AUTHORIZER_KEYS, REFUSED, is_of_listener
from broker.config.settings import BROKER_KEYS

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

logger = logging.getLogger("momus.server")


def warn_of_settings(config: BrokerConfig) -> None:
    """Log the settings that have no effect here: Kafka's, and unknown ones."""
    props = {**config.props, **config.unknown}
    if not props.keys() - {"log.dirs", "flush"}:
        return
    from broker.config.key_effects import WITHOUT_EFFECT, set_without_effect  # 0.5 ms

    known = {*WITHOUT_EFFECT, *REFUSED, *AUTHORIZER_KEYS}
    unknown = [key for key in config.unknown if key not in known and not is_of_listener(key)]
    for keys, what in (
        (set_without_effect(props), "settings of Kafka that have no effect here"),
        (unknown, "unknown settings, kept but without effect"),
    ):
        if keys:
            logger.warning("%s: %s", what, ", ".join(keys))
    for key in unknown:
        if question := did_you_mean(key, BROKER_KEYS):
            logger.warning("%s is no setting of a broker.%s", key, question)
