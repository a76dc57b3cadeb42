"""sprig: lists. No function changes its argument; each returns a new list."""

from exclave.template.compare import deep_equal
from exclave.template.functions.convert import to_int64, to_string, to_strings
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.limits import Budget
from exclave.template.problems import Fault
from exclave.template.text import to_bytes, to_text
from exclave.template.values import Lists, Strings, Value, is_empty, type_of

LISTS = Registry()
ANY, INT = Param.ANY, Param.INT


def _items(value: Value, name: str) -> list[Value]:
    if isinstance(value, list):
        return value
    raise Fault(f"{name} needs a list, not {type_of(value)}")


@LISTS.add("list", "tuple", rest=ANY)
def make_list(*values: Value) -> list[Value]:
    """Return a list of the values."""
    return list(values)


@LISTS.add("first", "mustFirst", takes=(ANY,))
def first(value: Value) -> Value:
    """Return the first element, or nil for an empty list."""
    items = _items(value, "first")
    return items[0] if items else None


@LISTS.add("last", "mustLast", takes=(ANY,))
def last(value: Value) -> Value:
    """Return the last element, or nil for an empty list."""
    items = _items(value, "last")
    return items[-1] if items else None


@LISTS.add("rest", "mustRest", takes=(ANY,))
def rest(value: Value) -> list[Value]:
    """Return all but the first element."""
    return list(_items(value, "rest")[1:])


@LISTS.add("initial", "mustInitial", takes=(ANY,))
def initial(value: Value) -> list[Value]:
    """Return all but the last element."""
    return list(_items(value, "initial")[:-1])


@LISTS.add("append", "push", "mustAppend", "mustPush", takes=(ANY, ANY))
def append(value: Value, item: Value) -> list[Value]:
    """Return the list with an element added at the end."""
    return [*_items(value, "append"), item]


@LISTS.add("prepend", "mustPrepend", takes=(ANY, ANY))
def prepend(value: Value, item: Value) -> list[Value]:
    """Return the list with an element added at the start."""
    return [item, *_items(value, "prepend")]


@LISTS.add_with_env("concat", rest=ANY)
def concat(env: Env, *values: Value) -> list[Value]:
    """Return the concatenation of lists."""
    env.budget.check_items(sum(len(_items(value, "concat")) for value in values))
    return [item for value in values for item in _items(value, "concat")]


@LISTS.add("reverse", "mustReverse", takes=(ANY,))
def reverse(value: Value) -> list[Value]:
    """Return the list in reverse order."""
    return list(reversed(_items(value, "reverse")))


@LISTS.add("compact", "mustCompact", takes=(ANY,))
def compact(value: Value) -> list[Value]:
    """Return the list without empty elements."""
    return [item for item in _items(value, "compact") if not is_empty(item)]


@LISTS.add_with_env("uniq", "mustUniq", takes=(ANY,))
def unique(env: Env, value: Value) -> list[Value]:
    """Return the list without duplicates."""
    kept: list[Value] = []
    for item in _items(value, "uniq"):
        if not _contains(kept, item, env.budget):
            kept.append(item)
    return kept


@LISTS.add_with_env("without", "mustWithout", takes=(ANY,), rest=ANY)
def without(env: Env, value: Value, *unwanted: Value) -> list[Value]:
    """Return the list without the given elements."""
    items = _items(value, "without")
    return [item for item in items if not _contains(unwanted, item, env.budget)]


@LISTS.add_with_env("has", "mustHas", takes=(ANY, ANY))
def has(env: Env, item: Value, value: Value) -> bool:
    """Return whether a list has an element."""
    return value is not None and _contains(_items(value, "has"), item, env.budget)


def _contains(items: list[Value] | tuple[Value, ...], wanted: Value, budget: Budget) -> bool:
    return any(deep_equal(wanted, item, budget) for item in items)


@LISTS.add("slice", "mustSlice", takes=(ANY,), rest=ANY)
def cut(value: Value, *bounds: Value) -> Value:
    """Return the elements from start to end; of a string the bytes, as Go's own `slice` does."""
    data: list[Value] | bytes
    data = to_bytes(value) if isinstance(value, str) else _items(value, "slice")
    if not data and isinstance(data, list):
        return None
    start = int(to_int64(bounds[0])) if bounds else 0
    end = int(to_int64(bounds[1])) if len(bounds) > 1 else len(data)
    if not 0 <= start <= end <= len(data):
        raise Fault(f"the range {start}:{end} is outside of {len(data)} elements")
    if isinstance(data, bytes):
        return to_text(data[start:end])
    return type(data)(data[start:end])


@LISTS.add("chunk", "mustChunk", takes=(INT, ANY))
def chunk(size: int, value: Value) -> Lists:
    """Return the list split into lists of one size; the last may be shorter."""
    items = _items(value, "chunk")
    if size < 1:
        raise Fault("chunk needs a size of at least 1")
    return Lists([list(items[at : at + size]) for at in range(0, len(items), size)])


@LISTS.add_with_env("sortAlpha", takes=(ANY,))
def sort_alpha(env: Env, value: Value) -> Strings:
    """Return the elements as strings, sorted by bytes."""
    if not isinstance(value, list):
        return Strings([to_string(value, env.budget)])
    texts = [str(text) for text in to_strings(value, env.budget)]
    env.budget.spend(len(texts))
    texts.sort(key=to_bytes)
    return Strings(texts)
