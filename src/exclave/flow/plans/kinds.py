"""The types of workflows that an install knows."""

from enum import StrEnum


class WorkflowKind(StrEnum):
    """What a workflow is for."""

    PROVISION = "provision"
    REPROVISION = "reprovision"
    REPROVISION_SANDBOX = "reprovision_sandbox"
    DEPROVISION_SANDBOX = "deprovision_sandbox"
    DEPROVISION = "deprovision"
    DEPLOY = "deploy"
    DEPLOY_ALL = "deploy_all"
    TEARDOWN = "teardown"
    TEARDOWN_ALL = "teardown_all"
    SYNC_SECRETS = "sync_secrets"
    INPUT_UPDATE = "input_update"
    ACTION_RUN = "action_run"
    RUNBOOK_RUN = "runbook_run"
    DRIFT_SCAN = "drift_scan"
