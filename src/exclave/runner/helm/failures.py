"""Reasons of failures, read from Helm's messages: its exit code is 1 for everything."""

import re
import signal
from collections.abc import Callable

from exclave.runner.jobs.context import Captured
from exclave.runner.jobs.shell import name_signal
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason

_LOG_LINE = re.compile(r"^level=\S+ msg=.*$", re.MULTILINE)
_TABLE: tuple[tuple[str, Reason, str], ...] = (
    (
        "another operation (install/upgrade/rollback) is in progress",
        Reason.RELEASE_BUSY,
        "somebody's Helm works on the release; plan again once it is done",
    ),
    ("Too long: must have at most 1048576", Reason.OBJECT_REFUSED, "split the chart"),
    ("invalid ownership metadata", Reason.OBJECT_REFUSED, "set `take_ownership` to adopt it"),
    ("failed pre-install", Reason.HOOK_FAILED, ""),
    ("failed post-install", Reason.HOOK_FAILED, ""),
    ("pre-upgrade hooks failed", Reason.HOOK_FAILED, ""),
    ("post-upgrade hooks failed", Reason.HOOK_FAILED, ""),
    ("hooks failed", Reason.HOOK_FAILED, ""),
    (
        "no matches for kind",
        Reason.OBJECT_REFUSED,
        "let an earlier component install its definition, or put it into `crds/` of the chart",
    ),
    ("execution error at", Reason.SYNTAX, ""),
    ('executing "', Reason.SYNTAX, ""),
    ("values don't meet the specifications of the schema", Reason.SYNTAX, ""),
    ("parse error at", Reason.SYNTAX, ""),
    ("error calling", Reason.SYNTAX, ""),
    ("YAML parse error", Reason.SYNTAX, ""),
    ("connection refused", Reason.CLUSTER_UNREACHABLE, ""),
    ("no such host", Reason.CLUSTER_UNREACHABLE, ""),
    ("exceeded quota", Reason.QUOTA, "raise the ResourceQuota of the namespace, or ask for less"),
    ("denied request", Reason.OBJECT_REFUSED, ""),
    ("denied the request", Reason.OBJECT_REFUSED, ""),
    ("violates PodSecurity", Reason.OBJECT_REFUSED, ""),
    ("is forbidden", Reason.ACCESS_DENIED, "give the runner's role this right in the cluster"),
    ("Unauthorized", Reason.ACCESS_DENIED, ""),
    ("chart requires kubeVersion", Reason.OBJECT_REFUSED, ""),
    ("conflict", Reason.PLAN_STALE, ""),
    ("admission webhook", Reason.OBJECT_REFUSED, ""),
    ("is invalid", Reason.OBJECT_REFUSED, ""),
    ("server-side apply failed", Reason.OBJECT_REFUSED, ""),
)
"""The first row whose words are in Helm's complaint wins."""
_LONGEST = 2000


def explain_helm(command: str, printed: Captured, mask: Callable[[str], str]) -> WorkFailed:
    """Return the failure of a helm command in one line, classified by its complaint."""
    if printed.code < 0:
        return WorkFailed(Reason.EXIT_CODE, _describe_signal(command, -printed.code))
    complaint = _LOG_LINE.sub("", printed.stderr).strip()
    sentence = " ".join(complaint.rpartition("Error: ")[2].split()) or "it failed without a message"
    for words, reason, hint in _TABLE:
        if words in sentence:
            advice = f": {hint}" if hint else ""
            return WorkFailed(reason, mask(f"{sentence[:_LONGEST]}{advice}"))
    return WorkFailed(Reason.EXIT_CODE, mask(f"helm {command}: {sentence[:_LONGEST]}"))


def _describe_signal(command: str, number: int) -> str:
    message = f"`helm {command}` was ended by {name_signal(number)}"
    if number == signal.SIGKILL:
        message += ": the machine may be out of memory"
    return f"{message}; the next deploy or teardown goes on from what it left"
