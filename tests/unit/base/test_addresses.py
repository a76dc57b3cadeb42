"""Where nobody may fetch from, whatever the spelling and the version of Python."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exclave.base.addresses import (
    is_loopback,
    is_metadata,
    is_private_literal,
    is_public,
    names_metadata,
)

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.1.2.3", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.255",  # noqa: S104 - none is bound
    "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1", "192.0.0.8", "192.0.0.192",
    "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:169.254.169.254", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1", "100::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1",
    "2002:7f00:1::", "2002:a9fe:a9fe::", "3fff::1", "3fff:fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1",
    "", "localhost", "1", "127.1", "0x7f.1", "127.0.0.1:80", "１２７.0.0.1",  # noqa: RUF001 - on purpose
]  # fmt: skip
PUBLIC = [
    "140.82.121.4", "8.8.8.8", "1.1.1.1", "93.184.216.34", "192.0.1.1", "168.63.129.17", "172.32.0.1",
    "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888", "64:ff9b::808:808", "2002:808:808::",
    "::ffff:8.8.8.8",
]  # fmt: skip


METADATA = [
    "169.254.169.254", "169.254.170.2", "169.254.0.0", "168.63.129.16", "100.100.100.200", "192.0.0.192",
    "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42",
    "::ffff:169.254.169.254", "::169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::",
]  # fmt: skip


@pytest.mark.parametrize("address", METADATA)
def test_metadata_servers_are_known_and_never_public(address: str) -> None:
    assert is_metadata(address)
    assert names_metadata(address)
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["10.0.0.1", "127.0.0.1", "192.168.1.1", "::1", "fd00::1", *PUBLIC]
)
def test_other_private_and_public_addresses_are_no_metadata_servers(address: str) -> None:
    assert not is_metadata(address)
    assert not names_metadata(address)


@pytest.mark.parametrize(
    "host", ["2852039166", "0xa9fea9fe", "169.254.43518", "metadata.google.internal."]
)
def test_a_metadata_server_is_known_by_names_that_only_a_resolver_reads(host: str) -> None:
    assert names_metadata(host)


@pytest.mark.parametrize("host", ["github.com", "metadata.example", "0xcafe.dev"])
def test_ordinary_names_name_no_metadata_server(host: str) -> None:
    assert not names_metadata(host)


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_are_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_known(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_nothing_counts_as_public_that_python_calls_private(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    carries_another = isinstance(ip, ipaddress.IPv6Address) and (
        ip.ipv4_mapped or ip.sixtofour or str(ip).startswith("64:ff9b::")
    )

    assert not is_public(str(ip)) or ip.is_global or carries_another


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"],
)
def test_this_machine_is_known(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    ["", "localhost.evil.example", "10.0.0.1", "0.0.0.0", "127.0.0.1.nip.io", "::", "evil"],  # noqa: S104 - none is bound
)
def test_other_machines_are_not_this_one(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "0x7f.1",
        "0X7F000001",
        "2130706433",
        "017700000001",
        "127.1",
        "localhost.",
        "::1",
        "10.0.0.1.",
    ],
)
def test_a_private_address_is_known_in_each_spelling(host: str) -> None:
    assert is_private_literal(host)


@pytest.mark.parametrize(
    "host", ["github.com", "8.8.8.8", "2606:4700::1111", "10.example", "0xcafe.dev"]
)
def test_names_and_public_addresses_are_no_private_literals(host: str) -> None:
    assert not is_private_literal(host)
