"""Granting: nobody hands out more than they hold themselves; the machine's owner holds all (S5).

An admin manages people. The grant to let commands run is given by somebody who has it: the first
by the owner of the machine, or by the configuration.
"""

from __future__ import annotations

from upright.store.accounts import LOCAL_ID, Account
from upright.web.principal import ForbiddenError, Principal


def may_grant_exec(who: Principal, found: Account | None) -> None:
    """Refuse to let *found*, or a new account, run commands to who may not; keeping is no grant.

    Raises:
        ForbiddenError: ``exec.not_yours``.
    """
    has_it = found is not None and found.runs and not found.revoked
    if not (who.exec or has_it):
        detail = f"who lets commands run gives that grant, and {who.name} has none"
        raise ForbiddenError("exec.not_yours", detail)


def may_stand_for(who: Principal, account: Account) -> None:
    """Refuse to make a way in as an account that may more; as the machine's owner, to all others.

    Raises:
        ForbiddenError: ``account.above_yours``.
    """
    is_above = account.role > who.role or (account.runs and not who.exec)
    is_owner = account.id == LOCAL_ID and who.account != LOCAL_ID
    if is_above or is_owner:
        detail = f"{account.name} may more than {who.name} does here: ask who may as much"
        raise ForbiddenError("account.above_yours", detail)
