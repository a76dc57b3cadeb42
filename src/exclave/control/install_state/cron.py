"""Compute when a cron schedule is due, in UTC."""

from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

from exclave.base.errors import InvalidInput

_WORDS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}  # fmt: skip


def find_next(cron: str, after: datetime) -> datetime:
    """Return the first time after `after` at which a schedule is due."""
    text = cron.strip()
    try:
        return next(CronSim(_WORDS.get(text, text), after.astimezone(UTC)))
    except (CronSimError, StopIteration) as error:
        raise InvalidInput(
            f"`{cron}` is not a cron schedule: {error or 'it never comes'}",
            hint="Write five fields: minute, hour, day of month, month, day of week.",
        ) from error
