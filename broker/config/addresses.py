"""Addresses of clients as Java writes them, and so Kafka: in groups' descriptions, ACLs and logs."""

from __future__ import annotations

from typing import Any


def client_host(peer: Any) -> str:
    """The host of a socket's peer as Kafka writes it: "/127.0.0.1", "/0:0:0:0:0:0:0:1"; "" where there is none."""
    if not peer:
        return ""
    return f"/{java_address(peer[0])}"


def host_port(host: str, port: int) -> str:
    """HOST:PORT, with brackets around an IPv6 address."""
    return f"[{host}]:{port}" if ":" in host and host[0] != "[" else f"{host}:{port}"


def java_address(text: str) -> str:
    """An IPv6 address with all of its groups, an IPv4 address that stands in one alone; other text as it is."""
    if ":" not in text:
        return text
    from ipaddress import IPv6Address  # 5 ms, and most addresses are not of this kind

    address, percent, zone = text.partition("%")
    try:
        found = IPv6Address(address)
    except ValueError:
        return text
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in found.exploded.split(":")) + percent + zone


def short_address(text: str) -> str:
    """The usual short form of an address that is written as Java does."""
    if ":" not in text:
        return text
    from ipaddress import IPv6Address  # 5 ms, and most addresses are not of this kind

    try:
        return str(IPv6Address(text))
    except ValueError:
        return text
