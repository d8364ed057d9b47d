"""Variables of the images of Bitnami, Confluent and others that are no settings of Kafka, and what they do here."""

from __future__ import annotations

from collections.abc import Mapping

_STORES = (
    "name key stores by KAFKA_SSL_KEYSTORE_FILENAME (in /etc/kafka/secrets) or KAFKA_CFG_SSL_KEYSTORE_LOCATION, whose"
    " password is KAFKA_CFG_SSL_KEYSTORE_PASSWORD, and ask for certificates by KAFKA_CFG_SSL_CLIENT_AUTH"
)
_ONE = "not needed: there is one process, without ZooKeeper and without controllers that log in"
_TOOLS = "of the image's own scripts, which are not here"
# Each with what is said where it is set. Those of Java, of logs and of a KRaft start are left out of the settings
# without a word: properties.py.
OF_IMAGES = {
    "KAFKA_TLS_TYPE": _STORES,
    "KAFKA_TLS_CLIENT_AUTH": _STORES,
    "KAFKA_CERTIFICATE_PASSWORD": _STORES,
    "KAFKA_ZOOKEEPER_CONNECT": _ONE,
    "KAFKA_CFG_ZOOKEEPER_CONNECT": _ONE,
    "KAFKA_ZOOKEEPER_PROTOCOL": _ONE,
    "KAFKA_ZOOKEEPER_USER": _ONE,
    "KAFKA_ZOOKEEPER_PASSWORD": _ONE,
    "KAFKA_INTER_BROKER_USER": _ONE,
    "KAFKA_INTER_BROKER_PASSWORD": _ONE,
    "KAFKA_CONTROLLER_USER": _ONE,
    "KAFKA_CONTROLLER_PASSWORD": _ONE,
    "KAFKA_CLIENT_LISTENER_NAME": _TOOLS,
    "KAFKA_EXTRA_FLAGS": _TOOLS,
    "KAFKA_HOSTNAME": _TOOLS,
    "KAFKA_MOUNTED_CONF_DIR": _TOOLS,
}
_OF_CONFLUENT = ("KAFKA_CONFLUENT_", "CONFLUENT_")


def is_of_an_image(name: str) -> bool:
    """Whether it is no setting of Kafka but a variable that an image reads."""
    return name in OF_IMAGES or name.startswith(_OF_CONFLUENT)


def words_about_images(environment: Mapping[str, str]) -> list[str]:
    """A sentence for those that go together: what they are, and what to do instead where there is something to do."""
    found: dict[str, list[str]] = {}
    for name in sorted(environment):
        if is_of_an_image(name):
            why = OF_IMAGES.get(name, "of Confluent's own server, which this is not")
            found.setdefault(why, []).append(name)
    return [f"{', '.join(names)}: no effect here: {why}" for why, names in found.items()]
