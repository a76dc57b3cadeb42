"""Classification of Terraform's errors: a reason of the closed list, and a hint."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from exclave.runner.terraform.messages import Diagnostic
from exclave.wire.jobs import Reason

_MOST_CHARS = 1500


@dataclass(frozen=True, slots=True)
class ErrorClass:
    """A class of errors."""

    reason: Reason
    pattern: re.Pattern[str]
    hint: str


def _family(reason: Reason, hint: str, *patterns: str) -> ErrorClass:
    return ErrorClass(reason, re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL), hint)


CLASSES: tuple[ErrorClass, ...] = (
    _family(
        Reason.PLAN_STALE,
        "The state has changed since the plan was made: plan again.",
        r"saved plan is stale",
        r"saved plan does not match the given state",
    ),
    _family(
        Reason.LOCK_HELD,
        "Another execution works on this state: wait for it, see `installs tf-state list`.",
        r"error acquiring the state lock",
        r"state is already locked",
        r"error locking state",
    ),
    _family(
        Reason.STATE_REFUSED,
        "The control plane did not take the state, or did not give it out: see the log.",
        r"failed to (save|persist|write|upload|load) (the )?state",
        r"error (saving|persisting|uploading|loading|refreshing|inspecting) (the )?states?",
    ),
    _family(
        Reason.QUOTA,
        "A limit of the account is reached: free something, or ask the cloud for more.",
        r"(quota|limit)s?[ _]?exceeded",
        r"exceed(s|ed|ing)? (the |your |its )?[\w ]{0,40}(quota|limit)",
        r"throttl(ing|ed)",
        r"too ?many ?requests",
        r"rate ?exceeded",
        r"insufficient\w*capacity",
        r"RESOURCE_EXHAUSTED",
        r"statuscode: 429",
    ),
    _family(
        Reason.ACCESS_DENIED,
        "The credentials of the runner may not do this: extend its role, or renew them.",
        r"access ?denied",
        r"unauthorized",
        r"not authorized",
        r"authfailure",
        r"authorization ?failed",
        r"permission[ _]?denied",
        r"invalidclienttokenid",
        r"expired ?token",
        r"signaturedoesnotmatch",
        r"no valid credential",
        r"could not find default credentials",
        r"unauthenticated",
        r"\b(401|403)\b.{0,20}(forbidden|unauthorized)",
        r"statuscode: 40[13]",
    ),
    _family(
        Reason.TIMEOUT,
        "Something took longer than its provider waits: look at it, then try again.",
        r"timeout while waiting",
        r"timed out waiting",
        r"exceeded waiting time",
        r"waiter has timed out",
    ),
    _family(
        Reason.PROVIDER_UNAVAILABLE,
        "Give the runner a provider mirror (EXCLAVE_TF_MIRROR) or a way to the registry.",
        r"failed to query available provider packages",
        r"failed to (install|download|resolve) provider",
        r"could not (retrieve|connect to).{0,80}(provider|registry)",
        r"required plugins are not installed",
        r"failed to (instantiate|load) (provider|plugin)",
        r"plugin (did not respond|crashed)",
        r"provider .{0,120}(not available|does not have a package)",
        r"missing required provider",
        r"inconsistent dependency lock file",
        r"failed to download module",
        r"failed to install modules?",
    ),
    _family(
        Reason.NETWORK,
        "Check the network, the proxy and the firewall of the runner; then try again.",
        r"no such host",
        r"connection (refused|reset|timed out)",
        r"i/o timeout",
        r"tls handshake",
        r"dial tcp",
        r"network is unreachable",
        r"x509:",
        r"context deadline exceeded",
        r"service ?unavailable",
        r"bad gateway",
        r"unexpected eof",
    ),
    _family(
        Reason.SYNTAX,
        "Correct the module or the variables that the app gives to it.",
        r"unsupported (argument|attribute|block type|operator|terraform core version)",
        r"invalid (value|expression|reference|function|index|character|template|block|argument|"
        r"attribute|default|variable|legacy|multi-line|resource|provider|module|operand|for_each|"
        r"count|number|type|single-argument|configuration)",
        r"incorrect attribute value type",
        r"missing (required argument|name|attribute|newline|key|item|resource instance key)",
        r"reference to undeclared",
        r"(argument|block) (or block )?definition required",
        r"(argument or block|attribute) redefined",
        r"no value for required variable",
        r"value for undeclared variable",
        r"duplicate",
        r"unclosed",
        r"unterminated",
        r"unreadable module",
        r"module (not found|not installed)",
        r"no configuration files",
        r"(undefined|call to unknown) function",
        r"cycle:",
        r"extra characters",
        r"variables not allowed",
        r"not enough function arguments",
        r"error in function call",
        r"error parsing",
        r"resource precondition failed",
        r"check block assertion failed",
    ),
)
"""Tried in this order; the first that matches the error is used."""


def classify(text: str, otherwise: Reason = Reason.EXIT_CODE) -> tuple[Reason, str]:
    """Return the reason and the hint for an error text."""
    for family in CLASSES:
        if family.pattern.search(text):
            return family.reason, family.hint
    return otherwise, ""


def explain(
    step: str, errors: Sequence[Diagnostic], output: str, otherwise: Reason = Reason.EXIT_CODE
) -> tuple[Reason, str]:
    """Return the failure of a command, from its diagnostics or else its output."""
    if not errors:
        reason, hint = classify(output, otherwise)
        details = _cut(_find_errors(output))
        return reason, _join(f"`{step}` failed", details, hint)
    reasons = [classify(f"{error.summary}\n{error.detail}", otherwise) for error in errors]
    # A specific error explains more than a general one before it.
    reason, hint = next((reason for reason in reasons if reason[0] is not otherwise), reasons[0])
    details = _cut("\n".join(error.as_text() for error in errors[:5]))
    more = f"\nand {len(errors) - 5} more errors" if len(errors) > 5 else ""  # noqa: PLR2004
    return reason, _join(f"`{step}` failed", details + more, hint)


def _find_errors(output: str) -> str:
    """Return the error in plain output: from the first `Error:` on, without frames."""
    lines = [line.strip("╷│╵ ") for line in output.splitlines()]
    first = next((at for at, line in enumerate(lines) if line.startswith("Error")), 0)
    return "\n".join(line for line in lines[first:] if line)


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_CHARS else text[:_MOST_CHARS] + " …"


def _join(head: str, details: str, hint: str) -> str:
    body = f"{head}: {details}" if details else f"{head}; its last output tells why"
    return f"{body}\n{hint}" if hint else body
