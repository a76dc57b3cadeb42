"""Starts the Exclave runner of this machine; needs nothing but Python.

It reads the document of the Stack from the account's own store of secrets, fetches the one archive
that the document names, and runs it only if its SHA-256 is the one in the document.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import ssl
import subprocess
import sys
import tarfile
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

# What this machine is for. Nothing in it changes with versions, roles or inputs.
BOOT: dict[str, Any] = {}

ROOT = Path("/opt/exclave")
CERTIFICATES = Path("/etc/exclave/ca.pem")
LAUNCH = ["launch.py", "stack", "install-unit"]

TRIES = 93
QUICK_TRIES = 3
PAUSE_S = 10
TOLD = (0, 5, 30, 60)
MOST_TEXT = 1 << 20
MOST_PROGRAM = 256 << 20

# How the vendor is reached, as the document says.
NETWORK = {"proxy": ""}


def main(
    read_document: Callable[[], dict[str, Any]], read_certificates: Callable[[str], str]
) -> int:
    """Start the runner; return the exit code.

    `read_document` returns the document of the Stack, `read_certificates` the PEM text that the
    document refers to.
    """
    os.umask(0o022)
    report("booted")
    document = wait_for("the document of the Stack", read_document)
    NETWORK["proxy"] = document.get("proxy", "")
    if document["enabled"] != "true":
        report("disabled")
        return 0
    if ca_bundle := document.get("ca_bundle", ""):
        save_certificates(wait_for("the certificates", lambda: read_certificates(ca_bundle)))
    try:
        folder: Path = wait_for("the runner program", lambda: find_program(document))
    except ValueError as error:
        report("failed", str(error))
        return 1
    save_boot(folder)
    report("installed", document["bundle"]["version"])
    return subprocess.call([sys.executable, "-I", str(folder / LAUNCH[0]), *LAUNCH[1:]])  # noqa: S603 - words, no shell


def save_certificates(text: str) -> None:
    """Store the certificates that the customer wants this machine to trust."""
    CERTIFICATES.parent.mkdir(parents=True, exist_ok=True)
    CERTIFICATES.write_text(text)


def find_program(document: dict[str, Any]) -> Path:
    """Return the folder of the runner program, fetched unless it is there."""
    pins: dict[str, str] = document["bundle"]
    machine = os.uname().machine
    folder = ROOT / "versions" / pins[machine][:16]
    if not folder.is_dir():
        place = document.get("mirror") or BOOT["runner_url"] + "/v1/stacks/package"
        url = f"{place.rstrip('/')}/runner-{pins['version']}-{machine}.tar.gz"
        data = fetch(url, proxy=NETWORK["proxy"], timeout=600, most=MOST_PROGRAM)
        if hashlib.sha256(data).hexdigest() != pins[machine]:
            raise ValueError("the program served is not the one that the Stack names")
        unpack(data, folder)
    return folder


def unpack(data: bytes, folder: Path) -> None:
    """Unpack an archive of regular files into a folder that appears when it is complete."""
    part = folder.with_suffix(".part")
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            target = part / member.name
            if not member.isreg() or ".." in target.parts or Path(member.name).is_absolute():
                raise ValueError(f"the program has a strange member: {member.name}")
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.extractfile(member) as source:  # type: ignore[union-attr]
                target.write_bytes(source.read())
    part.rename(folder)


def save_boot(folder: Path) -> None:
    """Make this program the current one, and store what the runner has to know."""
    link = ROOT / "current.new"
    link.unlink(missing_ok=True)
    link.symlink_to(folder)
    link.replace(ROOT / "current")
    file = ROOT / "boot.json.new"
    file.touch(mode=0o600)
    file.write_text(json.dumps(BOOT))
    file.replace(ROOT / "boot.json")


def fetch(
    url: str,
    data: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    *,
    method: str | None = None,
    proxy: str = "",
    timeout: float = 30,
    most: int = MOST_TEXT,
) -> bytes:
    """Send a request; return the body of the answer."""
    handlers: list[urllib.request.BaseHandler] = [
        urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else {})
    ]
    if CERTIFICATES.exists():
        tls = ssl.create_default_context()
        tls.load_verify_locations(cafile=str(CERTIFICATES))
        handlers.append(urllib.request.HTTPSHandler(context=tls))
    request = urllib.request.Request(url, data, dict(headers or {}), method=method)  # noqa: S310 - addresses of the Stack
    with urllib.request.build_opener(*handlers).open(request, timeout=timeout) as reply:
        body: bytes = reply.read(most + 1)
    return body


def wait_for(what: str, read: Callable[[], Any]) -> Any:
    """Return what `read` returns, tried for a quarter of an hour; exit if it never does."""
    for count in range(TRIES):
        try:
            return read()
        except (OSError, LookupError) as error:
            if count in TOLD:
                report("waiting", f"{what}: {type(error).__name__}: {error}")
        time.sleep(PAUSE_S if count >= QUICK_TRIES else 1)
    report("failed", f"{what} did not come")
    return sys.exit(1)


def report(stage: str, note: str = "") -> None:
    """Report a stage on the console and to the vendor, who shows it as not verified."""
    print(f"exclave: {stage} {note}", file=sys.stderr, flush=True)  # noqa: T201 - the console
    body = json.dumps({"stage": stage, "note": note[:500]}).encode()
    url = f"{BOOT['runner_url']}/v1/stack/progress/{BOOT['install']}"
    try:
        headers = {"content-type": "application/json"}
        fetch(url, body, headers, proxy=NETWORK["proxy"], timeout=10)
    except OSError as error:
        print(f"exclave: not reported: {error}", file=sys.stderr, flush=True)  # noqa: T201 - the console
