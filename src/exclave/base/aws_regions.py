"""Regions of AWS: which partition each is in, and the domain of its services."""

import re
from typing import Final, NamedTuple

REGION: Final = r"^[a-z]{2,4}(-[a-z]+){1,3}-[0-9]{1,2}$"
_REGION: Final = re.compile(REGION)


class Partition(NamedTuple):
    """A part of AWS that has accounts, names and a domain of its own."""

    name: str
    """As ARNs begin: `arn:<name>:`."""
    suffix: str
    """The domain that the names of services end with."""


_STANDARD: Final = Partition("aws", "amazonaws.com")
_OTHERS: Final = {
    "cn-": Partition("aws-cn", "amazonaws.com.cn"),
    "us-gov-": Partition("aws-us-gov", "amazonaws.com"),
    "eusc-": Partition("aws-eusc", "amazonaws.eu"),
}
_UNREACHABLE: Final = ("us-iso", "eu-iso")
"""Partitions without a way from or to the internet."""


def find_partition(region: str) -> Partition | None:
    """Return the partition of a region; None if nobody outside can reach it, or it is none."""
    if not _REGION.fullmatch(region) or region.startswith(_UNREACHABLE):
        return None
    for prefix, partition in _OTHERS.items():
        if region.startswith(prefix):
            return partition
    return _STANDARD


def name_service(service: str, region: str) -> str:
    """Return the host of a service in a region, such as `sts.eu-west-1.amazonaws.com`."""
    partition = find_partition(region) or _STANDARD
    return f"{service}.{region}.{partition.suffix}"
