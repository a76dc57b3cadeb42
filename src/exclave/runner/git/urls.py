"""URLs of repositories: accepted forms, and rewrite rules for mirrors."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from exclave.base.errors import InvalidInput
from exclave.runner.outcomes import WorkFailed
from exclave.wire.builds import expand_repo
from exclave.wire.jobs import Reason

PROTOCOLS = ("https", "ssh", "http", "file")
_PORTS = {"https": 443, "http": 80, "ssh": 22, "file": 0}
_SCP = re.compile(r"(?:([A-Za-z0-9_][A-Za-z0-9_.-]*)@)?([A-Za-z0-9][A-Za-z0-9.-]*):([^/:].*)")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*|[0-9a-f:.]*:[0-9a-f:.]*")
_UNFIT = re.compile(r"[\x00-\x20\x7f\"'`<>\\^{|}]")


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A rule that replaces the beginning of a URL, to fetch from a mirror."""

    prefix: str
    target: str


@dataclass(frozen=True, slots=True)
class Address:
    """A URL that git may fetch from."""

    text: str
    protocol: str
    host: str
    port: int
    trusted: bool = False
    """Whether the host comes from a rewrite rule of the runner's operator."""


def parse_rewrites(text: str) -> tuple[Rewrite, ...]:
    """Parse rules like `https://github.com/=https://mirror.example/github/`, separated by spaces.

    Both sides end with `/` or `:`, so that a rule never matches part of a host name.
    """
    rules = []
    for rule in text.split():
        prefix, equals, target = rule.partition("=")
        if not equals or prefix[-1:] not in {"/", ":"} or target[-1:] not in {"/", ":"}:
            raise InvalidInput(
                f"`{rule}` is not a rewrite rule",
                hint="Write `https://old.example/=https://new.example/git/`, with a `/` on both"
                " ends; separate rules by spaces.",
            )
        rules.append(Rewrite(prefix, target))
    return tuple(rules)


def resolve_address(repo: str, rewrites: Iterable[Rewrite], allowed: Iterable[str]) -> Address:
    """Return the URL to fetch from, after rewriting; raise if it is not allowed."""
    url = expand_repo(repo)
    rule = max(
        (rewrite for rewrite in rewrites if url.startswith(rewrite.prefix)),
        key=lambda rewrite: len(rewrite.prefix),
        default=None,
    )
    if rule is not None:
        url = rule.target + url.removeprefix(rule.prefix)
    address = _parse(url, trusted=rule is not None)
    if address.protocol not in set(allowed):
        raise _refuse(
            url,
            f"`{address.protocol}` is not allowed on this build runner; see EXCLAVE_GIT_PROTOCOLS",
        )
    return address


def _parse(url: str, *, trusted: bool) -> Address:
    if url.startswith("-") or _UNFIT.search(url):
        raise _refuse(url, "it has characters that no address has")
    if "://" not in url:
        match = _SCP.fullmatch(url)
        if match is None:
            raise _refuse(url, "write `owner/name`, a full https URL, or `git@host:path`")
        return Address(url, "ssh", match[2], _PORTS["ssh"], trusted)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise _refuse(url, "it is no URL") from None
    if parts.scheme not in PROTOCOLS:
        raise _refuse(url, "only https and ssh are fetched from")
    if parts.password is not None or (parts.username and parts.scheme != "ssh"):
        message = "it holds a password: give it to the build runner in its credentials file"
        raise _refuse(re.sub(r"//[^/@]*@", "//***@", url), message)
    if parts.query or parts.fragment or (not parts.path.strip("/")):
        raise _refuse(url, "it names no repository")
    if (parts.scheme == "file") == bool(parts.hostname) or (
        parts.hostname and not _HOST.fullmatch(parts.hostname)
    ):
        raise _refuse(url, "its host is not valid")
    return Address(url, parts.scheme, parts.hostname or "", port or _PORTS[parts.scheme], trusted)


def _refuse(url: str, why: str) -> WorkFailed:
    message = f"the repository `{url[:200]}` cannot be fetched: {why}"
    return WorkFailed(Reason.SOURCE_INVALID, message)
