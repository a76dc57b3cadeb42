"""What the customer has to run to give the runner something: the exact command of each cloud."""

import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from exclave.base.json_values import text_or_empty
from exclave.runner.cloud.document import CloudDocument
from exclave.wire.stacks import Cloud

_STANDARD: Final = ("provision", "maintenance", "deprovision")
_OUTPUTS: Final = ("iam_role_arn", "identity_client_id", "sa_email")
"""What names the standard roles in the outputs of a Stack."""
_WORDS: Final = re.compile(r"[^A-Za-z0-9]+")
_PROJECT: Final = re.compile(r"projects/([^/]+)/secrets/([^/]+)")


@dataclass(frozen=True, slots=True)
class Advice:
    """Commands for the customer, in words of the Stack that they applied."""

    cloud: Cloud
    read_document: Callable[[], CloudDocument | None]

    def advise_secret(self, name: str) -> str:
        """Return how the customer stores the value of a secret."""
        document = self.read_document()
        reference = "" if document is None else document.secrets.get(name, "")
        if document is None or not reference:
            return "run the newest version of the Stack, which has a place for it"
        words = _store_secret(self.cloud, reference, text_or_empty(document.outputs.get("region")))
        return f"put the value into a file, then run `{shlex.join(words)}`"

    def advise_role(self, name: str) -> str:
        """Return how the customer switches a role on."""
        document = self.read_document()
        key = "" if document is None else name_role_key(document, name)
        camel = "".join(word[:1].upper() + word[1:] for word in key.split("_"))
        match self.cloud:
            case Cloud.AWS | Cloud.LOCAL:
                ways = f"`Enable{camel}Role=true` (CloudFormation) or `enable_{key}_role = true`"
            case Cloud.AZURE:
                ways = f"`enable{camel}=true` (deployment) or `enable_{key} = true`"
            case Cloud.GCP:
                ways = f"`enable_{key} = true`"
        return f"update the Stack with {ways} (Terraform)" if "(" in ways else f"set {ways}"


def name_role_key(document: CloudDocument, name: str) -> str:
    """Return the key of a role in the parameters of its Stack."""
    reference = document.role_references.get(name, "")
    for kind in _STANDARD:
        outputs = (document.outputs.get(f"{kind}_{what}") for what in _OUTPUTS)
        if reference and reference in outputs:
            return kind
    bare = name.replace(document.install, "")
    return "_".join(word for word in _WORDS.split(bare.lower()) if word)


def _store_secret(cloud: Cloud, reference: str, region: str) -> list[str]:
    match cloud:
        case Cloud.AWS | Cloud.LOCAL:
            place = ["--region", region, "--secret-id", reference]
            return [
                "aws",
                "secretsmanager",
                "put-secret-value",
                *place,
                "--secret-string",
                "file://value",
            ]
        case Cloud.GCP:
            match = _PROJECT.search(reference)
            project, name = match.groups() if match else ("", reference)
            place = ["--project", project, "--data-file", "value"]
            return ["gcloud", "secrets", "versions", "add", name, *place]
        case Cloud.AZURE:
            parts = urlsplit(reference)
            vault, name = (parts.hostname or "").partition(".")[0], parts.path.rpartition("/")[2]
            place = ["--vault-name", vault, "--name", name, "--file", "value"]
            return ["az", "keyvault", "secret", "set", *place]
