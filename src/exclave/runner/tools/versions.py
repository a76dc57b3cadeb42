"""Versions of tools, and whether an installed version satisfies the requested one."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from exclave.runner.tools.catalog import Vendor

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?")
_SEARCH = re.compile(r"(?:v|Version:\s*)?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)")


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version of three numbers, and perhaps a name of a pre-release."""

    major: int
    minor: int
    patch: int
    pre: str = ""

    @classmethod
    def read(cls, text: str) -> Self | None:
        """Parse `1.11.4` or `v1.11.4`; None for anything else."""
        match = _VERSION.fullmatch(text.strip())
        if match is None:
            return None
        return cls(int(match[1]), int(match[2]), int(match[3]), match[4] or "")

    @classmethod
    def find(cls, text: str) -> Self | None:
        """Return the first version in the output of a tool, or None."""
        match = _SEARCH.search(text)
        return None if match is None else cls.read(match[1])

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}{self.pre}"


class Fit(StrEnum):
    """How well an installed version fits the requested one."""

    EXACT = "exact"
    NEWER_PATCH = "newer_patch"
    WRONG = "wrong"


def compare_versions(wanted: Version | None, installed: Version, *, strict: bool) -> Fit:
    """Return how well a version fits the requested one; a newer patch fits unless strict."""
    if wanted is None or wanted == installed:
        return Fit.EXACT
    same_minor = (wanted.major, wanted.minor) == (installed.major, installed.minor)
    released = not wanted.pre and not installed.pre
    if same_minor and released and installed.patch > wanted.patch and not strict:
        return Fit.NEWER_PATCH
    return Fit.WRONG


def explain_refusal(vendor: Vendor, version: Version) -> str:
    """Return why a version does not work with the runner, or nothing if it does."""
    oldest = Version.read(vendor.oldest)
    if oldest is not None and version < oldest:
        minor = f"{oldest.major}.{oldest.minor}"
        return f"{vendor.name} {minor} or newer is needed, for example {vendor.default}"
    if why := vendor.broken.get(str(version)):
        return f"{why}; use {vendor.default}"
    return ""
