"""Checks of roles and their policies."""

import json
from collections.abc import Mapping

from exclave.appconfig.checks.common import check_exists, is_template, names_of
from exclave.appconfig.checks.policy_documents import find_document_flaw
from exclave.appconfig.diagnostics.codes import Code
from exclave.appconfig.diagnostics.report import Place, Report, list_words
from exclave.appconfig.model.app import App, Entry
from exclave.appconfig.model.kinds.permissions import STANDARD_ROLES, NamedPolicy, Role, RolePolicy

_WAYS: Mapping[str, str] = {
    "managed_policy_name": "aws", "contents": "aws", "gcp_permissions": "gcp",
    "gcp_predefined_role": "gcp", "azure_actions": "azure", "azure_built_in_roles": "azure",
}  # fmt: skip


def check(app: App, report: Report) -> None:
    """Check all roles, and that the three roles that every install needs exist."""
    for entry in (*app.entries_of(Role), *app.entries_of(NamedPolicy)):
        if isinstance(entry.value, Role):
            _check_role(app, report, entry, entry.value)
        elif isinstance(entry.value, NamedPolicy):
            _check_document(app, report, entry.place.child("contents"), entry.value.contents)
    _check_standard(app, report)


def _check_role(app: App, report: Report, entry: Entry, role: Role) -> None:
    place = entry.place
    if entry.section == "permissions" and not role.type and not place.has("type"):
        hint = f"Possible are {list_words(Role.FIELDS['type'].choices)}."
        report.error(Code.MISSING_KEY, place, "`type` is missing", hint)
    if entry.section == "permissions" and place.at and place.has("type"):
        message = "`type` has no effect here: the place of the role says what it is for"
        report.warn(Code.NEEDLESS_KEY, place.child("type"), message, "Remove the key.")
    if role.cloud_platform and app.cloud not in {"", "local", role.cloud_platform}:
        message = f"the role is for {role.cloud_platform}, and the runner for {app.cloud}"
        hint = "Remove the key: the cloud of the runner is the default."
        report.error(Code.CLOUD_MISMATCH, place.child("cloud_platform"), message, hint)
    if not role.policies and not role.named_policies:
        hint = 'Write [[policies]] with managed_policy_name = "…", or name and contents.'
        report.error(Code.MISSING_KEY, place, "the role has no `policies`", hint)
    boundary = place.child("permissions_boundary")
    _check_document(app, report, boundary, role.permissions_boundary)
    for index, policy in enumerate(role.policies):
        _check_policy(app, report, place.child("policies", index), policy)
    known = names_of(app.named_policies)
    for index, use in enumerate(role.named_policies):
        at = place.child("named_policies", index, "name")
        check_exists(report, Code.UNKNOWN_POLICY, at, use.name, known)


def _check_policy(app: App, report: Report, place: Place, policy: RolePolicy) -> None:
    given = [way for way in _WAYS if getattr(policy, way)]
    if not given and any(map(place.has, _WAYS)):
        return  # its mistake was already reported
    if not given:
        message = "the policy allows nothing"
        report.warn(Code.EMPTY_POLICY, place, message, f"Write one of {list_words(_WAYS)}.")
        return
    if len(given) > 1:
        message = f"{list_words(given)} exclude each other"
        hint = "Write one [[policies]] table for each."
        # Two forms of the same cloud can be combined.
        tell = report.warn if len({_WAYS[way] for way in given}) == 1 else report.error
        tell(Code.ONE_OF, place.child(given[1]), message, hint)
    if app.cloud not in {"", "local", _WAYS[given[0]]}:
        message = f"`{given[0]}` is for {_WAYS[given[0]]}, and the runner for {app.cloud}"
        report.warn(Code.CLOUD_MISMATCH, place.child(given[0]), message)
    if given[0] != "managed_policy_name" and not policy.name:
        report.warn(Code.WANTED_KEY, place, "`name` is missing", 'Example: name = "deploy"')
    _check_document(app, report, place.child("contents"), policy.contents)


def _check_document(app: App, report: Report, place: Place, text: str) -> None:
    """Report a document that AWS would refuse; a template is checked when it is rendered."""
    if not text or is_template(text) or text.startswith(("http", "git")):
        return
    try:
        document = json.loads(text)
    except RecursionError:
        report.error(Code.POLICY_CONTENTS, place, "the document is nested too deeply")
    except ValueError as error:
        hint = "Write an IAM policy document, or `./file.json` to name the file that holds it."
        report.error(Code.POLICY_CONTENTS, place, f"the document is not JSON: {error}", hint)
    else:
        flaw = find_document_flaw(document) if app.cloud == "aws" else ""
        if flaw:
            hint = "Write a policy document of IAM, with `Version` and `Statement`."
            report.error(Code.POLICY_CONTENTS, place, f"the document cannot work: {flaw}", hint)


def _check_standard(app: App, report: Report) -> None:
    standard: dict[str, Entry] = {}
    for entry in app.entries_of(Role, "permissions"):
        kind = getattr(entry.value, "type", "")
        if kind in STANDARD_ROLES and kind in standard:
            first = standard[kind].place.source.path
            message = f"there are two roles of type `{kind}`: the last one is taken"
            hint = f'The other is in {first}. Make one of them type = "custom".'
            report.warn(Code.CONFLICT, entry.place.child("type"), message, hint)
        standard[kind] = entry
    missing = [kind for kind in STANDARD_ROLES if kind not in standard]
    misspelt = "" in standard and standard[""].place.has("type")
    if missing and app.cloud != "local" and not misspelt:
        message = f"no role of type {list_words(missing)} is defined"
        hint = "Every install needs one of each: provision, maintenance, deprovision."
        report.warn(Code.MISSING_ROLE, "permissions", message, hint)
