"""What package managers write about installed packages, and what is made of it."""

import gzip
import json
import sqlite3
from pathlib import Path

import pytest

from exclave.runner.builds.sbom.databases import find_kind, list_packages
from exclave.runner.builds.sbom.packages import Package

RPM = "var/lib/rpm/rpmdb.sqlite"
RPMDB = Path(__file__).parents[4] / "fixtures" / "sbom" / "rpmdb.sqlite.gz"
"""Written by rpm 4.18: `rpm --initdb`, then one package installed with `--justdb`."""
DPKG = """Package: libc6
Status: install ok installed
Architecture: amd64
Version: 2.36-9+deb12u4
Description: GNU C Library
 Version: of a continued line

Package: gone
Status: deinstall ok config-files
Version: 1.0
"""
APK = "C:Q1\nP:musl\nV:1.2.5-r0\nA:x86_64\n\nP:busybox\nV:1.36.1-r29\nA:x86_64\n"


def test_packages_of_debian_are_those_that_are_installed() -> None:
    files = {
        "etc/os-release": b'NAME="Debian"\nID=debian\n',
        "var/lib/dpkg/status": DPKG.encode(),
        "var/lib/dpkg/status.d/tzdata": b"Package: tzdata\nVersion: 2024a-0\nArchitecture: all\n",
    }

    assert [one.url for one in list_packages(files)] == [
        "pkg:deb/debian/libc6@2.36-9%2Bdeb12u4?arch=amd64",
        "pkg:deb/debian/tzdata@2024a-0?arch=all",
    ]


def test_packages_of_alpine() -> None:
    files = {"lib/apk/db/installed": APK.encode(), "usr/lib/os-release": b"ID=wolfi\n"}

    assert [one.url for one in list_packages(files)] == [
        "pkg:apk/wolfi/busybox@1.36.1-r29?arch=x86_64",
        "pkg:apk/wolfi/musl@1.2.5-r0?arch=x86_64",
    ]


def test_packages_of_rpm_are_read_from_its_own_database() -> None:
    files = {"etc/os-release": b"ID=fedora\n", RPM: gzip.decompress(RPMDB.read_bytes())}

    assert [package.url for package in list_packages(files)] == [
        "pkg:rpm/fedora/acme-tool@1.2.3-4?arch=noarch&epoch=2"
    ]


@pytest.mark.parametrize("cut", [0, 10, 5000])
def test_a_damaged_database_of_rpm_has_no_packages(cut: int) -> None:
    assert list_packages({RPM: gzip.decompress(RPMDB.read_bytes())[:cut]}) == []


def test_a_database_of_rpm_that_never_ends_is_given_up() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIEW Packages AS WITH RECURSIVE n(blob) AS"
        " (SELECT x'00' UNION ALL SELECT blob FROM n) SELECT blob FROM n WHERE blob = x'01'"
    )

    assert list_packages({RPM: connection.serialize()}) == []


def test_packages_of_python_and_node() -> None:
    site = "usr/lib/python3/site-packages"
    files = {
        f"{site}/Foo_Bar-1.2.dist-info/METADATA": b"Name: Foo_Bar\nVersion: 1.2\n\nVersion: 9\n",
        "app/node_modules/left-pad/package.json": b'{"name": "left-pad", "version": "1.3.0"}',
        "app/node_modules/@acme/ui/package.json": b'{"name": "@acme/ui", "version": "2.0.0"}',
        "app/node_modules/other/package.json": b'{"name": "alias", "version": "1.0.0"}',
    }

    assert [one.url for one in list_packages(files)] == [
        "pkg:npm/left-pad@1.3.0",
        "pkg:npm/%40acme/ui@2.0.0",
        "pkg:pypi/foo-bar@1.2",
    ]


def test_files_that_make_no_sense_are_left_out() -> None:
    deep = ("[" * 100_000).encode()
    files = {
        "app/node_modules/a/package.json": deep,
        "app/node_modules/b/package.json": json.dumps({"name": ["b"], "version": 1}).encode(),
        "var/lib/dpkg/status": b"Package: \xff\x00\nVersion: 1\n\nPackage: " + b"x" * 1000,
        "lib/apk/db/installed": b"P:tab\tbed\nV:1\n",
    }

    assert list_packages(files) == []


def test_only_databases_are_wanted() -> None:
    names = [
        "var/lib/dpkg/info/a.list",
        "package.json",
        "node_modules/a/lib/package.json",
        "a/../etc",
    ]

    assert not [name for name in names if find_kind(name)]


def test_the_parts_of_a_package_url_are_quoted() -> None:
    package = Package("helm", "a b", "1+2", repository="https://charts.example.com/x")

    assert package.url == (
        "pkg:helm/a%20b@1%2B2?repository_url=https%3A%2F%2Fcharts.example.com%2Fx"
    )
