"""`momus doctor` against set-ups that are broken, each in its way: the sentence that says what is wrong."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress

import pytest
from momus_command import run_momus

from momus import Broker
from protocol.api import ApiKey
from protocol.codegen import codec
from protocol.messages.cluster import ApiVersion, ApiVersionsResponse

TIMEOUT = ("--timeout", "1")


@pytest.fixture
def listen():
    """Starts a listener whose connections are given to a function; its address."""
    with ExitStack() as ends:

        def start(serve: Callable[[socket.socket], None]) -> str:
            listener = socket.create_server(("127.0.0.1", 0))

            def accept() -> None:
                with suppress(OSError):
                    while True:
                        link, _ = listener.accept()
                        threading.Thread(target=run, args=(link,), daemon=True).start()

            def run(link: socket.socket) -> None:
                with link, suppress(OSError):
                    serve(link)

            ends.callback(listener.close)
            ends.callback(listener.shutdown, socket.SHUT_RDWR)
            threading.Thread(target=accept, daemon=True).start()
            return f"127.0.0.1:{listener.getsockname()[1]}"

        yield start


def doctor(*words: str, code: int = 1) -> str:
    done = run_momus("doctor", *words, *TIMEOUT)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


def test_healthy_broker_is_well(trio):
    shown = doctor(trio.bootstrap_servers.split(",")[0], "--write", code=0)
    assert "problem" not in shown
    for said in ("a broker answers", "broker 1 is there", "broker 3 is there", "written and read back", "agree within"):
        assert said in shown
    assert not any(name.startswith("momus-doctor") for name in _topics(trio))


def _topics(broker) -> list[str]:
    return [
        row["name"] for row in json.loads(run_momus("topic", "list", "--json", "-b", broker.bootstrap_servers).stdout)
    ]


def test_1_nobody_listens():
    address = free_address()
    assert f"nothing listens on {address} (127.0.0.1 refused the connection)" in doctor(address)


def test_2_name_is_not_known():
    assert "the name 'broker.invalid' is not known here" in doctor("broker.invalid:9092")


@pytest.mark.heavy
def test_3_port_that_is_silent(listen):
    assert "the connection is accepted, and then nothing answers" in doctor(
        listen(lambda link: link.recv(1 << 20) and _wait(link))
    )


def _wait(link: socket.socket) -> None:
    while link.recv(1 << 16):
        pass


def test_4_control_port_in_place_of_the_kafka_port(broker):
    shown = doctor(broker.control.address)
    assert "an HTTP server answers (HTTP/1.1 400 Bad Request)" in shown  # to the bytes of a Kafka client, at once
    assert "momus' control endpoint is not for Kafka clients" in shown


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A key and a certificate of our own for another host, made by openssl."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, cert = str(folder / "key.pem"), str(folder / "cert.pem")
    words = [
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=other",
        "-addext",
        "subjectAltName=DNS:other",
    ]
    subprocess.run(["openssl", *words, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


@pytest.mark.parametrize(
    ("trust", "why"),
    [(False, "self-signed certificate"), (True, "IP address mismatch")],
    ids=["untrusted", "other host"],
)
def test_5_listener_that_speaks_tls(listen, certificate, trust, why):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    address = listen(lambda link: context.wrap_socket(link, server_side=True).close())
    shown = doctor(address, *(("--cafile", certificate[0]) if trust else ()))
    assert "this listener speaks TLS; its certificate is not accepted here" in shown
    assert why in shown.replace("self signed", "self-signed")
    assert "set security.protocol=SSL" in shown


def test_5_listener_whose_tls_refuses_by_an_alert(listen):
    address = listen(lambda link: link.sendall(b"\x15\x03\x03\x00\x02\x02\x46") or _wait(link))
    assert "this listener speaks TLS; its certificate is not accepted here: protocol_version" in doctor(address)


def test_6_advertised_port_where_nobody_listens(serve):
    away = free_address()
    assert f"broker 1 sends clients to {away}, but nothing listens on {away}" in doctor(serve(away))


def test_7_advertised_name_that_is_not_known_outside_its_network(serve):
    shown = doctor(serve("kafka.invalid:9092"))
    assert "broker 1 sends clients to kafka.invalid:9092, but the name 'kafka.invalid' is not known here" in shown
    assert "set advertised.listeners" in shown


def test_8_advertised_address_of_another_cluster(serve, broker):
    shown = doctor(serve(broker.bootstrap_servers))
    assert f"broker 1 sends clients to {broker.bootstrap_servers}, where another cluster answers" in shown


@pytest.mark.parametrize(("days", "said"), [(8, "8 days ahead of this one"), (-3, "3 days behind this one")])
def test_10_clock_that_is_wrong(days, said):
    from datetime import UTC, datetime, timedelta

    with Broker() as host:
        cluster = host.create_cluster(at=datetime.now(UTC) + timedelta(days=days))
        assert f"its clock is {said}" in doctor(cluster.bootstrap_servers, "--write")
        assert "clock" not in doctor(cluster.bootstrap_servers, code=0)


def answering(newest: dict[int, int]) -> Callable[[socket.socket], None]:
    """Serves ApiVersions, and hangs up at everything else."""

    def serve(link: socket.socket) -> None:
        while (size := link.recv(4)) and len(size) == 4:
            request = link.recv(int.from_bytes(size, "big"))
            if int.from_bytes(request[:2], "big") != ApiKey.API_VERSIONS:
                return
            keys = [ApiVersion(api_key=key, min_version=0, max_version=version) for key, version in newest.items()]
            body = request[4:8] + codec(ApiVersionsResponse, 0).encode(ApiVersionsResponse(api_keys=keys))
            link.sendall(len(body).to_bytes(4, "big") + body)

    return serve


def test_11_listener_that_wants_sasl(listen):
    address = listen(answering({ApiKey.PRODUCE: 11, ApiKey.FETCH: 17, ApiKey.METADATA: 12, ApiKey.API_VERSIONS: 0}))
    assert "it answers ApiVersions and hangs up at the next request: the listener wants SASL" in doctor(address)


def test_12_broker_too_old_for_clients_of_today(listen):
    address = listen(answering({ApiKey.PRODUCE: 2, ApiKey.FETCH: 3, ApiKey.METADATA: 2, ApiKey.API_VERSIONS: 0}))
    assert "Produce ends at version 2, and clients of Kafka 4.x begin at 3" in doctor(address)


def test_13_proxy_before_a_broker_that_is_down(listen):
    assert "the connection is accepted and closed without an answer" in doctor(listen(lambda link: None))


def test_14_port_of_another_program(listen):
    assert "something answers that is no Kafka broker" in doctor(
        listen(lambda link: link.sendall(b"SSH-2.0-OpenSSH_9\r\n") or _wait(link))
    )


def test_findings_are_json_and_the_exit_code_says_whether_there_is_a_problem(broker):
    done = run_momus("doctor", broker.bootstrap_servers, "--json", *TIMEOUT)
    assert done.returncode == 0
    assert {row["level"] for row in json.loads(done.stdout)} == {"ok"}


@pytest.mark.parametrize("words", [(), ("nonsense",), ("localhost:port",), ("localhost:1", "--cafile", "nowhere")])
def test_words_that_are_not_understood_exit_2(words):
    assert run_momus("doctor", *words).returncode == 2
