"""What the checks find beyond the one broken app per code; each case is one small change."""

from pathlib import Path

import pytest

from tests.unit.appconfig.directories import REPO, codes, read

ACTION = 'name = "a"\ntimeout = "5m"\n[[triggers]]\ntype = "{}"\n{}\n[[steps]]\nname = "s"\n'
SCRIPT = 'inline_contents = """\n#!/bin/sh\n"""\n'
IMAGE = 'name = "image"\ntype = "container_image"\n'
ROLE = 'type = "custom"\nname = "r"\ndescription = "r"\ndisplay_name = "r"\n'
SECRET = '[[secret]]\nname = "{0}"\ndisplay_name = "{0}"\ndescription = "{0}"\n'
INPUT = '[[group]]\nname = "g"\ndescription = "g"\n[[input]]\nname = "domain"\ngroup = "g"\ndisplay_name = "d"\ndescription = "d"\n'
MANIFEST = 'name = "m"\ntype = "kubernetes_manifest"\nnamespace = "x"\n'
HELM = 'name = "web"\ntype = "helm_chart"\nchart_name = "acme-web"\n'
RUNBOOK = 'name = "r"\n[[input]]\nname = "x"\n[[steps]]\nname = "s"\ntype = "{}"\n'
STACK = 'name = "s"\ndescription = "s"\n'
BRANCH = 'name = "main"\n' + REPO
INSTALL = 'name = "i"\n'
RULE = '[[rules]]\nname = "r"\ntrigger = "t"\n'
OPA = 'engine = "opa"\ncontents = "package nuon\\n\\ndeny := 1"\n'
MATRIX = '[[rules]]\nprincipal = "{}"\noperation = "deploy"\nrole = "r"\n'

CASES = [
    ("actions/a.toml", ACTION.format("post-deploy-component", "") + SCRIPT, {"missing_key"}),
    ("actions/a.toml", ACTION.format("manual", 'component_name = "api"') + SCRIPT, {"conflict"}),
    ("actions/a.toml", ACTION.format("manual", 'cron_schedule = "0 6 * * *"') + SCRIPT, {"needless_key"}),
    ("actions/a.toml", ACTION.format("cron", 'cron_schedule = "0 6 * * *"\n[[triggers]]\ntype = "cron"\ncron_schedule = "0 7 * * *"') + SCRIPT, {"conflict"}),
    ("actions/a.toml", ACTION.format("manual", ""), {"missing_key"}),
    ("actions/a.toml", ACTION.format("manual", "") + 'inline_contents = "./gone.sh"\n', {"reference_missing"}),
    ("actions/a.toml", ACTION.format("post-deploy-components", "") + SCRIPT, {"unknown_choice"}),
    ("actions/a.toml", 'name = "a"\n', {"missing_key"}),
    ("actions/a.toml", 'role = "x"\ndependencies = ["y"]\n' + ACTION.format("manual", "") + SCRIPT, {"unknown_role", "unknown_component"}),
    ("actions/a.toml", ACTION.format("manual", "") + SCRIPT + '[[steps]]\nname = "s"\n' + SCRIPT, {"duplicate_name"}),
    ("actions/a.toml", ACTION.format("manual", "") + 'command = "it\'s"\n', {"bad_format"}),
    ("actions/a.toml", ACTION.format("manual", "") + 'command = "echo \'{{ .nuon.install.id }}"\n', {"bad_format"}),
    ("actions/a.toml", ACTION.format("manual", "") + 'command = """echo {{ .nuon.install.id | default "it\'s a" }}"""\n', set()),
    ("runbooks/r.toml", RUNBOOK.format("action") + 'command = "echo \'{{ .runbook_inputs.x }}"\n', {"bad_format"}),
    ("actions/a.toml", ACTION.format("manual", "") + SCRIPT + f'env_vars = {{ X = "{"x" * 32_769}" }}\n', {"bad_format"}),
    ("actions/a.toml", ACTION.format("manual", "") + SCRIPT + 'env_vars = { "A B" = "x" }\n', {"bad_name"}),
    ("actions/a.toml", ACTION.format("manual", "") + f'inline_contents = """\n#!/bin/sh\n{"x" * 262_144}"""\n', {"bad_format"}),
    ("components/i.toml", IMAGE, {"one_of"}),
    ("components/i.toml", IMAGE + 'max_auto_retries = 3\n[public]\nimage_url = "x"\ntag = "1"\n', {"unknown_key"}),
    ("components/i.toml", IMAGE + '[public]\nimage_url = "x"\n', {"one_of"}),
    ("components/i.toml", IMAGE + '[azure_acr]\nimage_url = "x"\ntag = "1"\ntenant_id = "t"\n', {"conflict", "not_applied"}),
    ("components/i.toml", IMAGE + '[gcp_gar]\nimage_url = "x"\ntag = "1"\ngcp_project_id = "p"\n', {"not_applied", "wanted_key"}),
    ("components/i.toml", IMAGE.replace("container", "external"), {"unknown_choice"}),
    ("components/i.toml", 'name = "i"\ntype = 5\n', {"wrong_type"}),
    ("components/m.toml", MANIFEST, {"one_of"}),
    ("components/m.toml", MANIFEST + 'manifest = "x"\n' + REPO, {"conflict"}),
    ("components/m.toml", MANIFEST + '[kustomize]\npath = "x"\n', {"one_of"}),
    ("components/m.toml", MANIFEST + 'manifest = "x"\n' + REPO + '[kustomize]\npath = "x"\n', {"one_of"}),
    ("components/m.toml", MANIFEST + 'manifest = "./gone.yaml"\n', {"reference_missing"}),
    ("components/w.toml", HELM + "default_enabled = true\n" + REPO, {"needless_key"}),
    ("components/w.toml", HELM + REPO + '[[operation_roles]]\noperation = "provision"\nrole = "x"\n', {"unknown_choice", "unknown_role"}),
    ("components/w.toml", HELM + REPO + '[[health.probes]]\ntype = "exec"\nname = "p"\nurl = "x"\n', {"missing_key", "needless_key"}),
    ("components/w.toml", HELM + REPO + '[health]\nrequired_checks = ["q"]\n[[health.probes]]\ntype = "tcp"\nname = "p"\nurl = "x"\n', {"conflict"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.components.api.image.tag }}"\n', {"unknown_path"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.inputs.domain }}"\n', {"unknown_path"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.install.secrets.x }}"\n', {"unknown_path"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.install.id }}{{ .other }}"\n', {"unknown_path"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.actions.workflows.health.outputs.steps.x.y }}"\n', {"unknown_action"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.actions.workflows.health.wrong }}"\n', {"unknown_path"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.actions.workflows.gone.outputs.x }}"\n', {"unknown_action"}),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.install_stack.outputs.x_arn }}"\n', set()),
    ("components/w.toml", HELM + REPO + '[values]\nx = "{{ request.object }}"\n', set()),
    ("sandbox.toml", 'terraform_version = "1.11.3"\n', {"one_of"}),
    ("sandbox.toml", REPO, set()),
    ("sandbox.toml", 'type = "pulumi"\n' + REPO, {"missing_key"}),
    ("sandbox.toml", 'type = "pulumi"\nruntime = "go"\n' + REPO + '[pulumi_config]\nproject = "x"\n', {"doubtful_format"}),
    ("stack.toml", STACK + 'type = "aws-cloudformation"\nvpc_nested_template_url = "https://a.s3.amazonaws.com/x.yaml"\n', {"unknown_template"}),
    ("stack.toml", STACK + 'deployment_scope = "subscription"\n', {"needless_key"}),
    ("stack.toml", STACK + '[[custom_nested_stacks]]\nname = "a"\ntemplate_url = "x"\nindex = 1\n' * 2, {"duplicate_name"}),
    ("stack.toml", STACK + '[[custom_nested_stacks]]\nname = "a"\ntemplate_url = "x"\nindex = 1\nparameters = { a = "", b = "x" }\n', {"missing_key", "doubtful_format"}),
    ("inputs.toml", INPUT + 'required = true\ndefault = "x"\n', {"conflict"}),
    ("inputs.toml", INPUT + 'sensitive = true\ndefault = "x"\n', {"conflict"}),
    ("inputs.toml", INPUT + 'type = "json"\ndefault = "{"\n', {"bad_format"}),
    ("inputs.toml", INPUT + 'type = "number"\ndefault = "x"\n', {"doubtful_format"}),
    ("inputs.toml", INPUT + 'type = "bool"\ndefault = "x"\n', {"doubtful_format"}),
    ("inputs.toml", INPUT + 'type = "bool"\ndefault = true\n', set()),
    ("secrets.toml", SECRET.format("x") + "kubernetes_sync = true\n", {"missing_key"}),
    ("secrets.toml", SECRET.format("x") + 'kubernetes_sync = true\nkubernetes_secret_name = "A B"\nkubernetes_secret_namespace = "n"\n', {"bad_name"}),
    ("secrets.toml", "".join(SECRET.format(n) + 'kubernetes_sync = true\nkubernetes_secret_name = "a"\nkubernetes_secret_namespace = "n"\n' for n in "xy"), {"conflict"}),
    ("secrets.toml", SECRET.format("x") + '[[secret.kubernetes_sync_targets]]\nnamespaces = ["N"]\nname = "a"\nkey = "a/b"\n', {"bad_name"}),
    ("permissions/r.toml", ROLE, {"missing_key"}),
    ("permissions/r.toml", ROLE.replace('type = "custom"\n', "") + '[[policies]]\nmanaged_policy_name = "x"\n', {"missing_key"}),
    ("permissions/r.toml", ROLE + '[[policies]]\nmanaged_policy_name = "x"\ncontents = "{}"\n', {"one_of"}),
    ("permissions/r.toml", ROLE + '[[policies]]\ncontents = "{}"\n', {"wanted_key"}),
    ("permissions/r.toml", ROLE + '[[policies]]\nname = "p"\ncontents = "no json"\n', {"policy_contents"}),
    ("policies/p.toml", 'type = "kubernetes_cluster"\n' + OPA, {"policy_engine"}),
    ("policies/p.toml", 'type = "helm_chart"\n' + OPA, {"missing_key"}),
    ("policies/p.toml", 'type = "helm_chart"\ncomponents = ["*", "api"]\n' + OPA, {"conflict"}),
    ("policies/p.toml", 'type = "helm_chart"\ncomponents = ["gone"]\n' + OPA, {"unknown_component"}),
    ("policies/p.toml", 'type = "sandbox"\n' + OPA.replace("deny", "allow"), {"policy_contents"}),
    ("policies/p.toml", 'type = "sandbox"\n' + OPA.replace("deny := 1", "pass contains msg if { msg := 1 }"), set()),
    ("policies/p.toml", 'type = "runner_job_helm_deploy"\ncontents = "x"\n', {"deprecated"}),
    ("operation_roles.toml", MATRIX.format("x"), {"bad_format", "unknown_role"}),
    ("operation_roles.toml", MATRIX.format("nuon::component:x"), {"unknown_component", "unknown_role"}),
    ("operation_roles.toml", MATRIX.format("nuon::action:x"), {"unknown_action", "unknown_role"}),
    ("operation_roles.toml", MATRIX.format("nuon::action:*") * 2, {"conflict", "unknown_role"}),
    ("kubernetes_contexts.toml", '[[kubernetes_context]]\nname = "x"\ncomponent = "api"\n', {"conflict"}),
    ("runbooks/r.toml", RUNBOOK.format("component_deploy"), {"missing_key"}),
    ("runbooks/r.toml", RUNBOOK.format("deploy") + 'component_name = "api"\ndeploy_dependencies = true\n', set()),
    ("runbooks/r.toml", RUNBOOK.format("action"), {"missing_key"}),
    ("runbooks/r.toml", RUNBOOK.format("action") + 'action_name = "health"\ncommand = "x"\n', {"one_of"}),
    ("runbooks/r.toml", RUNBOOK.format("sandbox_deprovision") + 'timeout = "1m"\n', {"needless_key"}),
    ("runbooks/r.toml", RUNBOOK.format("wait_for_event"), {"missing_key"}),
    ("runbooks/r.toml", RUNBOOK.format("action") + 'command = "{{ .runbook_inputs.y }}"\n', {"unknown_input"}),
    ("runbooks/r.toml", RUNBOOK.format("action") + 'command = "{{ .runbook_inputs.x }}{{ .runbook_outputs.s.event.id }}"\n', set()),
    ("runbooks/r.toml", RUNBOOK.format("action") + 'command = "{{ .runbook_outputs.t.x }}"\n', {"unknown_action"}),
    ("branch.toml", BRANCH + "".join(f'[[install_groups]]\nname = "{n}"\nlabel_selector = {{ a = "b" }}\ndefault = {d}\n' for n, d in (("a", "true"), ("b", "false"))), {"conflict"}),
    ("branch.toml", BRANCH + '[run]\nmode = "push"\ntag_prefix = "v"\n', {"needless_key"}),
    ("branch.toml", BRANCH + '[run]\nmode = "on_github_label"\n', {"missing_key"}),
    ("branch.toml", BRANCH + '[preview]\ninstall_id = "a"\ninstall_name = "b"\n', {"one_of"}),
    ("triggers.toml", RULE, {"missing_key"}),
    ("triggers.toml", RULE + '[rules.target]\ntype = "runbook"\n', {"missing_key"}),
    ("triggers.toml", RULE + '[rules.target]\ntype = "runbook"\nrunbook = "gone"\n', {"unknown_runbook"}),
    ("triggers.toml", RULE + '[[rules.filters]]\npath = "x"\nop = "eq"\n[[rules.filters]]\npath = "x"\nop = "exists"\nvalue = 1\n[rules.target]\ntype = "app_branch_run"\napp_branch = "x"\n', {"missing_key", "needless_key", "unknown_branch"}),
    ("triggers.toml", RULE + '[[rules.filters]]\npath = "x"\nop = "exists"\n' * 21 + '[rules.target]\ntype = "app_branch_run"\napp_branch = "x"\n', {"conflict", "unknown_branch"}),
    ("installs/i.toml", INSTALL + '[inputs]\ngone = "x"\n', {"unknown_input"}),
    ("installs/i.toml", INSTALL + 'app_branch_group = "x"\n', {"missing_key"}),
    ("installs/i.toml", INSTALL + "[component_toggles]\napi = true\n", {"needless_key"}),
    ("installs/i.toml", INSTALL + '[components.gone]\nhelm_values = "x"\n', {"unknown_component"}),
    ("installs/i.toml", INSTALL + '[aws_account]\nregion = "x"\n[gcp_account]\nregion = "x"\n', {"one_of"}),
    ("installs.toml", "", set()),
    ("installs.toml", "# nothing\n", set()),
    ("installs.toml", REPO + REPO.replace("public", "connected"), {"one_of"}),
    ("metadata.toml", 'version = "v3"\n', {"unknown_choice"}),
    ("metadata.toml", 'version = "v2"\nname = "x"\n', {"unknown_key"}),
    ("metadata.toml", 'version = "v2"\nreadme = "{{ .nuon.inputs.inputs.gone }}"\n', {"unknown_input"}),
]  # fmt: skip


@pytest.mark.parametrize(("file", "text", "expected"), CASES)
def test_a_small_change_is_found(file: str, text: str, expected: set[str], tmp_path: Path) -> None:
    assert codes(read(tmp_path, {file: text})) == expected


AWS = 'runner_type = "aws"\n'


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("permissions/r.toml", ROLE + 'cloud_platform = "gcp"\n[[policies]]\nmanaged_policy_name = "x"\n', {"cloud_mismatch", "missing_role"}),
        ("permissions/r.toml", ROLE + '[[policies]]\nname = "x"\ngcp_predefined_role = "x"\n', {"cloud_mismatch", "missing_role"}),
        ("sandbox.toml", REPO, {"wanted_key", "missing_role"}),
        ("installs/i.toml", INSTALL + '[gcp_account]\nregion = "x"\n', {"cloud_mismatch", "missing_role"}),
        ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.install_stack.outputs.token_arn }}"\n', {"unknown_secret", "missing_role"}),
        ("components/w.toml", HELM + REPO + '[values]\nx = "{{ .nuon.install_stack.outputs.runner_iam_role_arn }}"\n', {"missing_role"}),
    ],
)  # fmt: skip
def test_on_aws_more_is_found(file: str, text: str, expected: set[str], tmp_path: Path) -> None:
    assert codes(read(tmp_path, {"runner.toml": AWS, file: text})) == expected


def test_two_standard_roles_of_a_type_are_doubtful(tmp_path: Path) -> None:
    role = ROLE.replace("custom", "provision") + '[[policies]]\nmanaged_policy_name = "x"\n'
    files = {"permissions/a.toml": role, "permissions/b.toml": role.replace('"r"', '"q"')}

    assert codes(read(tmp_path, files)) == {"conflict"}


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("{{ .nuon.inputs.inputs.gone }}", "error"),
        ('{{ index .nuon.inputs.inputs "gone" }}', "warning"),
        ('{{ dig "inputs" "inputs" "gone" "x" .nuon }}', "warning"),
    ],
)
def test_what_the_template_bears_is_a_warning(tmp_path: Path, text: str, severity: str) -> None:
    reading = read(tmp_path, {"components/w.toml": HELM + REPO + f"[values]\nx = '''{text}'''\n"})

    assert [str(each.severity) for each in reading.diagnostics] == [severity]
