"""Explanations of git's error messages, with hints."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason


@dataclass(frozen=True, slots=True)
class _Rule:
    words: str
    """A pattern of git's message."""
    reason: Reason
    hint: str


_RULES: Sequence[_Rule] = (
    _Rule(
        r"not our ref|unadvertised object|couldn't find remote ref|remote did not send all",
        Reason.SOURCE_UNAVAILABLE,
        "the commit is not in the repository, or its server does not hand out single commits:"
        " name a branch or a tag",
    ),
    _Rule(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        Reason.ACCESS_DENIED,
        "the server shows another key than `known_hosts` of the credentials has: somebody may stand"
        " between; ask who runs the server before you replace it",
    ),
    _Rule(
        r"Host key verification failed",
        Reason.ACCESS_DENIED,
        "the server's key is not in `known_hosts` of the credentials: add what `ssh-keyscan` shows,"
        " after a check that it is right",
    ),
    _Rule(
        r"certificate|SSL|TLS",
        Reason.NETWORK,
        "the server's certificate is not trusted here: set EXCLAVE_CA_BUNDLE on the build runner",
    ),
    _Rule(
        r"Authentication failed|could not read (Username|Password)|terminal prompts disabled"
        r"|Permission denied|error: 40[13]|HTTP Basic: Access denied",
        Reason.ACCESS_DENIED,
        "the repository is private or not there; name a private one in `connected_repo`, and give"
        " the build runner credentials that may read it",
    ),
    _Rule(
        r"redirect|error: 30\d",
        Reason.SOURCE_UNAVAILABLE,
        "the repository has moved: write its new address",
    ),
    _Rule(
        r"[Rr]epository .*not found|error: 404|does not appear to be a git repository|not exist",
        Reason.SOURCE_UNAVAILABLE,
        "there is no such repository: check its address",
    ),
    _Rule(
        r"transport '.*' not allowed",
        Reason.SOURCE_INVALID,
        "this kind of address is not allowed; see EXCLAVE_GIT_PROTOCOLS",
    ),
    _Rule(r"did not match any file", Reason.SOURCE_INVALID, "this folder is not in the commit"),
    _Rule(r"No space left", Reason.DISK_FULL, "the build runner's disk is full"),
    _Rule(
        r"Could not resolve|Failed to connect|[Cc]onnection|timed out|unable to access|early EOF"
        r"|RPC failed|hung up|Operation too slow|error: 5\d\d",
        Reason.NETWORK,
        "the server was not reached; check the build runner's network, proxy and DNS",
    ),
)


def explain_git(command: str, code: int, stderr: str) -> WorkFailed:
    """Return the failure for git's error output: a reason, a hint, and git's last lines."""
    words = _last_words(stderr)
    for rule in _RULES:
        if re.search(rule.words, stderr):
            message = f"git {command} failed: {rule.hint} (git says: {words})"
            return WorkFailed(rule.reason, message)
    return WorkFailed(
        Reason.SOURCE_UNAVAILABLE, f"git {command} ended with exit code {code}: {words}"
    )


def _last_words(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return "; ".join((telling or lines or ["nothing"])[-2:])[:600]
