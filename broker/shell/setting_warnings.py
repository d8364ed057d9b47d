"""Names, once at a start, the settings that do not do what they say."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.config.near_names import did_you_mean
from broker.config.settings import BROKER_KEYS

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

logger = logging.getLogger("momus.server")


def warn_of_settings(config: BrokerConfig) -> None:
    """Log the settings that have no effect here: security that is not there, the rest of Kafka's, unknown ones."""
    props = {**config.props, **config.unknown}
    if not props.keys() - {"log.dirs", "flush"}:
        return
    from broker.config.key_effects import SECURITY, WITHOUT_EFFECT, set_security, set_without_effect  # 0.5 ms

    unknown = [key for key in config.unknown if key not in WITHOUT_EFFECT and key not in SECURITY]
    for keys, what in (
        (set_security(props), "settings that ask for security, which this broker does not have"),
        (set_without_effect(props), "settings of Kafka that have no effect here"),
        (unknown, "unknown settings, kept but without effect"),
    ):
        if keys:
            logger.warning("%s: %s", what, ", ".join(keys))
    for key in unknown:
        if question := did_you_mean(key, BROKER_KEYS):
            logger.warning("%s is no setting of a broker.%s", key, question)
