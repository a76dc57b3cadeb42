"""Refuses private addresses, so that an app cannot make a build runner probe its network."""

from exclave.base.addresses import is_private_literal, names_metadata
from exclave.client.reach import AddressRefused, Reach
from exclave.runner.git.urls import Address
from exclave.runner.outcomes import WorkFailed
from exclave.wire.jobs import Reason


async def choose_ip(address: Address, reach: Reach) -> str:
    """Resolve the host once and return one address to use; raise if one of them is refused.

    git is told to use this address, so that a later change of the name has no effect.
    """
    try:
        resolved = await reach.find_addresses(address.host, address.port)
    except AddressRefused as refused:
        raise explain_refusal(refused) from refused
    except (OSError, UnicodeError) as error:
        raise _explain_unknown(address.host) from error
    if not resolved:
        raise _explain_unknown(address.host)
    return next((ip for ip in resolved if ":" not in ip), resolved[0])


def check_literal(host: str, *, allow_private: bool) -> None:
    """Raise if a host, which a proxy will resolve, names what nothing may be fetched from."""
    if names_metadata(host):
        message = f"the host `{host}` is a metadata server, or no address in its usual spelling"
        raise explain_refusal(AddressRefused(message))
    if is_private_literal(host) and not allow_private:
        message = f"the host `{host}` is a private address"
        raise explain_refusal(AddressRefused(message, is_private=True))


def explain_refusal(refused: AddressRefused) -> WorkFailed:
    """Return the failure of a build whose source is where builds may not fetch from."""
    advice = ""
    if refused.is_private:
        advice = (
            ", and apps may not fetch from those: set EXCLAVE_GIT_ALLOW_PRIVATE=true on the build"
            " runner, or write a rewrite rule for it"
        )
    return WorkFailed(Reason.SOURCE_INVALID, f"{refused.message}{advice}")


def _explain_unknown(host: str) -> WorkFailed:
    message = f"the host `{host}` was not found: check the name, and the runner's DNS"
    return WorkFailed(Reason.NETWORK, message)
