"""What an app asks of the customer, and the outputs that the customer's Stack gives it."""

from collections.abc import Callable
from dataclasses import asdict

from exclave.appconfig.model.kinds.secrets import Secret
from exclave.appconfig.templates import ROOT, Fault
from exclave.base.json_values import Json
from exclave.control.definitions import list_definitions
from exclave.control.install_state.state import read_named_state
from exclave.control.installs.input_versions import list_declared
from exclave.control.job_specs.rendering import Renderings
from exclave.domain.identity import OrgId
from exclave.domain.installs import AppInstall
from exclave.domain.stacks import StackFacts, StackInput, StackSecret, StackTerms
from exclave.storage.engine.database import Tx
from exclave.wire import stacks as wire
from exclave.wire.stacks import INPUT_SECRET, StackReport


def read_terms(tx: Tx, org: OrgId, install: AppInstall, texts: Renderings) -> StackTerms:
    """Return the secrets and inputs of the install's config that the customer provides."""
    return StackTerms(
        install_id=install.id,
        install=install.name,
        app=install.app_name,
        secrets=_read_secrets(tx, org, install, texts),
        inputs=tuple(
            StackInput(
                name=declared.name,
                description=declared.description,
                type=declared.type,
                default=declared.default,
                required=declared.required,
                sensitive=declared.sensitive,
            )
            for declared in list_declared(tx, org, install.config_id)
            if declared.user_configurable
        ),
    )


def show_terms(terms: StackTerms) -> wire.StackTerms:
    """Show the terms as a Stack reads them."""
    return wire.StackTerms(
        install_id=terms.install_id,
        install=terms.install,
        app=terms.app,
        secrets=[wire.StackSecret(**asdict(secret)) for secret in terms.secrets],
        inputs=[wire.StackInput(**asdict(item)) for item in terms.inputs],
    )


def build_outputs(facts: StackFacts, terms: StackTerms, report: StackReport) -> dict[str, Json]:
    """Return the Stack's outputs: facts, references to secrets, inputs, clusters."""
    clusters: dict[str, Json] = {
        name: {"reachable": cluster.reachable, "version": cluster.version}
        for name, cluster in report.clusters.items()
    }
    return {
        **facts.to_outputs(),
        **({"kubernetes": clusters} if clusters else {}),
        **{f"{secret.name}_arn": refer_to_secret(secret.name) for secret in terms.secrets},
        "secrets": {
            secret.name: report.secrets.get(secret.name, False) for secret in terms.secrets
        },
        "install_inputs": list_inputs(terms, report),
    }


def list_inputs(terms: StackTerms, report: StackReport) -> dict[str, str]:
    """Return the customer's inputs; a sensitive one as a reference to the secret that holds it."""
    declared = {item.name: item for item in terms.inputs}
    plain = {
        name: text
        for name, text in report.inputs.items()
        if name in declared and not declared[name].sensitive
    }
    references = {
        name: refer_to_secret(f"{INPUT_SECRET}{name}")
        for name in report.sensitive_inputs
        if name in declared and declared[name].sensitive
    }
    return {**plain, **references}


def find_owed(terms: StackTerms, report: StackReport) -> list[str]:
    """Return the names of the required inputs that the customer has not set yet."""
    given = list_inputs(terms, report)
    return [item.name for item in terms.inputs if item.required and not given.get(item.name)]


def refer_to_secret(name: str) -> str:
    """Return the placeholder that the runner replaces with a secret."""
    return f"((exclave:secret:{name}))"


def build_renderer(tx: Tx, org: OrgId, install: str, texts: Renderings) -> Callable[[str], str]:
    """Return a function that renders a text with the state of an install.

    A text that cannot be rendered yet stays as the app has it.
    """
    name, state = read_named_state(tx, org, install)

    def render(text: str) -> str:
        done = texts.render(tx, text, {ROOT: state}, name)
        return text if isinstance(done, Fault) else done

    return render


def _read_secrets(
    tx: Tx, org: OrgId, install: AppInstall, texts: Renderings
) -> tuple[StackSecret, ...]:
    secrets = list_definitions(tx, org, install.config_id, Secret)
    if not secrets:
        return ()
    render = build_renderer(tx, org, install.id, texts)
    return tuple(
        StackSecret(
            name=render(secret.name),
            description=render(secret.description),
            required=secret.required,
            auto_generate=secret.auto_generate,
        )
        for secret in secrets.values()
    )
