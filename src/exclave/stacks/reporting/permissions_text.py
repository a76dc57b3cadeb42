"""The report of permissions as a page for a security reviewer."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from exclave.domain.stacks import Cloud, RoleKind
from exclave.stacks.markdown import write_code, write_list, write_table, write_text
from exclave.stacks.reporting.permissions import PermissionReport, RoleReport, TemplateReport
from exclave.stacks.reporting.rights import Level, NamedGrant, Rights

PERMISSIONS: Final = "PERMISSIONS.md"
_KINDS: Final = {
    RoleKind.PROVISION: "creates and changes the sandbox",
    RoleKind.MAINTENANCE: "deploys components and runs actions",
    RoleKind.DEPROVISION: "removes the sandbox",
    RoleKind.CUSTOM: "for what the app names it for",
    RoleKind.BREAK_GLASS: "for emergencies",
}
_WHO: Final = {
    "machine": "the runner's machine",
    "cluster": "the nodes of the cluster",
    "vendor": "builds at the vendor; nothing in your account",
}
_BASES: Final = {
    Cloud.AWS: "Actions and access levels are those that AWS publishes; new actions of AWS may be"
    " missing. Resources and conditions of statements are not evaluated: the counts are the most"
    " that a role may do.",
    Cloud.GCP: "Levels are read off the verbs of permissions. What a predefined role allows is"
    " Google's, and may grow; its page in the console lists it.",
    Cloud.AZURE: "Levels are read off the last words of actions. What a built-in role allows is"
    " Microsoft's, and may grow; its page in the portal lists it.",
    Cloud.LOCAL: "",
}
_OWN: Final = {
    Cloud.AWS: "read the secrets of the Stack and write its log",
    Cloud.GCP: "read the secrets of the Stack, store those that it makes up, and write its log",
    Cloud.AZURE: "read the secrets of the Stack, store those that it makes up, and write its log",
    Cloud.LOCAL: "",
}
_GUARD: Final = """\
- It cannot make users of IAM, access keys or other lasting credentials. If a policy of the app
  names such an action in full, it is not denied, and listed above.
- It cannot change the roles and policies of the Stack, read the seal of the runner, or touch its
  machine.
- It cannot change the organization, close the account, or stop and delete trails of CloudTrail.
- This has a limit: a role that may make roles can make one that is not bound by it.
"""
_UNDENIED: Final = """\
- Azure has no rights that deny. A role that may change everything in the resource group may also
  change what the Stack made there.
- Whoever may run commands on the runner's machine, or give its identities to another machine, can
  act as every role that is on.
- No job may read the vault with the document and the seal of the runner.
"""
_EVERYTHING: Final = (
    "It may do **everything** in the account: read, change and delete all data, and give any rights"
    " to itself and to others."
)
_SHOWN: Final = 12


def write_markdown(report: PermissionReport) -> str:
    """Return the page."""
    return "\n".join(_write_parts(report))


def _write_parts(report: PermissionReport) -> Iterator[str]:
    yield f"# What {write_text(report.app)} may do in your account\n"
    yield (
        f"The runner's own identity can take on the roles below, {_OWN[report.cloud]}; nothing"
        " else. Each job gets one role, for as long as it runs.\n"
    )
    if _BASES[report.cloud]:
        yield f"{_BASES[report.cloud]}\n"
    yield write_table(
        ("role", "for", "at first", "may do"),
        (
            [
                write_text(role.title),
                _KINDS[role.kind],
                _write_switch(role),
                _write_sum(role.rights),
            ]
            for role in report.roles
        ),
    )
    for role in report.roles:
        yield from _write_role(role)
    if report.cloud is Cloud.AWS:
        yield f"## What every role is denied\n\n{_GUARD}"
    if report.cloud is Cloud.AZURE:
        yield f"## What no role is denied\n\n{_UNDENIED}"
    yield from _write_values(report)
    yield from _write_templates(report)
    yield from _write_destinations(report)


def _write_switch(role: RoleReport) -> str:
    if role.kind is RoleKind.BREAK_GLASS:
        return "on, until the time that you set" if role.enabled else "off, until you enable it"
    return "on" if role.enabled else "off"


def _write_sum(rights: Rights) -> str:
    """Return the rights of a role in one phrase."""
    if rights.is_everything:
        return "**everything**"
    total: Counter[Level] = Counter()
    for service in rights.services:
        total.update(service.counts)
    parts = [_write_counts(total)] if total else []
    parts += [write_code(grant.name) for grant in rights.named]
    return "; ".join(parts) or "nothing"


def _write_counts(counts: Counter[Level]) -> str:
    return ", ".join(f"{counts[level]} {level}" for level in Level if counts[level])


def _write_role(role: RoleReport) -> Iterator[str]:
    rights = role.rights
    yield f"## {write_text(role.title)}\n"
    yield f"{write_code(role.name)}: {_KINDS[role.kind]}; {_write_switch(role)}.\n"
    if role.description:
        yield f"{write_text(role.description)}\n"
    yield write_list(_list_rights(role))
    if rights.services and not rights.is_everything:
        yield write_table(
            ("service", *Level),
            (
                [
                    write_text(service.title),
                    *(str(service.counts.get(level, "")) for level in Level),
                ]
                for service in rights.services
            ),
        )


def _list_rights(role: RoleReport) -> Iterator[str]:
    rights = role.rights
    yield from map(_write_grant, rights.named)
    if rights.is_everything:
        yield _EVERYTHING
    elif rights.services:
        names = [write_code(service.name) for service in rights.services]
        services = "1 service" if len(names) == 1 else f"{len(names)} services"
        yield f"It may act in {services}: {_shorten(names)}."
    elif not rights.named:
        yield "It may do nothing."
    if role.has_boundary:
        yield "It has a boundary from the app, beyond which no policy reaches."
    yield from rights.notes
    if not rights.is_everything:
        yield from (f"With data: it may {write_text(sentence)}." for sentence in rights.data)
        for sentence in rights.widening:
            yield f"**It could widen its rights:** it may {write_text(sentence)}."
    if rights.unknown:
        yield f"Not known: {_shorten([write_code(name) for name in rights.unknown])}."


def _shorten(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _write_grant(grant: NamedGrant) -> str:
    meaning = f": {grant.meaning}" if grant.meaning else ", whose content only the cloud lists"
    return f"{write_code(grant.name)}{meaning}."


def _write_values(report: PermissionReport) -> Iterator[str]:
    yield "## What you fill in\n"
    lines = [
        f"secret {write_code(secret.name)}{_write_note(secret.description)}:"
        f" {'made by the Stack' if secret.auto_generate else 'stays in your account'}."
        for secret in report.secrets
    ]
    lines += [
        f"input {write_code(item.name)}{_write_note(item.description)}:"
        f" {'stays in your account' if item.sensitive else 'the vendor sees its value'}."
        for item in report.inputs
    ]
    yield write_list(lines) if lines else "Nothing.\n"


def _write_note(text: str) -> str:
    return f" ({write_text(text)})" if text.strip() else ""


def _write_templates(report: PermissionReport) -> Iterator[str]:
    if report.templates:
        yield "## Templates of the vendor\n"
        yield write_list(map(_write_template, report.templates))


def _write_template(template: TemplateReport) -> str:
    name = write_code(template.name)
    if template.address:
        return f"{name}: {write_code(template.address)}; read it there before you apply the Stack."
    kinds = ", ".join(f"{count} {_write_kind(kind)}" for kind, count in template.resources.items())
    return f"{name}: {kinds or 'no resources'}."


def _write_kind(kind: str) -> str:
    """Return a type of resources, in bold if it may give rights to somebody."""
    code = write_code(kind)
    return f"**{code}**" if kind.startswith(("AWS::IAM::", "Custom::")) else code


def _write_destinations(report: PermissionReport) -> Iterator[str]:
    yield "## Which addresses it needs\n"
    yield (
        "All by TLS on port 443, and all outbound. What modules and programs of the app connect to"
        " beyond these, its config does not say.\n"
    )
    yield write_table(
        ("address", "who", "for"),
        (
            [write_code(item.host), _WHO[item.who], write_text(item.reason)]
            for item in report.destinations
        ),
    )
