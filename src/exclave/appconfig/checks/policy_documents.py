"""What AWS would refuse in the policy document of a role."""

from collections.abc import Mapping
from typing import Final

from exclave.appconfig.diagnostics.report import list_words
from exclave.base.json_values import Json

_VERSIONS: Final = ("2012-10-17", "2008-10-17")
_STATEMENT_KEYS: Final = (("Action", "NotAction"), ("Resource", "NotResource"))


def find_document_flaw(document: Json) -> str:
    """Return why a policy document would be refused by AWS; empty if nothing is known."""
    if not isinstance(document, Mapping):
        return "it is not an object"
    if document.get("Version") not in _VERSIONS:
        return f"`Version` is not {_VERSIONS[0]}"
    statements = document.get("Statement")
    if isinstance(statements, Mapping):
        statements = [statements]
    if not isinstance(statements, list):
        return "`Statement` is missing"
    return next(filter(None, map(_find_statement_flaw, statements)), "")


def _find_statement_flaw(statement: Json) -> str:
    if not isinstance(statement, Mapping):
        return "a statement is not an object"
    if statement.get("Effect") not in {"Allow", "Deny"}:
        return "`Effect` of a statement is neither Allow nor Deny"
    if "Principal" in statement or "NotPrincipal" in statement:
        return "the policy of a role has no `Principal`"
    for keys in _STATEMENT_KEYS:
        if sum(key in statement for key in keys) != 1:
            return f"a statement needs either {list_words(keys)}"
    return ""
