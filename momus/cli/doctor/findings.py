"""What is wrong, in sentences: pure judgements over what the probes and the broker said."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import NamedTuple

from momus.cli.doctor.probe import Probe

OK, WARNING, PROBLEM = "ok", "warning", "problem"
SKEW_LIMIT_MS = 5_000
PRODUCE, FETCH, METADATA = 0, 1, 3
# What clients of Kafka 4.x begin with (KIP-896): a broker that ends below it cannot serve them.
NEEDED_BY_4 = {PRODUCE: ("Produce", 3), FETCH: ("Fetch", 4), METADATA: ("Metadata", 0)}


class Finding(NamedTuple):
    """One thing that is well or not. `about`: an address, a node, or a topic."""

    level: str
    about: str
    sentence: str


def of_probe(address: str, probe: Probe, advertised_by: str = "") -> Finding:
    """What is at an address; `advertised_by`: who sent clients there."""
    host, _, port = address.rpartition(":")
    sent = f"{advertised_by} sends clients to {address}, but " if advertised_by else ""
    match probe.kind:
        case "kafka":
            return Finding(OK, address, f"a broker answers in {probe.ms:.0f} ms")
        case "unknown host":
            sentence = f"the name {host!r} is not known here ({probe.detail})"
            advice = "set advertised.listeners to a name that clients can resolve, or add it to their hosts file"
        case "refused":
            sentence = f"nothing listens on {address} ({probe.detail} refused the connection)"
            advice = "start the broker, or map this port out of its container"
        case "unreachable":
            sentence = f"{address} cannot be reached ({probe.detail})"
            advice = "look at the network, a firewall, or the host part of the address"
        case "tls":
            trouble = f"; its certificate is not accepted here: {probe.detail}" if probe.detail else ""
            sentence = f"this listener speaks TLS{trouble}"
            advice = "set security.protocol=SSL, and ssl.ca.location or a truststore that knows its certificate"
        case "http":
            sentence = f"an HTTP server answers ({probe.detail})"
            advice = f"port {port} is not the Kafka port; momus' control endpoint is not for Kafka clients"
        case "silent":
            sentence = "the connection is accepted, and then nothing answers"
            advice = "is there a proxy or another program on this port, or a broker that hangs?"
        case "hangs up":
            sentence = "the connection is accepted and closed without an answer"
            advice = "is the broker behind the proxy or port mapping down, or does it allow no more connections?"
        case _:
            sentence = f"something answers that is no Kafka broker: {probe.detail}"
            advice = "look at what listens on this port"
    advice = "set advertised.listeners to an address that clients reach" if sent and probe.kind == "refused" else advice
    return Finding(PROBLEM, address, f"{sent}{sentence}: {advice}")


def of_versions(address: str, versions: Mapping[int, tuple[int, int]], release: str | None) -> Finding:
    """Whether clients of today can speak with it. `release`: what it answers like."""
    if not versions:
        return Finding(PROBLEM, address, "its answer to ApiVersions cannot be read: it is no broker of 0.10 or later")
    for key, (name, least) in NEEDED_BY_4.items():
        newest = versions.get(key, (0, -1))[1]
        if newest < least:
            told = f"ends at version {newest}" if newest >= 0 else "is not there"
            return Finding(
                PROBLEM,
                address,
                f"{name} {told}, and clients of Kafka 4.x begin at {least}: use clients below 4.0, or a newer broker",
            )
    oldest = versions[FETCH][0]
    sentence = f"it answers as Apache Kafka {release} does" if release else f"it serves {len(versions)} APIs"
    if oldest >= 4:
        sentence += "; clients below 2.1 are too old for it (KIP-896)"
    return Finding(OK, address, sentence)


def of_advertised(asked: str, node: str, advertised: str) -> Finding | None:
    """Whether an advertised address can be right for others than the broker's own machine."""
    host, _, port = advertised.rpartition(":")
    if host in ("0.0.0.0", "[::]", ""):
        return Finding(
            PROBLEM,
            advertised,
            f"{node} advertises {host or 'no host'}, which no client can connect to: set advertised.listeners",
        )
    if port == "0":
        return Finding(PROBLEM, advertised, f"{node} advertises port 0: set advertised.listeners")
    if is_loopback(host) and not is_loopback(asked.rpartition(":")[0]):
        return Finding(
            PROBLEM,
            advertised,
            f"{node} sends clients to {advertised}, which is their own machine and not {asked}:"
            " set advertised.listeners",
        )
    return None


def is_loopback(host: str) -> bool:
    """Whether a name or address means the machine that asks."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def of_identity(
    node: str, advertised: str, cluster_id: str | None, found_id: str | None, *, is_other_node: bool
) -> Finding | None:
    """Whether who answers at an advertised address is who should."""
    if cluster_id != found_id:
        return Finding(
            PROBLEM,
            advertised,
            f"{node} sends clients to {advertised}, where another cluster answers ({found_id}, not {cluster_id}):"
            " set advertised.listeners",
        )
    if is_other_node:
        return Finding(
            PROBLEM,
            advertised,
            f"{node} sends clients to {advertised}, where another broker of the cluster answers: give each its own"
            " advertised.listeners",
        )
    return None


def of_hang_up(address: str) -> Finding:
    """A broker that answers ApiVersions and nothing else."""
    return Finding(
        PROBLEM,
        address,
        "it answers ApiVersions and hangs up at the next request: the listener wants SASL; set"
        " security.protocol=SASL_PLAINTEXT (or SASL_SSL), sasl.mechanism and a user",
    )


def of_skew(address: str, ahead_ms: float) -> Finding:
    """How far the broker's clock is from ours."""
    if abs(ahead_ms) <= SKEW_LIMIT_MS:
        return Finding(OK, address, f"its clock and this one agree within {SKEW_LIMIT_MS // 1000} s")
    way = "ahead of" if ahead_ms > 0 else "behind"
    return Finding(
        PROBLEM,
        address,
        f"its clock is {duration(abs(ahead_ms))} {way} this one: retention, offsets by time and log timestamps differ",
    )


def duration(ms: float) -> str:
    """About how long, in the largest unit that fits."""
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if ms >= 2 * size:
            return f"{ms / size:.0f} {unit}"
    return f"{ms / 1000:.0f} s"


def of_partitions(without_leader: list[str], under_replicated: list[str]) -> list[Finding]:
    """Partitions that cannot be used, or that a failure would lose."""
    found = []
    for level, names, what in (
        (PROBLEM, without_leader, "have no leader: their brokers are down"),
        (WARNING, under_replicated, "have replicas that are not in sync"),
    ):
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            found.append(Finding(level, "topics", f"{', '.join(names[:5])}{more} {what}"))
    return found
