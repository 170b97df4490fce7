"""A queue manager whose queues have access lists."""

from __future__ import annotations

from msmq_fast.mqqb.access import SenderGate
from msmq_fast.mqqb.destination import Destination
from msmq_fast.security.audit import Audit
from msmq_fast.security.authorizer import QUEUE, Authorizer
from msmq_fast.security.principals import Principals, UnsignedSid
from msmq_fast.security.sddl import parse_sddl
from msmq_fast.security.sid import sid
from msmq_fast.security.users import Users
from tests.support.mqqb import wire
from tests.support.worlds.hosts import Host

BOB, EVE = sid("S-1-5-21-7-8-9-1001"), sid("S-1-5-21-7-8-9-1002")
WRITE = 4


class Guarded(Host):
    """A host whose queue `q` has a list; `asked` are the questions to the gate."""

    def __init__(
        self,
        sddl: str,
        *,
        quarantine: bool = False,
        unsigned: UnsignedSid = UnsignedSid.USE,
        **context: object,
    ) -> None:
        users = Users(sid("S-1-5-21-7-8-9"))
        users.add("bob", uid=None, groups=("staff",), own_sid=BOB)
        authorizer = Authorizer(Audit(lambda: 0.0, lambda record, _: self.records.append(record)))
        gate = SenderGate(Principals(lambda: users, 0), authorizer, unsigned)
        self.records: list[object] = []
        self.asked = 0

        def counted(
            target: Destination, kind: int, identifier: bytes, message: str, *, verified: bool = False
        ) -> bool:
            self.asked += 1
            return gate(target, kind, identifier, message, verified=verified)

        super().__init__(
            gate=counted, quarantine=(lambda: self["quarantine"]) if quarantine else None, **context
        )
        self.add("quarantine")
        descriptor = parse_sddl(sddl.replace("STAFF", str(users.group_sid("staff"))))
        self.queues["private$\\q"] = Destination(
            self.core(),
            everybody=authorizer.everybody(descriptor, WRITE, QUEUE),
            security=descriptor,
            name="q",
        )
        self.session = self.opened()
        self.number = 0

    def send(self, header: bytes = b"", **more: object) -> int:
        """One message; its number."""
        self.number += 1
        self.session.receive(wire.message(self.number, security=header, **more), 100.0)  # type: ignore[arg-type]
        self.commit()
        return self.number
