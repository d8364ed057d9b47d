"""How each client spells the settings by which it connects to a cluster, and files with them, ready to use."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from broker.shell.made_security import MECHANISM
from broker.shell.tls.own_authority import STORE_PASSWORD

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.shell.made_security import MadeSecurity

_LOGIN: Final = ("username", "password")
FOLDER_SIGN: Final = "{folder}"  # in values: where the files of certificates are
CLIENTS: Final = ("kafka-python", "aiokafka", "confluent", "java", "spark", "franz-go", "kafkajs")
_SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


class _Words(NamedTuple):
    """What a client calls its settings."""

    authority: str
    certificate: str
    key: str
    mechanism: str
    user: str
    password: str


_LIBRDKAFKA: Final = _Words(
    "ssl.ca.location",
    "ssl.certificate.location",
    "ssl.key.location",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
)
_PYTHON: Final = _Words(
    "ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_mechanism", "sasl_plain_username", "sasl_plain_password"
)


def client_settings(client: str, servers: str, security: MadeSecurity | None, user: str) -> dict[str, str]:
    """The settings of a client, in its own words. Errors: LookupError: no such client or user."""
    if client not in CLIENTS:
        raise LookupError(f"unknown client {client!r}: one of {', '.join(CLIENTS)}")
    protocol = security.protocol if security is not None else "PLAINTEXT"
    if client in ("java", "spark"):
        prefix = "kafka." if client == "spark" else ""
        found = {"bootstrap.servers": servers, "security.protocol": protocol, **_of_java(security, user)}
        return {prefix + key: value for key, value in found.items()}
    if client == "confluent":
        return {
            "bootstrap.servers": servers,
            "security.protocol": protocol,
            **_of_pem_client(_LIBRDKAFKA, security, user),
        }
    return {"bootstrap_servers": servers, "security_protocol": protocol, **_of_pem_client(_PYTHON, security, user)}


def _of_java(security: MadeSecurity | None, user: str) -> dict[str, str]:
    found = {}
    if security is not None and security.has_certificates:
        found["ssl.truststore.location"] = f"{FOLDER_SIGN}/truststore.p12"
        found["ssl.truststore.password"] = STORE_PASSWORD
        found["ssl.truststore.type"] = "PKCS12"
    if security is not None and security.word == "mtls":
        found["ssl.keystore.location"] = f"{FOLDER_SIGN}/client.p12"
        found["ssl.keystore.password"] = found["ssl.key.password"] = STORE_PASSWORD
        found["ssl.keystore.type"] = "PKCS12"
    if security is not None and security.has_passwords:
        password = security.users[user].replace("\\", "\\\\").replace('"', '\\"')
        found["sasl.mechanism"] = MECHANISM
        found["sasl.jaas.config"] = f'{_SCRAM_MODULE} required username="{user}" password="{password}";'
    return found


def _of_pem_client(words: _Words, security: MadeSecurity | None, user: str) -> dict[str, str]:
    """The settings of a client that reads PEM files, in its words."""
    found = {}
    if security is not None and security.has_certificates:
        found[words.authority] = f"{FOLDER_SIGN}/ca.pem"
    if security is not None and security.word == "mtls":
        found[words.certificate] = found[words.key] = f"{FOLDER_SIGN}/client.pem"
    if security is not None and security.has_passwords:
        found[words.mechanism] = MECHANISM
        found[words.user], found[words.password] = user, security.users[user]
    return found


def write_client_files(folder: str, servers: str, security: MadeSecurity) -> str:
    """Write a folder for each user, with settings for every client and its certificates. Returns the folder.

    Errors: OSError.
    """
    place = Path(folder) / "clients"
    for user in ("anybody",) if security.word == "ssl" else security.users:
        mine = place / user
        mine.mkdir(parents=True, exist_ok=True)
        os.chmod(mine, 0o700)
        for name, data in security.client_files("" if security.word == "ssl" else user).items():
            (mine / name).write_bytes(data)
        for client, (name, write) in _FILES.items():
            settings = client_settings(client, servers, security, user)
            texts = {key: value.replace(FOLDER_SIGN, str(mine)) for key, value in settings.items()}
            (mine / name).write_text(write(texts), encoding="utf-8")
    return str(place)


def _properties(settings: dict[str, str]) -> str:
    """Java reads such a file as ISO-8859-1; other characters are written by their numbers in UTF-16."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    units = value.replace("\\", "\\\\").encode("utf-16-be")
    numbers = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(each) if 32 <= each < 127 else f"\\u{each:04x}" for each in numbers)


def _plain(settings: dict[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in settings.items())


def _json(settings: dict[str, str]) -> str:
    return json.dumps(settings, indent=2) + "\n"


def _aiokafka(settings: dict[str, str]) -> str:
    """As Python: aiokafka takes an SSLContext."""
    words = {key: value for key, value in settings.items() if not key.startswith("ssl_")}
    lines = ["import ssl\n\n" if "ssl_cafile" in settings else "", f"CLIENT = {words!r}\n"]
    if "ssl_cafile" in settings:
        lines.append(f"CLIENT['ssl_context'] = ssl.create_default_context(cafile={settings['ssl_cafile']!r})\n")
    if "ssl_certfile" in settings:
        lines.append(f"CLIENT['ssl_context'].load_cert_chain({settings['ssl_certfile']!r})\n")
    return "".join(lines)


def _kafkajs(settings: dict[str, str]) -> str:
    lines = [
        "const fs = require('fs')\n\nmodule.exports = {\n",
        f"  brokers: {settings['bootstrap_servers'].split(',')},\n",
    ]
    if "ssl_cafile" in settings:
        parts = [f"ca: [fs.readFileSync({settings['ssl_cafile']!r})]"]
        if "ssl_certfile" in settings:
            pem = f"fs.readFileSync({settings['ssl_certfile']!r})"
            parts += [f"cert: {pem}", f"key: {pem}"]
        lines.append(f"  ssl: {{ {', '.join(parts)} }},\n")
    if "sasl_mechanism" in settings:
        user, password = json.dumps(settings["sasl_plain_username"]), json.dumps(settings["sasl_plain_password"])
        lines.append(f"  sasl: {{ mechanism: 'scram-sha-256', username: {user}, password: {password} }},\n")
    return "".join([*lines, "}\n"])


def _franz_go(settings: dict[str, str]) -> str:
    """A Go file with a function that makes a client's options."""
    seeds = ", ".join(json.dumps(each) for each in settings["bootstrap_servers"].split(","))
    imports, body = ['"github.com/twmb/franz-go/pkg/kgo"'], [f"\toptions := []kgo.Opt{{kgo.SeedBrokers({seeds})}}"]
    if "ssl_cafile" in settings:
        imports += ['"crypto/tls"', '"crypto/x509"', '"os"']
        body += [
            f"\tpem, err := os.ReadFile({json.dumps(settings['ssl_cafile'])})",
            "\tif err != nil {\n\t\treturn nil, err\n\t}",
            "\troots := x509.NewCertPool()\n\troots.AppendCertsFromPEM(pem)",
            "\tconfig := &tls.Config{RootCAs: roots}",
        ]
        if "ssl_certfile" in settings:
            path = json.dumps(settings["ssl_certfile"])
            body += [
                f"\tmine, err := tls.LoadX509KeyPair({path}, {path})",
                "\tif err != nil {\n\t\treturn nil, err\n\t}",
                "\tconfig.Certificates = []tls.Certificate{mine}",
            ]
        body.append("\toptions = append(options, kgo.DialTLSConfig(config))")
    if "sasl_mechanism" in settings:
        imports.append('"github.com/twmb/franz-go/pkg/sasl/scram"')
        # as itself: JSON writes what is beyond U+FFFF as two escapes, which Go does not take
        user, password = (json.dumps(settings[f"sasl_plain_{each}"], ensure_ascii=False) for each in _LOGIN)
        auth = f"scram.Auth{{User: {user}, Pass: {password}}}"
        body.append(f"\toptions = append(options, kgo.SASL({auth}.AsSha256Mechanism()))")
    head = "package momus\n\nimport (\n" + "".join(f"\t{each}\n" for each in sorted(imports)) + ")\n\n"
    about = "// Options are those of a client of this cluster.\nfunc Options() ([]kgo.Opt, error) {\n"
    return head + about + "\n".join(body) + "\n\treturn options, nil\n}\n"


_FILES: Final[dict[str, tuple[str, Callable[[dict[str, Any]], str]]]] = {
    "java": ("client.properties", _properties),
    "spark": ("spark.properties", _properties),
    "confluent": ("librdkafka.properties", _plain),
    "kafka-python": ("kafka-python.json", _json),
    "aiokafka": ("aiokafka_client.py", _aiokafka),
    "franz-go": ("franz_go.go", _franz_go),
    "kafkajs": ("kafkajs.js", _kafkajs),
}
