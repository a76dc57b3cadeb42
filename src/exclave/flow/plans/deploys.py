"""Deploying and tearing down components: by the graph, in parallel, with hooks around."""

from collections.abc import Sequence

from exclave.domain.installs import name_part
from exclave.flow.plans.drafts import Drawing, Front, draw_component, draw_plan, slug
from exclave.flow.plans.intents import RunAction
from exclave.flow.plans.outline import Component, Hook, Outline


def draw_hooks(
    drawing: Drawing, outline: Outline, trigger: str, after: Front, component: str = ""
) -> Front:
    """Run the actions on a trigger, one after the other."""
    for hook in outline.hooks_on(trigger, component):
        after = draw_action(drawing, hook, after, component)
    return after


def draw_action(drawing: Drawing, hook: Hook, after: Front, component: str = "") -> Front:
    """Run one action."""
    middle = f"{slug(component)}." if component else ""
    intent = RunAction(hook.action, hook.trigger, component)
    lane = f"action:{slug(hook.action)}"
    name = f"{hook.trigger}.{middle}{slug(hook.action)}"
    return drawing.job(name, after, intent, lanes=[lane], mutating=True)


def draw_deploys(
    drawing: Drawing, outline: Outline, components: Sequence[Component], after: Front
) -> Front:
    """Deploy components; each begins when those that it needs are done."""
    ends: dict[str, Front] = {}
    for each in components:
        if not each.enabled:
            continue
        needed = tuple(name for need in each.needs for name in ends.get(need, ()))
        front = draw_hooks(drawing, outline, "pre-deploy-component", needed or after, each.name)
        front = draw_component(drawing, each.name, front, auto=each.auto_approve)
        ends[each.name] = draw_hooks(drawing, outline, "post-deploy-component", front, each.name)
    return _join(ends, after)


def draw_all_deploys(drawing: Drawing, outline: Outline, after: Front) -> Front:
    """Deploy every component, with the hooks of the whole."""
    front = draw_hooks(drawing, outline, "pre-deploy-all-components", after)
    front = draw_deploys(drawing, outline, outline.components, front)
    return draw_hooks(drawing, outline, "post-deploy-all-components", front)


def draw_teardowns(
    drawing: Drawing, outline: Outline, components: Sequence[Component], after: Front
) -> Front:
    """Tear components down; each begins when all that need it are gone."""
    ends: dict[str, Front] = {}
    for each in reversed(components):
        if not each.deployed:
            continue
        dependents = [other.name for other in outline.components if each.name in other.needs]
        needed = tuple(name for other in dependents for name in ends.get(other, ()))
        front = draw_hooks(drawing, outline, "pre-teardown-component", needed or after, each.name)
        front = draw_component(drawing, each.name, front, destroy=True)
        ends[each.name] = draw_hooks(drawing, outline, "post-teardown-component", front, each.name)
    return _join(ends, after)


def draw_all_teardowns(drawing: Drawing, outline: Outline, after: Front) -> Front:
    """Tear everything down, with the hooks of the whole."""
    front = draw_hooks(drawing, outline, "pre-teardown-all-components", after)
    front = draw_teardowns(drawing, outline, outline.components, front)
    return draw_hooks(drawing, outline, "post-teardown-all-components", front)


def draw_plans(drawing: Drawing, components: Sequence[Component], after: Front) -> Front:
    """Only plan components, all at once: nothing is applied, so nobody waits for anybody."""
    ends = {
        each.name: draw_plan(drawing, name_part(each.name), after)
        for each in components
        if each.enabled
    }
    return _join(ends, after)


def _join(ends: dict[str, Front], after: Front) -> Front:
    return tuple(name for front in ends.values() for name in front) or after
