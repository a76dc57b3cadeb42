"""Statements that are written with SQLAlchemy, compiled once, and run on the bare driver.

SQLAlchemy takes about 50 us to carry a statement to the driver, against 4 on SQLite, and on
PostgreSQL 290 us of CPU time against 20 (docs/internals/group-commit.md). So what every request
needs is compiled once per database and kept.
"""

import itertools
from collections import namedtuple
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeVar, overload

from sqlalchemy import BindParameter, ColumnElement, Dialect, Row
from sqlalchemy.sql.base import Executable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.type_api import TypeEngine
from sqlalchemy.sql.visitors import cloned_traverse

R = TypeVar("R")
AnyRow = Row[*tuple[Any, ...]]
"""A row without a type of its own: its attributes are the columns of the query."""

Convert = Callable[[Any], Any]
Values = Mapping[str, Any]
"""Values by the names of columns or parameters, as a driver takes them."""
Deferred = Callable[[], list[R]]
"""Returns the rows of a statement that was sent; waits for them if need be."""
FindReader = Callable[[TypeEngine[Any]], Convert | None]
"""Returns how values of a type are read from the driver; None if they need no conversion."""

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Compiled(Generic[R]):
    """A statement in the words of one database."""

    name: bytes
    """Unique in this process, for databases that keep prepared statements by name."""
    sql: str
    takes: tuple[tuple[str, int, Convert | None], ...]
    """In order: the value's name, its place in a list or -1, and how the driver takes it."""
    fixed: Values
    """Values that the database's way of writing brought along."""
    row: Callable[[Sequence[Any]], R]
    """Makes a row of the values of its columns."""
    reads: tuple[tuple[int, Convert], ...]
    """The columns that do not come from the driver as they should be, and what makes them so."""

    def bind(self, values: Values) -> list[Any]:
        """Put values in order, as the driver takes them."""
        bound = []
        if self.fixed:
            values = {**self.fixed, **values}
        for name, position, convert in self.takes:
            value = values[name] if position < 0 else _pick(values[name], position)
            bound.append(value if convert is None else convert(value))
        return bound

    def read(self, records: Iterable[Sequence[Any]]) -> list[R]:
        """Turn what the driver answered into rows."""
        make, reads = self.row, self.reads
        if not reads:
            return [make(values) for values in records]
        rows = []
        for values in records:
            changed = list(values)
            for position, convert in reads:
                if changed[position] is not None:
                    changed[position] = convert(changed[position])
            rows.append(make(changed))
        return rows


class Prepared(Generic[R]):
    """A statement with named parameters, compiled when a kind of database first runs it.

    Its rows are read as values of `row`, a NamedTuple or a frozen dataclass whose fields have the
    names of the columns, in their order; without it they are named tuples made on the spot.

    Values that it says itself become part of its text: no database uses a partial index for a
    parameter.
    """

    @overload
    def __init__(self: "Prepared[AnyRow]", statement: Executable) -> None: ...

    @overload
    def __init__(self, statement: Executable, row: type[R]) -> None: ...

    def __init__(self, statement: Executable, row: type[Any] | None = None) -> None:
        assert isinstance(statement, ClauseElement)  # noqa: S101 - every query is
        self._statement: ClauseElement = statement
        names = tuple(column.name for column in _list_columns(statement))
        self._make_row = _make_row_type(names) if row is None else find_row_maker(row, names)
        self._lists = _find_lists(statement)
        self._compiled: dict[Any, Compiled[R]] = {}

    def compile(self, dialect: Dialect, find_reader: FindReader, values: Values) -> Compiled[R]:
        """Find the form of the statement for a database, and for lists of this length."""
        key: Any = dialect
        if self._lists:
            key = (dialect, *(_round_up(len(values[name])) for name in self._lists))
        compiled = self._compiled.get(key)
        if compiled is None:
            sizes = {name: _round_up(len(values[name])) for name in self._lists}
            compiled = self._compiled[key] = _compile(
                self._statement, self._make_row, dialect, find_reader, sizes
            )
        return compiled


def find_row_maker(row: type[R], names: tuple[str, ...]) -> Callable[[Sequence[Any]], R]:
    """Return the function that makes a value of `row` from the values of these columns.

    Raise TypeError if its fields are not the columns, in the same order.
    """
    make = getattr(row, "_make", None)
    if make is not None:
        expected: tuple[str, ...] = row._fields  # type: ignore[attr-defined]
    elif is_dataclass(row):
        expected = tuple(field.name for field in fields(row))
        make = lambda values: row(*values)  # noqa: E731 - one of two ways to make a value
    else:
        raise TypeError(f"{row.__name__} is neither a NamedTuple nor a dataclass")
    if expected != names:
        raise TypeError(f"{row.__name__} has the fields {expected}, the query the columns {names}")
    maker: Callable[[Sequence[Any]], R] = make
    return maker


def name_statement() -> bytes:
    """Make a name under which a connection may keep a prepared statement."""
    return b"exclave_%d" % next(_numbers)


def _list_columns(statement: ClauseElement) -> Iterable[ColumnElement[Any]]:
    # Asked of a copy: SQLAlchemy keeps the answer in the statement, and statements derived from it
    # later, such as one with RETURNING, would inherit that answer.
    copy = cloned_traverse(statement, {}, {})
    columns: Iterable[ColumnElement[Any]] = getattr(copy, "exported_columns", ())
    return columns


def _make_row_type(names: tuple[str, ...]) -> Callable[[Sequence[Any]], Any]:
    row = namedtuple("row", names)  # type: ignore[misc] # noqa: PYI024 - made at run time
    return row._make


def _find_lists(statement: ClauseElement) -> tuple[str, ...]:
    names: dict[str, None] = {}

    def visit(bind: BindParameter[Any]) -> None:
        if bind.expanding and bind.required:
            names[bind.key] = None

    cloned_traverse(statement, {}, {"bindparam": visit})
    return tuple(names)


def _round_up(size: int) -> int:
    """Return the next power of two: lists of similar length share a compiled form."""
    return 1 << (size - 1).bit_length() if size > 1 else size


def _pick(values: Sequence[Any], position: int) -> Any:
    return values[position] if position < len(values) else values[-1]


def _compile(
    statement: ClauseElement,
    make_row: Callable[[Sequence[Any]], R],
    dialect: Dialect,
    find_reader: FindReader,
    sizes: Mapping[str, int],
) -> Compiled[R]:
    asked: set[str] = set()

    def settle(bind: BindParameter[Any]) -> None:
        asked.add(bind.key)
        if bind.key in sizes:
            bind.value = [""] * sizes[bind.key]
        bind.literal_execute = not bind.required
        bind.required = False

    settled = cloned_traverse(statement, {}, {"bindparam": settle})
    made = settled.compile(dialect=dialect, compile_kwargs={"render_postcompile": True})
    assert isinstance(made, SQLCompiler)  # noqa: S101 - it is a query
    takes = tuple(_list_takes(made, dialect, sizes))
    columns = _list_columns(statement)
    readers = [(position, find_reader(column.type)) for position, column in enumerate(columns)]
    return Compiled(
        name=name_statement(),
        sql=str(made),
        takes=takes,
        fixed={name: bind.value for name, bind in made.binds.items() if name not in asked},
        row=make_row,
        reads=tuple((position, read) for position, read in readers if read is not None),
    )


def _list_takes(
    made: SQLCompiler, dialect: Dialect, sizes: Mapping[str, int]
) -> Iterable[tuple[str, int, Convert | None]]:
    parts = {
        f"{name}_{position + 1}": (name, position)
        for name, size in sizes.items()
        for position in range(size)
    }
    for wanted in made.positiontup or ():
        name, position = parts.get(wanted, (wanted, -1))
        kind = made.binds[name].type.dialect_impl(dialect)
        yield name, position, kind.bind_processor(dialect)
