"""Components of type `container_image`: an image that is copied into the install's registry."""

from collections.abc import Mapping
from typing import ClassVar

from exclave.appconfig.model.fields import NEW, REQUIRED, WANTED, Dead, Table, table, text, text_map
from exclave.appconfig.model.kinds.components import UNPLANNED, Component, limit_build, limit_deploy


class ImageSource(Table):
    """An image in a registry."""

    image_url: str = text("The image, without its tag.", '"docker.io/library/nginx"', need=REQUIRED)
    tag: str = text("The tag; or use `update_policy`.", '"1.29"')
    update_policy: str = text(
        "A semver constraint: the highest tag that fits is taken at build time.",
        '"~1.29"',
        since=NEW,
    )


class AwsEcr(ImageSource):
    """An image in AWS ECR."""

    iam_role_arn: str = text(
        "The role to read with.", '"arn:aws:iam::123456789012:role/read"', need=WANTED
    )
    region: str = text("The registry's region.", '"us-east-1"', need=WANTED)


class GcpGar(ImageSource):
    """An image in Google Artifact Registry."""

    gcp_project_id: str = text("The project.", '"acme"', need=WANTED, since=NEW)
    region: str = text("The registry's region.", '"us-central1"', need=WANTED, since=NEW)
    service_account_email: str = text(
        "The account to read with.", '"read@acme.iam.gserviceaccount.com"', since=NEW
    )
    workload_identity_provider: str = text(
        "The provider to log in with.",
        '"projects/1/locations/global/workloadIdentityPools/p"',
        since=NEW,
    )


class AzureAcr(ImageSource):
    """An image in Azure Container Registry; of the credentials all are given or none."""

    registry_url: str = text("The registry.", '"acme.azurecr.io"', since=NEW)
    tenant_id: str = text("The name of an app variable.", '"acr_tenant"', since=NEW)
    client_id: str = text("The name of an app variable.", '"acr_client"', since=NEW)
    client_secret_name: str = text("The name of an app variable.", '"acr_secret"', since=NEW)
    client_certificate_name: str = text(
        "The name of an app variable, instead of a secret.", '"acr_certificate"', since=NEW
    )


class ContainerImage(Component):
    """An image that is copied into the install's registry: exactly one source table."""

    TYPE: ClassVar[str] = "container_image"
    DEAD: ClassVar[Mapping[str, Dead]] = UNPLANNED

    build_timeout: str = limit_build("15m")
    deploy_timeout: str = limit_deploy("5m")
    public: ImageSource | None = table(ImageSource, "An image that everybody can read.")
    aws_ecr: AwsEcr | None = table(AwsEcr, "An image in AWS ECR.")
    gcp_gar: GcpGar | None = table(GcpGar, "An image in Google Artifact Registry.", since=NEW)
    azure_acr: AzureAcr | None = table(AzureAcr, "An image in Azure.", since=NEW)
    verification: Mapping[str, str] = text_map(
        "The signatures an image must have; its keys are passed on as they are.",
        '{ issuer = "https://token.actions.githubusercontent.com" }',
        since=NEW,
    )
