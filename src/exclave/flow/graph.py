"""Turning the steps that a caller wrote into a stored graph: names to indexes, no cycles."""

from collections.abc import Collection, Mapping, Sequence

from exclave.base.errors import InvalidInput


def resolve_needs(needs: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Turn needed names into indexes; unknown names, doubled needs and cycles are refused."""
    index = {name: position for position, name in enumerate(needs)}
    resolved: dict[str, tuple[int, ...]] = {}
    for name, wanted in needs.items():
        unknown = sorted(set(wanted) - index.keys())
        if unknown:
            raise InvalidInput(
                f"step `{name}` needs `{unknown[0]}`, and there is no such step",
                hint=f"Steps of this workflow: {', '.join(sorted(index)[:20])}.",
                step=name,
            )
        resolved[name] = tuple(sorted({index[other] for other in wanted}))
    _refuse_cycle(resolved, tuple(needs))
    return resolved


def _refuse_cycle(needs: Mapping[str, tuple[int, ...]], names: Sequence[str]) -> None:
    wanted = [needs[name] for name in names]
    dependents: list[list[int]] = [[] for _ in names]
    for index, needed in enumerate(wanted):
        for need in needed:
            dependents[need].append(index)
    missing = [len(needed) for needed in wanted]
    ready = [index for index, count in enumerate(missing) if not count]
    for index in ready:  # grows while it is read
        for dependent in dependents[index]:
            missing[dependent] -= 1
            if not missing[dependent]:
                ready.append(dependent)
    if len(ready) < len(names):
        waiting = {index: needed for index, needed in enumerate(wanted) if missing[index]}
        raise InvalidInput(
            f"steps need each other in a circle: {' → '.join(_walk(waiting, names))}",
            hint="Remove one of these needs.",
        )


def _walk(waiting: Mapping[int, tuple[int, ...]], names: Sequence[str]) -> list[str]:
    at = min(waiting)
    path: dict[int, None] = {}
    while at not in path:
        path[at] = None
        at = min(need for need in waiting[at] if need in waiting)
    walked = list(path)
    return [names[index] for index in [*walked[walked.index(at) :], at]]


def find_unguarded(
    needs: Sequence[tuple[int, ...]], gates: Collection[int], acting: Collection[int]
) -> list[int]:
    """List the acting steps that can begin without any gate before them."""
    dependents: dict[int, list[int]] = {}
    for index, wanted in enumerate(needs):
        for need in wanted:
            dependents.setdefault(need, []).append(index)
    guarded: set[int] = set()
    front = list(gates)
    while front:
        for index in dependents.get(front.pop(), ()):
            if index not in guarded:
                guarded.add(index)
                front.append(index)
    return sorted(set(acting) - guarded)
