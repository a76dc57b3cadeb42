"""Column types that mean the same in both databases."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_core import to_json
from sqlalchemy import JSON, BigInteger, Dialect, TypeDecorator
from sqlalchemy.dialects.postgresql import JSONB

Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
"""A JSON document; None is no document, not the document `null`."""


def write_json(value: object) -> str:
    """Write a document: like the standard library, and in a sixth of its time."""
    try:
        return to_json(value, inf_nan_mode="constants").decode()
    except ValueError:  # half of a surrogate pair, which only an escape can carry
        return json.dumps(value)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A moment as microseconds since 1970 in UTC: exact, comparable, the same everywhere."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Write a moment."""
        del dialect
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:
        """Read a moment."""
        del dialect
        return None if value is None else _EPOCH + timedelta(microseconds=value)
