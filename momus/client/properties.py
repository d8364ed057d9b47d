"""Kafka settings as people already write them: server.properties, KEY=VALUE, and the environment of Kafka's
Docker image."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from momus.client.image_variables import is_of_an_image

# Variables that Kafka's own scripts and images read and that are no broker settings.
_NOT_SETTINGS = frozenset(
    f"KAFKA_{name}"
    for name in (
        "CLIENT_PASSWORDS",
        "CLIENT_USERS",
        "CLUSTER_ID",
        "CREATE_TOPICS",
        "CREATE_TOPICS_SEPARATOR",
        "DEBUG",
        "ENABLE_KRAFT",
        "GC_LOG_OPTS",
        "HEAP_OPTS",
        "HOME",
        "JMX_HOSTNAME",
        "JMX_OPTS",
        "JMX_PORT",
        "JVM_PERFORMANCE_OPTS",
        "KRAFT_CLUSTER_ID",
        "KRAFT_MODE_ENABLED",
        "LOG4J_LOGGERS",
        "LOG4J_OPTS",
        "LOG4J_ROOT_LOGLEVEL",
        "OPTS",
        "SKIP_KRAFT_STORAGE_INIT",
        "TOOLS_LOG4J_LOGLEVEL",
        "VERSION",
    )
)
SECRETS = "/etc/kafka/secrets"
_OF_SECRETS = {
    "KAFKA_SSL_KEYSTORE_FILENAME": "ssl.keystore.location",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS": "ssl.keystore.password",
    "KAFKA_SSL_KEY_CREDENTIALS": "ssl.key.password",
    "KAFKA_SSL_TRUSTSTORE_FILENAME": "ssl.truststore.location",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "ssl.truststore.password",
}
_BLANKS = " \t\f"
_CONTROL = {"f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.?))", re.DOTALL)
_LOGIN_OPTION = re.compile(r"""(?:^|\s)["']?-Djava\.security\.auth\.login\.config==?("[^"]*"|'[^']*'|[^\s"']+)""")
_TRIMMED = "".join(map(chr, range(33)))  # by Java's String.trim
_CLIENT_USERS = ("KAFKA_CLIENT_USERS", "KAFKA_CLIENT_PASSWORDS")  # of Bitnami's: words separated by , or ;
LOGIN_FILE = "java.security.auth.login.config"
# Of Bitnami's, Apache's and Confluent's images; the last one wins.
_CLUSTER_ID = ("KAFKA_KRAFT_CLUSTER_ID", "KAFKA_CLUSTER_ID", "CLUSTER_ID")

# What Kubernetes tells each container of each Service, here of one whose name begins with kafka or momus.
_OF_A_SERVICE = re.compile(
    r"(?:KAFKA|MOMUS)(?:_\w+?)?_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_PORT_OF_A_SERVICE = re.compile(r"(?:KAFKA|MOMUS)(?:_\w+)?_PORT")
_SERVICE_ADDRESS = re.compile(r"(?:tcp|udp|sctp)://\S+")


def parse_properties(text: str) -> dict[str, str]:
    """The settings of a Java properties file, as java.util.Properties reads it; white space around values goes, as in
    Kafka.

    Keys end at `=`, `:` or white space; `#` and `!` open comments; a backslash at a line's end continues it. `\\n`,
    `\\t`, `\\r`, `\\f` are control characters, `\\u` and four digits a unit of UTF-16, a backslash before another
    character stands for that character. Errors: ValueError: `\\u` without four digits.
    """
    settings: dict[str, str] = {}
    lines = iter(re.split("\r\n|\r|\n", text))
    for raw in lines:
        line = raw.lstrip(_BLANKS)
        if not line or line[0] in "#!":
            continue
        while _continues(line):
            line = line[:-1] + next(lines, "").lstrip(_BLANKS)
        key, value = _split(line)
        settings[key] = value.strip(_TRIMMED)
    return settings


def parse_assignments(assignments: Iterable[str]) -> dict[str, str]:
    """The settings given as KEY=VALUE; ValueError names the one that is not."""
    settings: dict[str, str] = {}
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{assignment!r} is not KEY=VALUE")
        settings[key.strip()] = value.strip()
    return settings


def parse_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The settings in `KAFKA_...` variables: `_` stands for `.`, `__` for `_`, `___` for `-`, as in Kafka's
    Docker image. `KAFKA_CFG_...` are Bitnami's, and win. The cluster's id may be in a variable of its own, and
    KAFKA_OPTS may name a file of login modules. What Kubernetes sets for a Service named kafka is no setting."""
    settings = {}
    for prefix in ("KAFKA_", "KAFKA_CFG_"):
        for name, value in environment.items():
            if (
                name.startswith(prefix)
                and name not in _NOT_SETTINGS
                and name not in _OF_SECRETS
                and not is_of_an_image(name)
                and not is_of_kubernetes(name, value)
            ):
                settings[_key(name.removeprefix(prefix))] = value
    settings = {key: value for key, value in settings.items() if not key.startswith("cfg.")}
    for name in _CLUSTER_ID:
        if environment.get(name):
            settings["cluster.id"] = environment[name]
    path = _login_file(environment.get("KAFKA_OPTS", ""))
    # Bitnami's image writes the file from KAFKA_CLIENT_USERS; they are users here without it.
    if path and (os.path.exists(path) or not environment.get(_CLIENT_USERS[0])):
        settings[LOGIN_FILE] = path
    return settings


def secrets_of_images(environment: Mapping[str, str], folder: str = SECRETS) -> dict[str, str]:
    """The settings of key and trust stores that images take as names of files in /etc/kafka/secrets: of the store in
    `..._FILENAME`, of a file that holds its password in `..._CREDENTIALS`. Errors: OSError: a file cannot be read."""
    found = {}
    for name, key in _OF_SECRETS.items():
        if file := environment.get(name):
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8", errors="replace") as opened:  # refused here, where the variable is known
                text = opened.read().strip() if name.endswith("CREDENTIALS") else path
            found[key] = text
    return found


def environment_users(environment: Mapping[str, str]) -> dict[str, str]:
    """The users, by name with their passwords, that Bitnami's image is told in variables of its own. Errors:
    ValueError: they do not go together."""
    names, passwords = (
        [word.strip() for word in re.split("[,;]", environment.get(variable, ""))] for variable in _CLIENT_USERS
    )
    if names == [""] and passwords == [""]:
        return {}
    if len(names) != len(passwords) or not all(names) or not all(passwords):
        raise ValueError(f"{_CLIENT_USERS[0]} and {_CLIENT_USERS[1]} must have as many words: a password for each user")
    return dict(zip(names, passwords, strict=True))


def _login_file(options: str) -> str | None:
    """The file of login modules that Java's options name; the last one wins."""
    found = _LOGIN_OPTION.findall(options)
    return found[-1].strip("\"'") if found else None


def is_of_kubernetes(name: str, value: str) -> bool:
    """Whether Kubernetes set this for a Service, as KAFKA_PORT=tcp://10.0.0.1:9092; such a variable is no setting."""
    if _PORT_OF_A_SERVICE.fullmatch(name) and _SERVICE_ADDRESS.match(value):
        return True
    return bool(_OF_A_SERVICE.fullmatch(name))


def _key(name: str) -> str:
    return name.lower().replace("___", "-").replace("__", "\0").replace("_", ".").replace("\0", "_")


def _continues(line: str) -> bool:
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _split(line: str) -> tuple[str, str]:
    i = 0
    while i < len(line) and line[i] not in f"=:{_BLANKS}":
        i += 1 + (line[i] == "\\")
    rest = line[i:].lstrip(_BLANKS)
    if rest[:1] in ("=", ":"):
        rest = rest[1:].lstrip(_BLANKS)
    return _unescaped(line[:i]), _unescaped(rest)


def _unescaped(text: str) -> str:
    text = _ESCAPE.sub(_character, text)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # two units may be one character


def _character(found: re.Match[str]) -> str:
    if found[1] is not None:
        return chr(int(found[1], 16))
    if found[2] == "u":
        raise ValueError("Malformed \\uxxxx encoding.")
    return _CONTROL.get(found[2], found[2])
