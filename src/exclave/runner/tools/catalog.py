"""The source of each tool: its vendor's downloads, its Go module, known versions."""

import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field

_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Vendor:
    """How to get one tool. In texts, `{v}`, `{os}` and `{arch}` are filled in."""

    name: str
    default: str
    """The version to install if none is asked for and none is installed."""
    folder: str
    """The address of the folder that holds a release."""
    file: str
    sums: str
    """The file of SHA-256 sums beside it."""
    zipped: bool
    module: str = ""
    """The Go module with the source; empty if it cannot be built from its module alone."""
    package: str = "."
    module_sums: Mapping[str, str] = field(default_factory=dict)
    """The `h1:` sum of the module by version; its go.sum pins everything else."""

    def fill(self, text: str, version: str) -> str:
        """Return a text with version, system and architecture filled in."""
        arch = _ARCHITECTURES.get(platform.machine().lower(), platform.machine().lower())
        return text.format(v=version, os=sys.platform, arch=arch)


VENDORS: dict[str, Vendor] = {
    vendor.name: vendor
    for vendor in (
        Vendor(
            name="terraform",
            default="1.11.4",
            folder="https://releases.hashicorp.com/terraform/{v}",
            file="terraform_{v}_{os}_{arch}.zip",
            sums="terraform_{v}_SHA256SUMS",
            zipped=True,
            # Its backends are separate modules that no module proxy serves.
        ),
        Vendor(
            name="tofu",
            default="1.12.6",
            folder="https://github.com/opentofu/opentofu/releases/download/v{v}",
            file="tofu_{v}_{os}_{arch}.zip",
            sums="tofu_{v}_SHA256SUMS",
            zipped=True,
            module="github.com/opentofu/opentofu",
            package="./cmd/tofu",
            module_sums={"1.12.6": "h1:0VT4P8pMmGcCUnQ9JDrJ+Qg2d35Vzm4FFd/9+H7oF98="},
        ),
        Vendor(
            name="opa",
            default="1.22.0",
            folder="https://github.com/open-policy-agent/opa/releases/download/v{v}",
            file="opa_{os}_{arch}_static",
            sums="opa_{os}_{arch}_static.sha256",
            zipped=False,
            module="github.com/open-policy-agent/opa",
            module_sums={"1.22.0": "h1:CwxTSHfk5GmA1CaySVWyxRvggY2xZYxKL6bhDuWOCuU="},
        ),
    )
}
