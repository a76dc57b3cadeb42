"""The customer's own log store: where a runner in a cloud writes its log and its audit trail."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final, Literal, Protocol
from urllib.parse import quote

from exclave.base.json_values import Json, JsonObject, parse_object, text_or_empty
from exclave.runner.cloud.accounts import CloudAccount
from exclave.runner.cloud.aws import AwsAccount
from exclave.runner.cloud.azure import AzureAccount
from exclave.runner.cloud.exchange import CloudRefused
from exclave.runner.cloud.gcp import GcpAccount

LogKind = Literal["runner", "audit"]

_AWS_TARGET: Final = "Logs_20140328"
_MONITOR: Final = "https://monitor.azure.com"
_AZURE_VERSION: Final = "api-version=2023-01-01"
_LONGEST_SPAN: Final = timedelta(hours=23)
_SEVERITIES: Final = {"warning": "WARNING", "error": "ERROR", "critical": "CRITICAL"}
_UNFIT: Final = frozenset({HTTPStatus.REQUEST_ENTITY_TOO_LARGE, HTTPStatus.UNPROCESSABLE_ENTITY})
_UNFIT_WORDS: Final = ("InvalidParameterException", "INVALID_ARGUMENT", "InvalidPayload")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line of JSON, and when it was written."""

    at: datetime
    text: str


def fits_batch(batch: Sequence[LogLine], line: LogLine) -> bool:
    """Return whether a line may be sent with those before it: CloudWatch accepts only one day."""
    return not batch or timedelta(0) <= line.at - batch[0].at < _LONGEST_SPAN


@dataclass(frozen=True, slots=True)
class LogPlace:
    """Where lines go: the store that the document names, and whose lines they are."""

    reference: str
    install: str
    machine: str
    kind: LogKind


class LogStore(Protocol):
    """The log store of one cloud."""

    async def write(self, place: LogPlace, lines: Sequence[LogLine]) -> None:
        """Store lines, the oldest first; raise `CloudRefused` if the store does not accept them."""
        ...


def open_log_store(account: CloudAccount) -> LogStore:
    """Return the log store of an account."""
    match account:
        case AwsAccount():
            return AwsLogStore(account)
        case GcpAccount():
            return GcpLogStore(account)
        case AzureAccount():
            return AzureLogStore(account)
        case _:
            raise TypeError("an account of an unknown cloud")


def is_unfit(refused: CloudRefused) -> bool:
    """Return whether a store will never accept these lines, however often they are sent."""
    return refused.status in _UNFIT or any(word in refused.message for word in _UNFIT_WORDS)


@dataclass(slots=True)
class AwsLogStore:
    """CloudWatch Logs: the reference is a log group; each machine has its own streams in it."""

    account: AwsAccount
    _streams: set[str] = field(default_factory=set)

    async def write(self, place: LogPlace, lines: Sequence[LogLine]) -> None:
        """Store lines in the stream of their machine and kind."""
        stream = f"{place.machine}/{place.kind}"
        where: JsonObject = {"logGroupName": place.reference, "logStreamName": stream}
        if stream not in self._streams:
            await self._create_stream(where)
            self._streams.add(stream)
        events: list[Json] = [
            {"timestamp": int(line.at.timestamp() * 1000), "message": line.text} for line in lines
        ]
        try:
            await self._ask("PutLogEvents", {**where, "logEvents": events})
        except CloudRefused:
            self._streams.discard(stream)  # somebody may have deleted it
            raise

    async def _create_stream(self, where: JsonObject) -> None:
        try:
            await self._ask("CreateLogStream", where)
        except CloudRefused as refused:
            if "ResourceAlreadyExistsException" not in refused.message:
                raise

    async def _ask(self, action: str, request: JsonObject) -> None:
        await self.account.post_json(
            "logs", f"{_AWS_TARGET}.{action}", request, what="CloudWatch Logs"
        )


@dataclass(frozen=True, slots=True)
class GcpLogStore:
    """Cloud Logging: the reference is `projects/P/logs/NAME`."""

    account: GcpAccount

    async def write(self, place: LogPlace, lines: Sequence[LogLine]) -> None:
        """Store lines; one that is sent twice is stored once."""
        project, _, name = place.reference.removeprefix("projects/").partition("/logs/")
        request: JsonObject = {
            "logName": f"projects/{project}/logs/{quote(name, safe='')}",
            "resource": {"type": "global", "labels": {"project_id": project}},
            "labels": {"install": place.install, "machine": place.machine, "kind": place.kind},
            "entries": [_write_entry(line) for line in lines],
        }
        url = f"{self.account.addresses.logging}/v2/entries:write"
        await self.account.send("POST", url, "Cloud Logging", request)


def _write_entry(line: LogLine) -> JsonObject:
    payload = parse_object(line.text, "a line of the log")
    return {
        "timestamp": _write_time(line.at),
        "severity": _SEVERITIES.get(text_or_empty(payload.get("level")), "INFO"),
        "insertId": hashlib.sha256(line.text.encode()).hexdigest()[:32],
        "jsonPayload": payload,
    }


@dataclass(frozen=True, slots=True)
class AzureLogStore:
    """Log Analytics: the reference is the stream of a data collection rule, with its endpoint.

    Such as `https://HOST.ingest.monitor.azure.com/dataCollectionRules/dcr-ID/streams/NAME`.
    """

    account: AzureAccount

    async def write(self, place: LogPlace, lines: Sequence[LogLine]) -> None:
        """Store lines as rows of the stream's table."""
        rows = [
            {
                "TimeGenerated": _write_time(line.at),
                "Install": place.install,
                "Machine": place.machine,
                "Kind": place.kind,
                "Line": line.text,
            }
            for line in lines
        ]
        body = json.dumps(rows).encode()
        url = f"{place.reference}?{_AZURE_VERSION}"
        await self.account.post(url, _MONITOR, body, what="Azure Monitor")


def _write_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
