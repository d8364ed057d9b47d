"""The setting `authorizer.class.name`: there is one authorizer, or none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.config.config_values import ConfigError

if TYPE_CHECKING:
    from broker.config.settings import BrokerConfig

CLASS: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def is_authorizer_set(config: BrokerConfig) -> bool:
    """Whether there is an authorizer. Errors: ConfigError: one that is not here."""
    name = str(config.value("authorizer.class.name") or "")
    if name not in ("", CLASS):
        raise ConfigError("authorizer.class.name", name, f"is not here: set it to {CLASS}, or leave it out")
    return bool(name)
