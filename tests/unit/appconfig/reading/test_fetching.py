import http.client
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from exclave.appconfig.model.kinds.helm_chart import HelmChart
from exclave.appconfig.reading.fetching import HttpsFetcher, _read_body, find_public_address
from exclave.appconfig.reading.references import FetchFailed
from tests.unit.appconfig.directories import REPO, codes, read

HELM = (
    'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n'
    + REPO
    + '[[values_file]]\ncontents = "https://example.com/v.yaml"\n'
)


class Answers:
    def __init__(self, text: str | None) -> None:
        self.text = text

    def fetch(self, address: str) -> str:
        if self.text is None:
            raise FetchFailed("no", "why")
        return f"{self.text} {address}"


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def answer(host: str, port: int, **more: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", answer)


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "192.168.1.1", "169.254.169.254", "::1", "fd00::1", "0.0.0.0",  # noqa: S104
     "::ffff:10.0.0.1", "100.64.0.1", "224.0.0.1", "192.0.0.192", "::127.0.0.1", "3fff::1",
     "64:ff9b::7f00:1", "2002:7f00:1::"],
)  # fmt: skip
def test_private_addresses_are_never_asked(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    resolve_to(monkeypatch, "93.184.216.34", address)

    with pytest.raises(FetchFailed, match="private"):
        HttpsFetcher().fetch("https://example.com/x")


def test_public_addresses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_to(monkeypatch, "93.184.216.34")

    assert find_public_address("example.com", 443) == "93.184.216.34"


@pytest.mark.parametrize(
    "url", ["http://example.com", "git::https://x//y", "https://", "https://[x"]
)
def test_only_https_is_fetched(url: str) -> None:
    with pytest.raises(FetchFailed):
        HttpsFetcher().fetch(url)


def test_fetched_text_takes_the_place_of_its_address(tmp_path: Path) -> None:
    reading = read(tmp_path, {"components/w.toml": HELM}, fetcher=Answers("a: 1"))

    contents = reading.app.list(HelmChart)[-1].values_file[0].contents
    assert contents == "a: 1 https://example.com/v.yaml"


def test_git_is_not_asked_even_then(tmp_path: Path) -> None:
    text = HELM.replace("https://example.com/v.yaml", "git::https://example.com/a//v.yaml?ref=x")

    reading = read(tmp_path, {"components/w.toml": text}, fetcher=Answers(None))

    assert codes(reading) == {"reference_not_followed"}


def test_what_cannot_be_fetched_is_an_error(tmp_path: Path) -> None:
    reading = read(tmp_path, {"components/w.toml": HELM}, fetcher=Answers(None))

    assert codes(reading) == {"reference_failed"}


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("github.com/o/r//a/v.yaml", "https://raw.githubusercontent.com/o/r/HEAD/a/v.yaml"),
        ("git::https://github.com/o/r.git//v.yaml?ref=v1.2", "https://raw.githubusercontent.com/o/r/v1.2/v.yaml"),
        ("git::https://gitlab.com/g/sub/r.git//a/v.yaml?ref=main", "https://gitlab.com/g/sub/r/-/raw/main/a/v.yaml"),
        ("git::https://bitbucket.org/o/r//v.yaml", "https://bitbucket.org/o/r/raw/HEAD/v.yaml"),
    ],
)  # fmt: skip
def test_a_file_of_a_public_repository_is_fetched_without_git(
    value: str, address: str, tmp_path: Path
) -> None:
    text = HELM.replace("https://example.com/v.yaml", value)

    reading = read(tmp_path, {"components/w.toml": text}, fetcher=Answers("got"))

    chart = next(each for each in reading.app.list(HelmChart) if each.name == "web")
    assert (codes(reading), chart.values_file[0].contents) == (set(), f"got {address}")


@pytest.mark.parametrize(
    "value", ["git::https://git.example.com/o/r//v.yaml", "git@github.com:o/r"]
)
def test_other_repositories_are_told_about(value: str, tmp_path: Path) -> None:
    text = HELM.replace("https://example.com/v.yaml", value)

    reading = read(tmp_path, {"components/w.toml": text}, fetcher=Answers("got"))

    assert [each.hint for each in reading.diagnostics] == ["Keep the file in the app directory."]


class Dripping:
    def read1(self, size: int) -> bytes:
        return b"x"[:size]


def test_a_server_that_hands_out_drops_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter(range(100))
    monkeypatch.setattr(
        "exclave.appconfig.reading.fetching.SystemClock.monotonic", lambda _: float(next(times))
    )

    with pytest.raises(FetchFailed, match="longer than 5 s"):
        _read_body(cast("http.client.HTTPResponse", Dripping()))
