"""Packages as they are listed in a bill of materials."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """A package that an artifact contains."""

    type: str
    """The type of its package URL: `deb`, `apk`, `rpm`, `pypi`, `npm` or `helm`."""
    name: str
    version: str
    namespace: str = ""
    """The distribution or the scope that it belongs to."""
    architecture: str = ""
    repository: str = ""
    """Where it comes from, if it says so."""
    epoch: str = ""
    """What rpm compares before the version."""

    @property
    def url(self) -> str:
        """Its package URL."""
        space = f"{quote(self.namespace, safe='')}/" if self.namespace else ""
        facts = {
            "arch": self.architecture,
            "epoch": self.epoch,
            "repository_url": self.repository,
        }
        qualifiers = "&".join(
            f"{key}={quote(value, safe='')}" for key, value in facts.items() if value
        )
        name, version = quote(self.name, safe=""), quote(self.version, safe="")
        return f"pkg:{self.type}/{space}{name}@{version}" + (f"?{qualifiers}" if qualifiers else "")
