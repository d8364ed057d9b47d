"""Ranges of addresses in ACLs: a host such as 10.0.0.0/8 or fe80::/10 (CIDR notation).

Source: AclControlManager.validateHostPattern and StandardAuthorizerData of Kafka 4.4, whose texts these are; a live
        broker was asked for 36 hosts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from broker.config.features import knows_level

if TYPE_CHECKING:
    from ipaddress import IPv4Network, IPv6Network

    from broker.config.settings import BrokerConfig

SINCE_METADATA_VERSION: Final = 32
_IPV4: Final = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})", re.ASCII)
_IPV6: Final = re.compile(r"([^/%]*:[^/%]*)(?:%[^/]*)?/([^/]*)")
_DIGITS: Final = re.compile(r"[0-9]{1,9}")


def are_known(config: BrokerConfig) -> bool:
    """Whether the release that is imitated knows ranges: from 4.4 on."""
    return knows_level("metadata.version", SINCE_METADATA_VERSION, config.release)


def fault_of(host: str) -> str:
    """Why an ACL cannot have this host; "" if it can."""
    if not host:
        return "Host pattern cannot be null or empty"
    if "/" not in host:
        return ""
    why = _fault(host)
    return f"Invalid CIDR notation '{host:.249}': {why}" if why else ""


def is_within(host: str, pattern: str) -> bool:
    """Whether an address is in the range of an ACL; not if one of them is none."""
    found = _range_of(pattern)
    if found is None:
        return False
    from ipaddress import ip_address  # 3 ms: few ACLs have ranges

    try:
        return ip_address(host.partition("%")[0]) in found
    except ValueError:
        return False


def _fault(text: str) -> str:
    if found := _IPV4.fullmatch(text):
        for value, most in zip(map(int, found.groups()), (255, 255, 255, 255, 32), strict=True):
            if value > most:
                return f"Value [{value}] not in range [0,{most}]"
        return ""
    found = _IPV6.fullmatch(text)
    if not found:
        return f"Could not parse [{text:.249}]"
    address, bits = found[1], found[2]
    if not _DIGITS.fullmatch(bits):
        return f"Could not parse [{text:.249}] - invalid prefix length"
    if int(bits) > 128:
        return f"Could not parse [{text:.249}] - prefix length must be between 0 and 128"
    if "." in address:  # Java reads ::ffff:10.0.0.1 as an address of IPv4
        return f"Could not parse [{address:.249}] - not an IPv6 address"
    return "" if _range_of(text) is not None else f"Could not parse [{address:.249}]"


@lru_cache(1000)
def _range_of(text: str) -> IPv4Network | IPv6Network | None:
    from ipaddress import IPv4Network, IPv6Network  # 3 ms: as above

    try:
        if found := _IPV4.fullmatch(text):
            return IPv4Network((".".join(str(int(each)) for each in found.groups()[:4]), int(found[5])), strict=False)
        if found := _IPV6.fullmatch(text):
            return IPv6Network((found[1], int(found[2])), strict=False)
    except ValueError:
        pass
    return None
