"""What Kafka's settings say of one listener: keys with its prefix first, then those without.

`listener.name.NAME.MECHANISM.KEY` comes before `listener.name.NAME.KEY`, and that before `KEY`.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from broker.config.config_values import ConfigError, Value, format_value, parse_value
from broker.config.settings import BROKER_KEYS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.settings import BrokerConfig, Logins

PLAIN, SCRAM_256, SCRAM_512, OAUTHBEARER = "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"
SCRAM: Final[Mapping[str, int]] = {SCRAM_256: 1, SCRAM_512: 2}  # with the number in Kafka's records
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER)
INSTALL: Final = "pip install 'momus[security]'"


class ListenerSettings:
    """The settings of one listener."""

    def __init__(self, config: BrokerConfig, name: str) -> None:
        self.name = name
        self._config = config
        self._texts = {**config.unknown, **config.props}
        self._prefix = f"listener.name.{name.lower()}."

    def value(self, key: str, mechanism: str = "") -> Value:
        """A value of this listener, or of a mechanism of it. Errors: ConfigError."""
        for prefix in (f"{self._prefix}{mechanism.lower()}." if mechanism else self._prefix, self._prefix):
            if (text := self._texts.get(prefix + key)) is not None:
                row = BROKER_KEYS[key]
                try:
                    return parse_value(key, row[1], row[3], text)
                except ConfigError as error:
                    raise ConfigError(prefix + key, error.value, error.reason) from None
        return self._config.value(key)

    @property
    def logins(self) -> Logins:
        """The entries of the file of logins."""
        return self._config.logins

    def is_own(self, key: str) -> bool:
        """Whether the value is of this listener alone."""
        return self._prefix + key in self._texts

    def text(self, key: str, mechanism: str = "") -> str:
        """The same as text; "" when it is not set."""
        return format_value(self.value(key, mechanism)) or ""

    def number(self, key: str, mechanism: str = "") -> int:
        """The same as a whole number."""
        value = self.value(key, mechanism)
        assert isinstance(value, int)
        return value

    def words(self, key: str, mechanism: str = "") -> tuple[str, ...]:
        """The same as a list."""
        value = self.value(key, mechanism)
        assert isinstance(value, tuple)
        return value

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What clients of a SASL listener may use. Errors: ConfigError: a mechanism that is not here."""
        key = "sasl.enabled.mechanisms"
        names = tuple(name.upper() for name in self.words(key))
        for name in names:
            if name not in MECHANISMS:
                raise ConfigError(
                    key, name, f"the listener {self.name} cannot have it: set {key} to some of {', '.join(MECHANISMS)}"
                )
        if not names:
            raise ConfigError(key, "", f"the listener {self.name} needs a mechanism: {', '.join(MECHANISMS)}")
        return names


def need(module: str, what: str) -> None:
    """Refuse to start without a library. Errors: ConfigError: the line that installs it."""
    if find_spec(module) is None:
        raise ConfigError(what, "", f"it needs libraries that are not installed: {INSTALL}")
