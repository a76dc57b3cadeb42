"""Gather the facts for jobs that check secrets, copy them into the cluster, or remove copies."""

from typing import cast

from exclave.appconfig.model.kinds.secrets import Secret
from exclave.base.json_values import JsonObject, object_or_empty
from exclave.control.definitions import list_definitions
from exclave.control.install_state.state import read_named_state
from exclave.control.job_specs.cluster_access import find_cluster
from exclave.control.job_specs.context import Scope
from exclave.domain.identity import OrgId, QueueId
from exclave.domain.lanes import SECRETS
from exclave.jobspec.images import read_pinned_image
from exclave.jobspec.secrets import goes_into_cluster, make_secrets_job
from exclave.storage import tf_states
from exclave.storage.engine.database import Tx
from exclave.wire.specs import SecretsSpec


def make_secrets(scope: Scope, *, adopt: bool) -> SecretsSpec:
    """Return the job that finds out which secrets exist, and brings the copies up to date.

    With `adopt` the copies may be in another cluster: they are made anew in this one.
    """
    secrets = [*list_definitions(scope.tx, scope.org, scope.config_id, Secret).values()]
    has_targets = any(goes_into_cluster(secret) for secret in secrets)
    copies = has_targets or has_copies(scope.tx, scope.org, scope.install)
    pulls = pulls_with_login(scope.tx, scope.org, scope.install)
    cluster = find_cluster(scope) if copies or pulls else None
    spec = make_secrets_job(secrets, scope.render, cluster)
    return spec.model_copy(update={"adopt": adopt})


def make_secrets_removal(scope: Scope) -> SecretsSpec:
    """Return the job that removes all copies: it wants none."""
    copies = has_copies(scope.tx, scope.org, scope.install)
    cluster = find_cluster(scope) if copies else None
    return make_secrets_job([], scope.render, cluster)


def copies_secrets(tx: Tx, org: OrgId, install: str, config_id: str) -> bool:
    """Return whether a config copies secrets into the cluster, or copies may be there."""
    secrets = list_definitions(tx, org, config_id, Secret).values()
    return any(goes_into_cluster(secret) for secret in secrets) or has_copies(tx, org, install)


def pulls_with_login(tx: Tx, org: OrgId, install: str) -> bool:
    """Return whether nodes pull an image of the install with the login of its registry."""
    _, document = read_named_state(tx, org, install)
    components = object_or_empty(cast("JsonObject", document)["components"])
    outputs = (object_or_empty(entry).get("outputs") for entry in components.values())
    images = (read_pinned_image(object_or_empty(table)) for table in outputs)
    return any(image is not None and image.pull_secret for image in images)


def has_copies(tx: Tx, org: OrgId, install: str) -> bool:
    """Return whether the newest list of what was put into the cluster names anything."""
    newest = tf_states.find_newest(tx, org, QueueId(install), SECRETS)
    return newest is not None and bool(newest.resources)
