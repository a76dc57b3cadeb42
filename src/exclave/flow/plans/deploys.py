"""Steps that deploy and tear down components in the order of their graph, with hooks."""

from collections.abc import Sequence

from exclave.domain.installs import DeployShape, name_part
from exclave.domain.intents import RunAction
from exclave.domain.lanes import slug
from exclave.flow.plans.drafts import Front, GraphBuilder, add_component, add_plan
from exclave.flow.plans.outline import Component, Hook, Outline


def add_hooks(
    graph: GraphBuilder, outline: Outline, trigger: str, after: Front, component: str = ""
) -> Front:
    """Add the actions on a trigger, one after the other."""
    for hook in outline.hooks_on(trigger, component):
        after = add_action(graph, hook, after, component)
    return after


def add_action(graph: GraphBuilder, hook: Hook, after: Front, component: str = "") -> Front:
    """Add a step that runs an action."""
    middle = f"{slug(component)}." if component else ""
    intent = RunAction(hook.action, hook.trigger, component)
    lane = f"action:{slug(hook.action)}"
    name = f"{hook.trigger}.{middle}{slug(hook.action)}"
    return graph.job(name, after, intent, lanes=[lane], mutating=True)


def add_deploys(
    graph: GraphBuilder, outline: Outline, components: Sequence[Component], after: Front
) -> Front:
    """Add deploys of components; each starts when those that it needs are done."""
    ends: dict[str, Front] = {}
    for component in components:
        if not component.enabled:
            continue
        needed = tuple(name for need in component.needs for name in ends.get(need, ()))
        front = add_hooks(graph, outline, "pre-deploy-component", needed or after, component.name)
        front = add_component(graph, component, front)
        ends[component.name] = add_hooks(
            graph, outline, "post-deploy-component", front, component.name
        )
    return _join(ends, after)


def add_all_deploys(graph: GraphBuilder, outline: Outline, after: Front) -> Front:
    """Add deploys of all components, with the hooks around them."""
    front = add_hooks(graph, outline, "pre-deploy-all-components", after)
    front = add_deploys(graph, outline, outline.components, front)
    return add_hooks(graph, outline, "post-deploy-all-components", front)


def add_teardowns(
    graph: GraphBuilder, outline: Outline, components: Sequence[Component], after: Front
) -> Front:
    """Add teardowns of components; each starts when all that need it are gone."""
    ends: dict[str, Front] = {}
    for component in reversed(components):
        if not component.deployed:
            continue
        dependents = [other.name for other in outline.components if component.name in other.needs]
        needed = tuple(name for other in dependents for name in ends.get(other, ()))
        front = add_hooks(graph, outline, "pre-teardown-component", needed or after, component.name)
        front = add_component(graph, component, front, destroy=True)
        ends[component.name] = add_hooks(
            graph, outline, "post-teardown-component", front, component.name
        )
    return _join(ends, after)


def add_all_teardowns(graph: GraphBuilder, outline: Outline, after: Front) -> Front:
    """Add teardowns of all components, with the hooks around them."""
    front = add_hooks(graph, outline, "pre-teardown-all-components", after)
    front = add_teardowns(graph, outline, outline.components, front)
    return add_hooks(graph, outline, "post-teardown-all-components", front)


def add_plans(graph: GraphBuilder, components: Sequence[Component], after: Front) -> Front:
    """Add plans of components in parallel: nothing is applied, so none has to wait.

    What is copied has no plan.
    """
    ends = {
        component.name: add_plan(graph, name_part(component.name), after)
        for component in components
        if component.enabled and component.shape is DeployShape.PLANNED
    }
    return _join(ends, after)


def _join(ends: dict[str, Front], after: Front) -> Front:
    return tuple(name for front in ends.values() for name in front) or after
