"""Access control according to the configuration: accounts, rights and audit, and their updates while the
server runs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from msmq_fast._native.queue import QueueCore
from msmq_fast.config.sections import Config
from msmq_fast.mqqb.access import SenderGate
from msmq_fast.protocol.errors import MSMQError, QueueNotFound
from msmq_fast.qm.manager import QueueManager
from msmq_fast.qm.queues.guard import Guard
from msmq_fast.security.audit import Audit
from msmq_fast.security.authorizer import Authorizer
from msmq_fast.security.defaults import DefaultAcl, DefaultPolicy
from msmq_fast.security.domainaccounts import DomainAccounts
from msmq_fast.security.errors import SecurityDataError
from msmq_fast.security.logons import LogonLimits
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import Sid, sid
from msmq_fast.security.userchanges import UserChange, user_changes
from msmq_fast.security.users import Users, UsersFileError
from msmq_fast.security.usersfile import UsersSource, load_users
from msmq_fast.server.declarations import DeclarationError
from msmq_fast.signals import Signal

__all__ = ["AccessControl", "domain_sid"]

_log = logging.getLogger("msmq_fast.server")
_LOOK_INTERVAL = 2.0  # seconds between two looks at the users file
_FOR_ADMINISTRATORS = "D:P(A;;CCDCLCSWRPWPSDRCWDWO;;;BA)"


class AccessControl:
    """The access control of one server; create it before the queue manager. Emits `users_changed` after a
    change of the users file, and `users_edited` with the differences and the uid of the owner of the file.

    Raises DeclarationError if the users file or a group is invalid.
    """

    def __init__(
        self, config: Config, monotonic: Callable[[], float], domain: DomainAccounts | None = None
    ) -> None:
        """`domain` are the accounts of the domain that the server is a member of."""
        self._config = config
        self._due = monotonic() + _LOOK_INTERVAL
        self.users_changed: Signal[[]] = Signal()
        self.users_edited: Signal[[list[UserChange], int | None]] = Signal()
        self.logons = LogonLimits(monotonic)
        self.audit = Audit(monotonic, interval=config.security.audit_interval)
        self._source = UsersSource(config.users_file, Users.new(os.urandom), self._complain)
        self._check_file()
        self.principals = Principals(self._source, os.geteuid(), domain=domain)
        self._seen = self._source()
        self.guard = Guard(Authorizer(self.audit), self._policy())
        self._check_groups()

    def gate(self) -> SenderGate:
        """Return the gate that decides whether the sender of a message may send it."""
        unsigned = UnsignedSid(self._config.interop.unsigned_sender_id)
        return SenderGate(self.principals, self.guard.authorizer, unsigned)

    def quarantine(self, manager: QueueManager) -> Callable[[], QueueCore | None] | None:
        """Create the queue for messages of refused senders if it is missing. Return a function that returns
        this queue, or None if the queue has been deleted. Return None instead of the function if the messages
        of refused senders are dropped.
        """
        name = self._config.security.quarantine
        if not name:
            return None
        try:
            if manager.find(name).transactional:
                raise DeclarationError(f'security.quarantine: "{name}" must not be transactional')
        except QueueNotFound:
            security = parse_sddl(_FOR_ADMINISTRATORS)
            label = "messages of refused senders"
            manager.create_queue(name, security=security, label=label)
        except MSMQError as error:
            raise DeclarationError(f'security.quarantine: "{name}": {error}') from None

        def core() -> QueueCore | None:
            try:
                return manager.find(name).core
            except MSMQError:
                return None

        return core

    # ---- upkeep

    def next_deadline(self) -> float:
        """Return the time at which `expire` is due."""
        return self._due

    def expire(self, now: float) -> None:
        """Read the users file if it has changed, and log the refusals that the audit has collected."""
        self._due = now + _LOOK_INTERVAL
        users = self._source()
        if users is not self._seen:
            before, self._seen = self._seen, users
            self.users_changed()
            self.users_edited(user_changes(before, users), self._owner())
        self.audit.flush()

    # ---- inside

    def _owner(self) -> int | None:
        """Return the uid of the owner of the users file: the tools replace the file, so the user that ran the
        last of them owns it. None if there is no file.
        """
        try:
            return self._config.users_file.stat().st_uid
        except OSError:
            return None

    def _policy(self) -> DefaultPolicy:
        security = self._config.security
        given = frozenset(domain_sid(text) for text in security.domains)

        def is_domain_user(account: Sid) -> bool:
            domain = self.principals.domain
            return any(account.within(one) for one in (given if domain is None else domain.domains))

        return DefaultPolicy(
            DefaultAcl(security.default_queue_acl),
            reachable_by_srmp=security.anonymous_may_send,
            everyone_creates_queues=security.everyone_creates_queues,
            is_domain_user=is_domain_user,
        )

    def _check_file(self) -> None:
        path = self._config.users_file
        try:
            load_users(path)
            mode = path.stat().st_mode
        except FileNotFoundError:
            return
        except UsersFileError as error:
            raise DeclarationError(str(error)) from None
        except OSError as error:
            raise DeclarationError(f"the users file {path} cannot be read: {error.strerror}") from None
        if mode & 0o077:
            _log.warning("%s holds secrets and can be read by other users; change its mode to 0600", path)

    def _check_groups(self) -> None:
        for user in self._config.users:
            try:
                self.principals.of_name(user.name, user.groups)
            except UsersFileError as error:
                raise DeclarationError(f'user "{user.name}": {error}') from None

    @staticmethod
    def _complain(text: str) -> None:
        _log.error("the users file is invalid, the accounts read before stay in force: %s", text)


def domain_sid(text: str) -> Sid:
    """Return a SID of security.domains. Raises DeclarationError."""
    try:
        return sid(text)
    except SecurityDataError as error:
        raise DeclarationError(f"security.domains: {error}") from None
