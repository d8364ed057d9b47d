"""Settings of listeners, advertised addresses, protocols and quorum, as cases of a start."""

from __future__ import annotations

from collections.abc import Iterator

from differential.start_case import (
    ADVERTISED,
    BOOTSTRAP,
    CONTROLLER,
    CONTROLLERS,
    INTER,
    INTER_PROTOCOL,
    LISTENERS,
    MAP,
    ONE,
    PROTOCOLS,
    ROLES,
    VOTERS,
    Case,
    each_of,
)


def listener_cases() -> Iterator[Case]:
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
    yield from each_of(LISTENERS, mapped, {name: text + CONTROLLER for name, text in clients.items()})
    yield from each_of(
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


def advertised_cases() -> Iterator[Case]:
    two = {LISTENERS: f"{ONE},B://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: f"{MAP},B:PLAINTEXT"}
    yield from each_of(
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


def map_cases() -> Iterator[Case]:
    own = {LISTENERS: f"INSIDE://127.0.0.1:{{a}},PLAINTEXT://127.0.0.1:{{b}}{CONTROLLER}"}
    rest = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT"
    yield from each_of(
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


def inter_broker_cases() -> Iterator[Case]:
    two = {LISTENERS: f"{ONE},B://127.0.0.1:{{b}}{CONTROLLER}", PROTOCOLS: f"{MAP},B:PLAINTEXT"}
    yield from each_of(
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
    yield from each_of(
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


def controller_cases() -> Iterator[Case]:
    yield from each_of(
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


def quorum_cases() -> Iterator[Case]:
    yield from each_of(
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
    yield from each_of(
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
    yield from each_of(
        "node.id",
        {},
        {"id missing": None, "id empty": "", "id negative": "-1", "id of letters": "one", "another id": "7"},
    )
    yield Case("another id, and its voter", {"node.id": "7", VOTERS: "7@127.0.0.1:{c}"})
    yield Case("older name of the id", {"broker.id": "1"})
    yield Case("another id by the older name", {"broker.id": "2"})
    yield Case("the older name alone", {"node.id": None, "broker.id": "1"})
