"""Secrets of Secrets Manager in the emulated CloudFormation, which skips them."""

import json
import secrets
import string
from typing import Any

from moto.core.common_models import CloudFormationModel
from moto.secretsmanager.models import SecretsManagerBackend, secretsmanager_backends

LETTERS = string.ascii_letters + string.digits


class EmulatedSecret(CloudFormationModel):
    """A secret of a stack; defining the class makes it known."""

    # The emulation looks for its types in its own packages.
    __module__ = "moto.secretsmanager.models"

    def __init__(self, arn: str, name: str) -> None:
        self.arn, self.name, self.type = arn, name, "AWS::SecretsManager::Secret"

    @staticmethod
    def cloudformation_name_type() -> str:
        return "Name"

    @staticmethod
    def cloudformation_type() -> str:
        return "AWS::SecretsManager::Secret"

    @property
    def physical_resource_id(self) -> str:
        return self.arn

    @classmethod
    def has_cfn_attr(cls, attr: str) -> bool:
        return attr == "Id"

    def get_cfn_attribute(self, attribute_name: str) -> str:
        del attribute_name
        return self.arn

    @classmethod
    def create_from_cloudformation_json(
        cls,
        resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
        **kwargs: Any,
    ) -> "EmulatedSecret":
        del kwargs
        properties = cloudformation_json["Properties"]
        made = _backend(account_id, region_name).create_secret(
            name=resource_name,
            secret_string=_make_value(properties),
            secret_binary=None,
            description=properties.get("Description"),
            tags=properties.get("Tags") or [],
            kms_key_id=properties.get("KmsKeyId"),
            client_request_token=None,
            replica_regions=[],
            force_overwrite=False,
        )
        return cls(json.loads(made)["ARN"], resource_name)

    @classmethod
    def update_from_cloudformation_json(
        cls,
        original_resource: Any,
        new_resource_name: str,
        cloudformation_json: Any,
        account_id: str,
        region_name: str,
    ) -> Any:
        del new_resource_name
        properties = cloudformation_json["Properties"]
        if "SecretString" in properties:
            _backend(account_id, region_name).put_secret_value(
                secret_id=original_resource.arn,
                secret_string=properties["SecretString"],
                secret_binary="",
                client_request_token="",
                version_stages=["AWSCURRENT"],
            )
        return original_resource

    @classmethod
    def delete_from_cloudformation_json(
        cls, resource_name: str, cloudformation_json: Any, account_id: str, region_name: str
    ) -> None:
        del cloudformation_json
        _backend(account_id, region_name).delete_secret(
            resource_name, force_delete_without_recovery=True, recovery_window_in_days=None
        )


def add_secrets() -> None:
    """Make the type known; the class above has registered itself."""
    assert EmulatedSecret.cloudformation_type()


def _backend(account_id: str, region_name: str) -> SecretsManagerBackend:
    return secretsmanager_backends[account_id][region_name]


def _make_value(properties: Any) -> str | None:
    if "GenerateSecretString" in properties:
        length = int(properties["GenerateSecretString"]["PasswordLength"])
        return "".join(secrets.choice(LETTERS) for _ in range(length))
    value = properties.get("SecretString")
    return None if value is None else str(value)
