"""Failures of a bare driver, raised as SQLAlchemy raises them: callers need to know one kind."""

from sqlalchemy.exc import DBAPIError


def translate(
    error: Exception, base: type[Exception], sql: str, *, lost: bool = False
) -> DBAPIError:
    """Wrap a driver's error; values are not repeated, as they may be secret."""
    made = DBAPIError.instance(
        sql, None, error, base, hide_parameters=True, connection_invalidated=lost
    )
    assert isinstance(made, DBAPIError)  # noqa: S101 - it is, for an error of the driver
    return made
