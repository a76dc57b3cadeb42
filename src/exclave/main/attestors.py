"""Which clouds may attest runners, and where each is asked, from the settings."""

from pathlib import Path

import certifi

from exclave.base.clock import Clock
from exclave.base.errors import InvalidInput
from exclave.control.attest.aws import AwsAttestor
from exclave.control.attest.azure import AzureAddresses, AzureAttestor, load_roots
from exclave.control.attest.base import Attestor, Attestors
from exclave.control.attest.fetching import Fetcher
from exclave.control.attest.gcp import GcpAttestor
from exclave.control.attest.jwt_keys import KeySets
from exclave.domain.stacks import Cloud
from exclave.main.settings import ServerSettings

_OFF = "off"
_CLOUDS = (Cloud.AWS, Cloud.AZURE, Cloud.GCP)


def build_attestors(settings: ServerSettings, clock: Clock) -> Attestors:
    """Return the attestors of the clouds that the operator allows."""
    fetcher = Fetcher(settings.attest_proxy)
    keys = KeySets(fetcher, clock)
    by_cloud: dict[Cloud, Attestor] = {}
    for cloud in _list_clouds(settings.attest):
        if cloud is Cloud.AWS:
            by_cloud[cloud] = AwsAttestor(fetcher, clock, settings.attest_sts_url)
        elif cloud is Cloud.GCP:
            by_cloud[cloud] = GcpAttestor(keys, settings.attest_google_keys_url)
        else:
            roots = load_roots(_read_roots(settings.attest_roots))
            addresses = AzureAddresses(settings.attest_azure_keys_url)
            by_cloud[cloud] = AzureAttestor(fetcher, keys, clock, roots, addresses)
    return Attestors(by_cloud)


def _list_clouds(text: str) -> list[Cloud]:
    names = text.replace(",", " ").split()
    if names in ([], [_OFF]):
        return []
    unknown = [name for name in names if name not in _CLOUDS]
    if unknown:
        raise InvalidInput(
            f"EXCLAVE_ATTEST: `{unknown[0]}` is not a cloud that attests machines",
            hint="Use some of aws, azure, gcp, split by commas, or `off`.",
        )
    return [Cloud(name) for name in names]


def _read_roots(file: Path | None) -> bytes:
    try:
        return (file or Path(certifi.where())).read_bytes()
    except OSError as error:
        raise InvalidInput(
            f"EXCLAVE_ATTEST_ROOTS: `{file}` cannot be read: {error.strerror}",
            hint="Name a file with PEM certificates.",
        ) from error
