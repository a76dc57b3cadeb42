"""The kubeconfigs that a customer names: kept as paths, read anew whenever a job begins."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from exclave.base.errors import InvalidInput
from exclave.base.json_values import object_or_empty, parse_object, text_or_empty
from exclave.runner.data_folder import write_durably
from exclave.runner.kube.access.clusters import NamedKubeconfig
from exclave.runner.kube.access.kubeconfig import read_kubeconfig_file
from exclave.runner.kube.api.errors import AccessRefused

FILE: Final = "kubeconfigs.json"
"""The document in a runner's data folder."""
DEFAULT: Final = "default"
MOST: Final = 20
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_NAMED: Final = re.compile(rf"({_NAME.pattern})=(.+)")


def parse_option(text: str) -> tuple[str, NamedKubeconfig]:
    """Return the name and the kubeconfig of `[NAME=]FILE[:CONTEXT]`; the file has to be there."""
    named = _NAMED.fullmatch(text)
    name, rest = (named[1], named[2]) if named else (DEFAULT, text)
    path, context = Path(rest).expanduser(), ""
    if not path.is_file() and ":" in rest:
        file, _, context = rest.partition(":")
        path = Path(file).expanduser()
    if not path.is_file():
        message = f"--kubeconfig {text}: there is no file `{path}`"
        raise InvalidInput(message, hint="Write FILE, FILE:CONTEXT or NAME=FILE:CONTEXT.")
    return name, NamedKubeconfig(path.resolve(), context)


def format_option(name: str, kubeconfig: NamedKubeconfig) -> str:
    """Return a kubeconfig as the option that names it."""
    context = f":{kubeconfig.context}" if kubeconfig.context else ""
    return f"{name}={kubeconfig.file}{context}"


def keep_kubeconfigs(data: Path, options: Iterable[str]) -> None:
    """Store the kubeconfigs of options beside those that are known; each is read once, as a check.

    Only names, paths and contexts are stored.
    """
    fresh = dict(map(parse_option, options))
    if not fresh:
        return
    for kubeconfig in fresh.values():
        read_kubeconfig_file(kubeconfig.file, kubeconfig.context)
    kept = {**read_kubeconfigs(data), **fresh}
    if len(kept) > MOST:
        raise InvalidInput(f"a Stack may have {MOST} kubeconfigs")
    document = {
        name: {"file": str(kubeconfig.file), "context": kubeconfig.context}
        for name, kubeconfig in sorted(kept.items())
    }
    write_durably(data / FILE, json.dumps(document, indent=2).encode())


def read_kubeconfigs(data: Path) -> Mapping[str, NamedKubeconfig]:
    """Return the kubeconfigs of a runner by name; empty if the customer named none."""
    try:
        document = parse_object((data / FILE).read_bytes(), f"`{data / FILE}`")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AccessRefused(f"`{data / FILE}` cannot be read: {error}") from error
    return {
        name: NamedKubeconfig(
            Path(text_or_empty(object_or_empty(entry).get("file"))),
            text_or_empty(object_or_empty(entry).get("context")),
        )
        for name, entry in document.items()
    }
