"""Settings of Kafka that ask for security, a limit or a Java class which this broker does not have: it does not start.

A value that is Kafka's default, or asks for what this broker does anyway, is harmless. All else is reported with the
key and what to do: a test that relies on such a setting would prove nothing here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.config.config_values import ConfigError
from broker.config.settings import BROKER_KEYS

_JAVA_CLASS: Final = "a Java class cannot be loaded here: remove it"
_CLASSES: Final = "org.apache.kafka.common.security."

# key -> (values that ask for nothing, what to do about others)
REFUSED: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "alter.config.policy.class.name": (("",), _JAVA_CLASS),
    "client.quota.callback.class": (("",), _JAVA_CLASS),
    "config.providers": (("",), "values of providers are not looked up here: write the values themselves"),
    "create.topic.policy.class.name": (("",), _JAVA_CLASS),
    "group.streams.topology.description.plugin.class": (("",), _JAVA_CLASS),
    "principal.builder.class": (("", f"{_CLASSES}authenticator.DefaultKafkaPrincipalBuilder"), _JAVA_CLASS),
    "queued.max.request.bytes": (("-1",), "use queued.max.bytes, which bounds requests and replies together"),
    "sasl.oauthbearer.jwt.validator.class": (("", f"{_CLASSES}oauthbearer.DefaultJwtValidator"), _JAVA_CLASS),
    "sasl.server.callback.handler.class": (
        (
            "",
            f"{_CLASSES}oauthbearer.OAuthBearerValidatorCallbackHandler",
            f"{_CLASSES}oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler",
        ),
        _JAVA_CLASS,
    ),
    "security.providers": (("",), _JAVA_CLASS),
    "ssl.engine.factory.class": (("",), _JAVA_CLASS),
    "ssl.provider": (("",), _JAVA_CLASS),
}
AUTHORIZER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found")  # of Kafka's authorizer, not of its broker
_LISTENER: Final = "listener.name."


def base_key(key: str) -> str:
    """The key that `listener.name.NAME.KEY` or `listener.name.NAME.MECHANISM.KEY` sets for a listener; else the key."""
    if not key.startswith(_LISTENER):
        return key
    rest = key.removeprefix(_LISTENER).partition(".")[2]
    tails = (rest, rest.partition(".")[2])
    return next((tail for tail in tails if tail in REFUSED or tail in BROKER_KEYS), key)


def is_of_listener(key: str) -> bool:
    """Whether this is a known key for one listener."""
    return base_key(key) != key


def refusals(props: Mapping[str, str]) -> list[tuple[str, str]]:
    """The keys that must not be ignored, each with what to do. Values are left out: they may be secrets."""
    found = []
    for key, text in sorted(props.items()):
        harmless, advice = REFUSED.get(base_key(key), ((text.strip().replace(" ", ""),), ""))
        if text.strip().replace(" ", "") not in harmless:
            found.append((key, advice))
    return found


class RefusedSettingsError(ConfigError):
    """Settings that cannot be obeyed and must not be ignored."""

    def __init__(self, refused: list[tuple[str, str]]) -> None:
        keys = ", ".join(key for key, _ in refused)
        super().__init__(keys, "", "")
        self.args = ("; ".join(f"{key} cannot be obeyed: {advice}" for key, advice in refused),)
