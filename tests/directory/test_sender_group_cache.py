"""The groups of senders in memory: what one account or an overloaded controller does to the others."""

from __future__ import annotations

import threading

from msmq_fast.directory.ldap.accountcache import AccountCache
from msmq_fast.directory.ldap.accounts import Accounts
from msmq_fast.directory.ldap.worker import ThreadWorker
from msmq_fast.directory.results import DirectoryError, DirectoryOperationResult, generic
from msmq_fast.security.domainaccounts import DomainLogon
from msmq_fast.security.sid import Sid
from tests.support.domainaccounts import DOMAIN
from tests.support.worlds.activedirectory import ActiveDirectory
from tests.support.worlds.domains import Inline

ALICE, MALLORY = DOMAIN.child(1102), DOMAIN.child(1666)


class _Accounts(Accounts):
    """Everybody is in the group 1103, but Mallory is in too many. `away`: no controller answers."""

    away = False

    def logon(self, account: Sid) -> DomainLogon:
        if self.away:
            raise DirectoryError(DirectoryOperationResult.NOT_CONNECTED, "no domain controller answers")
        if account == MALLORY:
            raise generic("tokenGroups: more than 1015 groups")
        return DomainLogon(account, "CORP\\alice", DOMAIN, DOMAIN.child(513), (DOMAIN.child(1103),))


class _World:
    def __init__(self) -> None:
        self.now = 0.0
        self.accounts = _Accounts(ActiveDirectory())
        self.cache = AccountCache(self.accounts, Inline(), lambda: self.now, frozenset())


def test_an_account_in_too_many_groups_does_not_end_questions_about_others() -> None:
    world = _World()
    assert world.cache.learn_logon(MALLORY) is not None
    assert world.cache.known_logon(MALLORY) is None
    assert world.cache.learn_logon(MALLORY) is None  # not again with each of its messages
    assert world.cache.learn_logon(ALICE) is not None
    known = world.cache.known_logon(ALICE)
    assert known is not None
    assert known.groups == (DOMAIN.child(1103),)


def test_old_groups_are_of_use_only_while_no_controller_answers() -> None:
    world = _World()
    world.cache.learn_logon(ALICE)
    world.now += 700.0
    assert world.cache.known_logon(ALICE) is None
    world.cache.learn_logon(MALLORY)
    assert world.cache.known_logon(ALICE) is None
    world.accounts.away = True
    world.cache.learn_logon(ALICE)
    assert world.cache.known_logon(ALICE) is not None


def test_a_worker_with_too_much_work_counts_as_a_controller_that_does_not_answer() -> None:
    begun, leave = threading.Event(), threading.Event()
    worker = ThreadWorker(lambda function, *arguments: None, max_waiting=1)

    def hang() -> None:
        begun.set()
        leave.wait(10)

    worker.submit(hang)
    assert begun.wait(10)
    worker.submit(hang)
    error = worker.submit(hang).exception()
    leave.set()
    worker.close()
    assert isinstance(error, DirectoryError)
    assert error.result is DirectoryOperationResult.NOT_CONNECTED
