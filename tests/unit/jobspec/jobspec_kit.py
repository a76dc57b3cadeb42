"""Facts as the control plane would gather them, and a renderer that shows what it is asked for."""

from collections.abc import Mapping

from exclave.domain.intents import WorkflowValues
from exclave.jobspec.facts import ActionFacts, ApplyFacts, PlanFacts, SourceFacts
from exclave.wire.spec_fields import Artifact, PlanRef

DIGEST = f"sha256:{'a' * 64}"
ARTIFACT = Artifact(repository="apps/a", digest=DIGEST)
PLAN = PlanRef(execution_id=f"exe_{'a' * 26}", digest=DIGEST)
CONFIG = f"cfg_{'a' * 26}"
SOURCES = SourceFacts(CONFIG, DIGEST, {"infra": f"sha256:{'b' * 64}"})


def render(text: str, where: str) -> str:
    return text.replace("{{x}}", f"<{where}>")


def render_command(text: str, where: str) -> list[str]:
    return [render(word, where) for word in text.split()]


def plan_facts(override: str = "") -> PlanFacts:
    return PlanFacts(ARTIFACT, render, override)


def apply_facts() -> ApplyFacts:
    return ApplyFacts(ARTIFACT, render, "", PLAN)


def action_facts(artifacts: Mapping[str, Artifact] | None = None, **values: str) -> ActionFacts:
    return ActionFacts(
        org_id="org_1",
        app_id="app_1",
        install_id="ins_1",
        workflow_id="wfl_1",
        values=WorkflowValues("cfg_1", "action_run", **values),  # type: ignore[arg-type]
        artifacts=artifacts or {},
        render=render,
        render_command=render_command,
    )
