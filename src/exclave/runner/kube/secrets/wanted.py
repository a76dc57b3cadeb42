"""Which Kubernetes Secrets hold which secrets of the customer."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from exclave.base.json_values import Json, JsonObject
from exclave.base.secrets import Secret
from exclave.runner.kube.api.objects import ObjectId
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.specs import SecretTarget


@dataclass(frozen=True, slots=True)
class SecretCopy:
    """A Kubernetes Secret with all its keys; values are in base64, as the API takes them."""

    namespace: str
    name: str
    data: Mapping[str, Secret] = field(repr=False)
    restart: bool = False
    """Whether workloads that read it are restarted when it changes."""

    @property
    def id(self) -> ObjectId:
        """What identifies it."""
        return ObjectId("", "v1", "Secret", self.namespace, self.name)

    def write(self) -> JsonObject:
        """Return the object for the request that applies it."""
        data: dict[str, Json] = {key: value.reveal() for key, value in self.data.items()}
        metadata = {"name": self.name, "namespace": self.namespace}
        return {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "type": "Opaque",
            "data": data,
        }


def group_targets(
    targets: Sequence[SecretTarget], values: Mapping[str, Secret]
) -> list[SecretCopy]:
    """Return one object per namespace and name. Raises if a key would have two values."""
    data: dict[tuple[str, str], dict[str, Secret]] = {}
    owners: dict[tuple[str, str, str], str] = {}
    for target in targets:
        place = (target.namespace, target.name, target.key)
        other = owners.setdefault(place, target.secret)
        if other != target.secret:
            message = f"the key {'/'.join(place)} is wanted by `{other}` and `{target.secret}`"
            raise WorkFailed(Reason.OBJECT_REFUSED, message)
        entry = data.setdefault(place[:2], {})
        entry[target.key] = _encode(target, values[target.secret])
    restarts = {(target.namespace, target.name) for target in targets if target.restart}
    return [
        SecretCopy(namespace, name, entry, restart=(namespace, name) in restarts)
        for (namespace, name), entry in sorted(data.items())
    ]


def _encode(target: SecretTarget, value: Secret) -> Secret:
    """Return the value in base64; one whose format is base64 is what it decodes to."""
    text = value.reveal()
    if not target.base64:
        return Secret(base64.b64encode(text.encode()).decode())
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True)
    except binascii.Error as error:
        message = f"the secret `{target.secret}` is not base64, which its format says: set it again"
        raise WorkFailed(Reason.SECRET_MISSING, message) from error
    return Secret(base64.b64encode(decoded).decode())
