"""`triggers.toml`: what events from outside set off."""

from collections.abc import Mapping

from exclave.appconfig.model.fields import (
    NEW,
    REQUIRED,
    Table,
    anything,
    flag,
    table,
    tables,
    text,
    text_map,
    texts,
)

OPERATORS = (
    "eq", "neq", "in", "prefix", "suffix", "contains", "gt", "gte", "lt", "lte", "regex",
    "exists", "not_exists",
)  # fmt: skip
MAX_FILTERS = 20


class Filter(Table):
    """A condition on an event."""

    origin: str = text(
        "Where to look.", key="from", choices=("payload", "headers"), default="payload", since=NEW
    )
    path: str = text("A JSONPath, or a header.", '"$.ref"', need=REQUIRED, since=NEW)
    op: str = text("How to compare.", choices=OPERATORS, need=REQUIRED, since=NEW)
    value: str | None = anything("What to compare with.", '"refs/heads/main"', since=NEW)


class Target(Table):
    """What an event sets off."""

    type: str = text(
        "What is started.", choices=("app_branch_run", "runbook"), need=REQUIRED, since=NEW
    )
    app_branch: str = text("For app_branch_run.", '"main"', since=NEW)
    runbook: str = text("For runbook.", '"restart"', since=NEW)
    install: str = text("Where the runbook runs.", '"acme-prod"', since=NEW)
    inputs: Mapping[str, str] = text_map(
        "Inputs of the runbook: name to JSONPath.", '{ version = "$.after" }', since=NEW
    )


class EventRule(Table):
    """One rule: which events, and what they set off."""

    name: str = text("Unique.", '"deploy_on_push"', need=REQUIRED, since=NEW)
    trigger: str = text("The source of events.", '"github"', need=REQUIRED, since=NEW)
    event_types: tuple[str, ...] = texts("Which events.", '["push"]', since=NEW)
    filters: tuple[Filter, ...] = tables(Filter, "Which of them count; at most 20.", since=NEW)
    match_all: bool = flag("All filters must match, not just one.", since=NEW)
    target: Target | None = table(Target, "What is set off.", need=REQUIRED, since=NEW)


class TriggersFile(Table):
    """What events from outside set off."""

    rules: tuple[EventRule, ...] = tables(EventRule, "The rules.", since=NEW)
