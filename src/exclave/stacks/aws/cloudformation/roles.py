"""Guard, runner's role and operation roles in CloudFormation."""

from exclave.stacks.aws.cloudformation.builder import TemplateBuilder, write_tags
from exclave.stacks.aws.names import list_guarded_tags, write_policy_name, write_runner_name
from exclave.stacks.aws.policies import (
    build_guard,
    build_machine_trust,
    build_runner_policy,
    build_trust,
    write_document,
)
from exclave.stacks.aws.references import Node, ParameterRef, ResourceRef, When, join_text
from exclave.stacks.aws.resources import (
    GUARD,
    RUNNER_PROFILE,
    RUNNER_ROLE,
    get_arn,
)
from exclave.stacks.aws.roles import (
    BOUNDARY_ABOUT,
    GUARD_ABOUT,
    POLICY_ABOUT,
    ROLE_SECONDS,
    RUNNER_ABOUT,
    RolePlan,
    plan_roles,
)
from exclave.stacks.model import StackModel

_PATH = ParameterRef("RolePath")
_OWN_BOUNDARY = When("HasBoundary", ParameterRef("PermissionsBoundaryArn"))


def add_roles(builder: TemplateBuilder, model: StackModel) -> None:
    """Add the guard, the runner's role and the roles that jobs run with."""
    guard: dict[str, Node] = {
        "ManagedPolicyName": write_policy_name(model, "guard"),
        "Description": GUARD_ABOUT,
        "PolicyDocument": write_document(build_guard(model)),
    }
    builder.add(GUARD, guard)
    _add_runner(builder, model)
    for plan in plan_roles(model):
        _add_policies(builder, plan)
        _add_role(builder, model, plan)


def _add_runner(builder: TemplateBuilder, model: StackModel) -> None:
    name = write_runner_name(model)
    policy = write_document(build_runner_policy(model))
    inline: list[Node] = [{"PolicyName": "runner", "PolicyDocument": policy}]
    builder.add(
        RUNNER_ROLE,
        {
            "RoleName": name,
            "Path": _PATH,
            "Description": RUNNER_ABOUT,
            "MaxSessionDuration": ROLE_SECONDS,
            "AssumeRolePolicyDocument": write_document(build_machine_trust()),
            "PermissionsBoundary": _OWN_BOUNDARY,
            "ManagedPolicyArns": [get_arn(GUARD)],
            "Policies": inline,
            "Tags": write_tags(list_guarded_tags(model)),
        },
    )
    profile: dict[str, Node] = {
        "InstanceProfileName": name,
        "Path": _PATH,
        "Roles": [ResourceRef(RUNNER_ROLE)],
    }
    builder.add(RUNNER_PROFILE, profile)


def _add_policies(builder: TemplateBuilder, plan: RolePlan) -> None:
    """Add what the app gives a role and what has no place in the role itself."""
    policies = [(*policy, POLICY_ABOUT) for policy in plan.overflow]
    if plan.boundary is not None:
        policies.append((*plan.boundary, BOUNDARY_ABOUT))
    for resource, name, document, about in policies:
        properties: dict[str, Node] = {
            "ManagedPolicyName": name,
            "Description": about,
            "PolicyDocument": document,
        }
        builder.add(resource, properties)


def _add_role(builder: TemplateBuilder, model: StackModel, plan: RolePlan) -> None:
    boundary: Node = _OWN_BOUNDARY if plan.boundary is None else get_arn(plan.boundary.resource)
    read_only = join_text(*plan.write_managed_arn("ReadOnlyAccess"))
    managed: list[Node] = [
        get_arn(GUARD),
        *(join_text(*plan.write_managed_arn(name)) for name in plan.managed),
        *(get_arn(policy.resource) for policy in plan.overflow),
    ]
    inline: list[Node] = [
        {"PolicyName": policy.name, "PolicyDocument": policy.document} for policy in plan.inline
    ]
    builder.add(
        plan.resource,
        {
            "RoleName": plan.name,
            "Path": _PATH,
            "Description": plan.about,
            "MaxSessionDuration": ROLE_SECONDS,
            "AssumeRolePolicyDocument": write_document(build_trust(plan.role)),
            "PermissionsBoundary": When("PlanOnly", read_only, boundary),
            "ManagedPolicyArns": managed,
            "Policies": inline or None,
            "Tags": write_tags(list_guarded_tags(model)),
        },
    )
