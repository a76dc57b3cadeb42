"""Which network addresses are public or metadata servers, and which hosts are this machine.

The lists are ours and not `ipaddress.is_global`, whose answers differ between versions of Python.
"""

import ipaddress
import re

_Ip = ipaddress.IPv4Address | ipaddress.IPv6Address

_V4_SPECIAL = tuple(map(ipaddress.IPv4Network, (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "168.63.129.16/32",  # the host agent of an Azure machine, which only that machine reaches
)))  # fmt: skip
_V6_GLOBAL = ipaddress.IPv6Network("2000::/3")
_V6_SPECIAL = tuple(map(ipaddress.IPv6Network, ("2001::/23", "2001:db8::/32", "3fff::/20")))
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_METADATA = tuple(map(ipaddress.ip_network, (
    "169.254.0.0/16", "fe80::/10",  # of this link: AWS, Azure, Google Cloud and most others
    "168.63.129.16/32",  # the host agent of Azure
    "100.100.100.200/32",  # Alibaba Cloud
    "192.0.0.192/32",  # Oracle Cloud, older machines
    "fd00:ec2::/32",  # AWS: metadata, credentials of pods, time, DNS
    "fd20:ce::/32",  # Google Cloud
    "fd00:c1::/32",  # Oracle Cloud
    "fd00:42::42/128",  # Scaleway
)))  # fmt: skip
_METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog", "metadata"})
_V4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


def is_public(address: str) -> bool:
    """Return whether everybody on the internet reaches the same machine by this IP address."""
    try:
        ip = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _V4_SPECIAL)
    return ip in _V6_GLOBAL and not any(ip in network for network in _V6_SPECIAL)


def is_metadata(address: str) -> bool:
    """Return whether an IP address is of this link, or a server that knows a machine's credentials.

    A cloud trusts whatever a machine sends there, so nobody else may choose what it sends.
    """
    try:
        ip = _unwrap(ipaddress.ip_address(address.partition("%")[0]))
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address) and ip in _V4_COMPATIBLE:
        ip = ipaddress.IPv4Address(int(ip))
    return any(ip in network for network in _METADATA)


def names_metadata(host: str) -> bool:
    """Return whether a host names such a server without any look-up, as a proxy would resolve it.

    A number that is no address in its usual spelling may be one for the proxy.
    """
    name = host.rstrip(".").lower()
    return name in _METADATA_NAMES or (
        _is_literal(name) and (is_metadata(name) or not _is_address(name))
    )


def is_loopback(host: str) -> bool:
    """Return whether a host of a URL is this machine and nothing else."""
    if _is_localhost(host):
        return True
    try:
        return _unwrap(ipaddress.ip_address(host)).is_loopback
    except ValueError:
        return False


def is_private_literal(host: str) -> bool:
    """Return whether a host names a private address without any look-up.

    Resolvers read `127.1`, `0x7f.1` and `2130706433` as addresses too; such a spelling is private.
    """
    return _is_localhost(host) or (_is_literal(host) and not is_public(host))


def _is_literal(host: str) -> bool:
    last = host.rstrip(".").rpartition(".")[2].lower()
    return ":" in host or _NUMBER.fullmatch(last) is not None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _is_localhost(host: str) -> bool:
    name = host.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def _unwrap(ip: _Ip) -> _Ip:
    """Return the IPv4 address inside one that only carries it (mapped, 6to4, NAT64)."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    inner = ip.ipv4_mapped or ip.sixtofour
    if inner is None and ip in _NAT64:
        inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    return inner or ip
