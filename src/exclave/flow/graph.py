"""Turning the steps that a caller wrote into a stored graph: names to indexes, no cycles."""

from collections.abc import Mapping, Sequence

from exclave.base.errors import InvalidInput


def resolve_needs(needs: Mapping[str, Sequence[str]]) -> dict[str, tuple[int, ...]]:
    """Turn needed names into indexes; unknown names, doubled needs and cycles are refused."""
    index = {name: position for position, name in enumerate(needs)}
    resolved: dict[str, tuple[int, ...]] = {}
    for name, wanted in needs.items():
        unknown = sorted(set(wanted) - set(index))
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
    waiting = {names.index(name): set(wanted) for name, wanted in needs.items()}
    while ready := [index for index, wanted in waiting.items() if not wanted & waiting.keys()]:
        for index in ready:
            del waiting[index]
    if waiting:
        raise InvalidInput(
            f"steps need each other in a circle: {' → '.join(_walk(waiting, names))}",
            hint="Remove one of these needs.",
        )


def _walk(waiting: Mapping[int, set[int]], names: Sequence[str]) -> list[str]:
    at = min(waiting)
    path: list[int] = []
    while at not in path:
        path.append(at)
        at = min(need for need in waiting[at] if need in waiting)
    return [names[index] for index in [*path[path.index(at) :], at]]
