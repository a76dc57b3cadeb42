"""What an app asks of the customer, and what the customer's answers become in the state."""

from collections.abc import Sequence
from typing import Any

from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.stored.freezing import thaw
from exclave.appconfig.templates import ROOT, Fault
from exclave.control.install_state.state import read_named_state
from exclave.control.installs.input_versions import list_declared
from exclave.control.job_specs.rendering import Renderings
from exclave.domain.identity import OrgId
from exclave.storage import configs
from exclave.storage.engine.database import AnyRow, Tx
from exclave.wire.stacks import INPUT_SECRET, StackInput, StackReport, StackSecret, StackTerms


def read_terms(tx: Tx, org: OrgId, install: AnyRow, texts: Renderings) -> StackTerms:
    """Read what the install's config declares for the customer's side."""
    return StackTerms(
        install_id=install.id,
        install=install.name,
        app=install.app_name,
        secrets=_read_secrets(tx, org, install, texts),
        inputs=[
            StackInput(
                name=one.name,
                description=one.description,
                type=one.type,
                default=one.default,
                required=one.required,
                sensitive=one.sensitive,
            )
            for one in list_declared(tx, org, install.config_id)
            if one.user_configurable
        ],
    )


def build_outputs(terms: StackTerms, report: StackReport) -> dict[str, Any]:
    """Make the Stack's outputs: facts, references to secrets, the customer's inputs."""
    return {
        "region": "local",
        **report.facts,
        **{f"{one.name}_arn": refer_to_secret(one.name) for one in terms.secrets},
        "secrets": {one.name: report.secrets.get(one.name, False) for one in terms.secrets},
        "install_inputs": list_inputs(terms, report),
    }


def list_inputs(terms: StackTerms, report: StackReport) -> dict[str, str]:
    """Tell the customer's inputs; of a sensitive one only where it lies."""
    told = {one.name: one for one in terms.inputs}
    plain = {
        name: text
        for name, text in report.inputs.items()
        if name in told and not told[name].sensitive
    }
    kept = [name for name in report.sensitive_inputs if name in told and told[name].sensitive]
    return {**plain, **{name: refer_to_secret(f"{INPUT_SECRET}{name}") for name in kept}}


def find_owed(terms: StackTerms, report: StackReport) -> list[str]:
    """Name the required inputs that the customer has not given yet."""
    given = list_inputs(terms, report)
    return [one.name for one in terms.inputs if one.required and not given.get(one.name)]


def refer_to_secret(name: str) -> str:
    """Write what stands for a secret until the runner fills it in."""
    return f"((exclave:secret:{name}))"


def _read_secrets(tx: Tx, org: OrgId, install: AnyRow, texts: Renderings) -> list[StackSecret]:
    rows = configs.list_parts(tx, org, install.config_id, "secret")
    if not rows:
        return []
    name, state = read_named_state(tx, org, install.id)

    def render(text: str) -> str:
        done = texts.render(tx, text, {ROOT: state}, name)
        return text if isinstance(done, Fault) else done

    found: Sequence[Secret] = [thaw(Secret, row.value) for row in rows]
    return [
        StackSecret(
            name=render(one.name),
            description=render(one.description),
            required=one.required,
            auto_generate=one.auto_generate,
        )
        for one in found
    ]
