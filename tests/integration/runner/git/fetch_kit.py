"""A fetcher of git repositories at work."""

import json
import os
from typing import Any

from exclave.runner.git.fetch import Checkout, GitFetcher, GitSettings
from exclave.runner.jobs.context import JobLimits, open_context
from exclave.runner.jobs.environment import ChildSettings
from exclave.runner.jobs.executor import JobRun
from exclave.runner.secrets.source_credentials import SourceCredentials
from exclave.wire.specs import GitSource, NoopSpec
from tests.unit.runner.work_kit import CLOCK, NO_UPLINK, ExecutionHarness, make_dispatch, read_spool

EVERYWHERE = GitSettings(protocols=frozenset({"https", "ssh", "http", "file"}), allow_private=True)


class Fetch:
    """A fetcher at work on one bench."""

    def __init__(
        self,
        bench: ExecutionHarness,
        settings: GitSettings = EVERYWHERE,
        children: ChildSettings | None = None,
        **more: Any,
    ) -> None:
        self.bench = bench
        self.credentials = bench.folder.parent / "source-credentials.json"
        self.fetcher = GitFetcher(
            settings,
            children or ChildSettings(path=os.environ["PATH"]),
            SourceCredentials(self.credentials),
            **more,
        )
        self.context = open_context(
            JobRun(make_dispatch(NoopSpec()), bench.folder, NO_UPLINK),
            bench.log,
            bench.stop,
            clock=CLOCK,
            children=ChildSettings(),
            limits=JobLimits(60.0, grace_s=10.0, keep_free_bytes=0),
        )

    def write_credentials(self, *entries: dict[str, str]) -> None:
        self.credentials.write_text(json.dumps({"credentials": entries}))
        self.credentials.chmod(0o600)

    async def get(self, url: str, ref: str = "main", directory: str = ".", **more: Any) -> Checkout:
        source = GitSource(url=url, ref=ref, directory=directory, **more)
        return await self.fetcher.fetch(self.context, source)

    def texts(self) -> str:
        return "\n".join(one.text for one in read_spool(self.bench.spool))
