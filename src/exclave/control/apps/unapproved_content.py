"""Find changes of a config that no gate asks about: policies, automatic approval, scripts."""

from collections.abc import Sequence

from exclave.base.errors import Forbidden
from exclave.control.access import require, require_on
from exclave.control.apps.config_diff import diff_parts
from exclave.domain.configs import Part
from exclave.domain.identity import Right, User
from exclave.storage.engine.database import Tx

_UNASKED = frozenset({"policy", "action", "runbook"})
"""Sections whose content takes effect without a gate: rules of approval, and scripts."""
_AUTO = "auto_approve_on_policies_passing"
_MOST_NAMED = 5


def list_unasked(before: Sequence[Part], after: Sequence[Part]) -> list[str]:
    """Return the names of what changes between two configs that no gate will ask about.

    Taking automatic approval away is not among it, nor is taking a script away.
    """
    had = {(part.section, part.name) for part in before if part.value.get(_AUTO)}
    names = [
        part.key
        for part in diff_parts(before, after).parts
        if part.section == "policy" or (part.section in _UNASKED and part.change != "removed")
    ]
    names += [
        f"{_AUTO} of {part.name or part.section}"
        for part in after
        if part.value.get(_AUTO) and (part.section, part.name) not in had
    ]
    return names


def require_unasked(
    tx: Tx, user: User, names: Sequence[str], *, app: str | None = None, install: str | None = None
) -> None:
    """Refuse to who may not approve what would take effect without anybody's approval."""
    if not names:
        return
    try:
        if install is not None:
            require_on(tx, user, Right.APPROVE, install, noun="install")
        else:
            require(user, Right.APPROVE, app=app, noun="app")
    except Forbidden:
        listing = ", ".join(names[:_MOST_NAMED]) + (" …" if len(names) > _MOST_NAMED else "")
        raise Forbidden(
            f"this changes what nobody is asked about later, which needs the right to approve:"
            f" {listing}",
            hint="Let somebody who may operate and approve do it (roles `operator` and"
            " `approver`), or leave these parts as they are.",
            right=Right.APPROVE,
            parts=list(names[:20]),
        ) from None
