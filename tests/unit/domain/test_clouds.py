"""Regions, accounts and tenants in the form of each cloud."""

import pytest

from exclave.domain.clouds import BadPlace, CloudPlace, check_place, write_cloud_account
from exclave.domain.stacks import Cloud

UUID = "0F7A2C1D-1111-4222-8333-444455556666"


@pytest.mark.parametrize(
    ("cloud", "region", "account", "tenant"),
    [
        (Cloud.LOCAL, "", "", ""),
        (Cloud.AWS, "eu-west-1", "", ""),
        (Cloud.AWS, "us-gov-west-1", "123456789012", ""),
        (Cloud.AWS, "eusc-de-east-1", "123456789012", ""),
        (Cloud.AZURE, "westeurope", "", ""),
        (Cloud.AZURE, "eastus2", UUID, UUID),
        (Cloud.GCP, "europe-west1", "acme-prod", ""),
        (Cloud.GCP, "northamerica-northeast2", "", ""),
    ],
)
def test_places_as_the_clouds_write_them_are_accepted(
    cloud: Cloud, region: str, account: str, tenant: str
) -> None:
    place = check_place(cloud, region, account, tenant)

    assert place == CloudPlace(region, account.lower(), tenant.lower())


@pytest.mark.parametrize(
    ("cloud", "given", "message", "hint"),
    [
        (Cloud.LOCAL, ("eu-west-1", "", ""), "has no region", "Leave --region out"),
        (Cloud.LOCAL, ("", "1", ""), "has no account", "Leave --account out"),
        (Cloud.AWS, ("", "", ""), "needs a region", "--region eu-west-1"),
        (Cloud.AWS, ("westeurope", "", ""), "is no region of `aws`", "`eu-west-1`"),
        (Cloud.AWS, ("eu-west-1\n", "", ""), "is no region of `aws`", ""),
        (Cloud.AWS, ("eu-west-1", "12345", ""), "is no account id of `aws`", "`123456789012`"),
        (Cloud.AWS, ("eu-west-1", "", UUID), "has no tenant", "Leave --tenant out"),
        (Cloud.AZURE, ("", "", ""), "needs a location", "--region westeurope"),
        (Cloud.AZURE, ("West Europe", "", ""), "is no location", "`westeurope`"),
        (Cloud.AZURE, ("westeurope", "acme", UUID), "is no subscription id", ""),
        (Cloud.AZURE, ("westeurope", UUID, ""), "together with its tenant", "both"),
        (Cloud.AZURE, ("westeurope", "", UUID), "together with its tenant", "both"),
        (Cloud.GCP, ("eu-west-1", "", ""), "is no region of `gcp`", "`europe-west1`"),
        (Cloud.GCP, ("europe-west1", "Acme", ""), "is no project id", "`acme-prod`"),
        (Cloud.GCP, ("europe-west1", "acme", ""), "is no project id", ""),
    ],
)
def test_a_place_that_a_cloud_does_not_have_is_refused_with_an_example(
    cloud: Cloud, given: tuple[str, str, str], message: str, hint: str
) -> None:
    with pytest.raises(BadPlace) as refused:
        check_place(cloud, *given)

    assert message in refused.value.message
    assert hint in refused.value.advice


@pytest.mark.parametrize(
    ("cloud", "place", "own"),
    [
        (Cloud.LOCAL, CloudPlace(), {}),
        (Cloud.AWS, CloudPlace("eu-west-1"), {"region": "eu-west-1"}),
        (
            Cloud.AWS,
            CloudPlace("eu-west-1", "123456789012"),
            {"region": "eu-west-1", "account_id": "123456789012"},
        ),
        (
            Cloud.AZURE,
            CloudPlace("westeurope", "sub", "ten"),
            {"location": "westeurope", "subscription_id": "sub", "tenant_id": "ten"},
        ),
        (
            Cloud.GCP,
            CloudPlace("europe-west1", "acme-prod"),
            {"region": "europe-west1", "project_id": "acme-prod"},
        ),
    ],
)
def test_templates_read_the_place_under_the_name_of_its_cloud(
    cloud: Cloud, place: CloudPlace, own: dict[str, str]
) -> None:
    account = write_cloud_account(cloud, place)

    assert account.pop(str(cloud)) == own
    assert set(account) >= {"aws", "azure", "gcp"} - {str(cloud)}
    assert not any(account.values())
