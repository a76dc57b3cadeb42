import socket
from pathlib import Path
from typing import Any

import pytest

from exclave.appconfig.fetching import HttpsFetcher, find_public_address
from exclave.appconfig.kinds.helm_chart import HelmChart
from exclave.appconfig.references import FetchFailed
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
     "::ffff:10.0.0.1", "100.64.0.1", "224.0.0.1"],
)  # fmt: skip
def test_private_addresses_are_never_asked(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    resolve_to(monkeypatch, "93.184.216.34", address)

    with pytest.raises(FetchFailed, match="private"):
        HttpsFetcher().fetch("https://example.com/x")


def test_public_addresses_are(monkeypatch: pytest.MonkeyPatch) -> None:
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
