"""The groups of the sender of a signed message: whether they decide, and what happens until they are
known.
"""

from __future__ import annotations

import struct

import pytest

from msmq_fast._native.framing import ParsedMessage
from msmq_fast.mqqb.access import SenderGate
from msmq_fast.mqqb.destination import Destination
from msmq_fast.mqqb.hooks import Hooks
from msmq_fast.mqqb.reasons import CloseReason, Refusal
from msmq_fast.security.audit import Audit, AuditRecord
from msmq_fast.security.authorizer import Authorizer
from msmq_fast.security.principals import Principals
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import Sid
from msmq_fast.security.users import Users
from tests.support.domainaccounts import DOMAIN, WrittenAccounts
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

ALICE, CAROL, SALES, SUPPORT = (DOMAIN.child(rid) for rid in (1102, 1105, 1103, 1104))
STRANGER = DOMAIN.child(1999)
_AUTHENTICATED = 0x0100  # SecurityHeader.Flags.AS


class _Opener:
    """Believes that each message has a signature of the sender that it names."""

    opened = 0

    def open(self, message: ParsedMessage, target: Destination) -> bytes:
        return message.packet


class Doorway(Host):
    """A host whose queue `q` has a list, and takes signed messages only."""

    def __init__(self, entries: str) -> None:
        self.accounts = WrittenAccounts({1102: "alice", 1105: "carol", 1103: "Sales"})
        self.records: list[AuditRecord] = []
        users = Users.new(lambda count: bytes(range(count)))
        authorizer = Authorizer(Audit(lambda: 0.0, lambda record, _: self.records.append(record)))
        gate = SenderGate(Principals(lambda: users, 0, domain=self.accounts), authorizer)
        super().__init__(gate=gate, hooks=Hooks(protection=_Opener()))
        self.queues["private$\\q"] = Destination(
            self.core(), authenticated=True, everybody=False, security=parse_sddl(entries), name="q"
        )
        self.session = self.opened()
        self.number = 0

    def send(self, *accounts: Sid) -> None:
        """Messages of these senders, in one piece."""
        data = b""
        for account in accounts:
            self.number += 1
            header = struct.pack("<HHHHII", 1 | _AUTHENTICATED, len(account.data), 0, 0, 0, 0) + account.data
            data += wire.message(self.number, security=header)
        self.session.receive(data, 100.0)
        self.commit()

    def answer(self) -> None:
        self.accounts.answer(101.0)
        self.commit()


@pytest.mark.rule("QB-259")
def test_a_message_waits_for_the_groups_of_its_sender() -> None:
    host = Doorway(f"D:(A;;LC;;;{SALES})")
    host.send(ALICE, ALICE)
    assert (host.session.reading_paused, host.messages()) == (True, [])
    host.send(ALICE)  # what arrives meanwhile
    assert [account for account, _ in host.accounts.asked] == [ALICE]
    host.answer()
    assert (host.session.reading_paused, host.messages()) == (False, [1, 2, 3])
    assert not host.refusals
    host.send(ALICE)
    assert host.messages()[-1] == 4
    assert not host.accounts.asked


@pytest.mark.rule("QB-259")
@pytest.mark.parametrize(
    ("entries", "asks", "taken"),
    [
        (f"D:(A;;LC;;;{SALES})", True, True),
        (f"D:(A;;LC;;;{SUPPORT})", True, False),
        (f"D:(A;;LC;;;{ALICE})", False, True),
        (f"D:(A;;LC;;;{ALICE})(D;;LC;;;{SALES})", True, True),
        (f"D:(D;;LC;;;{SALES})(A;;LC;;;{ALICE})", True, False),
        (f"D:(D;;CC;;;{SALES})(A;;LC;;;{ALICE})", False, True),
        (f"D:(D;;LC;;;{ALICE})(D;;LC;;;{SALES})(A;;LC;;;WD)", False, False),
        ("D:(A;;LC;;;BA)", False, False),
        (f"D:(A;IO;LC;;;{SALES})", False, False),
    ],
)
def test_a_domain_controller_is_asked_only_if_groups_decide(entries: str, asks: bool, taken: bool) -> None:
    host = Doorway(entries)
    host.send(ALICE)
    assert bool(host.accounts.asked) == asks
    host.answer()
    assert host.messages() == ([1] if taken else [])


@pytest.mark.rule("QB-259")
def test_without_the_groups_access_is_denied() -> None:
    """No domain controller answers, or it does not know the sender; other senders go on."""
    host = Doorway(f"D:(A;;LC;;;{SALES})(A;;LC;;;{CAROL})")
    host.send(STRANGER, CAROL)
    assert host.messages() == [2]
    host.send(ALICE, CAROL)
    host.accounts.away = True
    host.answer()
    assert (host.messages(), host.session.reading_paused) == ([2, 4], False)
    assert host.session_context.counts.refused[Refusal.ACCESS_DENIED] == 2
    assert {record.reason for record in host.records} == {
        "no domain controller says the groups of the sender"
    }
    host.accounts.away = False
    host.send(ALICE)
    host.answer()
    assert host.messages() == [2, 4, 5]


def test_a_session_that_ends_meanwhile() -> None:
    host = Doorway(f"D:(A;;LC;;;{SALES})")
    host.send(ALICE)
    host.session.close(CloseReason.IDLE, 100.0)
    host.answer()
    assert host.messages() == []
