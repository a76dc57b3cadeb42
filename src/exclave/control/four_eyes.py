"""Four eyes: the switch of an org, and what one person alone may not do."""

from exclave.base.errors import Conflict, NotFound
from exclave.control.access import require, require_on
from exclave.control.audit import OPERATOR, record
from exclave.control.deps import Deps
from exclave.domain.configs import Config
from exclave.domain.four_eyes import (
    REQUEST_LIFE,
    Author,
    SecondPersonNeeded,
    Switch,
    Switched,
    decide_switch,
    is_author,
)
from exclave.domain.identity import OrgId, Right, TokenId, User
from exclave.domain.intents import read_intent
from exclave.domain.workflows import Workflow
from exclave.storage import accounts, configs, four_eyes, steps, workflows
from exclave.storage.engine.database import Tx
from exclave.wire.identity import FourEyesReply

_FEWEST_ADMINS = 2


async def show_four_eyes(deps: Deps, user: User) -> FourEyesReply:
    """Show whether the caller's org asks for two people."""
    return await deps.db.read(lambda tx: _show(tx, user.org))


async def set_four_eyes(deps: Deps, user: User, *, on: bool) -> FourEyesReply:
    """Switch four eyes on at once; off when a second admin wishes it too."""
    require(user, Right.ADMINISTER)

    def change(tx: Tx) -> FourEyesReply:
        switch = four_eyes.read_switch(tx, user.org, lock=True)
        done = decide_switch(switch, user.person, on=on, now=tx.now)
        match done:
            case Switched.ON:
                _refuse_lone_admin(tx, user.org)
                _switch_on(tx, user.org)
            case Switched.OFF:
                four_eyes.write_switch(tx, user.org, Switch(on=False))
            case Switched.REQUESTED:
                request = Switch(on=True, off_by=user.person, off_at=tx.now)
                four_eyes.write_switch(tx, user.org, request)
            case Switched.UNCHANGED:
                return _show(tx, user.org)
        asked = {} if switch.off_by is None else {"requested_by": switch.off_by}
        record(tx, deps, user.org, user.name, _ACTIONS[done], user.org, **asked)
        return _show(tx, user.org)

    return await deps.db.write(change)


def force_four_eyes(tx: Tx, deps: Deps, name: str, *, on: bool) -> None:
    """Switch four eyes of an org without asking its admins; for the operator of the instance."""
    row = accounts.find_org_named(tx, name)
    if row is None:
        raise NotFound(f"there is no org named `{name}`")
    four_eyes.read_switch(tx, row.id, lock=True)
    if on:
        _switch_on(tx, row.id)
    else:
        four_eyes.write_switch(tx, row.id, Switch(on=False))
    action = _ACTIONS[Switched.ON if on else Switched.OFF]
    record(tx, deps, row.id, OPERATOR, action, row.id)


async def confirm_token(deps: Deps, user: User, token: TokenId) -> None:
    """Vouch that a token made with four eyes belongs to the person whose account it names."""
    require(user, Right.ADMINISTER)

    def confirm(tx: Tx) -> None:
        row = accounts.find_token(tx, user.org, token)
        if row is None:
            raise NotFound("there is no such token")
        if row.person_id is None:
            return
        if row.person_id == user.person:
            raise SecondPersonNeeded(
                "you made this token, or the one that it was made with",
                hint="Another admin confirms it: exclave tokens confirm " + token,
            )
        if not four_eyes.confirm_person(tx, user.org, token, row.person_id):
            raise Conflict("the token was confirmed meanwhile")
        record(tx, deps, user.org, user.name, "token_confirmed", token)

    await deps.db.write(confirm)


def is_on(tx: Tx, org: OrgId) -> bool:
    """Return whether an org requires two people."""
    return four_eyes.read_switch(tx, org).on


def require_approve_all(
    tx: Tx, user: User, install: str | None, *, app: str | None = None, noun: str = "install"
) -> None:
    """Refuse automatic approval to those who may not approve, and to all where two are asked."""
    if app is None:
        require_on(tx, user, Right.APPROVE, install, noun=noun)
    else:
        require(user, Right.APPROVE, app=app, noun=noun)
    refuse_approve_all(tx, user.org)


def refuse_approve_all(tx: Tx, org: OrgId) -> None:
    """Refuse automatic approval in an org that asks for two people."""
    if is_on(tx, org):
        raise SecondPersonNeeded(
            "this org asks for four eyes: nothing is approved automatically",
            hint="Leave automatic approval out (approval_option `prompt`); people answer gates.",
        )


def refuse_own_work(tx: Tx, user: User, workflow: Workflow) -> None:
    """Refuse a gate's approval by who started the workflow or synced its config."""
    if not is_on(tx, user.org):
        return
    row = workflows.find_workflow(tx, user.org, workflow.id)
    if row is None:
        raise NotFound("there is no such workflow")
    if is_author(user, Author(row.created_by, row.by_person, row.by_token)):
        raise SecondPersonNeeded("you started this workflow: somebody else approves its gates")
    config = _find_config(tx, user.org, workflow)
    if config is not None and is_author(user, config.author):
        raise SecondPersonNeeded(
            f"you synced the config (version {config.version}) of this workflow: somebody else"
            " approves its gates"
        )


_ACTIONS = {
    Switched.ON: "four_eyes_on",
    Switched.OFF: "four_eyes_off",
    Switched.REQUESTED: "four_eyes_off_requested",
}


def _switch_on(tx: Tx, org: OrgId) -> None:
    four_eyes.write_switch(tx, org, Switch(on=True))
    four_eyes.stop_approving_all(tx, org)


def _refuse_lone_admin(tx: Tx, org: OrgId) -> None:
    """Refuse what nobody could undo: switching off takes two admins."""
    admins = four_eyes.list_admins(tx, org)
    if len(admins) < _FEWEST_ADMINS:
        raise Conflict(
            "four eyes need two admins, and this org has one",
            hint="Make a token for another person first: exclave tokens create NAME --role admin",
        )


def _find_config(tx: Tx, org: OrgId, workflow: Workflow) -> Config | None:
    """Find the config that an install's workflow runs; one that a person wrote has none."""
    specs = steps.load_specs(tx, (org, workflow.id), range(len(workflow.steps)))
    for spec in specs.values():
        stored = read_intent(spec)
        if stored is not None:
            return configs.find_config(tx, org, stored.values.config)
    return None


def _show(tx: Tx, org: OrgId) -> FourEyesReply:
    switch = four_eyes.read_switch(tx, org)
    asked = switch.is_requested(tx.now)
    return FourEyesReply(
        on=switch.on,
        off_requested_by=four_eyes.find_name(tx, org, switch.off_by) if asked else None,
        off_request_expires_at=switch.off_at + REQUEST_LIFE if asked and switch.off_at else None,
        admins=sorted(four_eyes.list_admins(tx, org).values()),
    )
