"""Settings of SASL, JAAS, TLS and its stores, as cases of a start."""

from __future__ import annotations

from collections.abc import Iterator

from differential.start_case import (
    ALICE,
    CLIENT_AUTH,
    CONTROLLER,
    INTER,
    LISTENERS,
    MAP,
    MECHANISMS,
    ONE,
    OWN_JAAS,
    PLAIN,
    PROTOCOLS,
    Case,
    each_of,
)

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


def sasl_cases() -> Iterator[Case]:
    secured = {LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP}
    yield from each_of(
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


def jaas_cases() -> Iterator[Case]:
    plain = {LISTENERS: f"{ONE},SASL_PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: MAP, MECHANISMS: "PLAIN"}
    yield from each_of(
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


def tls_cases() -> Iterator[Case]:
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
    yield from each_of(
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
    yield from each_of(
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


def store_cases() -> Iterator[Case]:
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
