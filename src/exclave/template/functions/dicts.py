"""sprig: maps. `set`, `unset` and the merges change their argument."""

from exclave.template.functions.convert import to_string
from exclave.template.functions.signature import Env, Param, Registry
from exclave.template.limits import Budget
from exclave.template.printing import sort_keys
from exclave.template.problems import Fault
from exclave.template.values import Strings, Value, is_empty, type_of

DICTS = Registry()
ANY, MAP, TEXT = Param.ANY, Param.MAP, Param.TEXT
Map = dict[str, Value]

CHANGING = frozenset({"set", "unset", "merge", "mustMerge", "mergeOverwrite", "mustMergeOverwrite"})
"""Functions that change a map; a template with one of them works on a copy of the values."""

_LEAST_DIG = 3


@DICTS.add_with_env("dict", rest=ANY)
def make_dict(env: Env, *pairs: Value) -> Map:
    """Return a map of keys and values; a last key without a value gets an empty string."""
    keys = [to_string(key, env.budget) for key in pairs[::2]]
    values = [*pairs[1::2], ""]
    return dict(zip(keys, values, strict=False))


@DICTS.add("get", takes=(MAP, TEXT))
def get(items: Map, key: str) -> Value:
    """Return the value of a key, or an empty string if it is missing."""
    return items.get(key, "")


@DICTS.add_with_env("set", takes=(MAP, TEXT, ANY))
def put(env: Env, items: Map, key: str, value: Value) -> Map:
    """Set a key and return the map."""
    items[key] = value
    env.budget.refuse_items(len(items))
    return items


@DICTS.add("unset", takes=(MAP, TEXT))
def remove(items: Map, key: str) -> Map:
    """Delete a key and return the map."""
    items.pop(key, None)
    return items


@DICTS.add("hasKey", takes=(MAP, TEXT))
def has_key(items: Map, key: str) -> bool:
    """Return whether a key exists."""
    return key in items


@DICTS.add("pluck", takes=(TEXT,), rest=MAP)
def pluck(key: str, *maps: Map) -> list[Value]:
    """Return the values of one key in several maps; maps without it are skipped."""
    return [items[key] for items in maps if key in items]


@DICTS.add_with_env("keys", rest=MAP)
def keys(env: Env, *maps: Map) -> Strings:
    """Return the keys, sorted within each map."""
    env.budget.check_items(sum(map(len, maps)))
    return Strings([key for items in maps for key in sort_keys(items)])


@DICTS.add_with_env("values", takes=(MAP,))
def values(env: Env, items: Map) -> list[Value]:
    """Return the values in the order of their keys."""
    env.budget.check_items(len(items))
    return [items[key] for key in sort_keys(items)]


@DICTS.add("pick", takes=(MAP,), rest=TEXT)
def pick(items: Map, *wanted: str) -> Map:
    """Return a map with only the given keys."""
    return {key: items[key] for key in wanted if key in items}


@DICTS.add_with_env("omit", takes=(MAP,), rest=TEXT)
def omit(env: Env, items: Map, *unwanted: str) -> Map:
    """Return a map without the given keys."""
    env.budget.check_items(len(items))
    return {key: value for key, value in items.items() if key not in unwanted}


@DICTS.add("dig", rest=ANY)
def dig(*args: Value) -> Value:
    """Return the value below nested keys, or the default if one of them is missing."""
    if len(args) < _LEAST_DIG:
        raise Fault("dig needs keys, a default and a map")
    *path, default, value = args
    for number, key in enumerate(path):
        if not isinstance(key, str):
            raise Fault(f"dig needs strings as keys, not {type_of(key)}")
        if type(value) is not dict:
            where = ".".join(map(str, path[:number])) or "the map"
            raise Fault(f"dig: {where} is {'null' if value is None else type_of(value)}, not a map")
        if key not in value:
            return default
        value = value[key]
    return value


@DICTS.add_with_env("merge", "mustMerge", takes=(MAP,), rest=MAP)
def merge(env: Env, target: Map, *sources: Map) -> Map:
    """Fill keys that are missing or empty in the first map from the others."""
    for source in sources:
        _merge(target, source, env.budget, overwrite=False)
    return target


@DICTS.add_with_env("mergeOverwrite", "mustMergeOverwrite", takes=(MAP,), rest=MAP)
def merge_overwrite(env: Env, target: Map, *sources: Map) -> Map:
    """Merge the other maps into the first one; they overwrite it."""
    for source in sources:
        _merge(target, source, env.budget, overwrite=True)
    return target


def _merge(target: Map, source: Map, budget: Budget, *, overwrite: bool) -> None:
    budget.enter()
    for key, value in list(source.items()):
        budget.spend()
        known = target.get(key)
        if isinstance(value, dict) and isinstance(known, dict):
            _merge(known, value, budget, overwrite=overwrite)
        elif overwrite or (value is not None and is_empty(known)):
            target[key] = value
    budget.depth -= 1
    budget.check_items(len(target))


@DICTS.add_with_env("deepCopy", "mustDeepCopy", takes=(ANY,))
def deep_copy(env: Env, value: Value) -> Value:
    """Return a deep copy of a value."""
    if value is None:
        raise Fault("deepCopy of nil")
    return copy_value(value, env.budget)


def copy_value(value: Value, budget: Budget) -> Value:
    """Return a value with all nested lists and maps copied."""
    budget.spend()
    if not isinstance(value, list | dict):
        return value
    budget.enter()
    copied: Value
    if isinstance(value, list):
        copied = type(value)([copy_value(item, budget) for item in value])
    else:
        copied = type(value)({key: copy_value(item, budget) for key, item in value.items()})
    budget.depth -= 1
    return copied
