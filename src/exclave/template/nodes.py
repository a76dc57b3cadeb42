"""The syntax tree of a template: frozen nodes, each with its offset."""

from typing import NamedTuple, TypeAlias


class Dot(NamedTuple):
    """The current value: `.`."""

    at: int


class Nil(NamedTuple):
    """The constant `nil`."""

    at: int


class Bool(NamedTuple):
    """`true` or `false`."""

    at: int
    value: bool


class String(NamedTuple):
    """A quoted or raw string."""

    at: int
    value: str


class Number(NamedTuple):
    """A number: its integer and float values where it has them, and its default type."""

    at: int
    text: str
    integer: int | None
    real: float | None
    ideal: int | float | None


class Field(NamedTuple):
    """A chain of keys below the current value: `.a.b`."""

    at: int
    names: tuple[str, ...]


class Variable(NamedTuple):
    """A variable and the keys below it: `$`, `$x.a.b`."""

    at: int
    name: str
    names: tuple[str, ...]


class Function(NamedTuple):
    """The name of a function."""

    at: int
    name: str


class Chain(NamedTuple):
    """Keys below a parenthesised pipeline or a function: `(…).a.b`."""

    at: int
    base: "Pipe | Function"
    names: tuple[str, ...]


class Command(NamedTuple):
    """An operand or a call: one stage of a pipeline."""

    at: int
    args: tuple["Operand", ...]


class Pipe(NamedTuple):
    """Commands, each passing its value to the next, and the variables assigned the last one."""

    at: int
    variables: tuple[str, ...]
    assigns: bool
    commands: tuple[Command, ...]


Operand: TypeAlias = Dot | Nil | Bool | String | Number | Field | Variable | Function | Chain | Pipe


class Text(NamedTuple):
    """Text outside actions, after trimming."""

    at: int
    text: str


class Action(NamedTuple):
    """A pipeline whose value is printed or assigned to a variable."""

    at: int
    pipe: Pipe


class Branch(NamedTuple):
    """A condition and its body."""

    pipe: Pipe
    body: "Body"


class If(NamedTuple):
    """`if`, `else if`, `else`."""

    at: int
    branches: tuple[Branch, ...]
    otherwise: "Body | None"


class With(NamedTuple):
    """`with`, `else with`, `else`: like `if`, but the value becomes the dot."""

    at: int
    branches: tuple[Branch, ...]
    otherwise: "Body | None"


class Range(NamedTuple):
    """A loop over a list, a map or an integer."""

    at: int
    pipe: Pipe
    body: "Body"
    otherwise: "Body | None"


class Include(NamedTuple):
    """`template "name" pipeline`, or a `block`."""

    at: int
    name: str
    pipe: Pipe | None


class Break(NamedTuple):
    """Leave the loop."""

    at: int


class Continue(NamedTuple):
    """Go on with the next element."""

    at: int


Node: TypeAlias = Text | Action | If | With | Range | Include | Break | Continue
Body: TypeAlias = tuple[Node, ...]


class Template(NamedTuple):
    """A parsed template with its named definitions; it can be rendered any number of times."""

    name: str
    text: str
    root: str
    body: Body
    parts: dict[str, Body]
    functions: frozenset[str]
    miscounts: tuple[tuple[str, int, int], ...] = ()
    """Calls with a wrong number of arguments, and where: an error only when they are reached."""
    unknown_part: tuple[str, int] | None = None
    """A part that is called and not defined, and where: an error only when it is reached."""
    tokens: int = 0
    """How many tokens it was made of."""
