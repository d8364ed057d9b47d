"""How long others wait while a listener is attacked: p50 and p99 of a request, beside and without.

    python -m benchmarks.hostile [--connections 1000] [--seconds 3]

Each attack comes from a process of its own: half-open connections that send nothing, ones that send a byte a second
(slowloris), a flood of TLS handshakes. Meanwhile one authenticated client asks for
metadata, one request after the other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import socket
import ssl
import statistics
import time
from collections.abc import Callable

from momus import Broker
from momus.client.connect_settings import SETTINGS
from momus.launch import use_packages

use_packages()

from momus.client.wire import Connection  # noqa: E402  # after use_packages
from protocol.messages.cluster import MetadataRequest  # noqa: E402  # the same


def _opened(host: str, port: int, n: int) -> list[socket.socket]:
    return [socket.create_connection((host, port)) for _ in range(n)]


def half_open(host: str, port: int, n: int) -> None:
    """Connections that send nothing."""
    kept = _opened(host, port, n)
    time.sleep(3600)
    del kept


def slowloris(host: str, port: int, n: int) -> None:
    """Connections that send a byte a second."""
    kept = _opened(host, port, n)
    while True:
        for each in kept:
            try:
                each.send(b"\x16")
            except OSError:
                each.close()
        time.sleep(1)


def flood(host: str, port: int, n: int) -> None:
    """Handshakes, as many as this process can begin."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    while True:
        try:
            with socket.create_connection((host, port)) as plain, context.wrap_socket(plain):
                pass
        except OSError:
            continue


ATTACKS: dict[str, Callable[[str, int, int], None]] = {
    "half open": half_open,
    "slowloris": slowloris,
    "handshakes": flood,
}


def measure(connection: Connection, seconds: float) -> tuple[float, float]:
    """p50 and p99 of a request, in milliseconds."""
    taken, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        connection.call(MetadataRequest(topics=[]))
        taken.append((time.perf_counter() - begin) * 1000)
    return statistics.median(taken), statistics.quantiles(taken, n=100)[98]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=3.0)
    options = parser.parse_args()
    with Broker(security="sasl_ssl", flush="memory", log_level="error") as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        SETTINGS.update(broker.client_config("confluent"))
        connection = Connection(host, int(port), 30)
        print(f"{'':>12} {'p50 ms':>10} {'p99 ms':>10}")
        for name, attack in ({"alone": None} | ATTACKS).items():
            attacker = None
            if attack is not None:
                attacker = multiprocessing.Process(
                    target=attack, args=(host, int(port), options.connections), daemon=True
                )
                attacker.start()
                time.sleep(1)
            print(f"{name:>12} {'{:>10.2f} {:>10.2f}'.format(*measure(connection, options.seconds))}")
            if attacker is not None:
                attacker.kill()
                attacker.join()


if __name__ == "__main__":
    main()
