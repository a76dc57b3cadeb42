"""Per-install overrides: approval option, component toggles, variables."""

import json
from collections.abc import Iterator, Mapping, Sequence

from exclave.appconfig.model.sections import COMPONENT_TYPES
from exclave.control.install_state.hcl_syntax import find_hcl_flaw
from exclave.domain.configs import OutlinedComponent
from exclave.domain.installs import AppInstall, Overrides
from exclave.wire.installs import InstallConfig, ValueChange

_KINDS = {model.OVERRIDE: type_ for type_, model in COMPONENT_TYPES.items() if model.OVERRIDE}
"""The component type that each kind of override is for."""


def is_enabled(component: OutlinedComponent, toggles: Mapping[str, bool]) -> bool:
    """Return whether an install has a component of its app."""
    if not component.get("toggleable"):
        return True
    return toggles.get(component["name"], bool(component.get("default_enabled")))


def merge_overrides(before: Overrides, config: InstallConfig) -> dict[str, dict[str, str]]:
    """Merge new overrides into the current ones; an empty text removes one."""
    merged = {name: dict(texts) for name, texts in before.items()}
    for name, override in config.components.items():
        given = override.model_dump(exclude_none=True)
        merged[name] = {k: t for k, t in {**merged.get(name, {}), **given}.items() if t}
    return {name: texts for name, texts in merged.items() if texts}


def find_flaws(
    components: Sequence[OutlinedComponent], toggles: Mapping[str, bool], config: InstallConfig
) -> Iterator[str]:
    """Yield what is wrong with a requested config; `toggles` are those after the change."""
    known = {component["name"]: component for component in components}
    for name in config.component_toggles:
        if name not in known:
            yield f"component_toggles: the app has no component `{name}`"
        elif not known[name].get("toggleable"):
            yield f"component_toggles: `{name}` is not toggleable in its app"
    enabled = {name for name, component in known.items() if is_enabled(component, toggles)}
    for name in sorted(enabled):
        off = sorted(set(known[name]["needs"]) - enabled)
        if off:
            yield f"`{name}` is on and needs `{off[0]}`, which is off"
    yield from _find_override_flaws(known, config)


def _find_override_flaws(
    known: Mapping[str, OutlinedComponent], config: InstallConfig
) -> Iterator[str]:
    for name, override in config.components.items():
        if name not in known:
            yield f"components: the app has no component `{name}`"
            continue
        for key, text in override.model_dump(exclude_none=True).items():
            if text and known[name]["type"] != _KINDS[key]:
                yield f"components.{name}.{key}: `{name}` is a {known[name]['type']}"
            elif key == "tf_vars" and (flaw := _find_vars_flaw(text)):
                yield f"components.{name}.{key} is {flaw}"


def compare_options(install: AppInstall | None, config: InstallConfig) -> Iterator[ValueChange]:
    """Yield what a requested config changes."""
    was = None if install is None else install.approval
    if was != config.approval_option:
        yield ValueChange(what="approval_option", before=was, after=config.approval_option)
    toggles = {} if install is None else install.toggles
    for name, is_on in sorted(config.component_toggles.items()):
        if toggles.get(name) != is_on:
            before = None if name not in toggles else _show(on=toggles[name])
            what = f"component_toggles.{name}"
            yield ValueChange(what=what, before=before, after=_show(on=is_on))
    old = {} if install is None else install.overrides
    new = merge_overrides(old, config)
    for name in sorted(old.keys() | new.keys()):
        for key in sorted(old.get(name, {}).keys() | new.get(name, {}).keys()):
            before, after = old.get(name, {}).get(key), new.get(name, {}).get(key)
            if before != after:
                what = f"components.{name}.{key}"
                yield ValueChange(what=what, before=before, after=after)


def _show(*, on: bool) -> str:
    return "on" if on else "off"


def _find_vars_flaw(text: str) -> str:
    if not text.lstrip().startswith("{"):
        return find_hcl_flaw(text)
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"not JSON: {error}"
    return ""
