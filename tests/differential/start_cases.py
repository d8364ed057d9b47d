"""Settings of listeners, addresses, quorum, SASL and TLS: right, missing, empty, twice, wrong, contradictory.

Each case is a change of BASE, with which Apache Kafka starts. {a}, {b} and {c} are free ports, {folder} is the folder
with the files of `write_material`. None as a value takes a key out.
"""

from __future__ import annotations

import functools
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

RECORDED = Path(__file__).parent.parent / "conformance" / "starts.json"
CONTROLLER = ",CONTROLLER://127.0.0.1:{c}"
ONE = "PLAINTEXT://127.0.0.1:{a}"
MAP = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT"
BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:{c}",
    "controller.listener.names": "CONTROLLER",
    "listeners": ONE + CONTROLLER,
}
LISTENERS, ADVERTISED = "listeners", "advertised.listeners"
PROTOCOLS, CONTROLLERS = "listener.security.protocol.map", "controller.listener.names"
INTER, INTER_PROTOCOL = "inter.broker.listener.name", "security.inter.broker.protocol"
VOTERS, BOOTSTRAP, ROLES = "controller.quorum.voters", "controller.quorum.bootstrap.servers", "process.roles"
MECHANISMS, CLIENT_AUTH = "sasl.enabled.mechanisms", "ssl.client.auth"
OWN_JAAS = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ALICE = f'{PLAIN} required user_alice="secret";'


class Case(NamedTuple):
    """What is changed of BASE, and the file of logins."""

    name: str
    changes: Mapping[str, str | None]
    jaas: str | None = None

    def settings(self, folder: str) -> dict[str, str]:
        """The settings, with ports and files put in."""
        a, b, c = free_ports(3)
        merged = {key: text for key, text in {**BASE, **self.changes}.items() if text is not None}
        words = {"{a}": str(a), "{b}": str(b), "{c}": str(c), "{folder}": folder}
        return {key: functools.reduce(lambda t, w: t.replace(*w), words.items(), text) for key, text in merged.items()}


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write_material(folder: Path) -> None:
    """The files that cases of TLS name."""
    authority = trustme.CA()
    leaf, other = authority.issue_cert("localhost", "127.0.0.1"), authority.issue_cert("localhost")
    key, chain = leaf.private_key_pem.bytes(), leaf.cert_chain_pems[0].bytes() + authority.cert_pem.bytes()
    private = serialization.load_pem_private_key(key, None)
    pkcs8 = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    locked = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(leaf.cert_chain_pems[0].bytes())
    store = pkcs12.serialize_key_and_certificates(
        b"server",
        private,  # type: ignore[arg-type]  # an RSA or EC key
        certificate,
        None,
        serialization.PrivateFormat.PKCS12.encryption_builder()
        .kdf_rounds(1000)
        .key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC)
        .build(b"secret"),
    )
    files = {
        "key.pem": pkcs8,
        "locked.pem": locked,
        "chain.pem": chain,
        "both.pem": pkcs8 + chain,
        "ca.pem": authority.cert_pem.bytes(),
        "other.pem": other.cert_chain_pems[0].bytes(),
        "store.p12": store,
        "nonsense": b"nothing of the kind\n",
        "empty": b"",
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)


def with_files(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """`<NAME>` in a value is the text of a file, `<NAME|line>` the same in one line."""
    found = {}
    for key, text in settings.items():
        for name in [each.name for each in folder.iterdir()] if "<" in text else ():
            data = (folder / name).read_text("latin-1")
            text = text.replace(f"<{name}>", data).replace(f"<{name}|line>", " ".join(data.split("\n")))
        found[key] = text
    return found


def cases() -> Iterator[Case]:
    """All of them."""
    for kind, found in (
        ("listeners", _listeners()),
        ("advertised", _advertised()),
        ("map", _maps()),
        ("inter broker", _inter_broker()),
        ("controllers", _controllers()),
        ("quorum", _quorum()),
        ("sasl", _sasl()),
        ("jaas", _jaas()),
        ("tls", _tls()),
        ("stores", _stores()),
    ):
        for case in found:
            yield case._replace(name=f"{kind}: {case.name}")


def _of(key: str, more: Mapping[str, str | None], values: Mapping[str, str | None]) -> Iterator[Case]:
    for name, value in values.items():
        yield Case(name, {**more, key: value})


def _listeners() -> Iterator[Case]:
    mapped = {PROTOCOLS: f"{MAP},B:PLAINTEXT,D:PLAINTEXT"}
    clients: dict[str, str] = {
        "as they should be": ONE,
        "no host": "PLAINTEXT://:{a}",
        "port 0": "PLAINTEXT://127.0.0.1:0",
        "port 0 twice": "PLAINTEXT://127.0.0.1:0,B://127.0.0.1:0",
        "a name of its own": "B://127.0.0.1:{a},PLAINTEXT://127.0.0.1:{b}",
        "in small letters": "plaintext://127.0.0.1:{a}",
        "blanks around": " PLAINTEXT://127.0.0.1:{a} , B://127.0.0.1:{b} ",
        "IPv6": "PLAINTEXT://[::1]:{a}",
        "IPv6 without brackets": "PLAINTEXT://::1:{a}",
        "a name of a host": "PLAINTEXT://localhost:{a}",
        "two of one name": "PLAINTEXT://127.0.0.1:{a},PLAINTEXT://127.0.0.1:{b}",
        "two of one name in other letters": "PLAINTEXT://127.0.0.1:{a},plaintext://127.0.0.1:{b}",
        "the same twice": f"{ONE},{ONE}",
        "two of one port": "PLAINTEXT://127.0.0.1:{a},B://127.0.0.1:{a}",
        "two of one port on two hosts": "PLAINTEXT://127.0.0.1:{a},B://127.0.0.2:{a}",
        "two of one port, a name and an address": "PLAINTEXT://localhost:{a},B://127.0.0.1:{a}",
        "two of one port, IPv4 and IPv6": "PLAINTEXT://127.0.0.1:{a},B://[::1]:{a}",
        "two of one port, both IPv6": "PLAINTEXT://[::1]:{a},B://[::2]:{a}",
        "three of one port": "PLAINTEXT://127.0.0.1:{a},B://[::1]:{a},D://127.0.0.2:{a}",
        "port of the controller": "PLAINTEXT://127.0.0.1:{c}",
        "a name with one wrong letter": "PLAINTEX://127.0.0.1:{a}",
        "a name that is a word of others": "TLS://127.0.0.1:{a}",
        "a second without a protocol": f"{ONE},CLIENT://127.0.0.1:{{b}}",
        "no name": "127.0.0.1:{a}",
        "an empty name": "://127.0.0.1:{a}",
        "no port": "PLAINTEXT://127.0.0.1",
        "an empty port": "PLAINTEXT://127.0.0.1:",
        "a port of letters": "PLAINTEXT://127.0.0.1:http",
        "a negative port": "PLAINTEXT://127.0.0.1:-1",
        "a port too high": "PLAINTEXT://127.0.0.1:65536",
        "one slash": "PLAINTEXT:/127.0.0.1:{a}",
        "a blank in the host": "PLAINTEXT://my host:{a}",
        "a path": "PLAINTEXT://127.0.0.1:{a}/",
        "a semicolon between": f"{ONE};B://127.0.0.1:{{b}}",
        "a comma at the end": f"{ONE},",
        "a host that is unknown": "PLAINTEXT://nowhere.invalid:{a}",
        "an address of another machine": "PLAINTEXT://192.0.2.1:{a}",
        "every address, and none advertised": "PLAINTEXT://0.0.0.0:{a}",
        "every address of IPv6, and none advertised": "PLAINTEXT://[::]:{a}",
    }
    yield from _of(LISTENERS, mapped, {name: text + CONTROLLER for name, text in clients.items()})
    yield from _of(
        LISTENERS,
        {},
        {
            "missing": None,
            "empty": "",
            "a blank": " ",
            "a comma": ",",
            "of the controller alone": CONTROLLER[1:],
            "without the controller": ONE,
            "the controller twice": f"{ONE}{CONTROLLER},CONTROLLER://127.0.0.1:{{b}}",
        },
    )
    yield Case(
        "every address, and one advertised", {LISTENERS: "PLAINTEXT://0.0.0.0:{a}" + CONTROLLER, ADVERTISED: ONE}
    )


def _advertised() -> Iterator[Case]:
    two = {LISTENERS: f"{ONE},B://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: f"{MAP},B:PLAINTEXT"}
    yield from _of(
        ADVERTISED,
        two,
        {
            "missing": None,
            "as they should be": "PLAINTEXT://outside:{a},B://inside:{b}",
            "one of two": "PLAINTEXT://outside:{a}",
            "one of two, and not that between brokers": "B://outside:{a}",
            "in small letters": "plaintext://outside:{a}",
            "blanks around": " PLAINTEXT://outside:{a} , B://inside:{b} ",
            "one port for both": "PLAINTEXT://outside:{a},B://outside:{a}",
            "no host": "PLAINTEXT://:{a}",
            "IPv6": "PLAINTEXT://[::1]:{a}",
            "port 0": "PLAINTEXT://outside:0",
            "an unknown host": "PLAINTEXT://nowhere.invalid:{a}",
            "empty": "",
            "a blank": " ",
            "a comma": ",",
            "a comma at the end": "PLAINTEXT://outside:{a},",
            "every address": "PLAINTEXT://0.0.0.0:{a}",
            "every address, the second": "PLAINTEXT://outside:{a},B://0.0.0.0:{b}",
            "every address of IPv6": "PLAINTEXT://[::]:{a}",
            "a name without a protocol": "PLAINTEX://outside:{a}",
            "a name without a listener": "PLAINTEXT://outside:{a},SSL://outside:{b}",
            "of the controller too": "PLAINTEXT://outside:{a},CONTROLLER://outside:{c}",
            "two of one name": "PLAINTEXT://outside:{a},PLAINTEXT://inside:{b}",
            "two of one name in other letters": "PLAINTEXT://outside:{a},plaintext://inside:{b}",
            "no name": "outside:{a}",
            "no port": "PLAINTEXT://outside",
            "a negative port": "PLAINTEXT://outside:-1",
            "a port too high": "PLAINTEXT://outside:65536",
            "a port of letters": "PLAINTEXT://outside:http",
            "a blank in the host": "PLAINTEXT://out side:{a}",
            "a semicolon between": "PLAINTEXT://outside:{a};B://inside:{b}",
        },
    )


def _maps() -> Iterator[Case]:
    own = {LISTENERS: f"INSIDE://127.0.0.1:{{a}},PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}"}
    rest = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    yield from _of(
        PROTOCOLS,
        own,
        {
            "as it should be": f"INSIDE:PLAINTEXT,{rest}",
            "missing": None,
            "empty": "",
            "a blank": " ",
            "a comma": ",",
            "without a listener": rest,
            "without the controller": "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            "a name with one wrong letter": f"INSID:PLAINTEXT,{rest}",
            "a name in small letters": f"inside:PLAINTEXT,{rest}",
            "a protocol in small letters": f"INSIDE:plaintext,{rest}",
            "a protocol with one wrong letter": f"INSIDE:PLAINTEX,{rest}",
            "a protocol of others": f"INSIDE:TLS,{rest}",
            "an empty protocol": f"INSIDE:,{rest}",
            "an empty name": f":PLAINTEXT,INSIDE:PLAINTEXT,{rest}",
            "no colon": f"INSIDE,{rest}",
            "an equals sign": f"INSIDE=PLAINTEXT,{rest}",
            "two colons": f"INSIDE:PLAINTEXT:SSL,{rest}",
            "semicolons between": f"INSIDE:PLAINTEXT;{rest}",
            "blanks around": f" INSIDE : PLAINTEXT , {rest} ",
            "blanks after commas": f"INSIDE:PLAINTEXT, {rest}",
            "a comma at the end": f"INSIDE:PLAINTEXT,{rest},",
            "the same twice": f"INSIDE:PLAINTEXT,INSIDE:PLAINTEXT,{rest}",
            "two protocols for one name": f"INSIDE:SASL_PLAINTEXT,INSIDE:PLAINTEXT,{rest}",
            "names without listeners": f"INSIDE:PLAINTEXT,OUTSIDE:SSL,{rest}",
        },
    )
    yield Case(
        "missing, and the controller has a name of its own", {CONTROLLERS: "C", LISTENERS: f"{ONE},C://127.0.0.1:{{c}}"}
    )
    yield Case("missing, and a listener is SSL", {LISTENERS: f"{ONE},SSL://127.0.0.1:{{b}}{CONTROLLER}"})
    yield Case("missing, and a listener is SASL", {LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}"})


def _inter_broker() -> Iterator[Case]:
    two = {LISTENERS: f"{ONE},B://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: f"{MAP},B:PLAINTEXT"}
    yield from _of(
        INTER,
        two,
        {
            "the second listener": "B",
            "in small letters": "b",
            "blanks around": " B ",
            "empty": "",
            "a name with one wrong letter": "BB",
            "a name without a listener": "SSL",
            "that of the controller": "CONTROLLER",
        },
    )
    yield Case("not advertised", {**two, INTER: "B", ADVERTISED: ONE})
    yield Case("name and protocol", {**two, INTER: "B", INTER_PROTOCOL: "PLAINTEXT"})
    yield from _of(
        INTER_PROTOCOL,
        two,
        {
            "protocol of a listener": "PLAINTEXT",
            "protocol in small letters": "plaintext",
            "protocol empty": "",
            "protocol with one wrong letter": "PLAINTEX",
            "protocol without a listener": "SSL",
        },
    )
    yield Case(
        "missing, and none is PLAINTEXT", {LISTENERS: f"B://127.0.0.1:{{a}}{CONTROLLER}", PROTOCOLS: two[PROTOCOLS]}
    )


def _controllers() -> Iterator[Case]:
    yield from _of(
        CONTROLLERS,
        {PROTOCOLS: f"{MAP},C:PLAINTEXT"},
        {
            "names missing": None,
            "names empty": "",
            "a name with one wrong letter": "CONTROLER",
            "in small letters": "controller",
            "twice": "CONTROLLER,CONTROLLER",
            "a name without a listener": "C",
            "a second name without a listener": "CONTROLLER,C",
            "that of clients": "PLAINTEXT",
            "all listeners": "PLAINTEXT,CONTROLLER",
        },
    )


def _quorum() -> Iterator[Case]:
    yield from _of(
        VOTERS,
        {},
        {
            "voters missing": None,
            "voters empty": "",
            "three voters": "1@127.0.0.1:{c},2@127.0.0.1:{a},3@127.0.0.1:{b}",
            "one voter twice": "1@127.0.0.1:{c},1@127.0.0.1:{c}",
            "another voter": "2@127.0.0.1:{c}",
            "no id": "127.0.0.1:{c}",
            "an id of letters": "one@127.0.0.1:{c}",
            "no port of the voter": "1@127.0.0.1",
            "a port of letters": "1@127.0.0.1:http",
            "a comma at the end": "1@127.0.0.1:{c},",
        },
    )
    yield Case("three servers", {VOTERS: None, BOOTSTRAP: "127.0.0.1:{c},127.0.0.1:{a},127.0.0.1:{b}"})
    yield from _of(
        ROLES,
        {},
        {
            "roles empty": "",
            "a role with one wrong letter": "brokr,controller",
            "a role twice": "broker,broker",
            "broker among the voters": "broker",
            "controller with a listener of clients": "controller",
        },
    )
    alone = {LISTENERS: CONTROLLER[1:]}
    yield Case("controller alone", {ROLES: "controller", **alone})
    yield from _of(
        "node.id",
        {},
        {"id missing": None, "id empty": "", "id negative": "-1", "id of letters": "one", "another id": "7"},
    )
    yield Case("another id, and its voter", {"node.id": "7", VOTERS: "7@127.0.0.1:{c}"})
    yield Case("older name of the id", {"broker.id": "1"})
    yield Case("another id by the older name", {"broker.id": "2"})
    yield Case("the older name alone", {"node.id": None, "broker.id": "1"})


def _sasl() -> Iterator[Case]:
    secured = {LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP}
    yield from _of(
        MECHANISMS,
        {**secured, OWN_JAAS: ALICE},
        {
            "PLAIN": "PLAIN",
            "mechanisms missing": None,
            "mechanisms empty": "",
            "in small letters": "plain",
            "with one wrong letter": "PLAINN",
            "twice": "PLAIN,PLAIN",
            "a second without a module": "PLAIN,SCRAM-SHA-256",
            "a blank between": "PLAIN, PLAIN",
            "a semicolon between": "PLAIN;SCRAM-SHA-256",
            "a comma at the end": "PLAIN,",
        },
    )
    for name, module in (("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("OAUTHBEARER", BEARER), ("GSSAPI", "")):
        yield Case(f"{name} without a module", {**secured, MECHANISMS: name})
        if module:
            own = OWN_JAAS.replace("plain.sasl", f"{name.lower()}.sasl")
            yield Case(f"{name} with its module", {**secured, MECHANISMS: name, own: f"{module} required;"})
            file = f"KafkaServer {{ {module} required; }};"
            yield Case(f"{name} with its module in the file", {**secured, MECHANISMS: name}, file)
    plain = {**secured, MECHANISMS: "PLAIN"}
    yield Case("module of no listener", {**plain, "sasl.jaas.config": ALICE})
    yield Case("module of the listener, of no mechanism", {**plain, OWN_JAAS.replace("plain.sasl", "sasl"): ALICE})
    yield Case("module of another listener", {**plain, OWN_JAAS.replace("sasl_plaintext", "other"): ALICE})
    yield Case("module of another mechanism", {**plain, OWN_JAAS.replace("plain.sasl", "scram-sha-256.sasl"): ALICE})
    yield Case("key in capitals", {**plain, OWN_JAAS.replace("sasl_plaintext", "SASL_PLAINTEXT"): ALICE})
    yield Case("a module that does not fit", {**plain, OWN_JAAS: f"{SCRAM} required;"})
    yield Case(
        "mechanisms of the listener",
        {**plain, MECHANISMS: None, f"listener.name.sasl_plaintext.{MECHANISMS}": "PLAIN", OWN_JAAS: ALICE},
    )
    yield Case("the file, for this listener", plain, f"sasl_plaintext.KafkaServer {{ {ALICE} }};")
    yield Case("the file, for another listener", plain, f"other.KafkaServer {{ {ALICE} }};")
    yield Case("the file, for clients", plain, f"KafkaClient {{ {ALICE} }};")
    yield Case("the file, empty", plain, "")
    yield Case("the file, cut", plain, f"KafkaServer {{ {ALICE}")
    yield Case("the file, an entry without modules", plain, "KafkaServer { };")
    yield Case("the file, two entries of one name", plain, f"KafkaServer {{ {ALICE} }}; KafkaServer {{ {ALICE} }};")
    yield Case("the file, with comments", plain, f"/* all */ KafkaServer {{ // one\n {ALICE} }};")
    two = {
        LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}},OTHER://127.0.0.1:0{CONTROLLER}",
        PROTOCOLS: f"{MAP},OTHER:SASL_PLAINTEXT",
    }
    yield Case("a second listener without users", {**two, MECHANISMS: "PLAIN", OWN_JAAS: ALICE})
    between = {
        LISTENERS: f"SASL_PLAINTEXT://127.0.0.1:{{a}}{CONTROLLER}",
        PROTOCOLS: MAP,
        MECHANISMS: "PLAIN",
        OWN_JAAS: ALICE,
    }
    yield Case("no listener between brokers", between)
    yield Case("between brokers by a mechanism that is not enabled", {**between, INTER: "SASL_PLAINTEXT"})


def _jaas() -> Iterator[Case]:
    plain = {LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP, MECHANISMS: "PLAIN"}
    yield from _of(
        OWN_JAAS,
        plain,
        {
            "empty": "",
            "no users": f"{PLAIN} required;",
            "a blank": " ",
            "no flag": f"{PLAIN};",
            "a flag with one wrong letter": f'{PLAIN} requird user_a="b";',
            "a flag in capitals": f'{PLAIN} REQUIRED user_a="b";',
            "no semicolon": f'{PLAIN} required user_a="b"',
            "no value": f"{PLAIN} required user_a;",
            "an empty value": f'{PLAIN} required user_a="";',
            "no equals sign": f'{PLAIN} required user_a "b";',
            "an unquoted word": f"{PLAIN} required user_a=b;",
            "an unquoted number": f"{PLAIN} required user_a=12;",
            "single quotes": f"{PLAIN} required user_a='b';",
            "a quote that is not closed": f'{PLAIN} required user_a="b;',
            "an option twice": f'{PLAIN} required user_a="b" user_a="c";',
            "two modules": ALICE + ALICE,
            "a class alone": PLAIN,
            "an entry of a file": f"KafkaServer {{ {ALICE} }};",
            "in quotes": f'"{ALICE}"',
        },
    )


def _tls() -> Iterator[Case]:
    secured = {LISTENERS: f"{ONE},SSL://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP}
    key, chain, kind = "ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.keystore.type"
    good = {**secured, key: "<key.pem>", chain: "<chain.pem>", kind: "PEM"}
    trusted = {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "<ca.pem>"}
    yield Case("as it should be", good)
    yield Case("in one line", {**good, key: "<key.pem|line>", chain: "<chain.pem|line>"})
    yield Case("no key", secured)
    yield Case("the type left out", {**good, kind: None})
    yield Case("the type in small letters", {**good, kind: "pem"})
    yield Case("a key without certificates", {**good, chain: None})
    yield Case("certificates without a key", {**good, key: None})
    yield Case("an empty key", {**good, key: ""})
    yield Case("a key that is none", {**good, key: "<nonsense>"})
    yield Case("certificates that are none", {**good, chain: "<nonsense>"})
    yield Case("the certificate of another key", {**good, chain: "<other.pem>"})
    yield Case("a key with its password", {**good, key: "<locked.pem>", "ssl.key.password": "secret"})
    yield Case("a key with a wrong password", {**good, key: "<locked.pem>", "ssl.key.password": "sesame"})
    yield Case("a key without its password", {**good, key: "<locked.pem>"})
    yield Case("a key, and a file of it", {**good, "ssl.keystore.location": "{folder}/both.pem"})
    own = {f"listener.name.ssl.{name}": good[name] for name in (key, chain, kind)}
    yield Case("of the listener", {**secured, **own})
    yield Case(
        "of another listener", {**secured, **{name.replace(".ssl.", ".other.", 1): text for name, text in own.items()}}
    )
    yield from _of(
        CLIENT_AUTH,
        {**good, **trusted},
        {
            "clients show certificates": "required",
            "client.auth in capitals": "REQUIRED",
            "client.auth with one wrong letter": "require",
            "client.auth empty": "",
        },
    )
    yield Case("client.auth without trust", {**good, CLIENT_AUTH: "required"})
    yield Case(
        "trust that is none", {**good, **trusted, "ssl.truststore.certificates": "<nonsense>", CLIENT_AUTH: "required"}
    )
    yield from _of(
        "ssl.enabled.protocols",
        good,
        {
            "TLSv1.3 alone": "TLSv1.3",
            "no version": "",
            "a version that is none": "TLSv1.4",
            "a version that is old": "TLSv1.1",
            "a version twice": "TLSv1.2,TLSv1.2",
        },
    )
    yield Case("a cipher suite that is none", {**good, "ssl.cipher.suites": "TLS_NONE"})
    yield Case("a cipher suite", {**good, "ssl.cipher.suites": "TLS_AES_256_GCM_SHA384"})
    yield Case("rules that are none", {**good, "ssl.principal.mapping.rules": "RULE:nonsense"})
    sasl = {LISTENERS: f"{ONE},SASL_SSL://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP, MECHANISMS: "PLAIN"}
    user = {OWN_JAAS.replace("plaintext", "ssl"): ALICE}
    yield Case("SASL_SSL", {**good, **sasl, **user})
    yield Case("SASL_SSL without a key", {**sasl, **user})
    yield Case("SASL_SSL without users", {**good, **sasl})


def _stores() -> Iterator[Case]:
    secured = {LISTENERS: f"{ONE},SSL://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP}
    place, kind, word = "ssl.keystore.location", "ssl.keystore.type", "ssl.keystore.password"
    store = {**secured, place: "{folder}/store.p12", kind: "PKCS12", word: "secret"}
    yield Case("PKCS12", store)
    yield Case("PKCS12, called JKS", {**store, kind: None})
    yield Case("PKCS12, a wrong password", {**store, word: "sesame"})
    yield Case("PKCS12, no password", {**store, word: None})
    yield Case("a type that is none", {**store, kind: "PKCS13"})
    yield Case("a file that is not there", {**store, place: "{folder}/nowhere"})
    yield Case("an empty path", {**store, place: ""})
    yield Case("a file that is no store", {**store, place: "{folder}/nonsense"})
    yield Case("an empty file", {**store, place: "{folder}/empty"})
    yield Case("a password, no file", {**secured, word: "secret"})
    file = {**secured, place: "{folder}/both.pem", kind: "PEM"}
    yield Case("PEM", file)
    yield Case("PEM with a password", {**file, word: "secret"})
    yield Case("PEM, called JKS", {**file, kind: None, word: "secret"})
    yield Case("PEM without a key", {**file, place: "{folder}/chain.pem"})
    yield Case("PEM without certificates", {**file, place: "{folder}/key.pem"})
    trust = {
        **store,
        CLIENT_AUTH: "required",
        "ssl.truststore.location": "{folder}/ca.pem",
        "ssl.truststore.type": "PEM",
    }
    yield Case("trust in a file", trust)
    yield Case("trust in a file that is not there", {**trust, "ssl.truststore.location": "{folder}/nowhere"})
    yield Case("trust in a file that is none", {**trust, "ssl.truststore.location": "{folder}/nonsense"})
    yield Case("trust in a file, called JKS", {**trust, "ssl.truststore.type": None})


# Texts of server.properties, which java.util.Properties reads.
TEXTS = (
    "a=1\nb:2\nc 3\nd\ne=\n",
    "a = 1 \n  b  :  2\n\tc\t3\n\fd\f4",
    "a=x\\ty\\nz\\rq\\ff\\bb\\0",
    "a=\\u00e4\\u20ac\\uD83D\\uDE00 \\\\u00e4",
    "a=\\u00E4\\u004",
    "a=\\uzzzz",
    "a=\\u",
    "a=x\\\n   y\\\r\n\t z\\\\\nb=2",
    "a=x\\",
    "a\\=b=c\nd\\:e:f\ng\\ h i\n\\#j=k\nl\\\\=m",
    "\\u0061=1\na\\tb=2",
    "# c\n! d\n  # e\na=#1\nb=!2\n#f\\\ng=3",
    "a=1\rb=2\r\nc=3",
    "a=1\x0b2\nb=1\x852\nc=1\u20282",
    "=1\n:2\n 3",
    "a==1\nb=:2\nc: =3\nd := 4",
    "a=1\na=2",
    "a=\\q\\\"\\'\\{\\$",
    "a=1\\ \nb=\\ 2",
    "listeners=PLAINTEXT\\://:9092,\\\n  SSL\\://:9093",
    'sasl.jaas.config=M required \\\n  user_a="b\\\\tc";',
    "\\\na=1\n\\\n\\\nb=2",
    "a\\\nb=1",
    "a=b\\\\\\\nc",
)
# Values of sasl.jaas.config, for Kafka's reader.
MODULES = (
    "a.B required;",
    "a.B required x=\"1\" y=two z='three';",
    'a.B optional x="a \\"b\\" ; = \\\\" ;',
    'a.B required x="\\n\\t\\r\\f\\b\\a\\v\\q\\0\\7\\12\\101\\1019\\477\\8";',
    'a.B required x="1\n";',
    'a.B required x="1;',
    'a.B /* b */ required // c\n x="/* d */" y="//";',
    "a.B / b\n required;",
    "a.B required x=a-b_c$d.1;",
    "a.B required x=1;",
    "a.B required x=-1;",
    "a.B required x=-;",
    "a.B required x=.5;",
    "a.B required x=a@b;",
    "a.B required x=a*;",
    'a.B required user_ä="ü€";',
    'a.B required x = "1"y="2";',
    'a.B required x="1",y="2";',
    "a.B sometimes;",
    "a.B",
    "",
    "a.B required",
    "a.B required; c.D required;",
    "'a.B' required;",
    'a.B "required" "x"="1";',
)
