"""The customer's secrets in the store of their cloud, by the references in the Stack's document."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from exclave.base.secrets import Secret
from exclave.runner.cloud.accounts import CloudAccount, SecretDenied
from exclave.runner.cloud.document import CloudDocument
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason
from exclave.wire.stacks import INPUT_SECRET


@dataclass(slots=True)
class CloudSecrets:
    """The secrets of an install in a cloud. Values are not kept: only whether there is one."""

    account: CloudAccount
    read_document: Callable[[], CloudDocument | None]
    advise: Callable[[str], str]
    is_writable: bool = False
    """Whether the runner itself stores secrets; in AWS the Stack generates them."""
    _seen: dict[str, tuple[str, bool]] = field(default_factory=dict)
    """The newest version of each secret, and whether it has a value that is not blank."""

    async def fetch(self, names: Iterable[str]) -> dict[str, Secret]:
        """Return these secrets; raise if one is missing, with what the customer has to run."""
        references = self._list_references()
        values: dict[str, Secret] = {}
        for name in sorted(set(names)):
            value = await self._read(references.get(name, ""))
            if value is None:
                message = f"the customer has not given the secret `{name}`: {self.advise(name)}"
                raise WorkFailed(Reason.SECRET_MISSING, message)
            values[name] = value
        return values

    async def list_names(self) -> frozenset[str]:
        """Return the names of the secrets that have a value."""
        references = self._list_references()
        given = [name for name, where in references.items() if await self._has_value(where)]
        return frozenset(given)

    async def list_versions(self) -> dict[str, str]:
        """Return the newest version of each secret that has a value."""
        references = self._list_references()
        names = await self.list_names()
        return {name: self._seen[references[name]][0] for name in sorted(names)}

    async def put(self, name: str, value: Secret) -> None:
        """Store a secret where the Stack allows it."""
        reference = self._list_references().get(name, "")
        if not self.is_writable or not reference:
            message = f"only the customer changes the secret `{name}`: {self.advise(name)}"
            raise WorkFailed(Reason.SECRET_READ_ONLY, message)
        await self.account.write_secret(reference, value)

    async def put_missing(self, name: str, value: Secret) -> bool:
        """Store a secret that has no value, where the Stack allows it."""
        reference = self._list_references().get(name, "")
        if not self.is_writable or not reference or await self._has_value(reference):
            return False
        await self.account.write_secret(reference, value)
        return True

    def _list_references(self) -> Mapping[str, str]:
        document = self.read_document()
        if document is None:
            return {}
        inputs = document.input_secrets.items()
        return {**document.secrets, **{f"{INPUT_SECRET}{name}": where for name, where in inputs}}

    async def _read(self, reference: str) -> Secret | None:
        try:
            return await self.account.read_secret(reference) if reference else None
        except SecretDenied as denied:
            message = f"the secret `{reference}` cannot be read: {denied.message}"
            raise WorkFailed(Reason.ACCESS_DENIED, message) from denied

    async def _has_value(self, reference: str) -> bool:
        """Return whether a secret was given; its value is looked at once per version."""
        version = await self.account.has_secret(reference)
        if not version:
            return False
        seen = self._seen.get(reference)
        if seen is None or seen[0] != version:
            seen = version, await self.account.read_secret(reference) is not None
            self._seen[reference] = seen
        return seen[1]
