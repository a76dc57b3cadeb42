"""Parts of an install and their names."""

from exclave.domain.lanes import SANDBOX

_COMPONENT = "component:"


def name_part(component: str) -> str:
    """Return the name of a component's part; the sandbox's if there is no component."""
    return f"{_COMPONENT}{component}" if component else SANDBOX


def component_of(part: str) -> str:
    """Return the name of the component that a part is; empty for the sandbox."""
    return part.removeprefix(_COMPONENT) if part.startswith(_COMPONENT) else ""
