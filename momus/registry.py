"""How clients of schema registries spell the settings by which they reach the registry of a cluster."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# client -> its words for: the address, the login, and the file of the authority that has signed the certificate
WORDS = {
    "confluent-registry": ("url", "basic.auth.user.info", "ssl.ca.location"),
    "python-registry": ("url", "basic.auth.user.info", "ssl.ca.location"),
    "java-registry": ("schema.registry.url", "basic.auth.user.info", "schema.registry.ssl.truststore.location"),
}


def registry_settings(client: str, url: str, broker: dict[str, Any]) -> dict[str, Any]:
    """The settings of a client of the registry; `broker`: those of the client of the broker whose files it takes."""
    address, login, authority = WORDS[client]
    found: dict[str, Any] = {address: url}
    user, password = broker.get("sasl.username"), broker.get("sasl.password")
    if user is not None:
        found[login] = f"{user}:{password}"
        if client == "java-registry":
            found["basic.auth.credentials.source"] = "USER_INFO"
    if "ssl.ca.location" in broker:
        found[authority] = broker["ssl.ca.location"]
        if client == "java-registry":
            found["schema.registry.ssl.truststore.type"] = "PEM"
    if "ssl.certificate.location" in broker and client != "java-registry":
        found["ssl.certificate.location"] = broker["ssl.certificate.location"]
        found["ssl.key.location"] = broker["ssl.key.location"]
    return found
