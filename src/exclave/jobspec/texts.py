"""Rendering and reading of the texts in a definition."""

import re
from collections.abc import Mapping, Sequence

from exclave.appconfig.model.formats import parse_duration
from exclave.appconfig.model.kinds.policies import Policy
from exclave.domain.jobs import Reason
from exclave.jobspec.errors import NotReady
from exclave.jobspec.facts import Render
from exclave.wire.spec_fields import RegoPolicy

_DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def render_map(render: Render, texts: Mapping[str, str], where: str) -> dict[str, str]:
    """Return a table with its values rendered."""
    return {name: render(text, f"{where}.{name}") for name, text in texts.items()}


def read_timeout(text: str) -> float:
    """Return a duration in seconds."""
    seconds = parse_duration(text)
    if not seconds:
        message = f"`{text}` is not a duration"
        raise NotReady(Reason.RENDER_FAILED, message, hint="Write one like `30m` or `90s`.")
    return seconds


def render_policies(render: Render, policies: Sequence[Policy]) -> list[RegoPolicy]:
    """Return policies as a runner gets them."""
    return [
        RegoPolicy(name=policy.name, rego=render(policy.contents, f"policy {policy.name}"))
        for policy in policies
    ]


def render_label(render: Render, text: str, where: str) -> str:
    """Return the name of a namespace or release, rendered.

    Names in a cluster have no underscores, and ids of older installs have one: it becomes a hyphen.
    """
    name = render(text, where).strip().replace("_", "-")
    if not _DNS_LABEL.fullmatch(name):
        message = f"{where}: `{name[:100]}` is not a name that Kubernetes allows"
        hint = "Use lower-case letters, digits and hyphens; at most 63 characters."
        raise NotReady(Reason.RENDER_FAILED, message, hint=hint)
    return name
