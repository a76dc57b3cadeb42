"""The environment of child processes; nothing is inherited from the runner."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exclave.runner.jobs.workspace import Workspace

_RESERVED = "EXCLAVE_"
_LOOPBACK = ("localhost", "127.0.0.1")


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """Settings for all child processes of a runner: PATH, proxy, CA bundle."""

    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    lang: str = "C.UTF-8"
    proxy: str | None = None
    no_proxy: str | None = None
    ca_bundle: Path | None = None


def build_env(
    settings: ChildSettings, workspace: Workspace, *layers: Mapping[str, str]
) -> dict[str, str]:
    """Return a child's environment: the runner's settings, then the job's layers in order.

    Only the runner sets names that begin with `EXCLAVE_`; those of a job are dropped.
    """
    env = {
        "PATH": settings.path,
        "LANG": settings.lang,
        "HOME": str(workspace.home),
        "TMPDIR": str(workspace.tmp),
        **_write_proxy(settings.proxy, settings.no_proxy),
        **_write_ca(settings.ca_bundle),
    }
    for layer in layers:
        env |= {name: value for name, value in layer.items() if not name.startswith(_RESERVED)}
    return env


def _write_proxy(proxy: str | None, no_proxy: str | None) -> dict[str, str]:
    if not proxy:
        return {}
    names = ("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy")
    # The endpoints that a job has at the runner are on the loopback, where no proxy leads.
    direct = ",".join(dict.fromkeys([*(no_proxy or "").split(","), *_LOOPBACK])).strip(",")
    return dict.fromkeys(names, proxy) | dict.fromkeys(("NO_PROXY", "no_proxy"), direct)


def _write_ca(bundle: Path | None) -> dict[str, str]:
    if bundle is None:
        return {}
    names = (
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "CURL_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "AWS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
    )
    return dict.fromkeys(names, str(bundle))
