"""Places in clouds: region and account of an install, and the forms that each cloud gives them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from exclave.base.errors import InvalidInput
from exclave.domain.stacks import Cloud

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


class CloudPlace(NamedTuple):
    """Where in its cloud an install is; all empty for `local`."""

    region: str = ""
    account: str = ""
    """AWS account, Azure subscription or GCP project; empty if the first machine decides it."""
    tenant: str = ""
    """The Azure tenant of the subscription."""


NOWHERE = CloudPlace()
"""The place of an install that is in no cloud."""


class BadPlace(InvalidInput):
    """The region, account or tenant of an install does not fit its cloud."""

    code = "bad_place"


@dataclass(frozen=True, slots=True)
class _Form:
    """How a cloud writes a region, an account or a tenant."""

    noun: str
    pattern: re.Pattern[str]
    example: str


_UUID_FORM = re.compile(_UUID)
_UUID_EXAMPLE = "00000000-0000-4000-8000-000000000000"
_FORMS: Mapping[Cloud, Mapping[str, _Form]] = {
    Cloud.LOCAL: {},
    Cloud.AWS: {
        "region": _Form("region", re.compile(r"[a-z]{2,4}(-[a-z]+){1,3}-[0-9]{1,2}"), "eu-west-1"),
        "account": _Form("account id", re.compile(r"[0-9]{12}"), "123456789012"),
    },
    Cloud.AZURE: {
        "region": _Form("location", re.compile(r"[a-z]{2,30}[0-9]{0,2}"), "westeurope"),
        "account": _Form("subscription id", _UUID_FORM, _UUID_EXAMPLE),
        "tenant": _Form("tenant id", _UUID_FORM, _UUID_EXAMPLE),
    },
    Cloud.GCP: {
        "region": _Form(
            "region", re.compile(r"[a-z]{2,20}(-[a-z]{2,20})+[0-9]{1,2}"), "europe-west1"
        ),
        "account": _Form("project id", re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]"), "acme-prod"),
    },
}  # fmt: skip


def check_place(cloud: Cloud, region: str, account: str, tenant: str) -> CloudPlace:
    """Return the place of a new install; raise `BadPlace` unless its cloud can have such a one.

    Ids of Azure are the same in upper and lower case; they are kept in lower case.
    """
    if cloud is Cloud.AZURE:
        account, tenant = account.lower(), tenant.lower()
    given = {"region": region, "account": account, "tenant": tenant}
    for key, text in given.items():
        if text:
            _check_form(cloud, key, text)
    if cloud is not Cloud.LOCAL and not region:
        form = _FORMS[cloud]["region"]
        raise BadPlace(
            f"an install on `{cloud}` needs a {form.noun}, and none was given",
            hint=f"Name the {form.noun} of the customer, such as --region {form.example}.",
        )
    if cloud is Cloud.AZURE and bool(account) != bool(tenant):
        raise BadPlace(
            "a subscription of Azure is known together with its tenant",
            hint="Give both --account and --tenant, or neither.",
        )
    return CloudPlace(region, account, tenant)


def _check_form(cloud: Cloud, key: str, text: str) -> None:
    form = _FORMS[cloud].get(key)
    if form is None:
        raise BadPlace(
            f"an install on `{cloud}` has no {key}", hint=f"Leave --{key} out for this app."
        )
    if not form.pattern.fullmatch(text):
        raise BadPlace(
            f"{text[:80]!r} is no {form.noun} of `{cloud}`",
            hint=f"It looks like `{form.example}`.",
            field=key,
        )


def write_cloud_account(cloud: Cloud, place: CloudPlace) -> dict[str, dict[str, str] | None]:
    """Return `cloud_account` of an install's state; only the install's own cloud is not None.

    What is not known is left out, so that a template that reads it fails with the name of the key.
    """
    names: Mapping[Cloud, Mapping[str, str]] = {
        Cloud.LOCAL: {},
        Cloud.AWS: {"region": place.region, "account_id": place.account},
        Cloud.AZURE: {
            "location": place.region,
            "subscription_id": place.account,
            "tenant_id": place.tenant,
        },
        Cloud.GCP: {"region": place.region, "project_id": place.account},
    }
    own = {name: text for name, text in names[cloud].items() if text}
    return {
        **{str(other): None for other in Cloud if other is not Cloud.LOCAL},
        str(cloud): own,
    }
