"""The Python client of the Control API: `ControlClient`, with one group of calls per noun.

The how-to page "Use the Python client" shows it in use.
"""
# ruff: noqa: PLC0415 - a group is imported when it is used first: the wire models of all groups
# would add 70 ms to the start of every command.

from functools import cached_property
from typing import TYPE_CHECKING, Self

from exclave.base.clock import SystemClock
from exclave.base.ids import Ids, SystemRandomness
from exclave.client.control_http import ControlHttp
from exclave.wire.identity import WhoAmI

if TYPE_CHECKING:
    from exclave.client.groups.actions import Actions
    from exclave.client.groups.apps import Apps
    from exclave.client.groups.audit import Audit
    from exclave.client.groups.builds import Builds
    from exclave.client.groups.cloud_accounts import CloudAccounts
    from exclave.client.groups.drift import DriftFindings
    from exclave.client.groups.installs import Installs
    from exclave.client.groups.jobs import Jobs
    from exclave.client.groups.logs import Logs
    from exclave.client.groups.orgs import Orgs
    from exclave.client.groups.registry import Registry
    from exclave.client.groups.runners import Runners
    from exclave.client.groups.stacks import Stacks
    from exclave.client.groups.terraform import Terraform
    from exclave.client.groups.tokens import Tokens
    from exclave.client.groups.workflows import Workflows


class ControlClient:
    """The Control API for one token. Use it as `async with ControlClient.open(url, token)`."""

    def __init__(self, http: ControlHttp) -> None:
        self._http = http

    @classmethod
    def open(cls, url: str, token: str) -> Self:
        """Return a client of the server at a URL; nothing is sent yet."""
        clock = SystemClock()
        return cls(ControlHttp(url, token, clock=clock, ids=Ids(clock, SystemRandomness())))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def whoami(self) -> WhoAmI:
        """Return the account, role and org of the token."""
        return await self._http.get(WhoAmI, "/v1/whoami")

    @cached_property
    def actions(self) -> "Actions":
        """Return the calls about actions and runbooks."""
        from exclave.client.groups.actions import Actions

        return Actions(self._http)

    @cached_property
    def apps(self) -> "Apps":
        """Return the calls about apps and their config versions."""
        from exclave.client.groups.apps import Apps

        return Apps(self._http)

    @cached_property
    def drift(self) -> "DriftFindings":
        """Return the calls about findings of scans for drift."""
        from exclave.client.groups.drift import DriftFindings

        return DriftFindings(self._http)

    @cached_property
    def audit(self) -> "Audit":
        """Return the calls about the audit log."""
        from exclave.client.groups.audit import Audit

        return Audit(self._http)

    @cached_property
    def builds(self) -> "Builds":
        """Return the calls about builds."""
        from exclave.client.groups.builds import Builds

        return Builds(self._http)

    @cached_property
    def installs(self) -> "Installs":
        """Return the calls about installs."""
        from exclave.client.groups.installs import Installs

        return Installs(self._http)

    @cached_property
    def jobs(self) -> "Jobs":
        """Return the calls about jobs."""
        from exclave.client.groups.jobs import Jobs

        return Jobs(self._http)

    @cached_property
    def logs(self) -> "Logs":
        """Return the calls about logs of jobs."""
        from exclave.client.groups.logs import Logs

        return Logs(self._http)

    @cached_property
    def orgs(self) -> "Orgs":
        """Return the calls about the token's org."""
        from exclave.client.groups.orgs import Orgs

        return Orgs(self._http)

    @cached_property
    def registry(self) -> "Registry":
        """Return the calls about the OCI registry."""
        from exclave.client.groups.registry import Registry

        return Registry(self._http)

    @cached_property
    def runners(self) -> "Runners":
        """Return the calls about runners."""
        from exclave.client.groups.runners import Runners

        return Runners(self._http)

    @cached_property
    def accounts(self) -> "CloudAccounts":
        """Return the calls about accounts in clouds that installs are pinned to."""
        from exclave.client.groups.cloud_accounts import CloudAccounts

        return CloudAccounts(self._http)

    @cached_property
    def stacks(self) -> "Stacks":
        """Return the calls about Stacks of installs."""
        from exclave.client.groups.stacks import Stacks

        return Stacks(self._http)

    @cached_property
    def terraform(self) -> "Terraform":
        """Return the calls about Terraform states and plans."""
        from exclave.client.groups.terraform import Terraform

        return Terraform(self._http)

    @cached_property
    def tokens(self) -> "Tokens":
        """Return the calls about API tokens."""
        from exclave.client.groups.tokens import Tokens

        return Tokens(self._http)

    @cached_property
    def workflows(self) -> "Workflows":
        """Return the calls about workflows and their steps."""
        from exclave.client.groups.workflows import Workflows

        return Workflows(self._http)
