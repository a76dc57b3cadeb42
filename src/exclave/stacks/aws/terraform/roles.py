"""Guard, runner's role and operation roles in Terraform."""

import json

from exclave.base.json_values import Json
from exclave.stacks.aws.names import list_guarded_tags, write_policy_name, write_runner_name
from exclave.stacks.aws.policies import (
    build_guard,
    build_machine_trust,
    build_registry_policy,
    build_runner_policy,
    build_secrets_policy,
    build_trust,
    write_document,
)
from exclave.stacks.aws.references import (
    Attribute,
    Native,
    Node,
    ParameterRef,
    ResourceRef,
    Text,
    When,
    join_text,
)
from exclave.stacks.aws.resources import (
    GUARD,
    RUNNER_PROFILE,
    RUNNER_ROLE,
    get_arn,
)
from exclave.stacks.aws.roles import (
    BOUNDARY_ABOUT,
    GUARD_ABOUT,
    OWN_POLICIES,
    POLICY_ABOUT,
    ROLE_SECONDS,
    RUNNER_ABOUT,
    RolePlan,
    plan_roles,
)
from exclave.stacks.aws.terraform.builder import ModuleBuilder
from exclave.stacks.aws.terraform.expressions import write_expression, write_value
from exclave.stacks.model import StackModel
from exclave.stacks.naming import write_snake

_PATH = ParameterRef("RolePath")
_OWN_BOUNDARY = When("HasBoundary", ParameterRef("PermissionsBoundaryArn"))


def add_roles(builder: ModuleBuilder, model: StackModel) -> None:
    """Add the guard, the runner's role and the roles that jobs run with."""
    guard = builder.add_policy("guard", build_guard(model))
    builder.add(
        GUARD,
        {"name": write_policy_name(model, "guard"), "description": GUARD_ABOUT},
        policy=guard,
    )
    _add_runner(builder, model)
    own = _add_own_policies(builder, model)
    for plan in plan_roles(model):
        _add_role(builder, model, plan)
        _add_policies(builder, plan, own)


def _add_runner(builder: ModuleBuilder, model: StackModel) -> None:
    name = write_runner_name(model)
    policy = builder.add_policy("runner_policy", build_runner_policy(model))
    builder.add(
        RUNNER_ROLE,
        {
            "name": name,
            "path": _PATH,
            "description": RUNNER_ABOUT,
            "max_session_duration": ROLE_SECONDS,
            "permissions_boundary": _OWN_BOUNDARY,
            "tags": list_guarded_tags(model),
        },
        assume_role_policy=_encode(write_document(build_machine_trust())),
    )
    role = ResourceRef(RUNNER_ROLE, Attribute.NAME)
    builder.add_resource(
        "aws_iam_role_policy", "runner_role_runner", {"role": role, "name": "runner"}, policy=policy
    )
    builder.add_resource(
        "aws_iam_role_policy_attachment",
        "runner_role_guard",
        {"role": role, "policy_arn": get_arn(GUARD)},
    )
    builder.add(RUNNER_PROFILE, {"name": name, "path": _PATH, "role": role})


def _add_own_policies(builder: ModuleBuilder, model: StackModel) -> dict[str, str]:
    """Add what roles need for the parts that the Stack itself makes; return it by its name."""
    secrets, registry = OWN_POLICIES
    used = {policy.name for plan in plan_roles(model) for policy in plan.inline}
    own: dict[str, str] = {}
    if secrets in used:
        own[secrets] = builder.add_policy("secrets_policy", build_secrets_policy(model))
    if registry in used:
        own[registry] = builder.add_policy("registry_policy", build_registry_policy())
    return own


def _add_role(builder: ModuleBuilder, model: StackModel, plan: RolePlan) -> None:
    boundary: Node = _OWN_BOUNDARY if plan.boundary is None else get_arn(plan.boundary.resource)
    read_only = join_text(*plan.write_managed_arn("ReadOnlyAccess"))
    builder.add(
        plan.resource,
        {
            "name": plan.name,
            "path": _PATH,
            "description": plan.about,
            "max_session_duration": ROLE_SECONDS,
            "permissions_boundary": When("PlanOnly", read_only, boundary),
            "tags": list_guarded_tags(model),
        },
        assume_role_policy=_encode(write_document(build_trust(plan.role))),
    )


def _add_policies(builder: ModuleBuilder, plan: RolePlan, own: dict[str, str]) -> None:
    """Add what a role may do: attachments first, then the policies within it."""
    _attach(builder, plan, "guard", get_arn(GUARD))
    for index, name in enumerate(plan.managed):
        _attach(builder, plan, f"managed_{index}", join_text(*plan.write_managed_arn(name)))
    policies = [(*policy, POLICY_ABOUT) for policy in plan.overflow]
    if plan.boundary is not None:
        policies.append((*plan.boundary, BOUNDARY_ABOUT))
    for resource, name, document, about in policies:
        builder.add(resource, {"name": name, "description": about, "policy": _dump(document)})
    for index, policy in enumerate(plan.overflow):
        _attach(builder, plan, f"policy_{index}", get_arn(policy.resource))
    for index, (name, inline) in enumerate(plan.inline):
        builder.add_resource(
            "aws_iam_role_policy",
            f"{write_snake(plan.resource.name)}_inline_{index}",
            {"role": ResourceRef(plan.resource, Attribute.NAME), "name": name},
            condition=plan.resource.condition,
            policy=own[name] if name in own else write_value(_dump(inline)),
        )


def _attach(builder: ModuleBuilder, plan: RolePlan, what: str, arn: Text) -> None:
    builder.add_resource(
        "aws_iam_role_policy_attachment",
        f"{write_snake(plan.resource.name)}_{what}",
        {"role": ResourceRef(plan.resource, Attribute.NAME), "policy_arn": arn},
        condition=plan.resource.condition,
    )


def _dump(document: object) -> str:
    """Return a policy of the vendor as text."""
    return json.dumps(document, separators=(",", ":"))


def _encode(document: Node) -> Json:
    return write_value(Native(f"jsonencode({write_expression(document)})"))
